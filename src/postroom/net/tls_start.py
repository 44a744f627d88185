"""Starts TLS on a connection that may already have received bytes of it, as after a proxy header."""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast


async def start_tls(
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    context: ssl.SSLContext,
    take_early: Callable[[], bytes],
    handshake_seconds: float,
    shutdown_seconds: float,
) -> asyncio.Transport | None:
    """Start TLS. `take_early` returns what the protocol got before. None or OSError: connection lost."""
    loop = asyncio.get_running_loop()
    starting = loop.create_task(
        loop.start_tls(
            transport,
            protocol,
            context,
            server_side=True,
            ssl_handshake_timeout=handshake_seconds,
            ssl_shutdown_timeout=shutdown_seconds,
        )
    )
    # Right after its first step: the handshake has begun, and nothing more was read.
    loop.call_soon(loop.call_soon, _hand_in, transport, take_early)
    return await starting


def _hand_in(transport: asyncio.Transport, take_early: Callable[[], bytes]) -> None:
    tls = cast(asyncio.BufferedProtocol, transport.get_protocol())
    rest = memoryview(take_early())
    while rest and not transport.is_closing():
        buffer = memoryview(tls.get_buffer(len(rest)))
        count = min(len(buffer), len(rest))
        buffer[:count] = rest[:count]
        tls.buffer_updated(count)
        rest = rest[count:]
