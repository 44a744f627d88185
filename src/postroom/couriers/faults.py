"""Network errors as short texts."""

import os
import ssl


def describe(error: BaseException) -> str:
    """Describe a network error in a few words."""
    if isinstance(error, TimeoutError):
        return "took too long"
    cause = _cause(error)
    if cause is not None:
        is_of_system = cause.errno is not None and cause.errno > 0
        return os.strerror(cause.errno or 0) if is_of_system else str(cause.strerror)[:200]
    return str(error)[:200] or type(error).__name__


def _cause(error: BaseException | None) -> OSError | None:
    """Return what the system said, which libraries hide behind sentences of theirs."""
    while error is not None:
        if (
            isinstance(error, OSError)
            and error.errno
            and error.strerror
            and not isinstance(error, ssl.SSLError)
        ):
            return error
        error = error.__cause__ or error.__context__
    return None


def is_unproved(error: BaseException | None) -> bool:
    """Return whether an invalid certificate is the cause."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
