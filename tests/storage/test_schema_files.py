"""A released schema file never changes: data that it made is out there. A change goes into a new file."""

import hashlib
import json
from pathlib import Path

import postroom.storage

FOLDER = Path(postroom.storage.__file__).parent / "schema"
RELEASED = Path(__file__).with_name("released_schema_files.json")


def hashes() -> dict[str, str]:
    files = sorted(FOLDER.rglob("[0-9][0-9][0-9][0-9]_*.sql"))
    return {str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_no_released_schema_file_is_changed_or_removed() -> None:
    released, now = json.loads(RELEASED.read_text()), hashes()
    assert {name: now.get(name) for name in released} == released, "put the change into a new file"


def test_no_file_for_one_engine_is_added_to_a_released_number() -> None:
    """A new file beside a released one of the same name would change what that number means."""
    released = json.loads(RELEASED.read_text())
    numbers = {Path(name).name for name in released}
    assert [name for name in hashes() if Path(name).name in numbers and name not in released] == []
