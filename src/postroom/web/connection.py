"""One HTTP connection: uvicorn's, with limits on what a client may send and how long it may take."""

import asyncio
from functools import partial
from typing import Any, cast

import httptools
import msgspec
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from postroom import ids, log
from postroom.errors import ApiError, BadRequest, HeadersTooLarge, Unavailable
from postroom.net.listening import peer_of
from postroom.net.proxies import Proxies
from postroom.web.requests.request_body import IS_WHOLE
from postroom.web.streams.websocket import StreamProtocol

HEAD_LIMIT_BYTES = 64 * 1024
URL_LIMIT_BYTES = 16 * 1024
IDLE_SECONDS = 20.0
WAITING_REQUESTS = 64
MAX_CONNECTIONS = 20_000
UNKNOWN_PORT = 0


class BoundedConnection(HttpToolsProtocol):
    """A subclass, because uvicorn has no other hook for this."""

    idle_seconds = IDLE_SECONDS

    def __init__(
        self,
        *args: Any,
        max_connections: int = MAX_CONNECTIONS,
        proxies: Proxies | None = None,
        proxied_address: str | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._max_connections = max_connections
        self._proxies = proxies or Proxies()
        self._proxied_address = proxied_address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        is_full = len(self.connections) >= self._max_connections and not self._close_idlest()
        super().connection_made(cast(asyncio.Transport, transport))
        if self._proxied_address is not None:
            self.client = self._proxied_address, UNKNOWN_PORT
        elif self.client is not None:
            self.client = peer_of(self.client), self.client[1]
        self._received_at = self.loop.time()
        self._head_bytes = 0
        self._unsent_bytes = 0
        self._running: RequestResponseCycle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waits_until: float | None = None
        self._start_timer()
        if is_full:
            self.transport.write(refusal(Unavailable("Too many connections. Try again.", retry_after=5)))
            self.transport.close()

    @property
    def idle_since(self) -> float | None:
        """Return None while a request is under way."""
        return self._received_at if self.cycle is None or self.cycle.response_complete else None

    def _close_idlest(self) -> bool:
        """Closes the connection that has been idle longest: idle clients must not keep others out."""
        known = [other for other in self.connections if isinstance(other, BoundedConnection)]
        idle = [(since, other) for other in known if (since := other.idle_since) is not None]
        log.get().seldom("HTTP connection limit reached", connections=len(self.connections), idle=len(idle))
        if not idle:
            return False
        _, idlest = min(idle, key=lambda pair: pair[0])
        self.connections.discard(idlest)
        idlest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.disconnected = True  # uvicorn notifies only the last request of a pipeline
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._received_at = self.loop.time()
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
            self._require_small_head(self._head_bytes)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            reason = error.__context__
            self._refuse(reason if isinstance(reason, ApiError) else BadRequest("This is not valid HTTP."))
        except HeadersTooLarge as error:
            self._refuse(error)

    def on_headers_complete(self) -> None:
        if not self.flow.write_paused:
            self._waits_until = None
        if self._head_bytes > HEAD_LIMIT_BYTES:  # of these, some may be the body
            self._require_small_head(
                len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            )
        self._head_bytes = 0
        if len(self.url) > URL_LIMIT_BYTES:
            raise HeadersTooLarge(
                f"The path and the query are larger than {URL_LIMIT_BYTES} bytes. Shorten them."
            )
        if self._proxies and self.client is not None:
            self.scope["client"] = self._proxies.client_of(self.client[0], self.headers), UNKNOWN_PORT
        if len(self.pipeline) >= WAITING_REQUESTS:
            raise BadRequest("Too many requests wait on this connection. Wait for their answers first.")
        if not self.parser.should_upgrade() or self._should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        if not self.parser.should_upgrade():
            self.scope["state"][IS_WHOLE] = True
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._start_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.cycle.response_complete:
            self._waits_until = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _start_timer(self) -> None:
        """Start the timer. uvicorn would wait for ever for a first byte, or for a client that reads.

        A running timer is reused, so that a request needs no other.
        """
        self._waits_until = self.loop.time() + self.idle_seconds
        if self._timer is None:
            self._timer = self.loop.call_later(self.idle_seconds, self._check_timer)

    def _check_timer(self) -> None:
        self._timer = None
        if self._waits_until is None:
            return
        left = self._waits_until - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._check_timer)
        else:
            self._hang_up()

    def _hang_up(self) -> None:
        """Aborts, unless the client is still reading its answer."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes in (0, self._unsent_bytes):
            self.transport.abort()
        else:
            self._unsent_bytes = unsent_bytes
            self._start_timer()

    def _require_small_head(self, size: int) -> None:
        if size > HEAD_LIMIT_BYTES:
            raise HeadersTooLarge(f"The headers are larger than {HEAD_LIMIT_BYTES} bytes. Leave some out.")

    def _should_upgrade(self) -> bool:
        return self.parser.get_method() == b"GET" and super()._should_upgrade()

    def _upgrade(self, rest: bytes) -> None:
        """Upgrade to a WebSocket.

        Any other offer is ignored (RFC 9110, section 7.8): a POST that offers HTTP/2 keeps its body.

        The parser stops at an offer: a new one reads the head without it.
        """
        if self._should_upgrade():
            self.ws_protocol_class = partial(StreamProtocol, came_from=self.scope["client"])  # type: ignore[assignment]
            self.handle_websocket_upgrade()
            self._release()
        elif self.parser.get_method() == b"CONNECT":
            self._refuse(BadRequest("This is not a proxy."))
        else:
            head = self._head_without_offer()
            self.parser = httptools.HttpRequestParser(self)
            self.data_received(head + rest)

    def _release(self) -> None:
        """Drop all references to this connection: another protocol has taken over."""
        if self._timer is not None:
            self._timer.cancel()
        self.parser = None  # type: ignore[assignment]

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        kept = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join(
            [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version), *kept, b"", b""]
        )

    def _refuse(self, error: ApiError) -> None:
        """Refuse the rest.

        Requests completed before the error are still answered; then the connection closes.
        """
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        if not self.pipeline:
            self.transport.write(refusal(error))
        self.transport.close()


def refusal(error: ApiError) -> bytes:
    body = msgspec.json.encode(error.to_json())
    headers = {
        "X-Request-Id": f"req_{ids.trace()}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[error.status] + lines.encode() + b"\r\n" + body
