"""The PROXY protocol before TLS: the header comes in the clear, and the handshake follows it."""

import asyncio
import socket
import ssl
from functools import partial

from postroom import log
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import (
    HEADER_SECONDS,
    NO_HEADER,
    V2_LONGEST_BYTES,
    MakeProtocol,
    NoProxyHeader,
    parse_header,
)

RETRY_SECONDS = 1.0  # after a connection could not be accepted, for example without free descriptors


class TlsProxyProtocol:
    """Accepts connections itself: once a transport owns one, the header cannot be read separately."""

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
        """Closes connections whose handshake is not finished."""
        tasks = [self._accepting, *self._pending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept_all(self) -> None:
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._listener)
            except ConnectionError:
                continue  # closed before it was accepted
            except OSError as error:
                log.get().seldom("a connection could not be accepted", reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            task = self._loop.create_task(self._admit(connection, str(peer[0])))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

    async def _admit(self, connection: socket.socket, peer: str) -> None:
        try:
            connection.setblocking(False)
            async with asyncio.timeout(HEADER_SECONDS):
                address = await read_header(connection) if self._proxies.trusts(peer) else None
            await self._loop.connect_accepted_socket(
                partial(self._make, address),
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HEADER_SECONDS,
            )
        except (NoProxyHeader, TimeoutError):
            log.get().seldom(NO_HEADER)
            connection.close()
        except OSError:  # ssl.SSLError is one
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def read_header(connection: socket.socket) -> str | None:
    """Return the address in the header; None if there is no header or no address.

    Raises NoProxyHeader, OSError. No TLS handshake starts like a header, so bytes that may be a header are
    consumed at once, and no others.
    """
    consumed = b""
    while True:
        arrived = await peek(connection)
        try:
            header = parse_header(consumed + arrived)
        except NoProxyHeader:
            if consumed:
                raise
            return None
        if header is not None:
            connection.recv(header.length - len(consumed))
            return header.address
        consumed += connection.recv(len(arrived))


async def peek(connection: socket.socket) -> bytes:
    """Return the bytes that have arrived, without consuming them."""
    await wait_readable(connection)
    arrived = connection.recv(V2_LONGEST_BYTES, socket.MSG_PEEK)
    if not arrived:
        raise ConnectionResetError
    return arrived


async def wait_readable(connection: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
