"""The HTTP server: uvicorn inside our own event loop, with our own limits."""

import asyncio
import contextlib
import socket
import ssl
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from postroom import log
from postroom.net.listening import with_copies
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import ProxyProtocol
from postroom.net.tls_proxy_protocol import TlsProxyProtocol
from postroom.web.connection import MAX_CONNECTIONS, BoundedConnection
from postroom.web.mcp import KEEP_ALIVE_SECONDS
from postroom.web.streams.websocket import MESSAGE_BYTES, PING_SECONDS, PONG_SECONDS, StreamProtocol

STOP_SECONDS = 8
ABORT_SECONDS = 1
POLL_SECONDS = 0.01
RESTART_SECONDS = 1.0
DATE_SECONDS = 1.0


class HttpServer:
    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        connection: type[BoundedConnection] = BoundedConnection,
        max_connections: int = MAX_CONNECTIONS,
        proxies: Proxies | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        proxies = proxies or Proxies()
        self._proxy_protocol = ProxyProtocol(Proxies() if tls else proxies, requires_header=False)
        self._proxies, self._tls = proxies, tls
        self._tls_proxy_protocol: TlsProxyProtocol | None = None
        self._new_connection = partial(connection, max_connections=max_connections, proxies=proxies)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=self._connection,  # type: ignore[arg-type]
                ws=StreamProtocol,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ws_max_size=MESSAGE_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PONG_SECONDS,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                ssl_context_factory=None if tls is None else lambda config, default: tls,
            )
        )

    def _connection(self, **named: Any) -> asyncio.Protocol:
        return self._proxy_protocol.protocol(
            lambda proxied_address: self._new_connection(proxied_address=proxied_address, **named)
        )

    def _proxied_connection(self, proxied_address: str | None) -> asyncio.Protocol:
        """Return a connection with the arguments that uvicorn gives its own connections."""
        server = self._server
        return self._new_connection(
            proxied_address=proxied_address,
            config=server.config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
        )

    async def start(self) -> None:
        """Start uvicorn by its three steps: its serve() would take over the process's signals."""
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        if self._tls is not None and self._proxies:
            await self._server.startup(sockets=[])
            self._tls_proxy_protocol = TlsProxyProtocol(
                self._listener, self._proxies, self._tls, self._proxied_connection
            )
        else:
            await self._server.startup(sockets=with_copies(self._listener))
        self._main_loop = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        """Updates the date of the answers. uvicorn's own loop does so too, but wakes ten times a second."""
        while not self._server.should_exit:
            try:
                await self._server.on_tick(0)
                await asyncio.sleep(DATE_SECONDS)
            except Exception:
                log.get().exception("the main loop of the HTTP server failed")
                await asyncio.sleep(RESTART_SECONDS)

    async def stop(self) -> None:
        """Stop the server. Requests that have arrived are answered; slow clients are disconnected.

        uvicorn's own shutdown() waits a tenth of a second at each step, even if there is nothing to end.
        """
        self._main_loop.cancel()
        for server in self._server.servers:
            server.close()
        if self._tls_proxy_protocol is not None:
            await self._tls_proxy_protocol.close()
        self._listener.close()
        self._proxy_protocol.close()
        state = self._server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        await self._until_idle(STOP_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()
        await self._until_idle(ABORT_SECONDS)
        for task in list(state.tasks):
            task.cancel()

    async def _until_idle(self, seconds: float) -> None:
        state = self._server.server_state
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while state.connections or state.tasks:  # noqa: ASYNC110 (uvicorn's sets)
                    await asyncio.sleep(POLL_SECONDS)
