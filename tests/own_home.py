"""A home for each test: what it starts finds no file of the user's, and leaves none there."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from tests import write_watch

FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
SETTINGS = "POSTROOM_"
OF_TESTS = "POSTROOM_TEST_"
USUAL = (".config", ".local/share", ".local/state", ".cache")


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
        home = self.folder / f"{os.getpid()}-{self._count}"
        home.mkdir(mode=0o700)
        environment["HOME"] = str(home)
        return home

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def is_of_the_user(name: str) -> bool:
    return name in FOLDERS or (name.startswith(SETTINGS) and not name.startswith(OF_TESTS))


class UserFiles:
    """What this run writes into the folders where the command keeps a user's files.

    Other programs may write there meanwhile, so the files themselves are not compared: each Python process
    that inherits the environment notes what it does itself.
    """

    def __init__(self, environment: MutableMapping[str, str], folder: Path) -> None:
        self._report = folder / "written"
        self._watched = [str(place) for place in places(environment)]
        (folder / "hook").mkdir()
        call = f"watch({self._watched!r}, {str(self._report)!r})"
        source = f"{Path(write_watch.__file__).read_text()}\n\n{call}\n"
        (folder / "hook" / "sitecustomize.py").write_text(source)
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder / "hook"), inherited)))

    def watch_this_process(self) -> None:
        write_watch.watch(self._watched, str(self._report))

    def written(self) -> list[str]:
        return sorted(set(self._report.read_text().splitlines())) if self._report.exists() else []


def places(environment: Mapping[str, str]) -> list[Path]:
    """Where files are kept: by the variables, and where a process without any of them would."""
    homes = {environment.get("HOME", ""), pwd.getpwuid(os.geteuid()).pw_dir} - {""}
    bases = {Path(home) / below for home in homes for below in USUAL}
    bases |= {Path(environment[name]) for name in FOLDERS if environment.get(name)}
    return sorted(base / "postroom" for base in bases)
