"""Workers, readers of files and the like that begin where their imports end.

Each is a copy of a process that has loaded them, made so that it is a child of the server that asked: it
dies with the server and is waited for by it. Session, files, environment and limits are those of a whole
start. A test marked `whole_children` has the supervisor start interpreters, as it does for users.
"""

import asyncio
import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import platform
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

from postroom.processes import child_processes
from postroom.processes.child_processes import child_environment

ROOT = Path(__file__).parent.parent
MAX_MESSAGE_BYTES = 128 * 1024
MAX_FILES = 250
UNREAD_SECONDS = 30.0
PRESENT_SECONDS = 60.0  # a mail with a 250 is in its inbox, also where the machine needs more than a second
READY = b"ready"
MODULES = ("postroom.workers.worker", "postroom_mail.files.child", "postroom.mailbox.search.index_process")
CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None
CLONE_PARENT = 0x8000
ROOM_FOR_COMMAND = "-" * 1_000  # an argument of the first process, where its copies write what they run
ARGUMENTS_BEGIN, ARGUMENTS_END = 45, 46  # fields of /proc/self/stat behind the name

start_whole = child_processes.start_python


async def start_python(
    arguments: Sequence[str],
    *,
    pass_fds: Sequence[int],
    stdin: int,
    stdout: int | None,
    stderr: int | None,
    line: socket.socket | None = None,
) -> asyncio.subprocess.Process:
    """In place of the function of this name in `child_processes`."""
    is_main = threading.current_thread() is threading.main_thread()  # a child dies with its parent's thread
    if CLONE is None or not is_main:
        return await start_whole(arguments, pass_fds=pass_fds, stdin=stdin, stdout=stdout, stderr=stderr)
    return await _start_copy(line or first(), arguments, pass_fds, (stdin, stdout, stderr))


def start_from(line: socket.socket) -> None:
    """From now on children of this process are copies of the one at the other end."""
    child_processes.start_python = functools.partial(start_python, line=line)


async def _start_copy(
    line: socket.socket,
    arguments: Sequence[str],
    pass_fds: Sequence[int],
    standard: tuple[int | None, int | None, int | None],
) -> asyncio.subprocess.Process:
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as unconnected:
        ours: dict[int, socket.socket] = {}
        files = []
        for place, wanted in enumerate(standard):
            if wanted == asyncio.subprocess.PIPE:
                ours[place], end = socket.socketpair()
                unconnected.enter_context(ours[place])
                files.append(theirs.enter_context(end).fileno())
            elif wanted == asyncio.subprocess.DEVNULL:
                files.append(theirs.enter_context(open(os.devnull, "r+b", 0)).fileno())
            else:
                files.append(place if wanted is None else wanted)
        started = StartedChild(_ask(line, arguments, pass_fds, files))
        unconnected.pop_all()
    connecting = asyncio.ensure_future(started.connect(ours))
    try:
        await asyncio.shield(connecting)
    except asyncio.CancelledError:
        try:
            await connecting
        finally:
            started.give_up()
        raise
    return cast("asyncio.subprocess.Process", started)


def _ask(line: socket.socket, arguments: Sequence[str], pass_fds: Sequence[int], files: list[int]) -> int:
    request = {
        "arguments": arguments,
        "environment": child_environment(),
        "folder": os.getcwd(),
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "places": [0, 1, 2, *pass_fds],
    }
    socket.send_fds(line, [json.dumps(request).encode()], [*files, *pass_fds])
    answer = line.recv(MAX_MESSAGE_BYTES)
    assert answer, "the process that is copied has ended"
    return int(answer)


class StartedChild:
    """What a supervisor asks of a process."""

    stdin: asyncio.StreamWriter | None = None
    stdout: asyncio.StreamReader | None = None
    returncode: int | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = asyncio.Event()
        self._transports: list[asyncio.WriteTransport] = []
        self._protocols: list[_EndsWithTheOther] = []
        self._end = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._end, self._note_end)

    async def connect(self, ends: dict[int, socket.socket]) -> None:
        """Our ends of its input and output."""
        for place, end in ends.items():
            reader = asyncio.StreamReader()
            protocol = _EndsWithTheOther(reader)
            transport = await self._connect(end, protocol)
            self._transports.append(transport)
            self._protocols.append(protocol)
            if place == 0:
                self.stdin = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            else:
                self.stdout = reader

    async def _connect(self, end: socket.socket, protocol: asyncio.BaseProtocol) -> asyncio.WriteTransport:
        return (await self._loop.create_unix_connection(lambda: protocol, sock=end))[0]

    async def wait(self) -> int:
        """Until also what it wrote last is read; what nobody reads is given up."""
        await self._ended.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_SECONDS):
                for protocol in self._protocols:
                    await protocol.ended.wait()
        for transport in self._transports:
            transport.abort()
        assert self.returncode is not None
        return self.returncode

    def give_up(self) -> None:
        """As for a whole start: nothing is left of one that nobody waits for."""
        if not self._ended.is_set():
            os.killpg(self.pid, signal.SIGKILL)
            self._note_end()
        for transport in self._transports:
            transport.abort()

    def _note_end(self) -> None:
        self._loop.remove_reader(self._end)
        os.close(self._end)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if self.stdin is not None:
            self.stdin.close()
        self._ended.set()


class _EndsWithTheOther(asyncio.StreamReaderProtocol):
    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.ended = asyncio.Event()

    def eof_received(self) -> bool:
        super().eof_received()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.ended.set()


@functools.cache
def first() -> socket.socket:
    """Our end of the line to a process that has loaded all kinds of children; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_children", str(theirs.fileno()), ROOM_FOR_COMMAND],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    assert ours.recv(MAX_MESSAGE_BYTES) == READY, "the process that is copied has ended"
    return ours


def load() -> None:
    from postroom.inward.journal import mail_journal
    from postroom.inward.receive import warm_up

    for name in MODULES:
        importlib.import_module(name)
    mail_journal.PRESENT_SECONDS = PRESENT_SECONDS
    warm_up()


def copy_until_told_to_end(line: socket.socket) -> None:
    """In a copy, all that it does."""
    while True:
        message, files, _, _ = socket.recv_fds(line, MAX_MESSAGE_BYTES, MAX_FILES)
        if not message:
            return
        if _copy_as_sibling() == 0:
            request = json.loads(message)
            _become(request, files, line)
            end_after(functools.partial(_run, request["arguments"]))
        for file in files:
            os.close(file)


def _copy_as_sibling() -> int:
    """As `os.fork` does it, but for whose child the copy is."""
    libc, python = ctypes.PyDLL(None), ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid: int = libc.syscall(CLONE, CLONE_PARENT, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    assert pid >= 0, "the system refuses a copy"
    return pid


def _become(request: dict[str, Any], files: list[int], line: socket.socket) -> None:
    """All that is there at the start of a process; who asked goes on when it is."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    _name(["python", "-P", *request["arguments"]])
    answers = _put(files, request["places"], line)
    resource.setrlimit(resource.RLIMIT_NOFILE, request["open files"])
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    with answers:
        answers.send(str(os.getpid()).encode())


def _put(files: list[int], places: list[int], line: socket.socket) -> socket.socket:
    """Each file in its place, and the line behind them; no other is open."""
    spare = max(places) + 1
    apart = [fcntl.fcntl(file, fcntl.F_DUPFD, spare) for file in files]
    answers = socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD, spare))
    for file, place in zip(apart, places, strict=True):
        os.dup2(file, place)
    line.detach()
    for each in map(int, os.listdir("/proc/self/fd")):
        if each not in (*places, answers.fileno()):
            with contextlib.suppress(OSError):  # the one that was listed by
                os.close(each)
    return answers


def _name(command: list[str]) -> None:
    """In the list of processes."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[ARGUMENTS_BEGIN]), int(fields[ARGUMENTS_END])
    text = "\0".join(command).encode()[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def _run(arguments: list[str]) -> None:
    option, module, *rest = arguments
    assert option == "-m"
    sys.argv[:] = [module, *rest]
    if module in MODULES:
        del sys.modules[module]  # it is run again, as a whole start would
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def end_after(run: Callable[[], object]) -> NoReturn:
    """As an interpreter ends, but for the memory, which takes longer to free than most of them ran."""
    code: object = 0
    try:
        run()
    except SystemExit as ending:
        code = ending.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def main() -> None:
    load()
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in what is copied"
    with socket.socket(fileno=int(sys.argv[1])) as line:
        line.send(READY)
        copy_until_told_to_end(line)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # meant for the run, which ends this as well
        main()
