"""Servers and commands that begin where their imports end: forked from a process that has loaded them once.

Nearly all of a start is to load the program. What is forked has its own environment, output and bounds, and
is killed like any other. The test of what a newcomer reads starts the server and the commands of the first
page whole; so a server makes its own key there, which takes longer than all else of a start.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Protocol

from postroom.storage.data_folder import DATABASE_NAME, LOCK_NAME
from postroom_client.profiles import is_locked
from postroom_client.transport import wire
from tests import warm_children

ROOT = Path(__file__).parent.parent
AT_DOOR = ROOT / "tests" / "postroom_at_door.py"
WHOLE = ["-m", "postroom"]
MAX_MESSAGE_BYTES = 128 * 1024
PATIENCE_SECONDS = 120
CAN_FORK = hasattr(os, "pidfd_open")
SERVERS, COMMANDS = "servers", "commands"
OF_COMMANDS = (
    "postroom.commands.operator",
    "postroom_client.client",
    "typer._adapters",
    "rich.console",
    "rich.table",
    "httpcore2",
    "anyio._backends._asyncio",
    "encodings.idna",
    "platformdirs",
)
MODULES = {  # what a server may load before its first request, or nearly every command
    SERVERS: (
        "postroom.assembly",
        "postroom.commands.server",
        "postroom.welcome",
        "postroom.imap.server",
        "postroom.storage.engines.postgres",
        "cryptography.x509",
        "cryptography.hazmat.backends.openssl",
        "uvicorn.lifespan.off",
        *OF_COMMANDS,
    ),
    COMMANDS: OF_COMMANDS,
}


class Process(Protocol):
    """What a test may ask of a server's process, or of a command's."""

    @property
    def pid(self) -> int: ...
    @property
    def stdout(self) -> IO[str] | None: ...
    @property
    def stderr(self) -> IO[str] | None: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


def start(
    environment: Mapping[str, str],
    log: IO[Any],
    descriptors: int | None = None,
    has_whole_children: bool = False,
    makes_database: bool = False,
) -> Process:
    """`postroom serve` in the current folder; what it prints is in `stdout`."""
    folder = Path(environment["POSTROOM_DATA_DIR"])
    _wait_until_let_go(folder / LOCK_NAME)
    if not makes_database and not environment.get("POSTROOM_DATABASE_URL"):
        _make_database(folder)
    if CAN_FORK:
        return _loaded(SERVERS).start(environment, log, descriptors, has_whole_children)

    def bound() -> None:
        _bound(descriptors)

    return subprocess.Popen(
        [sys.executable, *WHOLE, "serve"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        preexec_fn=bound,
    )


def start_in_terminal(arguments: list[str], environment: Mapping[str, str], terminal: int) -> Process:
    """`postroom` in the current folder, in a session of its own whose input and output are the terminal."""
    if CAN_FORK:
        return _loaded(COMMANDS).start_in_terminal(arguments, environment, terminal)
    return subprocess.Popen(
        [sys.executable, *WHOLE, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
        text=True,
    )


def run(arguments: list[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """An operator's command in the current folder, and what it printed."""
    if not CAN_FORK:
        command = [sys.executable, *WHOLE, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        loaded = _loaded(SERVERS)
        files = [file.fileno() for file in (nothing, out, err)]
        code = Forked(loaded.ask(_request(arguments, environment), files), loaded).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def start_command(arguments: list[str], environment: Mapping[str, str]) -> Process:
    """`postroom` in the current folder; what it says is in `stderr`."""
    if CAN_FORK:
        return _loaded(SERVERS).start_command(arguments, environment)
    return subprocess.Popen(
        [sys.executable, *WHOLE, *arguments], stderr=subprocess.PIPE, env=environment, text=True
    )


@contextlib.contextmanager
def commands_at_a_door(*modules: str) -> Iterator[list[str]]:
    """What Python is called with for `postroom`, with the files and settings of whoever calls it.

    The modules are those that the command needs beside what a server does.
    """
    if not CAN_FORK:
        yield WHOLE
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, ThreadPoolExecutor() as waiting:
        door.bind("")
        door.listen()
        waiting.submit(_open_until_shut, door, waiting, modules)
        try:
            yield ["-I", "-S", str(AT_DOOR), door.getsockname()[1:].decode()]
        finally:
            door.shutdown(socket.SHUT_RDWR)


def _open_until_shut(door: socket.socket, waiting: ThreadPoolExecutor, modules: tuple[str, ...]) -> None:
    with contextlib.suppress(OSError):
        while True:
            waiting.submit(_run_for, door.accept()[0], modules)


def _run_for(caller: socket.socket, modules: tuple[str, ...]) -> None:
    with caller:
        message, files, _, _ = socket.recv_fds(caller, MAX_MESSAGE_BYTES, 3)
        loaded = _loaded(SERVERS)  # an operator's command needs most of what a server does
        command = Forked(loaded.ask(json.loads(message) | {"modules": modules}, files), loaded)
        for file in files:
            os.close(file)
        caller.send(str(command.wait()).encode())


def _wait_until_let_go(lock: Path) -> None:
    """A child that a killed server was just starting has all its files until it becomes another program."""
    end = time.monotonic() + PATIENCE_SECONDS
    while lock.exists() and is_locked(lock):
        assert time.monotonic() < end, f"somebody holds {lock}"
        time.sleep(0.01)


def _make_database(folder: Path) -> None:
    """As a start makes a new one."""
    from tests.migrated import put_migrated_sqlite

    if not (folder / DATABASE_NAME).exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        put_migrated_sqlite(folder)


class Forked:
    """Dead it keeps its number until it is waited for, as every child does."""

    def __init__(
        self, pid: int, loaded: "Loaded", stdout: IO[str] | None = None, stderr: IO[str] | None = None
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self._loaded = loaded
        self._end = os.pidfd_open(pid)
        self._code: int | None = None

    def send_signal(self, sig: int) -> None:
        if self._code is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("postroom serve", timeout or 0)
            self._code = self._loaded.bury(self.pid)
            os.close(self._end)
        return self._code


class Loaded:
    """Our end of the line to the process that has everything loaded; it ends with us."""

    def __init__(self, what: str) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        with theirs:
            if what in _firsts:
                _firsts[what].copy(theirs)
            else:
                arguments = [str(theirs.fileno()), what, warm_children.ROOM_FOR_COMMAND]
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.warm_start", *arguments],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        atexit.register(self.close)

    def copy(self, line: socket.socket) -> None:
        """One that listens there. Several processes may ask at once, so nothing is answered."""
        socket.send_fds(self._line, [json.dumps({"copy": True}).encode()], [line.fileno()])

    def start(
        self,
        environment: Mapping[str, str],
        log: IO[Any],
        descriptors: int | None,
        has_whole_children: bool,
    ) -> Forked:
        reading, writing = os.pipe()
        copies_children = not has_whole_children and environment.get("POSTROOM_WORKERS") != "0"
        request = _request(["serve"], environment) | {
            "descriptors": descriptors,
            "copies children": copies_children and warm_children.CLONE is not None,
        }
        try:
            pid = self.ask(request, [writing, log.fileno()])
        finally:
            os.close(writing)
        return Forked(pid, self, stdout=os.fdopen(reading))

    def start_command(self, arguments: list[str], environment: Mapping[str, str]) -> Forked:
        reading, writing = os.pipe()
        try:
            pid = self.ask(_request(arguments, environment), [0, 1, writing])
        finally:
            os.close(writing)
        return Forked(pid, self, stderr=os.fdopen(reading))

    def start_in_terminal(
        self, arguments: list[str], environment: Mapping[str, str], terminal: int
    ) -> Forked:
        return Forked(self.ask(_request(arguments, environment), [terminal] * 3), self)

    def bury(self, pid: int) -> int:
        return self.ask({"bury": pid}, [])

    def close(self) -> None:
        self._line.shutdown(socket.SHUT_WR)
        self._line.recv(1)  # nothing, at its end
        self._line.close()
        if self._process:
            self._process.wait()

    def ask(self, request: dict[str, Any], files: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._line, [json.dumps(request).encode()], files)
            return int(self._line.recv(MAX_MESSAGE_BYTES))


def _request(arguments: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    return {"arguments": arguments, "environment": dict(environment), "folder": os.getcwd()}


@functools.cache
def _loaded(what: str) -> Loaded:
    return Loaded(what)


_firsts: dict[str, Loaded] = {}  # which are only copied


def load_for_every_process() -> None:
    """Before the processes of a run are copied from this one: so each kind is loaded once."""
    if CAN_FORK:
        _firsts.update({what: Loaded(what) for what in MODULES})


def _load(what: str) -> None:
    """All that it loads before its first request, whatever its settings; a server's key is the run's."""
    for name in MODULES[what]:
        importlib.import_module(name)
    wire.trusted()
    if what == SERVERS:
        from postroom import assembly
        from tests.mail.keys import give_every_domain_this_key, signing_key

        signing_key()
        give_every_domain_this_key()
        assembly.serving = functools.partial(assembly.serving, make_key=signing_key)
        warm_children.load()  # among it what a server without workers makes before its first mail


def _load_more(modules: Iterable[str]) -> None:
    for name in modules:
        if name not in sys.modules:
            importlib.import_module(name)
            gc.freeze()


def _fork_until_told_to_end(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """In a new process what to serve with, and where to print; None when nobody asks any more."""
    children: set[int] = set()
    copies: set[int] = set()
    while True:
        message, files, _, _ = socket.recv_fds(line, MAX_MESSAGE_BYTES, 3)
        if not message:
            for child in children:
                os.kill(child, signal.SIGKILL)
            for copy in copies:
                os.waitpid(copy, 0)  # its line has an end as well
            return None
        request = json.loads(message)
        if "copy" in request:
            copy = os.fork()
            if copy == 0:
                line.close()
                with socket.socket(fileno=files[0]) as own:
                    return _fork_until_told_to_end(own)
            copies.add(copy)
            os.close(files[0])
            continue
        if "bury" in request:
            children.remove(request["bury"])
            answer = os.waitstatus_to_exitcode(os.waitpid(request["bury"], 0)[1])
        else:
            _load_more(request.get("modules", ()))
            answer = os.fork()
            if answer == 0:
                return request, files
            children.add(answer)
        for file in files:
            os.close(file)
        line.send(str(answer).encode())


def _become(request: dict[str, Any], files: list[int]) -> None:
    """A server is given its output, a command all three files."""
    is_command = len(files) == 3
    for place, file in zip((0, 1, 2) if is_command else (1, 2), files, strict=True):
        os.dup2(file, place)
        os.close(file)
    if is_command:
        os.setsid()
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    _bound(request.get("descriptors"))
    if request.get("copies children"):
        _keep_a_copy_for_children()


def _keep_a_copy_for_children() -> None:
    """Workers are copied from it. It ends with the server, whose files it does not have."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        os.setsid()  # what is typed at the terminal is for the server
        warm_children.end_after(lambda: warm_children.copy_until_told_to_end(theirs))
    theirs.close()
    warm_children.start_from(ours)


def _bound(descriptors: int | None) -> None:
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


def main() -> None:
    from postroom.__main__ import main as postroom

    _load(sys.argv[2])
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in what is forked"
    with socket.socket(fileno=int(sys.argv[1])) as line:
        served = _fork_until_told_to_end(line)
    if served is not None:
        _become(*served)
        warm_children.end_after(lambda: postroom(served[0]["arguments"]))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # meant for the run, which ends this as well
        main()
