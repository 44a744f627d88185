"""The version, with its commit and date."""

import subprocess
from pathlib import Path

from postroom_client import __version__

PACKAGE = Path(__file__).parents[1]


def describe() -> str:
    commit = of_distribution() or of_checkout()
    return f"postroom {__version__}" + (f" ({commit})" if commit else "")


def of_distribution() -> str:
    try:
        return (PACKAGE / "commit.txt").read_text().strip()
    except OSError:
        return ""


def of_checkout() -> str:
    if not (PACKAGE.parents[1] / ".git").exists():
        return ""
    command = ["git", "log", "-1", "--format=%h %cs", "--abbrev=12"]
    try:
        described = subprocess.run(  # noqa: S603
            command, cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
