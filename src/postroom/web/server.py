"""Serves the web door over HTTP, inside our own event loop."""

import asyncio
import socket

import uvicorn
from starlette.types import ASGIApp

from postroom.web.connection import BoundedConnection
from postroom.web.frames import StreamProtocol

STOP_SECONDS = 8
CLIENT_MESSAGE_BYTES = 64 * 1024
PING_SECONDS = 30
PONG_SECONDS = 10


class HttpServer:
    def __init__(
        self, app: ASGIApp, listener: socket.socket, connection: type[BoundedConnection] = BoundedConnection
    ) -> None:
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=connection,
                ws=StreamProtocol,
                ws_max_size=CLIENT_MESSAGE_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PONG_SECONDS,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS + 1,
            )
        )

    async def start(self) -> None:
        """uvicorn's own serve() would take over the process's signals, so its three steps are run here."""
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[self._listener])
        self._main_loop = asyncio.create_task(self._server.main_loop())

    async def stop(self) -> None:
        """Answers what has come in; who has not sent or taken all of it in time is cut off."""
        self._main_loop.cancel()
        cutting = asyncio.get_running_loop().call_later(STOP_SECONDS, self._cut_connections)
        await self._server.shutdown(sockets=[self._listener])
        cutting.cancel()

    def _cut_connections(self) -> None:
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
