"""One question to a service of the operator's, and its answer up to a size and a deadline."""

import asyncio
import contextlib
import ssl

FAULTS = (OSError, TimeoutError, asyncio.IncompleteReadError)


class ServiceAway(Exception):
    """It cannot be reached, or answers too late."""


async def exchange(
    address: str, question: bytes, most_bytes: int, seconds: float, tls: ssl.SSLContext | None = None
) -> bytes:
    """Return what it says until it closes, or the beginning. `address` is host:port, or unix: and a path."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _connect(address, tls)
            try:
                with contextlib.suppress(ConnectionError):  # it may answer before it has read all
                    writer.write(question)
                    await writer.drain()
                return await _read(reader, most_bytes)
            finally:
                writer.transport.abort()
    except FAULTS as error:
        raise ServiceAway(f"{type(error).__name__}: {error}"[:200]) from None


async def _connect(
    address: str, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.startswith("unix:"):
        return await asyncio.open_unix_connection(address.removeprefix("unix:"))
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)


async def _read(reader: asyncio.StreamReader, most_bytes: int) -> bytes:
    said = b""
    while len(said) < most_bytes and (piece := await reader.read(most_bytes - len(said))):
        said += piece
    return said
