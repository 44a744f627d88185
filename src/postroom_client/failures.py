"""The base of all exceptions of this client, and those that no server sends."""

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"at `\$?\.?([^`]+)`|\((at line \d+, column \d+)\)|(field `\w+`)")


class PostroomError(Exception):
    """`code` is for programs, `message` for people; `extras` holds what else the answer named."""

    code = "error"
    status = 0

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        extras: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.status = type(self).status if status is None else status
        self.extras = dict(extras or {})
        self.retry_after = retry_after

    def to_json(self) -> dict[str, Any]:
        waiting = {} if self.retry_after is None else {"retryAfter": self.retry_after}
        return {"error": self.code, "message": self.message, **self.extras, **waiting}


class ConnectionFailed(PostroomError):
    """No answer came: the server is away, or the network between."""

    code = "connection_failed"


class InvalidAnswer(PostroomError):
    """What came back is not this interface's."""

    code = "invalid_answer"


class StreamRefused(PostroomError):
    """The stream answered a subscription with an error."""

    code = "stream_refused"


def place_of(error: Exception) -> str:
    """Return where a text cannot be read, or why a file cannot, as the end of a sentence."""
    if isinstance(error, OSError):
        return f": {error.strerror}"
    found = _PLACE.search(str(error))
    return "" if found is None else f" ({next(filter(None, found.groups()))})"
