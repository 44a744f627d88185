"""Newer Pythons: the sources are understood and loaded there, and on the newest the server takes mail."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import installed
from tests.client.test_distribution import exchange_mail, serving
from tests.programs import NEWER_PYTHONS, SERVER_REQUIREMENTS, find_python

SOURCES = Path(__file__).parents[1] / "src"
NAMES = Path(__file__).with_name("stdlib_names.py")
THERE = [version for version in NEWER_PYTHONS if find_python(version)]
NEWEST = THERE[-1] if THERE else NEWER_PYTHONS[-1]
OLDER = [version for version in NEWER_PYTHONS if version != NEWEST]
LOAD = "import postroom.assembly, postroom.workers.worker, postroom.extraction.child, postroom_client.cli"


@dataclass(frozen=True)
class Copy:
    """Of the sources, which the first test compiles for those behind it."""

    version: str
    folder: Path

    @property
    def python(self) -> Path:
        """With the packages that the server needs."""
        found = find_python(self.version) or self.version
        return installed.folder_of(self.version, found, SERVER_REQUIREMENTS) / "bin" / "python"


@pytest.fixture(
    scope="module", params=[pytest.param(each, marks=pytest.mark.needs(each)) for each in NEWER_PYTHONS]
)
def copy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Copy(request.param, folder)


def with_packages(*versions: str) -> pytest.MarkDecorator:
    given = [pytest.param(each, marks=pytest.mark.needs(each, f"packages for {each}")) for each in versions]
    return pytest.mark.parametrize("copy", given, indirect=True)


def look(version: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [find_python(version) or version, "-I", "-W", "error", str(NAMES), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_sources_are_understood_without_a_warning(copy: Copy, tmp_path: Path) -> None:
    done = look(copy.version, copy.folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "gone.py").write_text("import asyncore\nfrom os import nothing_like_it, path\n")
    assert look(copy.version, tmp_path).stdout.splitlines() == ["asyncore", "os nothing_like_it"]
    (tmp_path / "warned.py").write_text('pattern = "\\d"\n')
    assert "invalid escape sequence" in look(copy.version, tmp_path).stderr


@with_packages(*OLDER)
def test_all_is_loaded_there_with_the_locked_packages(copy: Copy) -> None:
    command = [str(copy.python), "-c", LOAD]
    environment = {"PYTHONPATH": str(copy.folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@with_packages(NEWEST)
def test_the_server_takes_and_sends_mail_there(copy: Copy, tmp_path: Path) -> None:
    command = [str(copy.python), "-m", "postroom"]
    settings = {"PYTHONPATH": str(copy.folder), "POSTROOM_WORKERS": "1"}
    with serving(command, tmp_path / "data", **settings) as (base_url, smtp_port, token):
        exchange_mail(base_url, smtp_port, token)
