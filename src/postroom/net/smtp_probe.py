"""Connects to a mail server as any other server would: its greeting, and whether TLS works."""

import asyncio
import contextlib
import ssl

from msgspec import Struct

TIMEOUT_SECONDS = 8.0  # to connect, and again for the dialogue
LINES = 50
LINE_BYTES = 2048


class ProbeResult(Struct, frozen=True):
    """The greeting and whether TLS started, or why the probe failed."""

    greeting: str = ""
    offers_tls: bool = False
    has_tls: bool = False
    fault: str = ""


class UnexpectedReply(Exception):
    """The server did not send the reply that the next step needs."""


async def probe(
    address: str, port: int, own_name: str, timeout_seconds: float = TIMEOUT_SECONDS
) -> ProbeResult:
    """Probe a server. Never raises, and ends after a few seconds."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await asyncio.open_connection(address, port, limit=LINE_BYTES)
        async with asyncio.timeout(timeout_seconds):
            return await _run_dialogue(reader, writer, own_name)
    except TimeoutError:
        return ProbeResult(fault="no answer in time")
    except ConnectionRefusedError:
        return ProbeResult(fault="connection refused")
    except (OSError, ValueError, EOFError, UnexpectedReply) as error:  # ssl.SSLError is an OSError
        return ProbeResult(fault=str(error) or type(error).__name__)
    finally:
        if writer is not None:
            writer.transport.abort()


async def _run_dialogue(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own_name: str
) -> ProbeResult:
    greeting = (await _answer(reader, "220"))[0]
    writer.write(f"EHLO {own_name}\r\n".encode("ascii"))
    offered = [line[4:].strip().upper() for line in await _answer(reader, "250")]
    has_tls = "STARTTLS" in offered and await _starts_tls(reader, writer)
    return ProbeResult(greeting[4:], "STARTTLS" in offered, has_tls)


async def _starts_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Start TLS with any certificate: servers that do not know each other still encrypt (RFC 7435)."""
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
