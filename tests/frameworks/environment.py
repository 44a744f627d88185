"""A Python and a Node with the frameworks, installed once into folders that outlive the run."""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.programs import find

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools" / "bin" / "uv"
REQUIREMENTS = ROOT / "requirements" / "frameworks.txt"
VERSION = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
FOLDER = Path(tempfile.gettempdir()) / f"postroom-frameworks-{VERSION}"
PYTHON = FOLDER / "bin" / "python"
NODE_PACKAGES = ("ai@6", "zod@4")
NODE_FOLDER = Path(tempfile.gettempdir()) / (
    "postroom-frameworks-node-" + hashlib.sha256(repr(NODE_PACKAGES).encode()).hexdigest()[:12]
)


def install() -> bool:
    """False where they are not to be had."""
    return UV.exists() and _install_once(FOLDER, _install)


def install_for_node() -> bool:
    return find("npm") is not None and _install_once(NODE_FOLDER, _install_for_node)


def _install_once(folder: Path, work: Callable[[], bool]) -> bool:
    """Of several processes one installs, the others wait for it."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists() and work():
            (folder / "complete").touch()
        return (folder / "complete").exists()


def _install_for_node() -> bool:
    (NODE_FOLDER / "package.json").write_text("{}")
    command = [find("npm") or "npm", "install", "--silent", "--no-audit", "--no-fund", *NODE_PACKAGES]
    return subprocess.run(command, cwd=NODE_FOLDER, capture_output=True).returncode == 0


def _install() -> bool:
    commands = (
        ["venv", "--quiet", "--allow-existing", "--python", sys.executable, str(FOLDER)],
        [
            "pip",
            "install",
            "--quiet",
            "--python",
            str(PYTHON),
            "--require-hashes",
            "--no-deps",
            "-r",
            str(REQUIREMENTS),
        ],
    )
    return all(
        subprocess.run([str(UV), *command], capture_output=True).returncode == 0 for command in commands
    )
