"""Newer Pythons: the sources compile there, and find all that they take from its library."""

import subprocess
from pathlib import Path

import pytest

from tests.programs import NEWER_PYTHONS, find_python

ROOT = Path(__file__).parents[1]
NAMES = Path(__file__).with_name("stdlib_names.py")


def look(version: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [find_python(version) or version, "-I", "-B", "-W", "error", str(NAMES), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "version", [pytest.param(each, marks=pytest.mark.needs(each)) for each in NEWER_PYTHONS]
)
def test_the_sources_are_understood_without_a_warning(version: str, tmp_path: Path) -> None:
    done = look(version, ROOT / "src")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "gone.py").write_text("import asyncore\nfrom os import nothing_like_it, path\n")
    assert look(version, tmp_path).stdout.splitlines() == ["asyncore", "os nothing_like_it"]
    (tmp_path / "warned.py").write_text('pattern = "\\d"\n')
    assert "invalid escape sequence" in look(version, tmp_path).stderr
