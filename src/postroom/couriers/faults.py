"""Network errors as short texts."""

import ssl


def describe(error: BaseException) -> str:
    """A network error in a few words."""
    if isinstance(error, TimeoutError):
        return "took too long"
    return str(error)[:200] or type(error).__name__


def is_unproved(error: BaseException | None) -> bool:
    """Return whether an invalid certificate is the cause."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
