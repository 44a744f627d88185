"""Child processes: started in their own group, replaced after a growing pause, killed when we stop."""

import asyncio
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from postroom import log

# All that a child gets of our environment: no key and no secret is among it.
PASSED_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TESSDATA_PREFIX")


class RestartPauses(Struct, frozen=True):
    """In seconds. The pause doubles with each failure, unless the last one was longer ago than `reset`."""

    first: float = 0.1
    longest: float = 30.0
    reset: float = 60.0


class ChildNotStarted(Exception):
    """The system refused to start a child, or the server is stopping."""


class Child(Struct, eq=False):
    process: asyncio.subprocess.Process

    @property
    def is_running(self) -> bool:
        return self.process.returncode is None

    def kill(self) -> None:
        """Kills the whole group, so that programs started by the child end too."""
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


class ChildSupervisor:
    """Starts children of one kind, and ends all of them."""

    def __init__(self, kind: str, pauses: RestartPauses | None = None) -> None:
        self._kind = kind
        self._pauses = pauses or RestartPauses()
        self._pause_seconds = 0.0
        self._failed_at = -math.inf
        self._children: set[Child] = set()
        self._unfinished: set[asyncio.Future[Any]] = set()  # starts and endings under way
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def start(
        self,
        arguments: Sequence[str],
        *,
        pass_fds: Sequence[int] = (),
        stdin: int = asyncio.subprocess.DEVNULL,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> Child:
        """Runs Python with these arguments, after the pause that earlier failures call for.

        Raises ChildNotStarted.
        """
        await self._pause()
        if self.is_stopping:
            raise ChildNotStarted("the server is stopping")
        starting = asyncio.ensure_future(self._start(arguments, pass_fds, stdin, stdout, stderr))
        self._wait_for_at_end(starting)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._kill_unused)
            raise

    async def _start(
        self,
        arguments: Sequence[str],
        pass_fds: Sequence[int],
        stdin: int,
        stdout: int | None,
        stderr: int | None,
    ) -> Child:
        """Start a child. The files are passed first: a caller that is cancelled may close them."""
        try:
            process = await start_python(
                arguments, pass_fds=pass_fds, stdin=stdin, stdout=stdout, stderr=stderr
            )
        except OSError as error:
            self._record_failure()
            log.get().seldom("a child process could not be started", kind=self._kind, reason=str(error))
            raise ChildNotStarted(str(error)) from error
        child = Child(process)
        self._children.add(child)
        if self.is_stopping:
            self.kill(child)
            raise ChildNotStarted("the server is stopping")
        return child

    def _kill_unused(self, starting: asyncio.Future[Child]) -> None:
        """Kills a child whose starter was cancelled."""
        if not starting.cancelled() and starting.exception() is None:
            self.kill(starting.result())

    def kill(self, child: Child) -> None:
        """Kills at once; the process is reaped in the background."""
        if child not in self._children:
            return
        self._children.discard(child)
        child.kill()
        self._wait_for_at_end(asyncio.ensure_future(child.process.wait()))

    def _wait_for_at_end(self, work: asyncio.Future[Any]) -> None:
        self._unfinished.add(work)
        work.add_done_callback(self._unfinished.discard)

    async def replace(self, child: Child) -> None:
        """Kills a failed child, and waits for its end: the next one starts after a pause."""
        self._record_failure()
        self.kill(child)
        await child.process.wait()

    def stop_starting(self) -> None:
        """Ends every pause. Running children may finish."""
        self._stopping.set()

    async def close(self) -> None:
        """Kills every child, also one that is being started."""
        self.stop_starting()
        for child in list(self._children):
            self.kill(child)
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    async def _pause(self) -> None:
        left = self._failed_at + self._pause_seconds - time.monotonic()
        if left > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._stopping.wait()

    def _record_failure(self) -> None:
        now = time.monotonic()
        if now - self._failed_at >= self._pauses.reset:
            self._pause_seconds = 0.0
        doubled = 2 * self._pause_seconds or self._pauses.first
        self._pause_seconds, self._failed_at = min(doubled, self._pauses.longest), now


async def start_python(
    arguments: Sequence[str], *, pass_fds: Sequence[int], stdin: int, stdout: int | None, stderr: int | None
) -> asyncio.subprocess.Process:
    """Start Python in its own session, with no open file of ours but those passed."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        *arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=child_environment(),
        pass_fds=pass_fds,
        start_new_session=True,
    )


def child_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
