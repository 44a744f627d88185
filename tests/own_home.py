"""A home for each test: what it starts finds no file of the user's, and leaves none there."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
SETTINGS = "POSTROOM_"
OF_TESTS = "POSTROOM_TEST_"
USUAL = (".config", ".local/share", ".local/state", ".cache")

State = dict[str, tuple[int, int, int]]


class Homes:
    """Folders for one after the other, below one that is removed at the end."""

    def __init__(self, parent: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postroom-home-", dir=parent))
        self._count = 0

    def move_into_a_new_one(self, environment: MutableMapping[str, str]) -> Path:
        """Neither settings nor folders of the user's shell are inherited."""
        for name in [name for name in environment if is_of_the_user(name)]:
            del environment[name]
        self._count += 1
        home = self.folder / str(self._count)
        home.mkdir(mode=0o700)
        environment["HOME"] = str(home)
        return home

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def is_of_the_user(name: str) -> bool:
    return name in FOLDERS or (name.startswith(SETTINGS) and not name.startswith(OF_TESTS))


class UserFiles:
    """What the command keeps for the user, at the moment this was made."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._places = places(environment)
        self._before = state_of(self._places)

    def changed(self) -> list[str]:
        after = state_of(self._places)
        paths = self._before.keys() | after.keys()
        return sorted(path for path in paths if self._before.get(path) != after.get(path))


def places(environment: Mapping[str, str]) -> list[Path]:
    """Where files are kept: by the variables, and where a process without any of them would."""
    homes = {environment.get("HOME", ""), pwd.getpwuid(os.geteuid()).pw_dir} - {""}
    bases = {Path(home) / below for home in homes for below in USUAL}
    bases |= {Path(environment[name]) for name in FOLDERS if environment.get(name)}
    return sorted(base / "postroom" for base in bases)


def state_of(places: list[Path]) -> State:
    """Number, size and time of every file there; one that is written anew gets others."""
    files = [Path(folder) / name for place in places for folder, _, names in os.walk(place) for name in names]
    return {str(path): identity(path) for path in files}


def identity(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns
