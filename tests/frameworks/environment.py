"""A Python and a Node with the frameworks, installed once into folders that outlive the run."""

import hashlib
import subprocess
import sys
from pathlib import Path

from tests import installed
from tests.programs import find

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements" / "frameworks.txt"
FOLDER = installed.folder_of("frameworks", sys.executable, REQUIREMENTS)
PYTHON = FOLDER / "bin" / "python"
NODE_PACKAGES = ("ai@6", "zod@4")
NODE_FOLDER = (
    installed.OWN / f"frameworks-node-{hashlib.sha256(repr(NODE_PACKAGES).encode()).hexdigest()[:12]}"
)


def install() -> bool:
    """False where they are not to be had."""
    return installed.install("frameworks", sys.executable, REQUIREMENTS)


def install_for_node() -> bool:
    return find("npm") is not None and installed.install_once(NODE_FOLDER, _install_for_node)


def _install_for_node() -> bool:
    (NODE_FOLDER / "package.json").write_text("{}")
    command = [find("npm") or "npm", "install", "--silent", "--no-audit", "--no-fund", *NODE_PACKAGES]
    return subprocess.run(command, cwd=NODE_FOLDER, capture_output=True).returncode == 0
