"""A Python with the frameworks, installed once into a folder that outlives the run."""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools" / "bin" / "uv"
REQUIREMENTS = ROOT / "requirements" / "frameworks.txt"
VERSION = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
FOLDER = Path(tempfile.gettempdir()) / f"postroom-frameworks-{VERSION}"
PYTHON = FOLDER / "bin" / "python"


def install() -> bool:
    """False where they are not to be had. Of several processes one installs, the others wait for it."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (FOLDER / "complete").exists() and UV.exists() and _install():
            (FOLDER / "complete").touch()
        return (FOLDER / "complete").exists()


def _install() -> bool:
    commands = (
        ["venv", "--quiet", "--allow-existing", "--python", sys.executable, str(FOLDER)],
        ["pip", "install", "--quiet", "--python", str(PYTHON), "--require-hashes", "-r", str(REQUIREMENTS)],
    )
    return all(
        subprocess.run([str(UV), *command], capture_output=True).returncode == 0 for command in commands
    )
