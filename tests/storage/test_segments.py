"""Segments: what was appended is read in order, a torn end is cut off, damage hides no other segment."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from postroom.storage import segments
from postroom.storage.segments import HEAD, DamagedSegment, SegmentPlace, SegmentReader, SegmentWriter

START, FAR = SegmentPlace(), SegmentPlace(1 << 40)


def read_all(folder: Path, start: SegmentPlace = START, end: SegmentPlace = FAR) -> list[bytes]:
    reader, found = SegmentReader(folder, start), []
    while (each := reader.next(end)) is not None:
        found.append(each.record)
    reader.close()
    return found


def written(folder: Path, *records: bytes, number: int = 1) -> list[SegmentPlace]:
    writer = SegmentWriter(folder, number)
    ends = writer.append([[record] for record in records])
    writer.close()
    return ends


def test_records_are_read_in_their_order_from_any_place_between_them(tmp_path: Path) -> None:
    first, second, third = written(tmp_path, b"one", b"two" * 1000, b"three")
    written(tmp_path, b"four", number=4)
    assert read_all(tmp_path) == [b"one", b"two" * 1000, b"three", b"four"]
    assert read_all(tmp_path, first) == [b"two" * 1000, b"three", b"four"]
    assert read_all(tmp_path, third) == [b"four"]
    assert read_all(tmp_path, SegmentPlace(), second) == [b"one", b"two" * 1000]
    assert (tmp_path / "0000000000000001").stat().st_mode & 0o777 == 0o600


def test_a_reader_goes_on_where_more_was_appended(tmp_path: Path) -> None:
    writer, reader = SegmentWriter(tmp_path, 1), SegmentReader(tmp_path, SegmentPlace())
    for record in (b"one", b"two"):
        writer.append([[record]])
        found = reader.next(writer.end)
        assert found is not None
        assert found.record == record
        assert reader.next(writer.end) is None
    writer.close()
    writer.append([[b"in the next segment"]])
    assert writer.end.segment == 2
    found = reader.next(writer.end)
    assert found is not None
    assert found.record == b"in the next segment"
    writer.close()
    reader.close()


def test_every_way_to_tear_the_last_record_leaves_the_others_and_is_cut_off(tmp_path: Path) -> None:
    (first, _) = written(tmp_path, b"first", b"last")
    path = tmp_path / "0000000000000001"
    whole = path.read_bytes()
    for torn in (
        *(whole[:length] for length in range(first.offset, len(whole))),
        whole[: first.offset] + bytes(100),  # zeros, where a file system had room and no bytes
        whole[:-1] + b"?",
    ):
        path.write_bytes(torn)
        assert segments.prepare(tmp_path, SegmentPlace()) == first
        assert path.read_bytes() == whole[: first.offset]
        assert read_all(tmp_path) == [b"first"]


def test_damage_is_told_with_its_place_and_the_next_segment_is_read(tmp_path: Path) -> None:
    (first, _, _) = written(tmp_path, b"first", b"damaged", b"behind it")
    written(tmp_path, b"next", number=2)
    path = tmp_path / "0000000000000001"
    content = bytearray(path.read_bytes())
    content[first.offset + HEAD.size] ^= 1
    path.write_bytes(content)
    reader = SegmentReader(tmp_path, SegmentPlace())
    found = reader.next(FAR)
    assert found is not None
    assert found.record == b"first"
    with pytest.raises(DamagedSegment) as damage:
        reader.next(FAR)
    assert (damage.value.start, damage.value.end) == (first, SegmentPlace(2))
    found = reader.next(FAR)
    assert found is not None
    assert found.record == b"next"
    reader.close()
    segments.copy_out(tmp_path, damage.value.start, damage.value.end, tmp_path / "aside")
    assert (tmp_path / "aside" / "0000000000000001").read_bytes() == content[first.offset :]


@pytest.mark.parametrize("fails", ["writev", "fdatasync"])
def test_what_could_not_be_written_and_synced_is_found_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    writer = SegmentWriter(tmp_path, 1)
    writer.append([[b"first"]])

    def fail(file: int, parts: Sequence[bytes] = ()) -> int:
        os.write(file, b"half a record")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, fail)
        with pytest.raises(OSError, match="No space"):
            writer.append([[b"never"]])
    writer.append([[b"second"]])
    writer.close()
    assert read_all(tmp_path) == [b"first", b"second"]


def test_a_segment_whose_name_could_not_be_synced_takes_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    writer = SegmentWriter(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(segments, "sync_folder", fail)
        with pytest.raises(OSError, match="Input/output"):
            writer.append([[b"never"]])
    writer.append([[b"first"]])
    writer.close()
    assert writer.end.segment == 2
    assert read_all(tmp_path) == [b"first"]


def test_segments_go_when_all_before_a_place_is_done(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (end,) = written(tmp_path, b"x", number=number)
    segments.remove_before(tmp_path, SegmentPlace(3))
    assert segments.numbers(tmp_path) == [3]
    assert segments.has_more(tmp_path, SegmentPlace(3))
    assert not segments.has_more(tmp_path, end)
    segments.remove_before(tmp_path, end, with_own=True)
    assert segments.numbers(tmp_path) == []
    assert segments.prepare(tmp_path, end) == end
