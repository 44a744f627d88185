"""Responses of an IMAP server (RFC 3501 section 7), within limits: the server may be hostile."""

import asyncio
import re

from msgspec import Struct

LINE_BYTES = 64 * 1024
LITERAL_BYTES = 45 * 1024 * 1024
PIECES = 1_000  # of one response
_LITERAL = re.compile(rb"\{(\d{1,10})\}$")


class ImapError(Exception):
    """What went wrong, in words for the owner of the connection."""

    def __init__(self, reason: str, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused  # by the server, for this user: a retry soon is pointless


class ImapResponse(Struct, frozen=True):
    """A line with its literals: in order in `literals`, and as {} in `text`."""

    tag: bytes
    text: bytes
    literals: tuple[bytes, ...] = ()

    @property
    def status(self) -> str:
        """OK, NO, BAD, PREAUTH or BYE of a status response."""
        return self.text.partition(b" ")[0].decode("ascii", "replace").upper()


class ImapWire:
    """Reads one response at a time; never holds more than one email."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                self._writer.write(data)
                await self._writer.drain()
        except TimeoutError:
            raise ImapError(f"The server did not accept data within {seconds:g} seconds.") from None
        except OSError as error:
            raise ImapError(f"The connection broke: {error}.") from None

    async def read(self, seconds: float, literal_bytes: int = LITERAL_BYTES) -> ImapResponse:
        try:
            async with asyncio.timeout(seconds):
                return await self._read(literal_bytes)
        except TimeoutError:
            raise ImapError(f"The server said nothing for {seconds:g} seconds.") from None
        except asyncio.IncompleteReadError:
            raise ImapError("The server closed the connection.") from None
        except OSError as error:
            raise ImapError(f"The connection broke: {error}.") from None

    async def _read(self, literal_bytes: int) -> ImapResponse:
        texts: list[bytes] = []
        literals: list[bytes] = []
        size, left = 0, literal_bytes
        while True:
            line = await self._read_line()
            size += len(line)
            if size > LINE_BYTES or len(literals) > PIECES:
                raise ImapError("The server sent a response that is too long.")
            found = _LITERAL.search(line)
            if found is None:
                texts.append(line)
                break
            length = int(found[1])
            if length > left:
                raise ImapError(f"The server announced {length} bytes, more than allowed.")
            left -= length
            texts.append(line[: found.start()] + b"{}")
            literals.append(await self._reader.readexactly(length))
        tag, _, rest = b"".join(texts).partition(b" ")
        return ImapResponse(tag, rest, tuple(literals))

    async def _read_line(self) -> bytes:
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise ImapError("The server sent a line that is too long.") from None
        return line.rstrip(b"\r\n")

    async def start_tls(self, context: object, host: str) -> None:
        try:
            await self._writer.start_tls(context, server_hostname=host)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            raise ImapError(f"TLS with {host} failed: {error}.") from None

    def close(self) -> None:
        self._writer.transport.abort()
