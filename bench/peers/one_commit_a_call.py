"""The plain way to write: the same threads and connections as group commit, but a commit for every call."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from postroom.storage.database import Tx
from postroom.storage.write_jobs import WriteJob, WriteSession

P = ParamSpec("P")
T = TypeVar("T")

NAME = "one commit a call"


class OneCommitACall:
    def __init__(self, connect: Callable[[], WriteSession], writers: int) -> None:
        self._connect = connect
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._serve) for _ in range(writers)]
        for thread in self._threads:
            thread.start()

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        job = WriteJob(lambda tx, _: [fn(tx, *args, **kwargs)], None, loop, loop.create_future(), print)
        self._jobs.put(job)
        result: T = await job.future
        return result

    async def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _serve(self) -> None:
        session = self._connect()
        while (job := self._jobs.get()) is not None:
            answer = _run(session, job)
            job.loop.call_soon_threadsafe(answer)
        session.close()


def _run(session: WriteSession, job: WriteJob) -> Callable[[], Any]:
    session.begin()
    try:
        (result,) = job.function(session.tx, [job.item])
        session.commit()
    except Exception as error:
        session.rollback()
        reason = error
        return lambda: job.future.set_exception(reason)
    return lambda: job.future.set_result(result)
