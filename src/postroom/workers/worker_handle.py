"""The server's end of a worker's channel: finds recipients, admits connections and stores mail for it."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from postroom.errors import Unavailable, is_out_of_space
from postroom.inward.journal.depositor import Depositor
from postroom.inward.journal.entries import Journaled
from postroom.inward.mails import Destination
from postroom.inward.receive import store_mail
from postroom.inward.refusals import Refusals
from postroom.resources import Resources
from postroom.smtp.backend import RecipientDirectory, RecipientVerdict, Refused, look_up_failed
from postroom.smtp.connection_limits import LimitedConnection, LocalConnectionLimits
from postroom.workers.channel import (
    AdmitRequest,
    AdmitResponse,
    Channel,
    Disconnected,
    FromWorker,
    RecipientRequest,
    RecipientResponse,
    RefusalRequest,
    RefusalResponse,
    StoreRequest,
    StoreResponse,
    WorkerReady,
)


class RemoteConnection:
    """A connection at a worker, which itself hangs up, checks timeouts and closes the idlest."""

    idle_since = None

    def hang_up(self, farewell: bytes) -> None: ...
    def abort(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class WorkerHandle:
    """`is_ready` once the worker accepts connections; `missed_looks` counts checks since its last message."""

    def __init__(
        self,
        resources: Resources,
        directory: RecipientDirectory,
        connections: LocalConnectionLimits,
        on_ready: Callable[[], None],
        refusals: Refusals,
        depositor: Depositor | None = None,
    ) -> None:
        self._depositor = depositor
        self._on_ready = on_ready
        self._refusals = refusals
        self._resources = resources
        self._directory = directory
        self._connections = connections
        self._admitted: dict[int, LimitedConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.channel = Channel(FromWorker, self._receive)
        self.is_ready = False
        self.missed_looks = 0

    def close(self) -> None:
        """Close after the worker and its connections are gone. Mail that it handed over is still stored."""
        self.channel.close()
        self._depositor = None
        for connection in self._admitted.values():
            self._connections.release(connection)
        self._admitted.clear()

    def _receive(self, message: FromWorker) -> None:
        self.missed_looks = 0
        if isinstance(message, Journaled):
            if self._depositor is not None:
                self._depositor.add(message)
        elif isinstance(message, StoreRequest):
            self._start(self._store(message))
        elif isinstance(message, RefusalRequest):
            self._start(self._find_refusal(message))
        elif isinstance(message, RecipientRequest):
            self._find_recipient(message)
        elif isinstance(message, AdmitRequest):
            self._admit(message)
        elif isinstance(message, Disconnected):
            self._connections.release(self._admitted.pop(message.connection, RemoteConnection()))
        elif isinstance(message, WorkerReady) and not self.is_ready:
            self.is_ready = True
            self._on_ready()

    async def _store(self, request: StoreRequest) -> None:
        try:
            await store_mail(self._resources, request.read)
            self.channel.send(StoreResponse(request.number))
        except Unavailable as error:
            reason, is_full = str(error.__cause__ or error), is_out_of_space(error)
            self.channel.send(StoreResponse(request.number, reason, is_full, is_passing=True))
        except Exception as error:
            self.channel.send(StoreResponse(request.number, traceback.format_exc(), is_out_of_space(error)))

    async def _find_refusal(self, request: RefusalRequest) -> None:
        self.channel.send(RefusalResponse(request.number, await self._refusals.find(request.arrival)))

    def _find_recipient(self, request: RecipientRequest) -> None:
        try:
            verdict = self._directory.check_recipient(request.address)
        except Exception as error:
            verdict = look_up_failed(error)
        if isinstance(verdict, Awaitable):
            self._start(self._await_verdict(request, verdict))
        else:
            self._respond(request, verdict)

    async def _await_verdict(self, request: RecipientRequest, awaited: Awaitable[RecipientVerdict]) -> None:
        try:
            verdict = await awaited
        except Exception as error:
            verdict = look_up_failed(error)
        self._respond(request, verdict)

    def _respond(self, request: RecipientRequest, verdict: RecipientVerdict) -> None:
        if isinstance(verdict, Refused):
            self.channel.send(RecipientResponse(request.number, None, verdict.name))
        else:
            destination = cast(Destination, verdict.destination)
            self.channel.send(RecipientResponse(request.number, destination, may_refuse=verdict.may_refuse))

    def _admit(self, request: AdmitRequest) -> None:
        connection = RemoteConnection()
        refusal = self._connections.admit(connection, request.address)
        if refusal is None:
            self._admitted[request.number] = connection
        self.channel.send(AdmitResponse(request.number, refusal))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
