"""Starts the workers, replaces those that die, kills those that hang, and has them read mail."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from postroom import log
from postroom.config import Config, ConfigError, Endpoint
from postroom.inward.mails import Arrival, ReadMail
from postroom.inward.receive import TooManyHops
from postroom.net.certificate import CertificateFiles
from postroom.processes import descriptors, environment
from postroom.resources import Resources
from postroom.smtp.connection_limits import LocalConnectionLimits
from postroom.smtp.limits import RecipientDirectory, SessionLimits
from postroom.smtp.recipient_cache import watch_deleted_inboxes
from postroom.workers.channel import ForgetRecipients, ReadRequest, ReloadCertificate, StopWorker, WorkerSetup
from postroom.workers.worker_handle import WorkerHandle

BACKLOG = 512


@dataclass(frozen=True, slots=True)
class SupervisorTimeouts:
    """Seconds. A worker that lived long enough has no bad past."""

    look: float = 1.0
    silence: int = 20  # looks
    starting: int = 120  # looks
    first_pause: float = 0.1
    longest_pause: float = 30.0
    good_life: float = 60.0
    start: float = 10.0
    stop: float = 60.0
    reader: float = 30.0  # until there is a worker to read


class NoWorkerAvailable(Exception):
    """There is no worker that could read a mail, or it died over it."""


class WorkerSupervisor:
    """A worker for each list of sockets, which stay open here: who connects while one starts waits for it."""

    def __init__(
        self,
        resources: Resources,
        directory: RecipientDirectory,
        listeners: Sequence[Sequence[socket.socket]],
        certificate: CertificateFiles,
        timeouts: SupervisorTimeouts | None = None,
    ) -> None:
        self._resources = resources
        self._directory = directory
        most = descriptors.MOST_SMTP * len(listeners)  # each worker has its own cap below this
        self._connections = LocalConnectionLimits(
            SessionLimits(resources.config.domain, max_connections=most)
        )
        self._listeners = listeners
        self._certificate = certificate
        self._timeouts = timeouts or SupervisorTimeouts()
        self._handles: set[WorkerHandle] = set()
        self._is_somebody_ready = asyncio.Event()
        self._is_stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        resources.workers.expected = len(listeners)

    @property
    def port(self) -> int:
        port: int = self._listeners[0][0].getsockname()[1]
        return port

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep_alive(sockets)) for sockets in self._listeners]
        self._tasks.append(loop.create_task(watch_deleted_inboxes(self._resources, self._forget_recipients)))

    async def wait_until_ready(self) -> None:
        """Not for ever: with a worker that cannot start there is still all else to serve."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.start):
                await self._is_somebody_ready.wait()

    async def stop(self) -> None:
        """Sessions end with 421; a mail that is being taken over gets its answer first."""
        self._is_stopping = True
        for sockets in self._listeners:
            for each in sockets:
                each.close()
        for handle in self._handles:
            handle.channel.send(StopWorker())
        *keepers, news = self._tasks
        news.cancel()
        await asyncio.wait(keepers, timeout=self._timeouts.stop)
        for keeper in keepers:
            keeper.cancel()
        await asyncio.wait(self._tasks)

    async def read(self, arrival: Arrival) -> ReadMail:
        """By the worker that has least to do."""
        try:
            async with asyncio.timeout(self._timeouts.reader):
                await self._is_somebody_ready.wait()
        except TimeoutError as error:
            raise NoWorkerAvailable("No worker is there to read a mail.") from error
        ready = [handle for handle in self._handles if handle.is_ready]
        channel = min(ready, key=lambda handle: handle.channel.waiting).channel
        answer = await channel.ask(ReadRequest(channel.next_number(), arrival))
        if answer.has_too_many_hops:
            raise TooManyHops
        read: ReadMail | None = answer.read
        assert read is not None
        return read

    def count(self) -> int:
        """How many clients are at the workers."""
        return len(self._connections.open_connections())

    def reload_certificate(self) -> None:
        for handle in self._handles:
            handle.channel.send(ReloadCertificate())

    def _forget_recipients(self) -> None:
        for handle in self._handles:
            handle.channel.send(ForgetRecipients())

    async def _keep_alive(self, sockets: Sequence[socket.socket]) -> None:
        """The more often it dies, the longer the pause: a fault that stays must not eat the machine."""
        loop = asyncio.get_running_loop()
        pause = self._timeouts.first_pause
        while not self._is_stopping:
            started_at = loop.time()
            try:
                await self._run_worker(sockets)
            except Exception:
                log.get().exception("a worker could not be started")
            if self._is_stopping:
                return
            if loop.time() - started_at >= self._timeouts.good_life:
                pause = self._timeouts.first_pause
            self._resources.workers.restarts += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._timeouts.longest_pause)

    async def _run_worker(self, sockets: Sequence[socket.socket]) -> None:
        """From the start of a worker to its end."""
        handle = WorkerHandle(self._resources, self._directory, self._connections, self._count_ready)
        ours, theirs = socket.socketpair()
        with theirs:
            process = await start_process(theirs, sockets)
        self._handles.add(handle)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: handle.channel, sock=ours)
            handle.channel.send(to_setup(self._resources.config, self._certificate))
            await self._watch(handle, process)
        finally:
            self._drop(handle)
            await end(process)
        if not self._is_stopping:
            log.get().error("a worker ended", pid=process.pid, code=process.returncode)

    async def _watch(self, handle: WorkerHandle, process: asyncio.subprocess.Process) -> None:
        """Until it ends, or has said nothing for too long. A pause of our own process counts as one look."""
        over = asyncio.ensure_future(process.wait())
        lost = asyncio.ensure_future(handle.channel.is_closed.wait())
        try:
            while not over.done() and not lost.done():
                await asyncio.wait((over, lost), timeout=self._timeouts.look, return_when="FIRST_COMPLETED")
                handle.silent_looks += 1
                if handle.silent_looks > self._allowed_silence(handle):
                    log.get().error("a worker hangs and is ended", pid=process.pid)
                    return
        finally:
            over.cancel()
            lost.cancel()

    def _allowed_silence(self, handle: WorkerHandle) -> int:
        return self._timeouts.silence if handle.is_ready else self._timeouts.starting

    def _count_ready(self) -> None:
        running = sum(1 for each in self._handles if each.is_ready)
        self._resources.workers.running = running
        if running:
            self._is_somebody_ready.set()
        else:
            self._is_somebody_ready.clear()

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


async def start_process(
    channel: socket.socket, sockets: Sequence[socket.socket]
) -> asyncio.subprocess.Process:
    passed = (channel.fileno(), *(each.fileno() for each in sockets))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "postroom.workers.worker", *map(str, (os.getpid(), *passed))),
        stdin=asyncio.subprocess.DEVNULL,
        env=environment.for_child(),
        pass_fds=passed,
        start_new_session=True,
    )


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    await process.wait()


def listen(endpoint: Endpoint, workers: int) -> list[list[socket.socket]]:
    """Sockets for each worker: one that all share would give nearly every connection to one of them."""
    try:
        require_free(endpoint)
        port = endpoint.port
        shares: list[list[socket.socket]] = []
        for _ in range(workers):
            shares.append(bind(endpoint.host, port))
            port = shares[0][0].getsockname()[1]
        return shares
    except (OSError, UnicodeError) as error:
        raise ConfigError("POSTROOM_SMTP", f"cannot listen on {endpoint}: {error}") from error


def require_free(endpoint: Endpoint) -> None:
    """Sockets that may share a port would join another server's without a word."""
    family, address = addresses(endpoint.host, endpoint.port)[0]
    socket.create_server(address, family=family).close()


def bind(host: str, port: int) -> list[socket.socket]:
    """One for each address of the host; a port that the system chose is the same for all."""
    bound: list[socket.socket] = []
    for family, address in addresses(host, port):
        chosen = port or (bound[0].getsockname()[1] if bound else 0)
        where = (address[0], chosen, *address[2:])
        bound.append(socket.create_server(where, family=family, backlog=BACKLOG, reuse_port=True))
    return bound


def addresses(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))  # type: ignore[misc]
