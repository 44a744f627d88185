"""Extraction in child processes, so that a hostile file costs its own text and nothing else."""

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass

import msgspec

from postroom.extraction.job import MAX_ANSWER_BYTES, job_frame
from postroom.mail.extraction import MAX_CONTENT_BYTES, MAX_TEXT_CHARS, METHODS, REASONS, Extraction
from postroom.processes import environment
from postroom.processes.message_framing import LENGTH

TOO_LARGE = Extraction("skipped_too_large", None)
TIMED_OUT = Extraction("timed_out", None)
FAILED = Extraction("failed", None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the pool and of each child."""

    children: int = 2
    jobs_per_child: int = 200
    memory_bytes: int = 1024**3
    cpu_seconds: int = 10


class ChildLost(Exception):
    """The child ended, or said something no child of ours says."""

    def __init__(self, is_out_of_time: bool = False) -> None:
        super().__init__("extraction child lost")
        self.is_out_of_time = is_out_of_time


class ExtractionPool:
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(self._limits.children)
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()
        self._ends: set[asyncio.Task[int]] = set()
        self._is_closed = False

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        """Text within the deadline, which also counts the wait for a child; never raises for the content."""
        if len(content) > MAX_CONTENT_BYTES:
            return TOO_LARGE
        frame = job_frame(content_type, filename, content)
        try:
            async with asyncio.timeout(deadline_seconds), self._slots:
                return await self._answer(frame)
        except TimeoutError:
            return TIMED_OUT

    async def close(self) -> None:
        """End every child. Extractions under way fail."""
        self._is_closed = True
        for child in list(self._children):
            self._end(child)
        while self._ends:
            await asyncio.wait(self._ends)

    async def _answer(self, frame: bytes) -> Extraction:
        child = self._idle_child()
        if child is not None:
            # A child that served before may end because of older jobs: only a fresh one has the last word.
            with contextlib.suppress(ChildLost):
                return await self._asked(child, frame)
        try:
            return await self._asked(await self._started_child(), frame)
        except ChildLost as loss:
            return TIMED_OUT if loss.is_out_of_time else FAILED

    def _idle_child(self) -> "_Child | None":
        while self._idle:
            child = self._idle.pop()
            if child.process.returncode is None:
                return child
            self._end(child)
        return None

    async def _started_child(self) -> "_Child":
        if self._is_closed:
            raise ChildLost
        child = await _Child.start(self._limits)
        self._children.add(child)
        if self._is_closed:
            self._end(child)
        return child

    async def _asked(self, child: "_Child", frame: bytes) -> Extraction:
        """The answer of a child, which is kept only when it gave one and may give more."""
        is_reusable = False
        try:
            answer = await child.ask(frame)
            is_reusable = child.jobs < self._limits.jobs_per_child and not self._is_closed
            return answer
        finally:
            if is_reusable:
                self._idle.append(child)
            else:
                self._end(child)

    def _end(self, child: "_Child") -> None:
        """Kill at once; the process is collected in the background."""
        if child not in self._children:
            return
        self._children.discard(child)
        child.kill()
        end = asyncio.ensure_future(child.process.wait())
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)


@dataclass(slots=True, eq=False)
class _Child:
    process: asyncio.subprocess.Process
    jobs: int = 0

    @classmethod
    async def start(cls, limits: Limits) -> "_Child":
        numbers = (limits.memory_bytes, limits.cpu_seconds, os.getpid())
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "postroom.extraction.child", *map(str, numbers)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment.for_child(),
            start_new_session=True,
        )
        return cls(process)

    async def ask(self, frame: bytes) -> Extraction:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.jobs += 1
        try:
            self.process.stdin.write(frame)
            await self.process.stdin.drain()
            (size,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
            if size > MAX_ANSWER_BYTES:
                raise ChildLost
            return _checked(await self.process.stdout.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChildLost(await self.process.wait() == -signal.SIGXCPU) from error

    def kill(self) -> None:
        """Kill the whole group, so that a program the child started goes with it."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


def _checked(body: bytes) -> Extraction:
    try:
        answer = msgspec.msgpack.decode(body, type=Extraction)
    except msgspec.MsgspecError as error:
        raise ChildLost from error
    has_text = answer.text is not None
    if answer.method not in (METHODS if has_text else REASONS) or len(answer.text or "") > MAX_TEXT_CHARS:
        raise ChildLost
    return answer
