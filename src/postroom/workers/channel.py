"""The channel between the server and a worker: a Unix socket, its messages, and pending answers."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from postroom import log
from postroom.inward.journal.entries import Held, Journaled, JournalProgress
from postroom.inward.mails import Arrival, Destination, ReadMail, Unwanted
from postroom_mail.files.message_framing import FrameDecoder, encode_frame

MAX_FRAME_BYTES = 128 * 1024 * 1024


class ChannelClosed(Exception):
    """The other end is gone; raised for everyone who waits for its answer."""


class WorkerSetup(Struct, frozen=True, tag=True, array_like=True):
    """The first message of the server: the worker's settings."""

    data_dir: str
    hostname: str
    certificate: str
    key: str
    proxies: list[str]
    log: str
    journal: str = ""  # its folder; empty: mail is stored before its 250
    place: tuple[int, int] = (0, 0)  # where to continue reading it
    deaths: int = 0  # of workers in a row that began there and got no further


class WorkerReady(Struct, frozen=True, tag=True, array_like=True):
    """Sent by the worker once it accepts connections, and then every second."""


class RecipientRequest(Struct, frozen=True, tag=True, array_like=True):
    number: int
    address: str


class RecipientResponse(Struct, frozen=True, tag=True, array_like=True):
    number: int
    destination: Destination | None
    refusal: str = ""
    may_refuse: bool = False


class AdmitRequest(Struct, frozen=True, tag=True, array_like=True):
    """A client has connected. The number identifies the connection until `Disconnected`."""

    number: int
    address: str


class AdmitResponse(Struct, frozen=True, tag=True, array_like=True):
    number: int
    refusal: bytes | None


class Disconnected(Struct, frozen=True, tag=True, array_like=True):
    connection: int


class StoreRequest(Struct, frozen=True, tag=True, array_like=True):
    """An email that the worker has read, to be stored."""

    number: int
    read: ReadMail


class StoreResponse(Struct, frozen=True, tag=True, array_like=True):
    """After the commit, or with the reason why there was none."""

    number: int
    failure: str = ""
    is_full: bool = False
    is_passing: bool = False  # the database is unreachable or a row is locked: no bug


class RefusalRequest(Struct, frozen=True, tag=True, array_like=True):
    """An email whose recipients may refuse it before its 250."""

    number: int
    arrival: Arrival


class RefusalResponse(Struct, frozen=True, tag=True, array_like=True):
    number: int
    unwanted: Unwanted | None


class ReadRequest(Struct, frozen=True, tag=True, array_like=True):
    """An email between inboxes of this server, to be read by a worker."""

    number: int
    arrival: Arrival


class ReadResponse(Struct, frozen=True, tag=True, array_like=True):
    number: int
    read: ReadMail | None
    has_too_many_hops: bool = False


class ForgetRecipients(Struct, frozen=True, tag=True, array_like=True):
    """An inbox was deleted: clear the cache of recipients."""


class ReloadCertificate(Struct, frozen=True, tag=True, array_like=True):
    """The files of the certificate may have changed: read them again."""


class StopWorker(Struct, frozen=True, tag=True, array_like=True):
    """Close the connections, finish work under way, and exit."""


FromServer = (
    WorkerSetup
    | RecipientResponse
    | AdmitResponse
    | StoreResponse
    | RefusalResponse
    | ReadRequest
    | ForgetRecipients
    | ReloadCertificate
    | StopWorker
    | JournalProgress
    | Held
)
FromWorker = (
    WorkerReady
    | RecipientRequest
    | AdmitRequest
    | Disconnected
    | StoreRequest
    | RefusalRequest
    | ReadResponse
    | Journaled
)
Question = RecipientRequest | AdmitRequest | StoreRequest | RefusalRequest | ReadRequest
Answer = RecipientResponse | AdmitResponse | StoreResponse | RefusalResponse | ReadResponse


class Channel(asyncio.Protocol):
    """One end. Messages that are no answer go to `receive`; `is_closed` is set when the other end is gone."""

    def __init__(self, kinds: Any, receive: Callable[[Any], None]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds)
        self._receive = receive
        self._frames = FrameDecoder(MAX_FRAME_BYTES)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_number = 0
        self.is_closed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Return how many answers this end waits for."""
        return len(self._waiting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Closes the channel if the bytes are no message."""
        try:
            for frame in self._frames.feed(data):
                self._dispatch(self._decoder.decode(frame))
        except Exception:
            log.get().exception("a worker's channel was closed")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed.set()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(ChannelClosed())

    def send(self, message: FromServer | FromWorker) -> None:
        if self._transport is not None and not self.is_closed.is_set():
            self._transport.write(encode_frame(message))

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    async def ask(self, question: Question) -> Any:
        """Returns the answer with the same number. Raises ChannelClosed."""
        if self.is_closed.is_set():
            raise ChannelClosed
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[question.number] = future
        self.send(question)
        try:
            return await future
        finally:
            self._waiting.pop(question.number, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _dispatch(self, message: Any) -> None:
        if not isinstance(message, Answer):
            self._receive(message)
            return
        future = self._waiting.get(message.number)
        if future is not None and not future.done():
            future.set_result(message)
