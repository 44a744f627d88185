"""A real SMTP server on the loopback that can be told to misbehave at any stage."""

import asyncio
import base64
import ssl
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

Stage = Literal[
    "greeting",
    "EHLO",
    "HELO",
    "STARTTLS",
    "TLS",
    "AUTH",
    "MAIL",
    "RCPT",
    "DATA",
    "content",
    "dot",
    "RSET",
    "QUIT",
]

BLOCK_BYTES = 16 * 1024  # of what has no end
STALL = b"stall"
DROP = b"drop"
FLOOD = b"flood"  # one line without end
ENDLESS_REPLY = b"endless"  # continuation lines without end

_ANSWERS: dict[Stage, bytes] = {
    "greeting": b"220 peer.example ESMTP",
    "HELO": b"250 peer.example",
    "STARTTLS": b"220 go ahead",
    "MAIL": b"250 2.1.0 sender ok",
    "RCPT": b"250 2.1.5 recipient ok",
    "DATA": b"354 end with a dot",
    "dot": b"250 2.0.0 taken",
    "RSET": b"250 2.0.0 forgotten",
    "QUIT": b"221 2.0.0 bye",
}


class _HungUp(Exception):
    pass


@dataclass
class ReceivedMail:
    mail_line: bytes
    rcpt_line: bytes
    raw: bytes
    in_tls: bool


@dataclass
class SmtpPeer:
    """`behaviour` maps a stage to the reply to give instead of the friendly one, or to STALL, DROP, FLOOD…

    A list of replies is used up one by one, then the friendly answer follows.
    """

    behaviour: dict[Stage, bytes | list[bytes]] = field(default_factory=dict)
    features: tuple[str, ...] = ("PIPELINING", "SIZE 50000000", "8BITMIME", "SMTPUTF8")
    tls: ssl.SSLContext | None = None  # STARTTLS is offered when there is one
    implicit_tls: bool = False
    credentials: tuple[str, str] | None = None
    address: str = "127.0.0.1"
    port: int = 0
    hold: asyncio.Event | None = None  # each answer to a final dot waits for it

    mails: list[ReceivedMail] = field(default_factory=list)
    commands: list[bytes] = field(default_factory=list)
    stages: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    open_now: int = 0
    most_open: int = 0
    held: int = 0  # how many mails were taken whole and had to wait for their answer

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(
            self._serve,
            self.address,
            self.port,
            ssl=self.tls if self.implicit_tls else None,
            limit=1024 * 1024,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        """Closes every connection; new ones are welcome."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            await _Dialogue(self, reader, writer).run()
        except (_HungUp, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open_now -= 1
            self._tasks.discard(task)
            writer.transport.abort()


def read_token(said: bytes) -> tuple[bytes, bytes]:
    """User and token of XOAUTH2 (`user=…`) or OAUTHBEARER (`n,a=…,`)."""
    first, bearer, *_ = said.split(b"\1")
    user = first.removeprefix(b"user=").removeprefix(b"n,a=").rstrip(b",")
    return user.replace(b"=2C", b",").replace(b"=3D", b"="), bearer.removeprefix(b"auth=Bearer ")


class _Dialogue:
    def __init__(self, peer: SmtpPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peer = peer
        self._reader = reader
        self._writer = writer
        self._in_tls = peer.implicit_tls
        self._envelope: dict[str, bytes] = {}

    async def run(self) -> None:
        await self._answer("greeting")
        while line := await self._reader.readline():
            self._peer.commands.append(line.rstrip(b"\r\n"))
            await self._obey(line.strip(), line.split()[0].upper().decode("ascii", "replace"))

    async def _obey(self, line: bytes, verb: str) -> None:
        match verb:
            case "EHLO":
                await self._answer("EHLO", self._welcome())
            case "STARTTLS":
                await self._start_tls()
            case "AUTH":
                await self._sign_in(line)
            case "MAIL" | "RCPT":
                self._envelope.pop(verb, None)
                await self._answer("MAIL" if verb == "MAIL" else "RCPT")
                if self._last.startswith(b"2"):
                    self._envelope[verb] = line
            case "DATA":
                await self._take_content()
            case "HELO" | "RSET":
                await self._answer("HELO" if verb == "HELO" else "RSET")
            case "QUIT":
                await self._answer("QUIT")
                raise _HungUp
            case _:
                await self._say(b"502 5.5.1 unknown")

    def _welcome(self) -> bytes:
        lines = ["peer.example", *self._peer.features]
        if self._peer.tls is not None and not self._in_tls:
            lines.append("STARTTLS")
        if self._peer.credentials is not None and not any(line.startswith("AUTH") for line in lines):
            lines.append("AUTH PLAIN LOGIN")
        parts = [f"250{'-' if at < len(lines) - 1 else ' '}{line}" for at, line in enumerate(lines)]
        return "\r\n".join(parts).encode()

    async def _start_tls(self) -> None:
        await self._answer("STARTTLS")
        if not self._last.startswith(b"220"):
            return
        if self._peer.behaviour.get("TLS") == DROP or self._peer.tls is None:
            self._writer.write(b"this is no TLS record\r\n")
            raise _HungUp
        await self._writer.start_tls(self._peer.tls)
        self._in_tls = True

    async def _sign_in(self, line: bytes) -> None:
        given: list[bytes] = []
        if line.split()[1] == b"PLAIN":
            given = base64.b64decode(line.split()[2]).split(b"\0")[1:]
        elif line.split()[1] in (b"XOAUTH2", b"OAUTHBEARER"):
            given = list(read_token(base64.b64decode(line.split()[2])))
            if self._peer.credentials != tuple(part.decode() for part in given):
                await self._say(b"334 eyJzdGF0dXMiOiI0MDEifQ==")
                await self._reader.readline()
        else:
            for prompt in (b"334 VXNlcm5hbWU6", b"334 UGFzc3dvcmQ6"):
                await self._say(prompt)
                given.append(base64.b64decode(await self._reader.readline()))
        is_right = self._peer.credentials == tuple(part.decode() for part in given)
        await self._answer("AUTH", b"235 2.7.0 welcome" if is_right else b"535 5.7.8 wrong")

    async def _take_content(self) -> None:
        has_recipient = len(self._envelope) == 2
        await self._answer("DATA", None if has_recipient else b"503 5.5.1 no recipient")
        if self._last[:3] != b"354":
            return
        lines: list[bytes] = []
        while (line := await self._reader.readline()) != b".\r\n":
            if not line:
                raise _HungUp
            if self._peer.behaviour.get("content"):
                await self._answer("content")
            lines.append(line[1:] if line.startswith(b".") else line)
        if self._peer.hold is not None:
            self._peer.held += 1
            await self._peer.hold.wait()
        await self._answer("dot", None if has_recipient else b"554 5.5.1 no recipient")
        if self._last.startswith(b"2") and has_recipient:
            mail_line, rcpt_line = self._envelope.pop("MAIL"), self._envelope.pop("RCPT")
            self._peer.mails.append(ReceivedMail(mail_line, rcpt_line, b"".join(lines), self._in_tls))

    async def _answer(self, stage: Stage, friendly: bytes | None = None) -> None:
        self._peer.stages[stage] += 1
        told = self._peer.behaviour.get(stage)
        reply = told.pop(0) if isinstance(told, list) and told else None if isinstance(told, list) else told
        if reply is None:
            reply = friendly or _ANSWERS[stage]
        match reply:
            case b"stall":
                await asyncio.Event().wait()
            case b"drop":
                raise _HungUp
            case b"flood":
                await self._repeat(b"250 " + b"x" * 4096)
            case b"endless":
                await self._repeat(b"250-" + b"x" * 60 + b"\r\n")
            case _:
                await self._say(reply)

    async def _say(self, reply: bytes) -> None:
        self._last = reply
        self._writer.write(reply + b"\r\n")
        await self._writer.drain()

    async def _repeat(self, data: bytes) -> None:
        together = data * (BLOCK_BYTES // len(data))
        while True:
            self._writer.write(together)
            await self._writer.drain()
