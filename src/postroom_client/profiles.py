"""Profiles: which server, which key, which inbox. One file in the configuration folder, its owner's alone."""

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct, field

from postroom_client.errors import PostroomError

LOCAL = "local"
OWNER_ONLY = 0o600


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


def folder() -> Path:
    import platformdirs

    return platformdirs.user_config_path("postroom")


def file_path() -> Path:
    return folder() / "profiles.json"


def bridge_lock_path(name: str) -> Path:
    """Locked by the bridge of this profile for as long as it runs; it writes its process id there."""
    return folder() / f"bridge-{name}.lock"


def is_locked(place: Path) -> bool:
    """Whether a living process holds the lock (flock) of this file."""
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
        raise InvalidProfile(f"{place} cannot be read: {error}") from None


def save(profiles: Profiles) -> Path:
    """Replaces the file in one step, so that a reader never sees half of it."""
    place = file_path()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".profiles-")  # made with 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n")
        Path(temporary).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    return place


def save_local(base_url: str, api_key: str) -> Path:
    """Lets the next command here reach a server started here; another profile in use stays in use.

    Raises OSError when it cannot be kept, also when the file holds what is no profile: that one stays.
    """
    try:
        known = load()
    except InvalidProfile as error:
        raise OSError(error.message) from None
    before = known.find(LOCAL)
    is_same_account = before is not None and (before.base_url, before.api_key) == (base_url, api_key)
    inbox_id = before.inbox_id if before is not None and is_same_account else None
    is_free = known.find(known.current) is None or known.current == LOCAL
    return save(known.with_profile(LOCAL, Profile(base_url, api_key, inbox_id), make_current=is_free))
