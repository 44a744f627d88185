"""Local blobs: named by content, private, whole or not there."""

import hashlib
from pathlib import Path

import pytest

from postroom.errors import Unavailable
from postroom.storage.blobs import DamagedBlob, LocalBlobs
from postroom.upkeep.shared_blob_store import move


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path / "blobs")


def test_what_was_put_is_read_back_under_a_name_with_its_hash(blobs: LocalBlobs) -> None:
    content = bytes(range(256)) * 1000
    name = blobs.put(content)
    assert name.startswith(hashlib.sha256(content).hexdigest())
    assert blobs.get(name) == content


def test_the_same_content_put_twice_has_two_names_so_that_one_can_be_removed(blobs: LocalBlobs) -> None:
    first, second = blobs.put(b"same"), blobs.put(b"same")
    blobs.remove(first)
    assert blobs.get(second) == b"same"


def test_a_removed_blob_is_gone_and_removing_again_is_no_error(blobs: LocalBlobs) -> None:
    name = blobs.put(b"short lived")
    blobs.remove(name)
    blobs.remove(name)
    with pytest.raises(FileNotFoundError):
        blobs.get(name)


def test_a_write_that_fails_leaves_no_part_behind(blobs: LocalBlobs, tmp_path: Path) -> None:
    name = hashlib.sha256(b"blocked").hexdigest()
    (tmp_path / "blobs" / name[:2]).write_bytes(b"a file where the folder should be")
    with pytest.raises(Unavailable):
        blobs.put(b"blocked")
    assert list(blobs.names(0)) == []


def test_blobs_that_are_removed_while_they_are_listed_are_left_out(blobs: LocalBlobs) -> None:
    names = {f"aa{number}" for number in range(3)}  # in one folder, which is listed at once
    for name in names:
        blobs.put_as(name, b"x")
    listed = iter(blobs.names(-60.0))
    first = next(listed)
    for name in names - {first}:
        blobs.remove(name)
    assert list(listed) == []


def test_blobs_whose_mail_is_deleted_while_they_are_moved_are_left_out(
    blobs: LocalBlobs, tmp_path: Path
) -> None:
    class Emptied(LocalBlobs):
        def get(self, name: str) -> bytes:
            self.remove(name)
            return super().get(name)

    blobs.put(b"short lived")
    target = LocalBlobs(tmp_path / "target")
    assert list(move(Emptied(tmp_path / "blobs"), target, False, pytest.fail)) == []
    assert list(target.names(-60.0)) == []


def test_files_and_folders_are_private(blobs: LocalBlobs, tmp_path: Path) -> None:
    blobs.put(b"secret")
    made = [tmp_path / "blobs", *(tmp_path / "blobs").rglob("*")]
    assert len(made) > 2
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def test_check_writes_and_cleans_up(blobs: LocalBlobs, tmp_path: Path) -> None:
    blobs.check()
    assert list((tmp_path / "blobs").iterdir()) == []


def damage(blobs: LocalBlobs, name: str) -> None:
    """One bit, somewhere behind the first chunk."""
    path = blobs._path(name)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_bytes_that_are_not_those_that_were_put_are_never_given_out(blobs: LocalBlobs) -> None:
    name = blobs.put(bytes(3_000_000))
    assert b"".join(blobs.stream(name)) == bytes(3_000_000)
    damage(blobs, name)
    with pytest.raises(DamagedBlob):
        blobs.get(name)
    with pytest.raises(DamagedBlob):
        blobs.stream(name)  # before the first chunk
    assert len(blobs.get_unchecked(name)) == 3_000_000


def test_a_file_damaged_while_it_is_streamed_ends_in_an_error_and_not_as_a_whole(blobs: LocalBlobs) -> None:
    name = blobs.put(bytes(3_000_000))
    chunks = blobs.stream(name)
    next(chunks)
    damage(blobs, name)
    with pytest.raises(DamagedBlob):
        b"".join(chunks)
