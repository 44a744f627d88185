"""`make test` leaves the user's own files as they are: profiles, keys, settings."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postroom_client import profiles
from postroom_client.profiles import Profile, Profiles
from tests.own_home import UserFiles
from tests.test_programs import LACKING, NEED_SWAKS, check_what_was_left_out
from tests.waiting import wait_until

PROFILES = ".config/postroom/profiles.json"
CHECKOUT = Path(__file__).parents[1]
SAVES_A_PROFILE = "tests/test_own_home.py::test_each_test_starts_in_a_new_home_without_settings"
GUILTY = """
import pathlib

def test_that_writes_where_the_user_does() -> None:
    place = pathlib.Path({place!r})
    place.write_text("mine now")
    assert place.exists()
"""

INNOCENT = """
import pathlib, time

def test_that_waits() -> None:
    pathlib.Path({waits!r}).touch()
    while not pathlib.Path({may_end!r}).exists():
        time.sleep(0.01)
    assert pathlib.Path({may_end!r}).exists()
"""


def run_pytest(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "HOME": str(home), "POSTROOM_API_KEY": "pr_of-the-user", **LACKING}
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml"]
    return subprocess.run(
        [*command, *arguments], cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=300
    )


def make_home(folder: Path) -> Path:
    """That of a user who has logged in."""
    place = folder / PROFILES
    place.parent.mkdir(parents=True)
    place.write_text('{"current": "local", "profiles": {"local": {"baseUrl": "http://x", "apiKey": "pr_1"}}}')
    return folder


def every_file(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_each_test_starts_in_a_new_home_without_settings() -> None:
    home = Path(os.environ["HOME"])
    assert list(home.iterdir()) == []
    assert profiles.file_path().is_relative_to(home)
    assert not [name for name in os.environ if name.startswith(("XDG_", "POSTROOM_API_"))]
    profiles.save(Profiles().with_profile("left behind", Profile("http://x", "pr_1"), make_current=True))


def test_what_another_test_saved_in_its_home_is_not_in_this_one() -> None:
    assert profiles.load() == Profiles()


@pytest.mark.share(3, turn=2)
def test_a_run_fails_for_what_its_tests_change_of_their_user_s_and_for_nothing_else(tmp_path: Path) -> None:
    """A test that saves a profile changes nothing; what others write meanwhile is no fault of it.

    The tests run in a process of their own, as in `make test`. Those that cannot run here are named.
    """
    home, waits, may_end = make_home(tmp_path / "home"), tmp_path / "waits", tmp_path / "may_end"
    innocent, guilty = tmp_path / "test_innocent.py", tmp_path / "test_guilty.py"
    written, new = home / ".config/postroom/guilty", home / ".config/postroom/new"
    innocent.write_text(INNOCENT.format(waits=str(waits), may_end=str(may_end)))
    guilty.write_text(GUILTY.format(place=str(written)))
    with ThreadPoolExecutor() as pool:
        run = pool.submit(
            run_pytest, home, "--processes", "1", SAVES_A_PROFILE, NEED_SWAKS, str(innocent), str(guilty)
        )
        wait_until(lambda: not (not waits.exists() and not run.done()))
        (home / PROFILES).write_text("{}")
        new.touch()
        before = every_file(home)
        may_end.touch()
        done = run.result()
    assert "3 passed" in done.stdout, done.stdout
    check_what_was_left_out(done)
    noted = re.findall("wrote into a folder of the user: (.*)", done.stdout)
    assert (noted, done.returncode) == ([str(written)], pytest.ExitCode.TESTS_FAILED)
    written.unlink()
    assert every_file(home) == before


CHANGES = {
    "a new file": "open(place / 'new', 'w').close()",
    "a new file by its descriptor": "os.close(os.open(place / 'new', os.O_CREAT))",
    "a file that is replaced": "os.rename(place.parent / 'other', place / 'profiles.json')",
    "a file that is removed": "(place / 'profiles.json').unlink()",
    "a new folder": "(place / 'new').mkdir()",
    "a database": "sqlite3.connect(place / 'new.db').close()",
    "a file by a relative path": "os.chdir(place); open('new', 'w').close()",
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noted_in_every_process(change: str, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / ".config/other").touch()
    environment = {"HOME": str(home)}
    (tmp_path / "run").mkdir()
    files = UserFiles(environment, tmp_path / "run")
    place = (home / PROFILES).parent
    reading = "import os, pathlib, sqlite3, sys; place = pathlib.Path(sys.argv[1]); os.listdir(place);"
    for work, count in (("open(place / 'profiles.json').close()", 0), (CHANGES[change], 1)):
        command = [sys.executable, "-c", f"{reading} {work}", str(place)]
        subprocess.run(command, env=environment, check=True, timeout=120)
        assert len(files.written()) == count
