"""Readers of files that begin where their imports end, for the servers in a test's own process.

What a reader imports costs ten times what it does with the small files of most tests. The tests in
`tests/extraction`, and all servers that are processes, start readers as users do.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

from postroom.processes import child_processes
from postroom_mail.files import child
from tests.warm_start import FORKS, Passed

start_python = child_processes.start_python
READER = ["-m", child.__name__]
READY = b"+"  # it has a group of its own, which may be killed


def take_from_fork_server() -> None:
    child_processes.start_python = start


async def start(arguments: Sequence[str], **files: Any) -> Any:
    if list(arguments[:2]) != READER:
        return await start_python(arguments, **files)
    ours, theirs = socket.socketpair()
    with theirs:
        environment = child_processes.child_environment()
        memory_bytes, cpu_seconds, _ = map(int, arguments[2:])
        order = (memory_bytes, cpu_seconds, environment, Passed(theirs.fileno()))
        process = FORKS.Process(target=_become_reader, args=order, daemon=True)
        process.start()
    stdout, stdin = await asyncio.open_connection(sock=ours)
    await stdout.readexactly(len(READY))
    return Reader(process, stdout, stdin)


class Reader:
    """What a pool asks of a child process."""

    def __init__(self, process: Any, stdout: asyncio.StreamReader, stdin: asyncio.StreamWriter) -> None:
        self._process, self.stdout, self.stdin = process, stdout, stdin
        self.pid: int = process.pid
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process.sentinel, self._end)

    @property
    def returncode(self) -> int | None:
        code: int | None = self._process.exitcode
        return code

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self.returncode

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self.stdin.transport.abort()
        self._ended.set()


def _become_reader(memory_bytes: int, cpu_seconds: int, environment: dict[str, str], files: int) -> None:
    os.setsid()
    os.write(files, READY)
    for place in (0, 1):
        os.dup2(files, place)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    child.main(memory_bytes, cpu_seconds, os.getppid())
