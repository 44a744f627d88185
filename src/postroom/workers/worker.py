"""The worker: takes SMTP, reads mail, and hands it over the line to the server, which stores it.

Run as `python -m postroom.workers.worker PARENT_PID LINE_FD LISTENER_FD…`.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import uvloop

from postroom import log
from postroom.clock import SystemClock
from postroom.inward import suspicion
from postroom.inward.receive import AT_ONCE_IN_WORKER_BYTES, OwnReader, TooManyHops, warm_up
from postroom.net.certificate import Certificate, CertificateFiles
from postroom.net.proxies import Proxies
from postroom.processes import descriptors, pools
from postroom.processes.confinement import die_with_parent
from postroom.smtp import reception
from postroom.smtp.envelope import Envelope
from postroom.smtp.memory import RememberingDirectory
from postroom.smtp.policy import Accepted, MailLoops, RecipientVerdict, Refused, SessionLimits, StorageFull
from postroom.smtp.server import Server
from postroom.smtp.visitors import Visitor, Visitors
from postroom.workers.line import (
    Came,
    Forget,
    FromServer,
    HandOver,
    Left,
    Line,
    Read,
    RecipientAsked,
    Renew,
    Setup,
    StopWorker,
    WasRead,
    WorkerReady,
)

READY_SECONDS = 1.0
START_SECONDS = 2.0
REST_SECONDS = 0.05


class HandoverFailed(Exception):
    """The server could not store a mail; the text is its reason."""


class RemoteDirectory:
    """Asks the server."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def check_recipient(self, address: str) -> RecipientVerdict:
        found = await self._line.ask(RecipientAsked(self._line.next_number(), address))
        return Refused[found.refusal] if found.destination is None else Accepted(found.destination)


class RemoteMailroom:
    """Reads here, and has the server store it."""

    def __init__(self, line: Line, reader: OwnReader, hostname: str) -> None:
        self._line = line
        self._reader = reader
        self._hostname = hostname
        self._clock = SystemClock()

    async def accept(self, envelope: Envelope) -> None:
        arrival = await reception.to_arrival(envelope, self._hostname, self._clock.now())
        try:
            read = await self._reader.read(arrival)
        except TooManyHops as error:
            raise MailLoops from error
        stored = await self._line.ask(HandOver(self._line.next_number(), read))
        if stored.failure:
            raise StorageFull(stored.failure) if stored.is_full else HandoverFailed(stored.failure)
        reception.note(envelope)


class SharedVisitors:
    """Who is here, admitted by the server, which knows who is at the other workers."""

    def __init__(self, policy: SessionLimits, line: Line) -> None:
        self._line = line
        self._here = Visitors(policy)
        self._numbers: dict[Visitor, int] = {}
        self.all_left = self._here.all_left
        self.close = self._here.close
        self.present = self._here.present

    def admit(self, visitor: Visitor, address: str) -> Any:
        refusal = self._here.admit(visitor, address)
        return self._ask(visitor, address) if refusal is None else refusal

    async def _ask(self, visitor: Visitor, address: str) -> bytes | None:
        number = self._numbers[visitor] = self._line.next_number()
        admitted = await self._line.ask(Came(number, address))
        if admitted.refusal is not None:
            self.leave(visitor)
        refusal: bytes | None = admitted.refusal
        return refusal

    def leave(self, visitor: Visitor) -> None:
        number = self._numbers.pop(visitor, None)
        if number is not None:
            self._line.say(Left(number))
        self._here.leave(visitor)


class Worker:
    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = listeners
        self._line = Line(FromServer, self._hear)
        self._reader = OwnReader(AT_ONCE_IN_WORKER_BYTES)
        self._directory = RememberingDirectory(RemoteDirectory(self._line))
        self._setup: asyncio.Future[Setup] = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        self._certificate: Certificate | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, line: socket.socket) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self._line, sock=line)
        self._start(self._die_with_line())
        server = self._server(await self._setup)
        warm_up()
        await server.start_on(self._listeners)
        gc.freeze()  # all that is here now stays: no collection needs to look at it again
        self._start(self._say_ready())
        self._start(self._prepare_the_rest())
        await self._stopping.wait()
        await server.stop()

    def _server(self, setup: Setup) -> Server:
        log.use(setup.log)
        self._certificate = Certificate(CertificateFiles(Path(setup.certificate), Path(setup.key)))
        self._start(self._certificate.keep_fresh())
        caps = descriptors.caps(descriptors.raise_limit())
        folder, policy = Path(setup.data_dir), SessionLimits(setup.hostname, max_connections=caps.smtp)
        return Server(
            self._directory,
            RemoteMailroom(self._line, self._reader, setup.hostname),
            policy,
            folder / "spool",
            self._certificate.context,
            SharedVisitors(policy, self._line),
            Proxies(map(ip_network, setup.proxies)),
        )

    def _hear(self, message: FromServer) -> None:
        if isinstance(message, Read):
            self._start(self._read(message))
        elif isinstance(message, Forget):
            self._directory.forget()
        elif isinstance(message, Renew):
            if self._certificate is not None:
                self._certificate.refresh()
        elif isinstance(message, Setup):
            self._setup.set_result(message)
        elif isinstance(message, StopWorker):
            self._stopping.set()

    async def _read(self, asked: Read) -> None:
        try:
            self._line.say(WasRead(asked.number, await self._reader.read(asked.arrival)))
        except TooManyHops:
            self._line.say(WasRead(asked.number, None, has_too_many_hops=True))

    async def _say_ready(self) -> None:
        while True:
            self._line.say(WorkerReady())
            await asyncio.sleep(READY_SECONDS)

    async def _prepare_the_rest(self) -> None:
        """Beside the loop, with rests, when the start is over: no mail has to wait for more than a piece."""
        await asyncio.sleep(START_SECONDS)
        pieces, has_more = suspicion.prepare(), True
        while has_more:
            has_more = await pools.ONCE.run(next, pieces, False)
            await asyncio.sleep(REST_SECONDS)

    async def _die_with_line(self) -> None:
        """Without the server there is nobody to store a mail. Its senders try again."""
        await self._line.is_lost.wait()
        os._exit(1)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def serve(line_fd: int, listener_fds: Sequence[int]) -> None:
    listeners = [socket.socket(fileno=fd) for fd in listener_fds]
    await Worker(listeners).serve(socket.socket(fileno=line_fd))


def main(parent_pid: int, line_fd: int, *listener_fds: int) -> None:
    """A signal to stop goes to the whole group; the server says when it is our turn."""
    die_with_parent()
    if os.getppid() != parent_pid:
        return
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(line_fd, listener_fds))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
