"""Stores its commit in a distribution; one built from a source archive keeps the commit of that."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "commit.txt"  # read by cli/version.py


class CommitHook(BuildHookInterface[Any]):
    _written = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_checkout = Path(self.root, "..", "..", ".git").exists()
        if version == "editable" or not is_checkout:
            return
        command = ["git", "log", "-1", "--format=%h %cs", "--abbrev=12"]
        try:
            described = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError):
            return
        handle, self._written = tempfile.mkstemp(text=True)
        os.write(handle, described.stdout.encode())
        os.close(handle)
        os.chmod(self._written, 0o644)
        build_data["force_include"][self._written] = FILE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._written:
            os.unlink(self._written)
