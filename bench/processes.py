"""Servers as real processes of their own, in scratch folders on a real disk."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
CHECKOUT = Path(__file__).parent.parent  # where `python -m` finds this package
POLL_SECONDS = 0.002
START_DEADLINE_SECONDS = 30.0
HEALTH_REQUEST = b"GET /health HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int
    start_seconds: float  # from the start of the process to its first healthy answer


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """In /var/tmp: /tmp is often memory, where durability costs nothing and means nothing."""
    with tempfile.TemporaryDirectory(prefix="postroom-bench-", dir="/var/tmp") as name:
        yield Path(name)


@contextlib.contextmanager
def running_postroom(folder: Path) -> Iterator[Server]:
    port = free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_HTTP": f"{HOST}:{port}",
        "POSTROOM_SMTP": f"{HOST}:{free_port()}",
    }
    with running("postroom", ["serve"], port, settings) as server:
        yield server


@contextlib.contextmanager
def running(
    module: str, arguments: list[str], port: int, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=CHECKOUT,
        env=environment | dict(settings or {}),
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until_healthy(process, port)
        yield Server(process.pid, port, time.perf_counter() - started)
    finally:
        process.terminate()
        process.wait()


def wait_until_healthy(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.perf_counter() + START_DEADLINE_SECONDS
    while not is_healthy(port):
        if process.poll() is not None or time.perf_counter() > deadline:
            raise RuntimeError(f"{process.args!r} did not start")
        time.sleep(POLL_SECONDS)


def is_healthy(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(HEALTH_REQUEST)
            return connection.recv(100).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no VmRSS")
