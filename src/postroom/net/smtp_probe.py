"""Knocks at the door of a mail server as a stranger would: who answers, and whether he offers TLS."""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass

PATIENCE_SECONDS = 8.0  # to be let in, and then once more for the talk
LINES = 50
LINE_BYTES = 2048


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of it: the greeting, and whether TLS began; or why it failed."""

    greeting: str = ""
    offers_tls: bool = False
    has_tls: bool = False
    fault: str = ""


class UnexpectedReply(Exception):
    """The server said something else than what opens the next step."""


async def probe(address: str, port: int, own_name: str, patience: float = PATIENCE_SECONDS) -> ProbeResult:
    """Never raises; it is over after a few seconds."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(address, port, limit=LINE_BYTES)
        async with asyncio.timeout(patience):
            return await _talk(reader, writer, own_name)
    except TimeoutError:
        return ProbeResult(fault="nobody answered in time")
    except (OSError, ValueError, EOFError, UnexpectedReply) as error:  # ssl.SSLError is an OSError
        return ProbeResult(fault=str(error) or type(error).__name__)
    finally:
        if writer is not None:
            writer.transport.abort()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own_name: str) -> ProbeResult:
    greeting = (await _answer(reader, "220"))[0]
    writer.write(f"EHLO {own_name}\r\n".encode("ascii"))
    offered = [line[4:].strip().upper() for line in await _answer(reader, "250")]
    has_tls = "STARTTLS" in offered and await _starts_tls(reader, writer)
    return ProbeResult(greeting[4:], "STARTTLS" in offered, has_tls)


async def _starts_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """For whom is not asked: strangers encrypt without a certificate that they know (RFC 7435)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(OSError, ValueError, EOFError, UnexpectedReply):
        writer.write(b"STARTTLS\r\n")
        await _answer(reader, "220")
        await writer.start_tls(context)
        return True
    return False


async def _answer(reader: asyncio.StreamReader, code: str) -> list[str]:
    lines: list[str] = []
    while len(lines) < LINES:
        line = (await reader.readline()).decode("ascii", "replace").rstrip()
        if not line.startswith(code):
            raise UnexpectedReply(line[:200] or "the connection was closed")
        lines.append(line)
        if line[3:4] != "-":
            return lines
    raise UnexpectedReply("the answer has no end")
