"""The doorstep of a door with TLS: a trusted proxy says whom it brings before the handshake begins."""

import asyncio
import socket
import ssl
from functools import partial

from postroom import log
from postroom.net.proxies import V2_LONGEST_BYTES, NoProxyHeader, Proxies, parse_header
from postroom.net.proxy_protocol import PATIENCE_SECONDS, MakeProtocol

REST_SECONDS = 1.0  # when no connection can be taken, as without descriptors


class TlsProxyProtocol:
    """Accepts by itself: once a transport has a connection, nobody can read the header alone."""

    def __init__(
        self, listener: socket.socket, proxies: Proxies, tls: ssl.SSLContext, make: MakeProtocol
    ) -> None:
        self._listener = listener
        self._proxies = proxies
        self._tls = tls
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._pending: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        self._accepting = self._loop.create_task(self._accept_all())

    async def close(self) -> None:
        """Whoever has not come in yet is turned away."""
        tasks = [self._accepting, *self._pending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept_all(self) -> None:
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._listener)
            except ConnectionError:
                continue  # gone before it was taken
            except OSError as error:
                log.get().seldom("a connection could not be taken", reason=str(error))
                await asyncio.sleep(REST_SECONDS)
                continue
            task = self._loop.create_task(self._admit(connection, str(peer[0])))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

    async def _admit(self, connection: socket.socket, peer: str) -> None:
        try:
            connection.setblocking(False)
            async with asyncio.timeout(PATIENCE_SECONDS):
                address = await read_header(connection) if self._proxies.trusts(peer) else None
            await self._loop.connect_accepted_socket(
                partial(self._make, address),
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=PATIENCE_SECONDS,
            )
        except (NoProxyHeader, TimeoutError):
            log.get().seldom("a proxy did not say whom it brings")
            connection.close()
        except OSError:  # ssl.SSLError is one
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def read_header(connection: socket.socket) -> str | None:
    """The address that a proxy announces; None where it announces nobody. Raises NoProxyHeader, OSError.

    No handshake begins as a header does, so what may be a header is taken at once, and nothing else is.
    """
    taken = b""
    while True:
        seen = await peek(connection)
        try:
            header = parse_header(taken + seen)
        except NoProxyHeader:
            if taken:
                raise
            return None
        if header is not None:
            connection.recv(header.length - len(taken))
            return header.address
        taken += connection.recv(len(seen))


async def peek(connection: socket.socket) -> bytes:
    """What has come, which stays there to be read."""
    await wait_readable(connection)
    seen = connection.recv(V2_LONGEST_BYTES, socket.MSG_PEEK)
    if not seen:
        raise ConnectionResetError
    return seen


async def wait_readable(connection: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
