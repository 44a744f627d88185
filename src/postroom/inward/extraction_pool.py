"""Extraction in child processes, so that a hostile file costs only its own text."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from postroom.processes.child_processes import Child, ChildNotStarted, ChildSupervisor
from postroom_mail.files.extraction import MAX_CONTENT_BYTES, Extraction
from postroom_mail.files.job import (
    MAX_ANSWER_BYTES,
    MAX_PREVIEW_BYTES,
    NotAnAnswer,
    Preview,
    job_frame,
    read_answer,
)
from postroom_mail.files.message_framing import LENGTH

T = TypeVar("T")
TOO_LARGE = Extraction("skipped_too_large", None)
TIMED_OUT = Extraction("timed_out", None)
FAILED = Extraction("failed", None)


class Limits(Struct, frozen=True):
    """Limits of the pool and of each child."""

    children: int = 2
    jobs_per_child: int = 200
    memory_bytes: int = 1024**3
    cpu_seconds: int = 10


class ChildLost(Exception):
    """The child ended, or sent something that is not an answer."""

    def __init__(self, is_out_of_time: bool = False) -> None:
        super().__init__("extraction child lost")
        self.is_out_of_time = is_out_of_time


class ExtractionPool:
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(self._limits.children)
        self._supervisor = ChildSupervisor("extraction")
        self._idle: list[_Extractor] = []

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        """Return the text within the deadline, including the wait for a child.

        Never raises for the content.
        """
        if len(content) > MAX_CONTENT_BYTES:
            return TOO_LARGE
        frame = job_frame(content_type, filename, content)
        try:
            async with asyncio.timeout(deadline_seconds), self._slots:
                return await self._answer(frame, _checked)
        except TimeoutError:
            return TIMED_OUT
        except ChildNotStarted:
            return FAILED
        except ChildLost as loss:
            return TIMED_OUT if loss.is_out_of_time else FAILED

    async def preview(self, content: bytes, deadline_seconds: float) -> bytes | None:
        """Return a small picture of a file, as PNG; None if there is none, or none in time."""
        if len(content) > MAX_CONTENT_BYTES:
            return None
        frame = job_frame("", "", content, is_preview=True)
        try:
            async with asyncio.timeout(deadline_seconds), self._slots:
                return await self._answer(frame, _checked_preview)
        except (TimeoutError, ChildNotStarted, ChildLost):
            return None

    async def close(self) -> None:
        """Ends every child. Extractions under way fail."""
        await self._supervisor.close()

    async def _answer(self, frame: bytes, read: Callable[[bytes], T]) -> T:
        extractor = self._idle_extractor()
        if extractor is not None:
            # A child that served before may end because of earlier jobs: only a fresh one decides.
            with contextlib.suppress(ChildLost):
                return await self._ask(extractor, frame, read)
        return await self._ask(await self._new_extractor(), frame, read)

    def _idle_extractor(self) -> "_Extractor | None":
        while self._idle:
            extractor = self._idle.pop()
            if extractor.child.is_running:
                return extractor
            self._supervisor.kill(extractor.child)
        return None

    async def _new_extractor(self) -> "_Extractor":
        numbers = (self._limits.memory_bytes, self._limits.cpu_seconds, os.getpid())
        child = await self._supervisor.start(
            ["-m", "postroom_mail.files.child", *map(str, numbers)],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return _Extractor(child)

    async def _ask(self, extractor: "_Extractor", frame: bytes, read: Callable[[bytes], T]) -> T:
        """Return the child's answer. The child is kept only if it answered and may serve more jobs."""
        is_reusable = False
        try:
            answer = read(await extractor.ask(frame))
            is_reusable = extractor.jobs < self._limits.jobs_per_child and not self._supervisor.is_stopping
            return answer
        finally:
            if is_reusable:
                self._idle.append(extractor)
            else:
                self._supervisor.kill(extractor.child)


class _Extractor(Struct, eq=False):
    """A child and how many jobs it was given."""

    child: Child
    jobs: int = 0

    async def ask(self, frame: bytes) -> bytes:
        process = self.child.process
        assert process.stdin is not None
        assert process.stdout is not None
        self.jobs += 1
        try:
            if process.stdin.is_closing():
                raise BrokenPipeError
            process.stdin.write(frame)
            await process.stdin.drain()
            (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            if size > MAX_ANSWER_BYTES:
                raise ChildLost
            return await process.stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChildLost(await process.wait() == -signal.SIGXCPU) from error


def _checked(body: bytes) -> Extraction:
    try:
        return read_answer(body)
    except NotAnAnswer as error:
        raise ChildLost from error


def _checked_preview(body: bytes) -> bytes | None:
    try:
        answer = msgspec.msgpack.decode(body, type=Preview)
    except msgspec.MsgspecError as error:
        raise ChildLost from error
    if answer.png is not None and len(answer.png) > MAX_PREVIEW_BYTES:
        raise ChildLost
    return answer.png
