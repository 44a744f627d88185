"""The line between the server and a worker: a Unix socket, what is said over it, who waits for an answer."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from postroom import log
from postroom.inward.mails import Arrival, Destination, ReadMail
from postroom.processes.frames import Unframer, framed

MAX_FRAME_BYTES = 128 * 1024 * 1024


class LineLost(Exception):
    """The other end is gone: whoever waited for its answer waits no more."""


class Setup(Struct, frozen=True, tag=True, array_like=True):
    """Said by the server first: where to work."""

    data_dir: str
    hostname: str
    certificate: str
    key: str
    proxies: list[str]
    log: str


class WorkerReady(Struct, frozen=True, tag=True, array_like=True):
    """Said by the worker when its door is open, and then every second."""


class RecipientAsked(Struct, frozen=True, tag=True, array_like=True):
    number: int
    address: str


class RecipientFound(Struct, frozen=True, tag=True, array_like=True):
    number: int
    destination: Destination | None
    refusal: str = ""


class Came(Struct, frozen=True, tag=True, array_like=True):
    """Somebody has connected. The number stands for the visitor until it has left."""

    number: int
    address: str


class Admitted(Struct, frozen=True, tag=True, array_like=True):
    number: int
    refusal: bytes | None


class Left(Struct, frozen=True, tag=True, array_like=True):
    visitor: int


class HandOver(Struct, frozen=True, tag=True, array_like=True):
    """A mail that was read, to be stored."""

    number: int
    read: ReadMail


class Stored(Struct, frozen=True, tag=True, array_like=True):
    """After the commit; or why there was none."""

    number: int
    failure: str = ""
    is_full: bool = False


class Read(Struct, frozen=True, tag=True, array_like=True):
    """A mail that stays inside, to be read."""

    number: int
    arrival: Arrival


class WasRead(Struct, frozen=True, tag=True, array_like=True):
    number: int
    read: ReadMail | None
    has_too_many_hops: bool = False


class Forget(Struct, frozen=True, tag=True, array_like=True):
    """An inbox was deleted: recipients found before may be there no more."""


class Renew(Struct, frozen=True, tag=True, array_like=True):
    """The files of the certificate may have changed."""


class StopWorker(Struct, frozen=True, tag=True, array_like=True):
    """Let the visitors go, finish what is under way, and end."""


FromServer = Setup | RecipientFound | Admitted | Stored | Read | Forget | Renew | StopWorker
FromWorker = WorkerReady | RecipientAsked | Came | Left | HandOver | WasRead
Answer = RecipientFound | Admitted | Stored | WasRead


class Line(asyncio.Protocol):
    """One end. What is no answer goes to `hear`; `is_lost` is set when the other end is gone."""

    def __init__(self, kinds: Any, hear: Callable[[Any], None]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds)
        self._hear = hear
        self._unframer = Unframer(MAX_FRAME_BYTES)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_number = 0
        self.is_lost = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many answers are owed to this end."""
        return len(self._waiting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Who speaks another language is not ours any more."""
        try:
            for frame in self._unframer.feed(data):
                self._take(self._decoder.decode(frame))
        except Exception:
            log.get().exception("a line was cut")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost.set()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(LineLost())

    def say(self, message: FromServer | FromWorker) -> None:
        if self._transport is not None and not self.is_lost.is_set():
            self._transport.write(framed(message))

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    async def ask(self, question: RecipientAsked | Came | HandOver | Read) -> Any:
        """The answer with the same number. Raises LineLost."""
        if self.is_lost.is_set():
            raise LineLost
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[question.number] = future
        self.say(question)
        try:
            return await future
        finally:
            self._waiting.pop(question.number, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self, message: Any) -> None:
        if not isinstance(message, Answer):
            self._hear(message)
            return
        future = self._waiting.get(message.number)
        if future is not None and not future.done():
            future.set_result(message)
