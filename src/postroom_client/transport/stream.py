"""The event stream: connects, subscribes, reconnects, and resumes after the last event it returned."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from postroom_client.errors import StreamRefused, Unauthorized
from postroom_client.failures import place_of
from postroom_client.transport.exchange import PASSING_FAULTS, TOO_MANY_REQUESTS, backoff, decoder, to_error
from postroom_client.transport.wire import require_visible

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FRAME_LIMIT_BYTES = 64 * 1024 * 1024
REMEMBERED_EVENTS = 1024
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
KEY_REVOKED = 4001
PASSING_STATUSES = PASSING_FAULTS | {TOO_MANY_REQUESTS}

OnPause = Callable[[str, float], None]  # why the stream broke, and for how many seconds it rests


@dataclass(frozen=True, slots=True)
class Frame:
    """An event as the exact text that the server sent."""

    event_id: str
    kind: str
    text: str = field(repr=False)


class _Head(Struct, frozen=True):
    type: str = ""
    event: str = ""
    event_id: str = ""
    last_event_id: str | None = None
    message: Any = None


class Subscription:
    """The filters and the last event: all that outlives a connection."""

    def __init__(
        self,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
        last_event_id: str | None = None,
    ) -> None:
        self.last_event_id = last_event_id
        self._filters = {"inbox_ids": list(inbox_ids), "event_types": list(event_types)}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._failures = 0

    def request(self) -> str:
        """Return the subscribe message of a new connection."""
        wanted = {name: values for name, values in self._filters.items() if values}
        resume = {} if self.last_event_id is None else {"last_event_id": self.last_event_id}
        return msgspec.json.encode({"type": "subscribe", **wanted, **resume}).decode()

    def take(self, text: str) -> Frame | None:
        """Return a frame, or None. Raises StreamRefused on the server's error."""
        head = _read_head(text)
        self._failures = 0
        if head.type == "error":
            raise StreamRefused(str(head.message))
        if head.type == "subscribed" and self.last_event_id is None:
            self.last_event_id = head.last_event_id
        if head.type or not head.event_id or self._is_repeated(head.event_id):
            return None
        self.last_event_id = head.event_id
        return Frame(head.event_id, head.event, text)

    def pause_after(self, error: Exception) -> float:
        """Return seconds to wait before the next connection; raises if a retry cannot help."""
        _raise_if_final(error)
        self._failures += 1
        return backoff(self._failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

    def _is_repeated(self, event_id: str) -> bool:
        if event_id in self._seen:
            return True
        self._seen[event_id] = None
        if len(self._seen) > REMEMBERED_EVENTS:
            self._seen.popitem(last=False)
        return False


def _read_head(text: str) -> _Head:
    try:
        return decoder(_Head).decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StreamRefused(f"The server sent something that is not an event{place_of(error)}.") from None


def _raise_if_final(error: Exception) -> None:
    if isinstance(error, InvalidStatus) and error.response.status_code not in PASSING_STATUSES:
        raise to_error(error.response.status_code, bytes(error.response.body or b""), None) from None
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code == KEY_REVOKED:
        raise Unauthorized("The key was revoked.") from None


def explain(error: Exception) -> str:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return error.rcvd.reason or f"closed with {error.rcvd.code}"
    return str(error) or type(error).__name__


def _options(api_key: str) -> dict[str, Any]:
    require_visible(api_key)
    return {
        "additional_headers": {"Authorization": f"Bearer {api_key}"},
        "user_agent_header": "postroom-client",
        "compression": None,
        "max_size": FRAME_LIMIT_BYTES,
    }


def address(base_url: str) -> str:
    return f"ws{base_url.removeprefix('http').rstrip('/')}/v1/ws"


# What may end a connection and let another one follow.
PASSING_ERRORS = (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, EOFError)


def frames(
    base_url: str, api_key: str, subscription: Subscription, on_pause: OnPause | None = None
) -> Generator[Frame, None, None]:
    """Yield every event from here on; ends only by an exception or by the caller."""
    while True:
        try:
            yield from _one_connection(base_url, api_key, subscription)
            raise EOFError("the server closed the stream")
        except PASSING_ERRORS as error:
            pause = subscription.pause_after(error)
            if on_pause is not None:
                on_pause(explain(error), pause)
        time.sleep(pause)


def _one_connection(base_url: str, api_key: str, subscription: Subscription) -> Generator[Frame, None, None]:
    from websockets.sync.client import connect

    # Closed inside, so that a connection left by the caller ends normally and not as an error.
    with connect(address(base_url), **_options(api_key)) as socket, closing(socket):
        socket.send(subscription.request())
        for text in socket:
            frame = subscription.take(_as_text(text))
            if frame is not None:
                yield frame


async def async_frames(
    base_url: str, api_key: str, subscription: Subscription, on_pause: OnPause | None = None
) -> AsyncGenerator[Frame, None]:
    """Yield like `frames`, awaited."""
    while True:
        try:
            async with aclosing(_one_async_connection(base_url, api_key, subscription)) as connection:
                async for frame in connection:
                    yield frame
            raise EOFError("the server closed the stream")
        except PASSING_ERRORS as error:
            pause = subscription.pause_after(error)
            if on_pause is not None:
                on_pause(explain(error), pause)
        await asyncio.sleep(pause)


async def _one_async_connection(
    base_url: str, api_key: str, subscription: Subscription
) -> AsyncGenerator[Frame, None]:
    from websockets.asyncio.client import connect

    async with connect(address(base_url), **_options(api_key)) as socket, _closing(socket):
        await socket.send(subscription.request())
        async for text in socket:
            frame = subscription.take(_as_text(text))
            if frame is not None:
                yield frame


@asynccontextmanager
async def _closing(socket: "ClientConnection") -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await socket.close()


def _as_text(message: str | bytes) -> str:
    return message if isinstance(message, str) else message.decode(errors="replace")
