"""The server's end of a line: finds recipients, admits visitors and stores mails for one worker."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from postroom.inward.mails import Destination
from postroom.inward.receive import store_mail
from postroom.resources import Resources
from postroom.smtp.policy import Directory, RecipientVerdict, Refused
from postroom.smtp.reception import is_out_of_space
from postroom.smtp.visitors import Visitor, Visitors
from postroom.workers.line import (
    Admitted,
    Came,
    FromWorker,
    HandOver,
    Left,
    Line,
    RecipientAsked,
    RecipientFound,
    Stored,
    WorkerReady,
)


class RemoteVisitor:
    """Somebody at a worker, which hangs up, looks at the time and cuts off the idlest by itself."""

    idle_since = None

    def hang_up(self, farewell: bytes) -> None: ...
    def abort(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class Counter:
    """`is_ready` once the worker has opened its door; `quiet_for` counts looks since it was last heard."""

    def __init__(
        self,
        resources: Resources,
        directory: Directory,
        visitors: Visitors,
        on_ready: Callable[[], None],
    ) -> None:
        self._on_ready = on_ready
        self._resources = resources
        self._directory = directory
        self._visitors = visitors
        self._present: dict[int, Visitor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.line = Line(FromWorker, self._hear)
        self.is_ready = False
        self.quiet_for = 0

    def close(self) -> None:
        """The worker is gone, and all who were there. A mail that was handed over is stored all the same."""
        self.line.close()
        for visitor in self._present.values():
            self._visitors.leave(visitor)
        self._present.clear()

    def _hear(self, message: FromWorker) -> None:
        self.quiet_for = 0
        if isinstance(message, HandOver):
            self._start(self._store(message))
        elif isinstance(message, RecipientAsked):
            self._find(message)
        elif isinstance(message, Came):
            self._admit(message)
        elif isinstance(message, Left):
            self._visitors.leave(self._present.pop(message.visitor, RemoteVisitor()))
        elif isinstance(message, WorkerReady) and not self.is_ready:
            self.is_ready = True
            self._on_ready()

    async def _store(self, handed: HandOver) -> None:
        try:
            await store_mail(self._resources, handed.read)
            self.line.say(Stored(handed.number))
        except Exception as error:
            self.line.say(Stored(handed.number, traceback.format_exc(), is_out_of_space(error)))

    def _find(self, asked: RecipientAsked) -> None:
        try:
            verdict = self._directory.check_recipient(asked.address)
        except Exception:
            verdict = Refused.TRY_LATER
        if isinstance(verdict, Awaitable):
            self._start(self._hear_verdict(asked, verdict))
        else:
            self._tell(asked, verdict)

    async def _hear_verdict(self, asked: RecipientAsked, verdict: Awaitable[RecipientVerdict]) -> None:
        try:
            self._tell(asked, await verdict)
        except Exception:
            self._tell(asked, Refused.TRY_LATER)

    def _tell(self, asked: RecipientAsked, verdict: RecipientVerdict) -> None:
        if isinstance(verdict, Refused):
            self.line.say(RecipientFound(asked.number, None, verdict.name))
        else:
            self.line.say(RecipientFound(asked.number, cast(Destination, verdict.destination)))

    def _admit(self, came: Came) -> None:
        visitor = RemoteVisitor()
        refusal = self._visitors.admit(visitor, came.address)
        if refusal is None:
            self._present[came.number] = visitor
        self.line.say(Admitted(came.number, refusal))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
