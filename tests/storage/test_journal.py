"""A small journal: what was appended is there after a crash, and damage hides no whole record."""

import zlib
from pathlib import Path

from postroom.inward.journal import positions
from postroom.storage import segments
from postroom.storage.journal import Journal


def kept(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "outcomes.damaged").glob("*"))]


def test_records_are_read_by_the_next_one_until_they_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.journal"
    journal = Journal(path)
    assert journal.read() == []
    for record in (b"one", b"", b"two" * 1000):
        journal.append(record)
    assert Journal(path).read() == [b"one", b"", b"two" * 1000]
    folder = tmp_path / "outcomes"
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    journal.rewrite([b"two"])
    journal.append(b"three")
    assert Journal(path).read() == [b"two", b"three"]
    journal.rewrite([])
    assert (journal.read(), list(folder.iterdir())) == ([], [])


def test_every_way_to_tear_or_damage_a_record_leaves_the_others_and_keeps_its_bytes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outcomes.journal")
    for record in (b"first", b"middle", b"last"):
        journal.append(record)
    path = segments.path_of(tmp_path / "outcomes", 1)
    whole = path.read_bytes()
    size = len(whole) // 3
    for length in range(len(whole) - size + 2, len(whole)):
        path.write_bytes(whole[:length])
        assert journal.read() == [b"first", b"middle"]
    assert (kept(tmp_path), positions.count_damaged(tmp_path)) == (
        [],
        0,
    )  # what a crash tears off is no damage
    for at, left in (
        (10, [b"middle", b"last"]),
        (size + 10, [b"first", b"last"]),
        (-1, [b"first", b"middle"]),
    ):
        content = bytearray(whole)
        content[at] ^= 1
        path.write_bytes(content)
        assert journal.read() == left
        assert any(piece in content for piece in kept(tmp_path))
    assert positions.count_damaged(tmp_path) == len(kept(tmp_path)) > 0
    path.write_bytes(b"\xff" * 100)
    assert journal.read() == []
    assert b"\xff" * 100 in kept(tmp_path)
    journal.rewrite([b"new"])
    assert Journal(tmp_path / "outcomes.journal").read() == [b"new"]


def test_the_file_of_an_earlier_version_is_read_and_goes_when_its_records_are_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "outcomes.journal"
    first, second = (
        len(record).to_bytes(4, "big") + zlib.crc32(record).to_bytes(4, "big") + record
        for record in (b"first", b"second")
    )
    path.write_bytes(first + second)
    journal = Journal(path)
    assert journal.read() == [b"first", b"second"]
    path.write_bytes(first[:-1] + b"?" + second)
    assert journal.read() == [b"second"]
    journal.rewrite(journal.read())
    assert (Journal(path).read(), path.exists()) == ([b"second"], False)
