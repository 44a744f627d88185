"""Servers as real processes of their own, in scratch folders on a real disk."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from tests.ports import free_port

HOST = "127.0.0.1"
CHECKOUT = Path(__file__).parent.parent  # where `python -m` finds this package
POLL_SECONDS = 0.002
SCRATCH = Path("/var/tmp")  # /tmp is often memory, where durability costs nothing and means nothing
START_DEADLINE_SECONDS = 120.0
REQUEST = b"GET %s HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int
    start_seconds: float  # from the start of the process to its first healthy answer
    smtp_port: int = 0


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Removed at the end, also when the measurement fails."""
    with tempfile.TemporaryDirectory(prefix="postroom-bench-", dir=SCRATCH) as name:
        yield Path(name)


@contextlib.contextmanager
def running_postroom(folder: Path, **more: str) -> Iterator[Server]:
    """Its log goes into a file without a name: a line a mail, as in production."""
    port, smtp_port = free_port(), free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_HTTP": f"{HOST}:{port}",
        "POSTROOM_SMTP": f"{HOST}:{smtp_port}",
        **more,
    }
    with (
        tempfile.TemporaryFile("w", dir=SCRATCH) as log,
        running("postroom", ["serve"], port, settings, log) as server,
    ):
        yield replace(server, smtp_port=smtp_port)


@contextlib.contextmanager
def running(
    module: str,
    arguments: list[str],
    port: int,
    settings: Mapping[str, str] | None = None,
    log: IO[str] | None = None,
) -> Iterator[Server]:
    began = time.perf_counter()
    with started(module, arguments, settings, log) as process:
        wait_until_healthy(process, port)
        yield Server(process.pid, port, time.perf_counter() - began)


@contextlib.contextmanager
def started(
    module: str, arguments: list[str], settings: Mapping[str, str] | None = None, log: IO[str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=CHECKOUT,
        env=environment | dict(settings or {}),
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def wait_until_healthy(process: "subprocess.Popen[bytes]", port: int) -> None:
    _wait_until(process, lambda: is_healthy(port))


def listening(process: "subprocess.Popen[bytes]", port: int) -> None:
    _wait_until(process, lambda: is_open(port))


def is_open(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def _wait_until(process: "subprocess.Popen[bytes]", condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + START_DEADLINE_SECONDS
    while not condition():
        if process.poll() is not None or time.perf_counter() > deadline:
            raise RuntimeError(f"{process.args!r} did not start")
        time.sleep(POLL_SECONDS)


def wait_until_ready(port: int) -> None:
    """Its workers take mail in as well."""
    deadline = time.perf_counter() + START_DEADLINE_SECONDS
    while not is_healthy(port, b"/ready"):
        if time.perf_counter() > deadline:
            raise RuntimeError("the server never became ready")
        time.sleep(POLL_SECONDS)


def is_healthy(port: int, path: bytes = b"/health") -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(REQUEST % path)
            return connection.recv(100).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no VmRSS")


def proportional_bytes(pid: int) -> int:
    """A page that several processes have counts for each of them in part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no Pss")
