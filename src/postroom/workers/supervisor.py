"""Starts the workers, replaces those that die, kills those that hang, and has them parse mail."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence

from msgspec import Struct, field, structs

from postroom import log
from postroom.config import Config, ConfigError, Endpoint
from postroom.errors import Unavailable
from postroom.inward.journal.depositor import Depositor
from postroom.inward.mails import Arrival, ReadMail
from postroom.inward.receive import TooManyHops
from postroom.inward.refusals import Refusals
from postroom.net.certificate import CertificateFiles
from postroom.net.listening import close_all, listen_on
from postroom.processes import descriptors
from postroom.processes.child_processes import Child, ChildNotStarted, ChildSupervisor, RestartPauses
from postroom.resources import Resources
from postroom.smtp.backend import RecipientDirectory
from postroom.smtp.connection_limits import LocalConnectionLimits
from postroom.smtp.limits import SessionLimits
from postroom.smtp.recipient_cache import watch_deleted_inboxes
from postroom.storage import segments
from postroom.storage.segments import SegmentPosition
from postroom.workers.channel import (
    ChannelClosed,
    ForgetRecipients,
    ReadRequest,
    ReloadCertificate,
    StopWorker,
    WorkerSetup,
)
from postroom.workers.worker_handle import WorkerHandle

BACKLOG = 512
READ_TRIES = 3  # an email that kills its readers must not kill all of them for ever


class WorkerTimeouts(Struct, frozen=True):
    """In seconds, or in checks where it says so: a pause of our own process counts as one check."""

    look: float = 1.0
    silent_looks: int = 20
    starting_looks: int = 120
    start: float = 10.0
    stop: float = 60.0
    read: float = 30.0  # until a worker is ready to read an email
    restart: RestartPauses = field(default_factory=RestartPauses)


class Slot(Struct):
    """The place of a worker and its successors, with their sockets and journal."""

    sockets: Sequence[socket.socket]
    children: ChildSupervisor
    depositor: Depositor | None
    began_at: SegmentPosition | None = None
    deaths: int = 0  # in a row at the same place of the journal, with mail after it

    async def next_place(self) -> SegmentPosition:
        """Return where the next worker begins to read the journal."""
        if self.depositor is None:
            return SegmentPosition()
        place = await self.depositor.settle()
        is_stuck = place == self.began_at and segments.has_more(self.depositor.folder, place)
        self.deaths = self.deaths + 1 if is_stuck else 0
        self.began_at = place
        return place


class NoWorkerAvailable(Unavailable):
    """No worker is ready to read an email."""


class WorkerSupervisor:
    """One worker for each list of sockets. The sockets stay open here: clients wait while a worker starts."""

    def __init__(
        self,
        resources: Resources,
        directory: RecipientDirectory,
        listeners: Sequence[Sequence[socket.socket]],
        certificate: CertificateFiles,
        timeouts: WorkerTimeouts | None = None,
        depositors: Sequence[Depositor] = (),
    ) -> None:
        """Set up the workers.

        With a depositor for each list of sockets, mail is journaled; else stored first.
        """
        self._resources = resources
        self._directory = directory
        most = descriptors.MOST_SMTP * len(listeners)  # each worker has its own limit below this
        limits = SessionLimits(resources.config.domain, max_connections=most)
        self._connections = LocalConnectionLimits(limits)
        self._depositors = depositors
        self._refusals = Refusals(resources)
        self._certificate = certificate
        self._timeouts = timeouts or WorkerTimeouts()
        self._slots = [
            Slot(
                sockets,
                ChildSupervisor("worker", self._timeouts.restart),
                depositors[number] if depositors else None,
            )
            for number, sockets in enumerate(listeners)
        ]
        self._handles: set[WorkerHandle] = set()
        self._is_any_ready = asyncio.Event()
        self._is_stopping = False
        self._workers: list[asyncio.Task[None]] = []
        self._depositing: list[asyncio.Task[None]] = []
        self._deletions: asyncio.Task[None] | None = None
        resources.workers.expected = len(listeners)

    @property
    def port(self) -> int:
        port: int = self._slots[0].sockets[0].getsockname()[1]
        return port

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._depositing = [loop.create_task(each.run()) for each in self._depositors]
        self._workers = [loop.create_task(self._keep_running(slot)) for slot in self._slots]
        self._deletions = loop.create_task(watch_deleted_inboxes(self._resources, self._forget_recipients))

    async def wait_until_ready(self) -> None:
        """Wait for a limited time: if no worker can start, the rest of the server still works."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.start):
                await self._is_any_ready.wait()

    async def stop(self) -> None:
        """Stop the workers. Sessions end with 421; an email being stored gets its answer first."""
        self._is_stopping = True
        for slot in self._slots:
            for each in slot.sockets:
                each.close()
            slot.children.stop_starting()
        for handle in self._handles:
            handle.channel.send(StopWorker())
        assert self._deletions is not None, "the supervisor was not started"
        self._deletions.cancel()
        await asyncio.wait(self._workers, timeout=self._timeouts.stop)
        for slot in self._slots:
            await slot.children.close()
        for task in self._depositing:
            task.cancel()
        await asyncio.wait([*self._workers, self._deletions, *self._depositing])

    async def read(self, arrival: Arrival) -> ReadMail:
        """Read by the worker with the shortest queue; by another if that one is killed meanwhile."""
        for _ in range(READ_TRIES - 1):
            with contextlib.suppress(ChannelClosed):
                return await self._read_once(arrival)
        try:
            return await self._read_once(arrival)
        except ChannelClosed as error:
            raise NoWorkerAvailable("Workers ended one after another while they read an email.") from error

    async def _read_once(self, arrival: Arrival) -> ReadMail:
        try:
            async with asyncio.timeout(self._timeouts.read):
                await self._is_any_ready.wait()
        except TimeoutError as error:
            raise NoWorkerAvailable("No worker is ready to read an email.") from error
        ready = [handle for handle in self._handles if handle.is_ready]
        handle = min(ready, key=lambda handle: handle.channel.waiting)
        try:
            answer = await handle.channel.ask(ReadRequest(handle.channel.next_number(), arrival))
        except ChannelClosed:
            handle.is_ready = False  # before its end is noticed: the next try must not go to it
            self._count_ready()
            raise
        if answer.has_too_many_hops:
            raise TooManyHops
        read: ReadMail | None = answer.read
        assert read is not None
        return read

    def count(self) -> int:
        """Return how many clients are connected to the workers."""
        return len(self._connections.open_connections())

    def reload_certificate(self) -> None:
        for handle in self._handles:
            handle.channel.send(ReloadCertificate())

    def _forget_recipients(self) -> None:
        for handle in self._handles:
            handle.channel.send(ForgetRecipients())

    async def _keep_running(self, slot: Slot) -> None:
        while not self._is_stopping:
            try:
                await self._run_worker(slot)
            except ChildNotStarted:
                continue  # logged, and the next start waits longer
            except Exception:
                log.get().exception("a worker failed")
            if not self._is_stopping:
                self._resources.workers.restarts += 1

    async def _run_worker(self, slot: Slot) -> None:
        """Run a worker from its start to its end."""
        place = await slot.next_place()
        handle = WorkerHandle(
            self._resources,
            self._directory,
            self._connections,
            self._count_ready,
            self._refusals,
            slot.depositor,
        )
        child, channel = await start_worker(slot.children, slot.sockets)
        self._handles.add(handle)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: handle.channel, sock=channel)
            setup = to_setup(self._resources.config, self._certificate)
            if slot.depositor is not None:
                slot.depositor.report = handle.channel.send
                journal = str(slot.depositor.folder.absolute())
                setup = structs.replace(setup, journal=journal, place=place, deaths=slot.deaths)
            handle.channel.send(setup)
            await self._watch(handle, child)
        finally:
            self._drop(handle)
            await slot.children.replace(child)
        if not self._is_stopping:
            log.get().error("a worker ended", pid=child.process.pid, code=child.process.returncode)

    async def _watch(self, handle: WorkerHandle, child: Child) -> None:
        """Watch until the worker ends, closes its channel, or has sent nothing for too long."""
        ended = asyncio.ensure_future(child.process.wait())
        closed = asyncio.ensure_future(handle.channel.is_closed.wait())
        try:
            while not ended.done() and not closed.done():
                await asyncio.wait(
                    (ended, closed), timeout=self._timeouts.look, return_when=asyncio.FIRST_COMPLETED
                )
                handle.missed_looks += 1
                if handle.missed_looks > self._allowed_looks(handle):
                    log.get().error("a worker hangs and is killed", pid=child.process.pid)
                    return
        finally:
            ended.cancel()
            closed.cancel()

    def _allowed_looks(self, handle: WorkerHandle) -> int:
        return self._timeouts.silent_looks if handle.is_ready else self._timeouts.starting_looks

    def _count_ready(self) -> None:
        running = sum(1 for each in self._handles if each.is_ready)
        self._resources.workers.running = running
        if running:
            self._is_any_ready.set()
        else:
            self._is_any_ready.clear()

    def _drop(self, handle: WorkerHandle) -> None:
        self._handles.discard(handle)
        handle.close()
        self._count_ready()


def to_setup(config: Config, certificate: CertificateFiles) -> WorkerSetup:
    return WorkerSetup(
        str(config.data_dir.absolute()),
        config.domain,
        str(certificate.certificate.absolute()),
        str(certificate.key.absolute()),
        list(map(str, config.trusted_proxies)),
        config.log,
    )


async def start_worker(
    children: ChildSupervisor, sockets: Sequence[socket.socket]
) -> tuple[Child, socket.socket]:
    """Start a worker. Return it and our end of its channel. Raises ChildNotStarted."""
    ours, theirs = socket.socketpair()
    with theirs:
        descriptors_passed = [theirs.fileno(), *(each.fileno() for each in sockets)]
        numbers = map(str, (os.getpid(), *descriptors_passed))
        try:
            child = await children.start(["-m", "postroom.workers", *numbers], pass_fds=descriptors_passed)
        except BaseException:
            ours.close()
            raise
    return child, ours


def listen(endpoint: Endpoint, workers: int) -> list[list[socket.socket]]:
    """Return sockets for each worker: with one shared socket, nearly all connections would go to one."""
    try:
        require_free(endpoint)
        port = endpoint.port
        shares: list[list[socket.socket]] = []
        for _ in range(workers):
            shares.append(listen_on(endpoint.host, port, BACKLOG, is_shared=True))
            port = shares[0][0].getsockname()[1]
        return shares
    except (OSError, UnicodeError) as error:
        raise ConfigError("POSTROOM_SMTP", f"cannot listen on {endpoint}: {error}") from error


def require_free(endpoint: Endpoint) -> None:
    """Require a free port: sockets with SO_REUSEPORT would silently join those of another server."""
    close_all(listen_on(endpoint.host, endpoint.port, BACKLOG))
