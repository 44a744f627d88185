"""A small journal: what was appended is there after a crash, and a torn end hides nothing before it."""

from pathlib import Path

from postroom.storage.journal import HEAD_BYTES, Journal


def test_records_are_read_by_the_next_one_until_they_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.journal"
    journal = Journal(path)
    assert journal.read() == []
    for record in (b"one", b"", b"two" * 1000):
        journal.append(record)
    assert Journal(path).read() == [b"one", b"", b"two" * 1000]
    assert path.stat().st_mode & 0o777 == 0o600
    Journal(path).rewrite([b"two"])
    journal.append(b"three")
    assert Journal(path).read() == [b"two", b"three"]
    journal.rewrite([])
    assert (journal.read(), list(tmp_path.iterdir())) == ([], [])


def test_every_way_to_tear_or_damage_the_last_record_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.journal"
    for record in (b"first", b"last"):
        Journal(path).append(record)
    whole = path.read_bytes()
    for length in range(HEAD_BYTES + len(b"first"), len(whole)):
        path.write_bytes(whole[:length])
        assert Journal(path).read() == [b"first"]
    path.write_bytes(whole[:-1] + b"x")
    assert Journal(path).read() == [b"first"]
    path.write_bytes(b"\xff" * 100)
    assert Journal(path).read() == []
