"""A running server on a free port, and a client that speaks to it line by line."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from postroom.smtp.backend import MailIntake, RecipientDirectory
from postroom.smtp.limits import SessionLimits
from postroom.smtp.server import Server
from tests.smtp.doubles import RecordingIntake, SmallDirectory

LIMITS = SessionLimits(hostname="mx.postroom.test", linger_seconds=0.5)
PATIENCE_SECONDS = 120


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self) -> str:
        """The next reply, its lines joined; empty at the end of the connection."""
        lines = []
        while True:
            line = await asyncio.wait_for(self.reader.readline(), PATIENCE_SECONDS)
            lines.append(line.decode().rstrip("\r\n"))
            if line[3:4] != b"-":
                return "\n".join(lines)

    async def command(self, line: str) -> str:
        await self.send(line.encode() + b"\r\n")
        return await self.reply()

    async def rest(self) -> str:
        """Everything until the server closes."""
        try:
            return (await asyncio.wait_for(self.reader.read(), PATIENCE_SECONDS)).decode()
        except ConnectionResetError:
            return ""

    async def start_mail(
        self, mail_from: str = "ann@remote.example", to: str = "alice@postroom.test"
    ) -> None:
        """From EHLO to 354."""
        await self.command("EHLO client.example")
        await self.command(f"MAIL FROM:<{mail_from}>")
        await self.command(f"RCPT TO:<{to}>")
        assert (await self.command("DATA")).startswith("354")

    def reset(self) -> None:
        """Leaves without a goodbye, as a crashed machine does."""
        at_once = struct.pack("ii", 1, 0)
        own = self.writer.get_extra_info("socket")
        if own is not None:  # else the server has left first
            with contextlib.suppress(OSError):
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return


@asynccontextmanager
async def running(
    intake: MailIntake | None = None,
    limits: SessionLimits = LIMITS,
    tls: ssl.SSLContext | None = None,
    directory: RecipientDirectory | None = None,
    spool_folder: Path | None = None,
) -> AsyncIterator[Server]:
    with TemporaryDirectory() as folder:
        server = Server(
            directory or SmallDirectory(),
            intake or RecordingIntake(),
            limits,
            spool_folder or Path(folder) / "spool",
            tls,
        )
        await server.start("127.0.0.1", 0)
        try:
            yield server
        finally:
            await asyncio.wait_for(server.stop(), PATIENCE_SECONDS)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Client]:
    """A client that has read the greeting."""
    client = await connect(server)
    assert (await client.reply()).startswith("220")
    try:
        yield client
    finally:
        await client.close()


async def connect(server: Server) -> Client:
    return Client(*await asyncio.open_connection("127.0.0.1", server.port))


async def until_gone(server: Server) -> None:
    """Waits until the server has noticed that everybody left."""
    await asyncio.wait_for(server._connections.all_closed.wait(), PATIENCE_SECONDS)
