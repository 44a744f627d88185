"""Servers and commands that begin where their imports end: forked from a process that has loaded them.

Nearly all of a start is imports. What is forked has its own environment, output and limits, and is
killed like any other; the processes that it starts itself are whole ones. What a newcomer reads starts the
server and the commands of the first page as users do, and so do the tests of what is installed.
"""

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import connection, forkserver, parent_process, reduction
from pathlib import Path
from typing import IO, Any

from postroom.storage.data_folder import DATABASE_NAME, LOCK_NAME
from postroom_client.profiles import is_locked
from tests.migrated import put_migrated_sqlite
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent
AT_DOOR = ROOT / "tests" / "postroom_at_door.py"
WHOLE = ["-m", "postroom"]
MAX_MESSAGE_BYTES = 128 * 1024
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.loaded_program"])
_one_at_a_time = threading.Lock()  # to start a process and to read how it ended


def share_fork_server() -> None:
    """Starts the one that loads the program, also for all processes that are copied from this one."""
    with contextlib.chdir(ROOT):
        forkserver.ensure_running()
    os.register_at_fork(after_in_child=_trust_that_it_runs)


def _trust_that_it_runs() -> None:
    """Only the process that started it could ask."""
    forkserver.ensure_running = lambda: None
    forkserver.ForkServer.ensure_running = lambda self: None  # type: ignore[method-assign]


def start(
    environment: Mapping[str, str],
    log: IO[Any],
    descriptors: int | None = None,
    makes_database: bool = False,
    before: Callable[[], None] | None = None,
) -> "Forked":
    """`postroom serve` in the current folder; what it prints is in `stdout`. It calls `before` first."""
    folder = Path(environment["POSTROOM_DATA_DIR"])
    # A child that a killed server was just starting has all its files until it becomes another program.
    wait_until(lambda: not (folder / LOCK_NAME).exists() or not is_locked(folder / LOCK_NAME))
    if not (makes_database or environment.get("POSTROOM_DATABASE_URL") or (folder / DATABASE_NAME).exists()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        put_migrated_sqlite(folder)
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as theirs:
        files = {1: theirs.fileno(), 2: log.fileno()}
        out = os.fdopen(reading)
        return Forked(["serve"], environment, files, descriptors=descriptors, stdout=out, before=before)


def start_command(arguments: list[str], environment: Mapping[str, str]) -> "Forked":
    """`postroom` in the current folder; what it says is in `stderr`."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as theirs:
        return Forked(arguments, environment, {0: 0, 1: 1, 2: theirs.fileno()}, stderr=os.fdopen(reading))


def start_in_terminal(arguments: list[str], environment: Mapping[str, str], terminal: int) -> "Forked":
    """`postroom` in the current folder, in a session of its own whose input and output are the terminal."""
    return Forked(arguments, environment, dict.fromkeys(range(3), terminal))


def run(arguments: list[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """An operator's command in the current folder, and what it printed."""
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        files = {0: nothing.fileno(), 1: out.fileno(), 2: err.fileno()}
        code = Forked(arguments, environment, files).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


@contextlib.contextmanager
def commands_at_a_door() -> Iterator[list[str]]:
    """What Python is called with for `postroom`, with the files and settings of whoever calls it."""
    if sys.platform != "linux":
        yield WHOLE
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, ThreadPoolExecutor() as waiting:
        door.bind("")
        door.listen()
        waiting.submit(_open_until_shut, door, waiting)
        try:
            yield ["-I", "-S", str(AT_DOOR), door.getsockname()[1:].decode()]
        finally:
            door.shutdown(socket.SHUT_RDWR)


def _open_until_shut(door: socket.socket, waiting: ThreadPoolExecutor) -> None:
    with contextlib.suppress(OSError):
        while True:
            waiting.submit(_run_for, door.accept()[0])


def _run_for(caller: socket.socket) -> None:
    with caller:
        message, files, _, _ = socket.recv_fds(caller, MAX_MESSAGE_BYTES, 3)
        command = Forked(**json.loads(message), files=dict(enumerate(files)))
        for file in files:
            os.close(file)
        caller.send(str(command.wait()).encode())


class Passed:
    """An open file, for the process that is started with it."""

    def __init__(self, file: int) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _take, (reduction.DupFd(self._file),)


def _take(passed: Any) -> int:
    file: int = passed.detach()
    return file


class Forked:
    """What a test may ask of the process of a server or of a command, as of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        files: Mapping[int, int],
        folder: str = "",
        descriptors: int | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.stdout, self.stderr = stdout, stderr
        passed = {place: Passed(file) for place, file in files.items()}
        order = (arguments, dict(environment), folder or os.getcwd(), passed, descriptors, before)
        self._process = FORKS.Process(target=_become_postroom, args=order, daemon=True)
        with _one_at_a_time, contextlib.chdir(ROOT):
            forkserver.ensure_running()
        with _one_at_a_time:
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def send_signal(self, sig: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        with _one_at_a_time:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("postroom", timeout or 0)
        return code


Process = Forked | subprocess.Popen[str]


def _become_postroom(
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    files: dict[int, int],
    descriptors: int | None,
    before: Callable[[], None] | None,
) -> None:
    """All that the new process does. A command is given its input as well, and a session of its own."""
    from postroom.__main__ import main

    for place, file in files.items():
        os.dup2(file, place)
    for file in files.values():
        os.close(file)
    if 0 in files:
        os.setsid()
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    threading.Thread(target=_end_with_the_test, daemon=True).start()
    if before is not None:
        before()
    main(arguments)


def _end_with_the_test() -> None:
    """Also where the process that runs it was killed."""
    tests = parent_process()
    assert tests is not None
    tests.join()
    os.kill(os.getpid(), signal.SIGKILL)
