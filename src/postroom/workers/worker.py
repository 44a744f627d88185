"""The worker process: speaks SMTP, parses mail, and has the server store it, over a channel."""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import uvloop

from postroom import log
from postroom.clock import SystemClock
from postroom.errors import Unavailable
from postroom.inward import screening
from postroom.inward.journal.entries import Held, JournalProgress
from postroom.inward.journal.mail_journal import MailJournal
from postroom.inward.journal.turns import FairReader
from postroom.inward.mails import Arrival, ReadMail, Unwanted
from postroom.inward.receive import AT_ONCE_IN_WORKER_BYTES, OwnReader, Reader, TooManyHops, warm_up
from postroom.net.certificate import Certificate, CertificateFiles
from postroom.net.proxies import Proxies
from postroom.processes import descriptors, loading, pools, struct_types
from postroom.smtp import intake
from postroom.smtp.backend import Accepted, MailIntake, MailLoop, RecipientVerdict, Refused, StorageFull
from postroom.smtp.connection_limits import LimitedConnection, LocalConnectionLimits
from postroom.smtp.envelope import Envelope
from postroom.smtp.limits import SessionLimits
from postroom.smtp.recipient_cache import CachedDirectory
from postroom.smtp.server import Server
from postroom.storage.segments import SegmentPosition
from postroom.workers.channel import (
    AdmitRequest,
    Channel,
    ChannelClosed,
    Disconnected,
    ForgetRecipients,
    FromServer,
    ReadRequest,
    ReadResponse,
    RecipientRequest,
    RecipientResponse,
    RefusalRequest,
    ReloadCertificate,
    StopWorker,
    StoreRequest,
    StoreResponse,
    WorkerReady,
    WorkerSetup,
)
from postroom_mail.files.child_limits import close_other_files, die_with_parent

READY_SECONDS = 1.0
START_SECONDS = 2.0
REST_SECONDS = 0.05


class StoreFailed(Exception):
    """The server could not store an email; the message says why."""


class RemoteDirectory:
    """Asks the server for each recipient."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def check_recipient(self, address: str) -> RecipientVerdict:
        found = await self._channel.ask(RecipientRequest(self._channel.next_number(), address))
        return Refused[found.refusal] if found.destination is None else to_accepted(found)


def to_accepted(found: RecipientResponse) -> Accepted:
    return Accepted(found.destination, found.may_refuse)


class RemoteRefusals:
    """Asks the server whether an email is refused. Without an answer it is not."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def find(self, arrival: Arrival) -> Unwanted | None:
        try:
            found = await self._channel.ask(RefusalRequest(self._channel.next_number(), arrival))
        except ChannelClosed:
            return None
        unwanted: Unwanted | None = found.unwanted
        return unwanted


class RemoteIntake:
    """Reads an email in this process, and has the server store it."""

    def __init__(self, channel: Channel, reader: Reader, hostname: str) -> None:
        self._channel = channel
        self._reader = reader
        self._hostname = hostname
        self._clock = SystemClock()

    async def accept(self, envelope: Envelope) -> None:
        arrival = await intake.to_arrival(envelope, self._hostname, self._clock.now())
        try:
            read = await self._reader.read(arrival)
        except TooManyHops as error:
            raise MailLoop from error
        require_stored(await self._ask_to_store(read))
        intake.log_received(envelope)

    async def _ask_to_store(self, read: ReadMail) -> StoreResponse:
        try:
            stored: StoreResponse = await self._channel.ask(StoreRequest(self._channel.next_number(), read))
        except ChannelClosed as error:
            raise Unavailable("The server is gone.") from error
        return stored


def require_stored(stored: StoreResponse) -> None:
    if not stored.failure:
        return
    if stored.is_full:
        raise StorageFull(stored.failure)
    raise Unavailable(stored.failure) if stored.is_passing else StoreFailed(stored.failure)


class SharedConnectionLimits:
    """Limits of this worker, and the server's limits over all workers."""

    def __init__(self, limits: SessionLimits, channel: Channel) -> None:
        self._channel = channel
        self._here = LocalConnectionLimits(limits)
        self._numbers: dict[LimitedConnection, int] = {}
        self.all_closed = self._here.all_closed
        self.close = self._here.close
        self.open_connections = self._here.open_connections

    def admit(self, connection: LimitedConnection, address: str) -> Any:
        refusal = self._here.admit(connection, address)
        return self._ask(connection, address) if refusal is None else refusal

    async def _ask(self, connection: LimitedConnection, address: str) -> bytes | None:
        number = self._numbers[connection] = self._channel.next_number()
        admitted = await self._channel.ask(AdmitRequest(number, address))
        if admitted.refusal is not None:
            self.release(connection)
        refusal: bytes | None = admitted.refusal
        return refusal

    def release(self, connection: LimitedConnection) -> None:
        number = self._numbers.pop(connection, None)
        if number is not None:
            self._channel.send(Disconnected(number))
        self._here.release(connection)


class Worker:
    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = listeners
        self._channel = Channel(FromServer, self._receive)
        self._reader = OwnReader(AT_ONCE_IN_WORKER_BYTES)
        self._directory = CachedDirectory(RemoteDirectory(self._channel))
        self._setup: asyncio.Future[WorkerSetup] = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        self._certificate: Certificate | None = None
        self._journal: MailJournal | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, channel: socket.socket) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self._channel, sock=channel)
        self._start(self._exit_with_channel())
        server = self._server(await self._setup)
        warm_up()
        await server.start_on(self._listeners)
        loading.finish()
        self._start(self._report_ready())
        self._start(self._prepare_the_rest())
        await self._stopping.wait()
        await server.stop()
        if self._journal is not None:
            await self._journal.close()

    def _server(self, setup: WorkerSetup) -> Server:
        log.use(setup.log)
        self._certificate = Certificate(CertificateFiles(Path(setup.certificate), Path(setup.key)))
        self._start(self._certificate.keep_fresh())
        caps = descriptors.caps(descriptors.raise_limit())
        folder, limits = Path(setup.data_dir), SessionLimits(setup.hostname, max_connections=caps.smtp)
        return Server(
            self._directory,
            intake.RefusingIntake(
                self._intake(setup), RemoteRefusals(self._channel).find, setup.hostname, SystemClock().now
            ),
            limits,
            folder / "spool",
            self._certificate.context,
            SharedConnectionLimits(limits, self._channel),
            Proxies(map(ip_network, setup.proxies)),
        )

    def _intake(self, setup: WorkerSetup) -> MailIntake:
        if not setup.journal:
            return RemoteIntake(self._channel, FairReader(self._reader), setup.hostname)
        self._journal = MailJournal(
            Path(setup.journal), SegmentPosition(*setup.place), self._reader, self._channel.send, setup.deaths
        )
        self._start(self._journal.follow())
        stores = RemoteIntake(self._channel, FairReader(self._reader, self._journal.turns), setup.hostname)
        return intake.JournalIntake(self._journal, stores, setup.hostname, SystemClock().now)

    def _receive(self, message: FromServer) -> None:
        if isinstance(message, JournalProgress | Held):
            if self._journal is not None:
                self._journal.note(message)
        elif isinstance(message, ReadRequest):
            self._start(self._read(message))
        elif isinstance(message, ForgetRecipients):
            self._directory.clear()
        elif isinstance(message, ReloadCertificate):
            if self._certificate is not None:
                self._certificate.refresh()
        elif isinstance(message, WorkerSetup):
            self._setup.set_result(message)
        elif isinstance(message, StopWorker):
            self._stopping.set()

    async def _read(self, asked: ReadRequest) -> None:
        try:
            self._channel.send(ReadResponse(asked.number, await self._reader.read(asked.arrival)))
        except TooManyHops:
            self._channel.send(ReadResponse(asked.number, None, has_too_many_hops=True))

    async def _report_ready(self) -> None:
        while True:
            self._channel.send(WorkerReady())
            descriptors.warn_if_none_are_left()
            await asyncio.sleep(READY_SECONDS)

    async def _prepare_the_rest(self) -> None:
        """Loads the rest in a thread, piece by piece after the start, so that no mail waits long."""
        await asyncio.sleep(START_SECONDS)
        pieces, has_more = screening.prepare(), True
        while has_more:
            has_more = await pools.ONCE.run(next, pieces, False)
            await asyncio.sleep(REST_SECONDS)
        await pools.ONCE.run(loading.give_back_memory)

    async def _exit_with_channel(self) -> None:
        """Exit with the channel: without the server no mail can be stored. Senders will retry."""
        await self._channel.is_closed.wait()
        os._exit(1)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def serve(channel_fd: int, listener_fds: Sequence[int]) -> None:
    listeners = [socket.socket(fileno=fd) for fd in listener_fds]
    await Worker(listeners).serve(socket.socket(fileno=channel_fd))


def main(parent_pid: int, channel_fd: int, *listener_fds: int) -> None:
    """Run a worker. Ctrl-C reaches the whole group, but the server decides when a worker stops."""
    die_with_parent()
    if os.getppid() != parent_pid:
        return
    close_other_files(channel_fd, *listener_fds)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    struct_types.prepare()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(channel_fd, listener_fds))
