"""One request and its answer, described without doing it: the blocking or the async client performs it."""

import logging
import random
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from postroom_client.errors import BY_CODE, ConnectionFailed, InvalidAnswer, PostroomError
from postroom_client.failures import place_of

T = TypeVar("T")
DEFAULT_TIMEOUT_SECONDS = 30.0
PASSING_FAULTS = frozenset({500, 502, 503, 504})
TOO_MANY_REQUESTS = 429
NOT_FOUND = 404
LOGGED_SECONDS = 1.0  # a shorter pause is not worth a line
_one_at_a_time = threading.Lock()
_decoders: dict[Any, "msgspec.json.Decoder[Any]"] = {}
OnWait = Callable[[str, float], None]  # why the client waits, and for how many seconds
_log = logging.getLogger("postroom_client")


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer."""

    status: int
    content: bytes
    retry_after: int | None = None
    date: str | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Fault:
    """No answer. `may_have_arrived` is False when the request cannot have reached the server."""

    reason: str
    may_have_arrived: bool


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    filename: str
    content: bytes = field(repr=False)
    content_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """What to ask and how to read the answer. `is_repeatable`: asking twice does no more than once."""

    method: str
    path: str
    read: Callable[[Reply], T]
    query: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    form: Mapping[str, list[str]] = field(default_factory=dict)
    files: tuple[OutgoingFile, ...] = ()
    content: bytes | None = field(default=None, repr=False)  # a body that is sent as it is
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    follows_redirects: bool = False
    accepts: frozenset[int] = frozenset()  # statuses next to success that `read` understands
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


Steps = Generator[Call[Any], Any, T]  # several calls; each step gets the result of the last


async def carry_out(work: "Call[T] | Steps[T]", exchange: Callable[[Call[Any]], Awaitable[Any]]) -> T:
    """Passes each call of `work` to `exchange`, and its result to the next step."""
    if isinstance(work, Call):
        only: T = await exchange(work)
        return only
    result: Any = None
    while True:
        try:
            call = work.send(result)
        except StopIteration as end:
            final: T = end.value
            return final
        result = await exchange(call)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client tries before it gives up."""

    attempts: int = 4
    longest_wait_seconds: float = 60
    first_pause_seconds: float = 0.25


def pause_before_next(
    call: Call[Any], outcome: Reply | Fault, attempt: int, patience: Patience
) -> float | None:
    """Return seconds until another attempt is worthwhile; None if this outcome is final."""
    if attempt >= patience.attempts or not _is_worth_repeating(call, outcome):
        return None
    if isinstance(outcome, Reply) and outcome.retry_after is not None:
        return float(outcome.retry_after) if outcome.retry_after <= patience.longest_wait_seconds else None
    return backoff(attempt, patience.first_pause_seconds, patience.longest_wait_seconds)


def announce_pause(call: Call[Any], outcome: Reply | Fault, seconds: float, on_wait: OnWait | None) -> None:
    """Call `on_wait`; without one, a pause of a second or more is a warning in the log."""
    if isinstance(outcome, Fault):
        why = outcome.reason
    elif outcome.status == TOO_MANY_REQUESTS:
        why = str(to_error(outcome.status, outcome.content, outcome.retry_after))
    else:
        why = f"The server answered {outcome.status}."
    if on_wait is not None:
        on_wait(why, seconds)
    elif seconds >= LOGGED_SECONDS:
        _log.warning("%s %s: %s Trying again in %.0f s.", call.method, call.path, why, seconds)


def _is_worth_repeating(call: Call[Any], outcome: Reply | Fault) -> bool:
    if isinstance(outcome, Fault):
        return call.is_repeatable or not outcome.may_have_arrived
    if outcome.status == TOO_MANY_REQUESTS:
        return True
    return call.is_repeatable and outcome.status in PASSING_FAULTS


def backoff(attempt: int, first_seconds: float, longest_seconds: float) -> float:
    """Doubles with each attempt; the spread keeps many clients from returning at once."""
    whole = min(first_seconds * 2.0 ** min(attempt - 1, 30), longest_seconds)
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 (no secret hangs on it)


def require_success(call: Call[Any], outcome: Reply | Fault, attempt: int) -> Reply:
    if isinstance(outcome, Fault):
        raise ConnectionFailed(outcome.reason)
    if _is_removed_earlier(call, outcome, attempt):
        return Reply(204, b"")
    if not outcome.is_success and outcome.status not in call.accepts:
        raise to_error(outcome.status, outcome.content, outcome.retry_after)
    return outcome


def to_error(status: int, content: bytes, retry_after: int | None) -> PostroomError:
    """Reads an error answer; one that is not ours, for example from a proxy, is still described."""
    try:
        body = msgspec.json.decode(content, type=dict[str, Any])
        code, message = str(body.pop("error")), str(body.pop("message"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return InvalidAnswer(
            f"The server answered {status}, but not like Postroom.",
            status=status,
            retry_after=retry_after,
        )
    kind = BY_CODE.get(code, PostroomError)
    return kind(message, code=code, status=status, extras=body, retry_after=retry_after)


def _is_removed_earlier(call: Call[Any], reply: Reply, attempt: int) -> bool:
    """Return whether an earlier attempt whose answer was lost has already done it."""
    return call.method == "DELETE" and attempt > 1 and reply.status == NOT_FOUND


def read_retry_after(value: str | None) -> int | None:
    return (
        int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 9 else None
    )


def path(*segments: str) -> str:
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


def present(values: Mapping[str, object]) -> dict[str, str]:
    """Return a query with the values that are given."""
    return {name: _spell(value) for name, value in values.items() if value is not None}


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """Return a decoder made by one thread.

    msgspec 0.22 crashes if two threads decode a class for the first time at once.
    """
    found = _decoders.get(kind)
    if found is None:
        with _one_at_a_time:
            found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def decoded(kind: type[T]) -> Callable[[Reply], T]:
    def read(reply: Reply) -> T:
        try:
            return decoder(kind).decode(reply.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = (
                f"The server's answer cannot be read{place_of(error)}. Is the client as new as the server?"
            )
            raise InvalidAnswer(message, status=reply.status) from None

    return read


def content(reply: Reply) -> bytes:
    return reply.content


def nothing(reply: Reply) -> None:
    """Return nothing: the answer has no body."""
