"""Profiles: server, key and inbox. One file in the configuration folder, readable only by its owner."""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from postroom_client.errors import PostroomError
from postroom_client.failures import place_of

LOCAL = "local"


class InvalidProfile(PostroomError):
    code = "invalid_profile"


class Profile(Struct, rename="camel", frozen=True, omit_defaults=True):
    base_url: str
    api_key: str
    inbox_id: str | None = None

    def __repr__(self) -> str:
        return f"Profile({self.base_url!r}, inbox_id={self.inbox_id!r})"  # never the key


class Profiles(Struct, rename="camel", frozen=True):
    current: str = LOCAL
    profiles: dict[str, Profile] = field(default_factory=dict)

    def find(self, name: str) -> Profile | None:
        return self.profiles.get(name)

    def with_profile(self, name: str, profile: Profile, *, make_current: bool) -> "Profiles":
        return Profiles(name if make_current else self.current, {**self.profiles, name: profile})

    def without_profile(self, name: str) -> "Profiles":
        left = {other: profile for other, profile in self.profiles.items() if other != name}
        current = self.current if self.current in left else next(iter(left), LOCAL)
        return Profiles(current, left)


def folder() -> Path:
    try:
        import platformdirs
    except ModuleNotFoundError:
        raise InvalidProfile("Profiles need: pip install platformdirs rich typer") from None
    return platformdirs.user_config_path("postroom")


def file_path() -> Path:
    return folder() / "profiles.json"


def bridge_lock_path(name: str) -> Path:
    """Return the file that the bridge of this profile locks while it runs, with its process id."""
    return folder() / f"bridge-{name}.lock"


def is_locked(place: Path) -> bool:
    """Return whether a living process holds the lock (flock) of this file."""
    import fcntl

    with place.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def load() -> Profiles:
    place = file_path()
    try:
        return msgspec.json.decode(place.read_bytes(), type=Profiles)
    except FileNotFoundError:
        return Profiles()
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise InvalidProfile(f"{place} cannot be read{place_of(error)}. Mend or delete it.") from None


def save(profiles: Profiles) -> Path:
    place = file_path()
    replace_file(place, msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n")
    return place


def replace_file(place: Path, content: bytes) -> None:
    """Replace a file in one step, so that a reader never sees half of it; readable only by its owner."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")  # made with 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


class SavedProfile(Struct, frozen=True):
    name: str
    is_current: bool


def save_local(base_url: str, api_key: str) -> SavedProfile:
    """Lets the next command here reach a server started here.

    The profile of another server stays as it is: this one takes the next free name. It becomes the current
    profile if there is none, or if the current one has the same address.
    Raises OSError if it cannot be stored, also if the file is no profile file: that one stays.
    """
    with _alone():
        try:
            known = load()
        except InvalidProfile as error:
            raise OSError(error.message) from None
        name = _name_for(known, base_url, api_key)
        in_use = known.find(known.current)
        is_current = in_use is None or known.current == name or in_use.base_url == base_url
        profile = known.find(name) or Profile(base_url, api_key)
        save(known.with_profile(name, profile, make_current=is_current))
    return SavedProfile(name, is_current)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keeps two servers that start together from choosing the same name."""
    import fcntl

    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder(), os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _name_for(known: Profiles, base_url: str, api_key: str) -> str:
    names = itertools.chain([LOCAL], (f"{LOCAL}-{number}" for number in itertools.count(2)))
    own = (base_url, api_key)
    return next(
        name
        for name in names
        if (found := known.find(name)) is None or (found.base_url, found.api_key) == own
    )
