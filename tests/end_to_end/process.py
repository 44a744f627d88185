"""The server as a real process that can be killed, and its SMTP port."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests import warm_start
from tests.ports import free_port

TOKEN = "pr_end-to-end-0123456789"


@dataclass(frozen=True, slots=True)
class Running:
    process: warm_start.Process
    http_port: int
    smtp_port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def kill(self) -> None:
        """As a power cut would: nothing is finished, nothing is said."""
        self.process.send_signal(signal.SIGKILL)

    def kill_workers(self) -> None:
        for pid in workers_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        self.kill_workers()
        self.kill()


@contextlib.contextmanager
def serving_process(
    folder: Path,
    database_url: str = "",
    workers: int = 1,
    descriptors: int | None = None,
    more: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Iterator[Running]:
    """Ready inside the block; its log is in the folder above."""
    http_port, smtp_port = free_port(), free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_HTTP": f"127.0.0.1:{http_port}",
        "POSTROOM_SMTP": f"127.0.0.1:{smtp_port}",
        "POSTROOM_API_KEY": TOKEN,
        "POSTROOM_DATABASE_URL": database_url,
        "POSTROOM_WORKERS": str(workers),
        **{f"POSTROOM_{name}": value for name, value in (more or {}).items()},
    }

    with log_path(folder).open("a") as log:
        process = warm_start.start(os.environ | settings, log, descriptors, before=before)
    assert process.stdout is not None
    try:
        assert "is ready" in process.stdout.readline(), log_path(folder).read_text()
        yield Running(process, http_port, smtp_port)
    finally:
        process.terminate()
        process.wait(timeout=120)
        process.stdout.close()


def workers_of(pid: int) -> list[int]:
    """The processes that take mail in for a server."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"postroom.workers" in command_of(int(child))]


def command_of(pid: int) -> bytes:
    """Nothing for a process that is gone, or dead and not collected yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def log_path(folder: Path) -> Path:
    return folder.parent / "postroom.log"
