"""Newer Pythons: all is loaded there; on the newest the sources give no warning, and the server takes mail.

A Python warns of what those before it warned of, and lacks what they lacked: the newest tells for all.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import installed
from tests.client.test_distribution import exchange_mail, serving
from tests.programs import NEWER_PYTHONS, SERVER_REQUIREMENTS, find_python

SOURCES = Path(__file__).parents[1] / "src"
NAMES = Path(__file__).with_name("stdlib_names.py")
THERE = [version for version in NEWER_PYTHONS if find_python(version)]
NEWEST = THERE[-1] if THERE else NEWER_PYTHONS[-1]
OTHERS = [version for version in NEWER_PYTHONS if version != NEWEST]
LOAD = "import postroom.assembly, postroom.workers.worker, postroom_mail.files.child, postroom_client.cli"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, which the first test compiles for those behind it."""
    folder = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def python_with_packages(version: str) -> str:
    """With the locked ones that the server needs."""
    folder = installed.folder_of(version, find_python(version) or version, SERVER_REQUIREMENTS)
    return str(folder / "bin" / "python")


def look(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [find_python(NEWEST) or NEWEST, "-I", "-W", "error", str(NAMES), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.share(3, turn=0)
@pytest.mark.needs(NEWEST)
def test_the_sources_are_understood_without_a_warning(sources: Path, tmp_path: Path) -> None:
    done = look(sources)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "gone.py").write_text("import asyncore\nfrom os import nothing_like_it, path\n")
    assert look(tmp_path).stdout.splitlines() == ["asyncore", "os nothing_like_it"]
    (tmp_path / "warned.py").write_text('pattern = "\\d"\n')
    assert "invalid escape sequence" in look(tmp_path).stderr


@pytest.mark.share(3)
@pytest.mark.needs(NEWEST, f"packages for {NEWEST}")
def test_the_server_takes_and_sends_mail_there(sources: Path, tmp_path: Path) -> None:
    command = [python_with_packages(NEWEST), "-m", "postroom"]
    settings = {"PYTHONPATH": str(sources), "POSTROOM_WORKERS": "1"}
    with serving(command, tmp_path / "data", **settings) as (base_url, smtp_port, token):
        exchange_mail(base_url, smtp_port, token)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=pytest.mark.needs(each, f"packages for {each}")) for each in OTHERS],
)
def test_all_is_loaded_by_the_others(version: str, sources: Path) -> None:
    command = [python_with_packages(version), "-B", "-c", LOAD]
    environment = {"PYTHONPATH": str(sources)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
