"""Port 80: answers an authority's questions (RFC 8555 section 8.3), and sends browsers to HTTPS."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable

from postroom import log
from postroom.certificates import certificates
from postroom.net.listening import listen_on
from postroom.resources import Resources

MAX_CONNECTIONS = 100
BACKLOG = 100
REQUEST_SECONDS = 10.0
MAX_HEAD_BYTES = 8 * 1024
PATH = re.compile(rb"/\.well-known/acme-challenge/([A-Za-z0-9_-]{1,256})")
REQUEST_LINE = re.compile(rb"(?:GET|HEAD) (/[!-~]*) HTTP/1\.[01]\r?\n")
FindAnswer = Callable[[str], Awaitable[str | None]]


class ChallengeServer:
    def __init__(self, answer: FindAnswer, base_url: str) -> None:
        self._answer, self._base_url = answer, base_url
        self._open = 0
        self._servers: list[asyncio.Server] = []

    async def start(self, host: str, port: int) -> None:
        """Raises OSError if the port cannot be used."""
        self._servers = [
            await asyncio.start_server(self._serve, sock=each, limit=MAX_HEAD_BYTES)
            for each in listen_on(host, port, BACKLOG)
        ]

    @property
    def port(self) -> int:
        assert self._servers
        return int(self._servers[0].sockets[0].getsockname()[1])

    async def close(self) -> None:
        for each in self._servers:
            each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= MAX_CONNECTIONS:
                async with asyncio.timeout(REQUEST_SECONDS):
                    writer.write(await self._respond(await reader.readuntil(b"\n")))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except Exception:
            log.get().exception("a request to port 80 failed")
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, line: bytes) -> bytes:
        asked = REQUEST_LINE.fullmatch(line)
        if asked is None:
            return _write("400 Bad Request", "Only GET and HEAD.")
        path = asked[1]
        if token := PATH.fullmatch(path):
            content = await self._answer(token[1].decode())
            return (
                _write("404 Not Found", "No such challenge.")
                if content is None
                else _write("200 OK", content)
            )
        return _write("301 Moved Permanently", "", f"Location: {self._base_url}{path.decode()}\r\n")


async def start_challenge_server(stack: contextlib.AsyncExitStack, resources: Resources) -> bool:
    """Returns False if the port cannot be used: then the authority has to come by another way."""
    endpoint = resources.config.acme_http
    if endpoint is None:
        return False

    async def answer(token: str) -> str | None:
        return await resources.db.read(certificates.answer_http, token, resources.now())

    server = ChallengeServer(answer, resources.config.base_url)
    try:
        await server.start(endpoint.host, endpoint.port)
    except OSError as error:
        log.get().error("the port for certificates cannot be used", address=str(endpoint), reason=str(error))
        return False
    stack.push_async_callback(server.close)
    resources.ports.acme_http = server.port
    return True


def _write(status: str, content: str, extra: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(content)}\r\n"
        f"{extra}Connection: close\r\n\r\n{content}"
    ).encode()
