"""Programs that make clients from a description, installed once into a folder that outlives the run."""

import hashlib
import subprocess
import sys
from pathlib import Path

from tests import installed
from tests.programs import find

NODE = (
    "openapi-typescript@7",
    "typescript@5",
    "@redocly/cli@2",
    "@stoplight/spectral-cli@6",
    "agentmail@0.5",
    "oidc-provider@9",
    "@modelcontextprotocol/sdk@1",
)
PYTHON = ("openapi-python-client", "datamodel-code-generator", "standardwebhooks")
UV = Path(__file__).parent.parent / ".tools" / "bin" / "uv"
FOLDER = (
    installed.OWN
    / f"generators-{hashlib.sha256(repr((NODE, PYTHON, sys.version)).encode()).hexdigest()[:12]}"
)
NODE_FOLDER, PYTHON_FOLDER = FOLDER / "node", FOLDER / "python"


def install() -> bool:
    """False where they are not to be had."""
    return installed.install_once(FOLDER, lambda: _install_node() and _install_python())


def _install_node() -> bool:
    NODE_FOLDER.mkdir(exist_ok=True)
    command = [find("npm") or "npm", "install", "--silent", "--no-audit", "--no-fund", *NODE]
    return subprocess.run(command, cwd=NODE_FOLDER, capture_output=True).returncode == 0


def _install_python() -> bool:
    target = ["--target", str(PYTHON_FOLDER), *PYTHON]
    command = [str(UV), "pip", "install", "--python", sys.executable, *target]
    return UV.exists() and subprocess.run(command, capture_output=True).returncode == 0


def node_program(name: str) -> str:
    return str(NODE_FOLDER / "node_modules" / ".bin" / name)
