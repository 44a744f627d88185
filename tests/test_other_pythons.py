"""Newer Pythons: the sources are understood there, and what is installed from the wheels takes mail."""

import subprocess
from pathlib import Path

import pytest

from tests import installed
from tests.client.test_distribution import (  # noqa: F401 (three are fixtures)
    Wheel,
    client_wheel,
    exchange_mail,
    released,
    server_wheel,
    serving,
)
from tests.programs import NEWER_PYTHONS, SERVER_REQUIREMENTS, find_python

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


@pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=pytest.mark.needs(each, f"packages for {each}")) for each in NEWER_PYTHONS],
)
def test_what_is_installed_there_from_the_wheels_takes_and_sends_mail(
    version: str,
    client_wheel: Wheel,  # noqa: F811
    server_wheel: Wheel,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = installed.folder_of(version, find_python(version) or version, SERVER_REQUIREMENTS)
    python, site = folder / "bin" / "python", tmp_path / "site"
    wheels = [str(client_wheel.path), str(server_wheel.path)]
    into = ["--offline", "--no-deps", "--python", str(python), "--target", str(site)]
    assert installed.run_uv("pip", "install", "--quiet", *into, *wheels)
    command = site / "bin" / "postroom"
    assert command.read_text().startswith(f"#!{python}\n")
    with serving([str(command)], tmp_path / "data", PYTHONPATH=str(site)) as (base_url, smtp_port, token):
        exchange_mail(base_url, smtp_port, token)
