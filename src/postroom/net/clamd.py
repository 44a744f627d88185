"""Asks clamd, the daemon of ClamAV, whether bytes are infected (its command INSTREAM)."""

import asyncio
import contextlib
import re
import socket
from typing import Any

from msgspec import Struct

CHUNK_BYTES = 256 * 1024  # sent at once, so that a slow scanner holds no more
ANSWER_BYTES = 4096  # name of the stream, name of the finding
NAME_CHARACTERS = 100
SCAN_SECONDS = 10.0  # for one piece of content, with the connection
FAULTS = (OSError, TimeoutError)
TOO_LARGE = b"INSTREAM size limit exceeded. ERROR\0"

_FOUND = re.compile(rb"stream: ([!-~][ -~]*) FOUND\0")


class ClamdAway(Exception):
    """It cannot be reached, answers too late, or says something that it never says."""


class Scanned(Struct, frozen=True):
    """What clamd said of some content; `infected` names what it found."""

    infected: str | None = None
    scanned: bool = False


async def scan(address: str, content: bytes) -> Scanned:
    """Return what clamd says. `address` is host:port, or unix: and a path. Raises ClamdAway."""
    try:
        async with asyncio.timeout(SCAN_SECONDS):
            return _read(await _ask(address, content))
    except FAULTS as error:
        raise ClamdAway(f"{type(error).__name__}: {error}"[:200]) from None


async def _ask(address: str, content: bytes) -> bytes:
    with await _connect(address) as channel:
        with contextlib.suppress(ConnectionError):  # it answers before the end: what it said is read
            await _write(channel, content)
        return await _answer(channel)


async def _connect(address: str) -> socket.socket:
    """Connect by a plain socket: data from before a broken connection can still be read from it."""
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    place: Any = address.removeprefix("unix:")
    family = socket.AF_UNIX
    if place == address:
        found = await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, *_, place = found[0]
    channel = socket.socket(family, socket.SOCK_STREAM)
    try:
        channel.setblocking(False)
        await loop.sock_connect(channel, place)
    except BaseException:
        channel.close()
        raise
    return channel


async def _write(channel: socket.socket, content: bytes) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(channel, b"zINSTREAM\0")
    for start in range(0, len(content), CHUNK_BYTES):
        chunk = content[start : start + CHUNK_BYTES]
        await loop.sock_sendall(channel, len(chunk).to_bytes(4, "big") + chunk)
    await loop.sock_sendall(channel, bytes(4))


async def _answer(channel: socket.socket) -> bytes:
    """Return what it says up to a zero byte, or a part of it if that is too long."""
    loop, said = asyncio.get_running_loop(), b""
    while not said.endswith(b"\0") and len(said) < ANSWER_BYTES:
        piece = await loop.sock_recv(channel, ANSWER_BYTES)
        if not piece:
            break
        said += piece
    return said


def _read(answer: bytes) -> Scanned:
    if answer == b"stream: OK\0":
        return Scanned(None, True)
    if (found := _FOUND.fullmatch(answer)) is not None:
        return Scanned(found[1].decode("ascii")[:NAME_CHARACTERS], True)
    if answer == TOO_LARGE:
        return Scanned()
    raise ClamdAway(f"an unexpected answer: {answer[:100]!r}")
