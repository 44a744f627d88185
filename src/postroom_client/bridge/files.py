"""The files of a bridge for each profile: its lock, its position in the event log, its settings."""

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from postroom_client import profiles
from postroom_client.errors import PostroomError
from postroom_client.failures import place_of

S = TypeVar("S", bound=Struct)
LOCK_ATTEMPTS = 10
LOCK_PAUSE_SECONDS = 0.1
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BridgeFault(PostroomError):
    code = "bridge_fault"


class Failure(Struct, rename="camel", frozen=True):
    """The event that the handler does not take."""

    event_id: str
    attempts: int
    reason: str


class Place(Struct, rename="camel", frozen=True):
    """Everything up to and including `last_event_id` is handled; None: begin with the oldest event."""

    account_id: str
    last_event_id: str | None = None
    handled_at: datetime | None = None
    failing: Failure | None = None


class BridgeSettings(Struct, rename="camel", frozen=True, omit_defaults=True):
    """Where events go: an endpoint with a token, or a command."""

    forward_to: str | None = None
    token: str | None = None
    command: list[str] = []
    inbox_ids: list[str] = []
    event_types: list[str] = []
    timeout_seconds: float = 60.0
    aside_after: int = 0

    def __repr__(self) -> str:
        return f"BridgeSettings({self.forward_to or self.command!r})"  # never the token


def require_safe_name(profile: str) -> None:
    """Require a safe name: it becomes part of file names and of a service name."""
    if not SAFE_NAME.fullmatch(profile):
        raise BridgeFault(f"The profile name '{profile}' cannot be used here: letters, digits, . _ - only.")


def place_path(profile: str) -> Path:
    return profiles.folder() / f"bridge-{profile}.json"


def settings_path(profile: str) -> Path:
    return profiles.folder() / f"bridge-{profile}.settings.json"


def skip_path(profile: str) -> Path:
    """Names the event to skip, until it is skipped."""
    return profiles.folder() / f"bridge-{profile}.skip"


def aside_folder(profile: str) -> Path:
    return profiles.folder() / f"bridge-{profile}.aside"


def list_aside(profile: str) -> list[Path]:
    """List events that were given up, one file each, oldest first."""
    return sorted(aside_folder(profile).glob("*.json"))


def put_aside(profile: str, event_id: str, text: str) -> Path:
    """Put an event aside, durably before the position advances."""
    name = event_id if SAFE_NAME.fullmatch(event_id) else hashlib.sha256(event_id.encode()).hexdigest()
    path = aside_folder(profile) / f"{name}.json"
    save(path, msgspec.Raw(text.encode()))
    return path


def ask_to_skip(profile: str, event_id: str) -> None:
    save(skip_path(profile), msgspec.Raw(msgspec.json.encode(event_id)))


def is_to_skip(profile: str, event_id: str) -> bool:
    try:
        return msgspec.json.decode(skip_path(profile).read_bytes(), type=str) == event_id
    except (OSError, msgspec.DecodeError):
        return False


def find_place(profile: str) -> Place | None:
    return _find(place_path(profile), Place)


def find_settings(profile: str) -> BridgeSettings | None:
    return _find(settings_path(profile), BridgeSettings)


def save(path: Path, value: Struct | msgspec.Raw) -> None:
    """Save a value durably, including the file's name."""
    profiles.replace_file(path, msgspec.json.encode(value))
    _sync_folder(path.parent)


def remove(profile: str) -> None:
    place_path(profile).unlink(missing_ok=True)
    settings_path(profile).unlink(missing_ok=True)
    skip_path(profile).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(profile: str) -> Iterator[None]:
    """Lock a profile for one bridge. The system frees the lock when a process dies."""
    path = profiles.bridge_lock_path(profile)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if not _take_lock(file.fileno()):
            raise BridgeFault(f"A bridge for the profile '{profile}' is already running.")
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
        file.flush()
        yield


def _take_lock(handle: int) -> bool:
    """Take the lock. A status check holds it for a moment, so one refusal means little."""
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(LOCK_PAUSE_SECONDS)
    return False


def _find(path: Path, kind: type[S]) -> S | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise BridgeFault(f"{path} cannot be read{place_of(error)}.") from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
