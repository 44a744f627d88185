"""Environments of a Python with locked packages, installed once into folders that outlive the run."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = ROOT / ".tools" / "bin" / "uv"
OWN = Path(tempfile.gettempdir()) / f"postroom-tests-{os.getuid()}"  # of one user, whom nobody can deceive
NO_COMPILER = {"CC": "false", "CXX": "false"}


def folder_of(name: str, python: str, requirements: Path) -> Path:
    version = hashlib.sha256(requirements.read_bytes() + os.path.realpath(python).encode()).hexdigest()[:12]
    return OWN / f"{name}-{version}"


def install(name: str, python: str, requirements: Path) -> bool:
    """False where they are not to be had."""
    folder = folder_of(name, python, requirements)
    make = ["venv", "--quiet", "--allow-existing", "--python", python, str(folder)]
    fill = ["pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    locked = ["--require-hashes", "--no-deps", "-r", str(requirements)]
    return UV.exists() and install_once(folder, lambda: run_uv(*make) and run_uv(*fill, *locked))


def run_uv(*arguments: str) -> bool:
    command = [str(UV), *arguments]
    return subprocess.run(command, env=os.environ | NO_COMPILER, capture_output=True).returncode == 0


def install_once(folder: Path, work: Callable[[], bool]) -> bool:
    """Of several processes one installs, the others wait for it."""
    OWN.mkdir(mode=0o700, exist_ok=True)
    assert OWN.stat().st_uid == os.getuid(), f"{OWN} belongs to somebody else"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists() and work():
            (folder / "complete").touch()
        return (folder / "complete").exists()
