"""The server's end of a channel: finds recipients, admits connections and stores mails for one worker."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from postroom.inward.mails import Destination
from postroom.inward.receive import take_over
from postroom.resources import Resources
from postroom.smtp.connection_limits import LimitedConnection, LocalConnectionLimits
from postroom.smtp.intake import is_out_of_space
from postroom.smtp.limits import RecipientDirectory, RecipientVerdict, Refused
from postroom.workers.channel import (
    AdmitRequest,
    AdmitResponse,
    Channel,
    Disconnected,
    FromWorker,
    RecipientRequest,
    RecipientResponse,
    StoreRequest,
    StoreResponse,
    WorkerReady,
)


class RemoteConnection:
    """Somebody at a worker, which hangs up, looks at the time and cuts off the idlest by itself."""

    idle_since = None

    def hang_up(self, farewell: bytes) -> None: ...
    def abort(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class WorkerHandle:
    """`is_ready` once the worker has opened its door; `silent_looks` counts looks since it was last heard."""

    def __init__(
        self,
        resources: Resources,
        directory: RecipientDirectory,
        connections: LocalConnectionLimits,
        on_ready: Callable[[], None],
    ) -> None:
        self._on_ready = on_ready
        self._resources = resources
        self._directory = directory
        self._connections = connections
        self._admitted: dict[int, LimitedConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.channel = Channel(FromWorker, self._receive)
        self.is_ready = False
        self.silent_looks = 0

    def close(self) -> None:
        """The worker is gone, and all who were there. A mail that was handed over is stored all the same."""
        self.channel.close()
        for connection in self._admitted.values():
            self._connections.release(connection)
        self._admitted.clear()

    def _receive(self, message: FromWorker) -> None:
        self.silent_looks = 0
        if isinstance(message, StoreRequest):
            self._start(self._store(message))
        elif isinstance(message, RecipientRequest):
            self._find(message)
        elif isinstance(message, AdmitRequest):
            self._admit(message)
        elif isinstance(message, Disconnected):
            self._connections.release(self._admitted.pop(message.connection, RemoteConnection()))
        elif isinstance(message, WorkerReady) and not self.is_ready:
            self.is_ready = True
            self._on_ready()

    async def _store(self, handed: StoreRequest) -> None:
        try:
            await take_over(self._resources, handed.read)
            self.channel.send(StoreResponse(handed.number))
        except Exception as error:
            self.channel.send(StoreResponse(handed.number, traceback.format_exc(), is_out_of_space(error)))

    def _find(self, asked: RecipientRequest) -> None:
        try:
            verdict = self._directory.check_recipient(asked.address)
        except Exception:
            verdict = Refused.TRY_LATER
        if isinstance(verdict, Awaitable):
            self._start(self._await_verdict(asked, verdict))
        else:
            self._respond(asked, verdict)

    async def _await_verdict(self, asked: RecipientRequest, verdict: Awaitable[RecipientVerdict]) -> None:
        try:
            self._respond(asked, await verdict)
        except Exception:
            self._respond(asked, Refused.TRY_LATER)

    def _respond(self, asked: RecipientRequest, verdict: RecipientVerdict) -> None:
        if isinstance(verdict, Refused):
            self.channel.send(RecipientResponse(asked.number, None, verdict.name))
        else:
            self.channel.send(RecipientResponse(asked.number, cast(Destination, verdict.destination)))

    def _admit(self, came: AdmitRequest) -> None:
        connection = RemoteConnection()
        refusal = self._connections.admit(connection, came.address)
        if refusal is None:
            self._admitted[came.number] = connection
        self.channel.send(AdmitResponse(came.number, refusal))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
