"""`make test` leaves the user's own files as they are: profiles, keys, settings."""

import os
import subprocess
import sys
from pathlib import Path

from postroom_client import profiles
from postroom_client.profiles import Profile, Profiles
from tests.own_home import UserFiles

PROFILES = ".config/postroom/profiles.json"
CHECKOUT = Path(__file__).parents[1]
STARTS_SERVERS = "tests/end_to_end/test_commands.py::test_the_key_is_printed_by_the_first_start_alone"
GUILTY = """
import pathlib

def test_that_writes_where_the_user_does() -> None:
    place = pathlib.Path({place!r})
    place.write_text("mine now")
    assert place.exists()
"""


def run_pytest(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "HOME": str(home), "POSTROOM_API_KEY": "pr_of-the-user"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-c", "pyproject.toml"]
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
    assert not [name for name in os.environ if name.startswith("XDG_")]
    profiles.save(Profiles().with_profile("left behind", Profile("http://x", "pr_1"), make_current=True))


def test_what_another_test_saved_in_its_home_is_not_in_this_one() -> None:
    assert profiles.load() == Profiles()


def test_a_run_that_starts_servers_changes_nothing_of_its_user_s_and_one_that_does_fails(
    tmp_path: Path,
) -> None:
    before = every_file(make_home(tmp_path / "home"))
    guilty = tmp_path / "home/.config/postroom/guilty"
    test_file = tmp_path / "test_guilty.py"
    test_file.write_text(GUILTY.format(place=str(guilty)))
    done = run_pytest(tmp_path / "home", STARTS_SERVERS, str(test_file))
    assert "2 passed" in done.stdout, done.stdout
    assert done.returncode != 0
    assert f"changed a file of the user: {guilty}" in done.stdout
    guilty.unlink()
    assert every_file(tmp_path / "home") == before


def test_new_replaced_and_removed_files_are_all_changes(tmp_path: Path) -> None:
    place = make_home(tmp_path) / PROFILES
    files = UserFiles({"HOME": str(tmp_path)})
    assert files.changed() == []
    (place.parent / "new").touch()
    assert files.changed() == [str(place.parent / "new")]
    (place.parent / "new").unlink()
    place.unlink()
    assert files.changed() == [str(place)]
