"""Segments: what was appended is read in order, a torn end is cut off, damage hides no whole record."""

import errno
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from postroom.storage import segments
from postroom.storage.records import HEAD, framed
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader, SegmentWriter

START, FAR = SegmentPosition(), SegmentPosition(1 << 40)


def read_all(folder: Path, start: SegmentPosition = START, end: SegmentPosition = FAR) -> list[bytes]:
    reader, found = SegmentReader(folder, start), []
    while (each := reader.next(end)) is not None:
        found.append(each.record)
    reader.close()
    return found


def written(folder: Path, *records: bytes, number: int = 1) -> list[SegmentPosition]:
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
    assert read_all(tmp_path, SegmentPosition(), second) == [b"one", b"two" * 1000]
    assert segments.path_of(tmp_path, 1).stat().st_mode & 0o777 == 0o600


def test_a_reader_goes_on_where_more_was_appended(tmp_path: Path) -> None:
    writer, reader = SegmentWriter(tmp_path, 1), SegmentReader(tmp_path, SegmentPosition())
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
    path = segments.path_of(tmp_path, 1)
    whole = path.read_bytes()
    for length in range(first.offset, len(whole)):
        for behind in (b"", bytes(100)):  # zeros, where a file system had room and no bytes
            path.write_bytes(whole[:length] + behind)
            assert segments.prepare(tmp_path, SegmentPosition()) == first
            assert path.read_bytes() == whole[: first.offset]
            assert read_all(tmp_path) == [b"first"]


def test_a_last_record_of_its_full_length_that_is_not_whole_is_damage_and_stays(tmp_path: Path) -> None:
    """It may have had its 250: a kill leaves only the beginning of a record."""
    (first, second) = written(tmp_path, b"first", b"last")
    path = segments.path_of(tmp_path, 1)
    whole = path.read_bytes()
    for at in range(first.offset, second.offset):
        content = bytearray(whole)
        content[at] ^= 0x40
        path.write_bytes(content)
        assert segments.prepare(tmp_path, SegmentPosition()) == second
        records, damage = read_with_damage(tmp_path, end=second)
        assert (records, damage) == ([b"first"], [(first, second)])


def read_with_damage(
    folder: Path, start: SegmentPosition = START, end: SegmentPosition = FAR
) -> tuple[list[bytes], list[tuple[SegmentPosition, SegmentPosition]]]:
    reader, found, damage = SegmentReader(folder, start), list[bytes](), []
    while True:
        try:
            each = reader.next(end)
        except DamagedSegment as error:
            damage.append((error.start, error.end))
            continue
        if each is None:
            reader.close()
            return found, damage
        found.append(each.record)


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_a_flipped_bit_costs_one_record_wherever_it_is(tmp_path: Path, bit: int) -> None:
    ends = written(tmp_path, b"first", b"second", b"third")
    written(tmp_path, b"next", number=2)
    path = segments.path_of(tmp_path, 1)
    whole = path.read_bytes()
    starts = [SegmentPosition(1), *ends[:-1]]
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= bit
        path.write_bytes(content)
        hit = sum(end.offset <= at for end in ends)
        left = [record for number, record in enumerate((b"first", b"second", b"third")) if number != hit]
        records, damage = read_with_damage(tmp_path)
        assert records == [*left, b"next"]
        assert damage == [(starts[hit], ends[hit] if hit < 2 else SegmentPosition(2))]


def test_records_appended_behind_damage_in_the_same_segment_are_read(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, 1)
    reader = SegmentReader(tmp_path, SegmentPosition())
    writer.append([[b"damaged"]])
    path = segments.path_of(tmp_path, 1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedSegment) as damage:
        reader.next(writer.end)
    assert damage.value.end == writer.end
    writer.append([[b"later"]])
    found = reader.next(writer.end)
    assert found is not None
    assert found.record == b"later"
    writer.close()
    reader.close()


def test_content_that_imitates_a_record_is_never_taken_for_one(tmp_path: Path) -> None:
    """A sender does not know the marker of the segment, and cannot write a record into an email."""
    fake = b"".join(framed([b"forged"], b"M" * 16, 7))
    old = len(b"forged").to_bytes(4, "big") + zlib.crc32(b"forged").to_bytes(4, "big") + b"forged"
    (_, second, third) = written(tmp_path, b"first", (fake + old) * 50, b"third")
    path = segments.path_of(tmp_path, 1)
    content = bytearray(path.read_bytes())
    for damaged in (slice(HEAD.size + 5, HEAD.size + 5 + HEAD.size), slice(second.offset - 3, second.offset)):
        content[damaged] = bytes(len(content[damaged]))
    path.write_bytes(content)
    records, damage = read_with_damage(tmp_path)
    assert records == [b"first", b"third"]
    assert [(start.offset, end.offset) for start, end in damage] == [(HEAD.size + 5, second.offset)]
    assert third.offset == len(content)


def test_what_a_disk_cannot_read_is_damage_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector: the system answers EIO for it, and gives the bytes around it."""
    records = [bytes([65 + number]) * 3_000 for number in range(10)]
    written(tmp_path, *records)
    bad, pread = 2 * 4096 + 100, os.pread

    def failing(file: int, size: int, offset: int) -> bytes:
        if offset <= bad < offset + size:
            raise OSError(errno.EIO, "Input/output error")
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", failing)
    found, damage = read_with_damage(tmp_path)
    # The sector from 8,192 to 12,288 lies in the records C, D and E.
    assert found == records[:2] + records[5:]
    assert len(damage) == 1
    end = segments.prepare(tmp_path, START)
    assert end == SegmentPosition(1, segments.size_of(tmp_path, 1))
    kept = segments.keep_damage(tmp_path, *damage[0], tmp_path / "damaged")
    assert kept.stat().st_size == damage[0][1].offset - damage[0][0].offset


def test_a_copy_of_a_record_in_a_second_place_is_not_read_twice(tmp_path: Path) -> None:
    (first, second, third) = written(tmp_path, b"one", b"two", b"six")  # all of the same length
    path = segments.path_of(tmp_path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[: second.offset] + whole[: first.offset])
    assert read_with_damage(tmp_path) == ([b"one", b"two"], [(second, SegmentPosition(2))])
    assert read_with_damage(tmp_path, second) == ([], [(second, SegmentPosition(2))])  # also after a restart
    path.write_bytes(whole[second.offset :] + whole[first.offset :])  # the first, with the last
    assert read_with_damage(tmp_path) == ([b"six", b"two"], [(second, SegmentPosition(2))])
    assert third.offset == len(whole)


def in_first_format(folder: Path, *records: bytes, number: int = 1) -> bytes:
    content = b"".join(
        len(record).to_bytes(4, "big") + zlib.crc32(record).to_bytes(4, "big") + record for record in records
    )
    (folder / segments.NAME.format(number)).write_bytes(content)
    return content


def test_segments_of_the_first_format_are_read_and_damage_in_one_hides_no_other_record(
    tmp_path: Path,
) -> None:
    fake = (b"\0\0\0\1" + zlib.crc32(b"x").to_bytes(4, "big") + b"x") * 3
    content = bytearray(in_first_format(tmp_path, b"first", b"second" + fake, b"third"))
    written(tmp_path, b"next", number=2)
    assert read_all(tmp_path) == [b"first", b"second" + fake, b"third", b"next"]
    path = segments.path_of(tmp_path, 1)
    content[13 + 8] ^= 1  # in the second record: its length still leads to the third
    path.write_bytes(content)
    damaged = SegmentPosition(1, 13), SegmentPosition(1, 13 + 8 + 6 + len(fake))
    assert read_with_damage(tmp_path) == ([b"first", b"third", b"next"], [damaged])
    content[13] ^= 0x80  # its length, too: what follows could be content that imitates a record
    path.write_bytes(content)
    assert read_with_damage(tmp_path) == ([b"first", b"next"], [(damaged[0], SegmentPosition(2))])
    segments.path_of(tmp_path, 2).unlink()
    assert segments.prepare(tmp_path, START) == SegmentPosition(1, len(content))  # nothing is cut off
    path.write_bytes(content[:13] + b"\0\0\0")
    assert segments.prepare(tmp_path, START) == SegmentPosition(1, 13)


def test_a_record_set_aside_twice_is_there_once_and_is_read_again_as_it_was(tmp_path: Path) -> None:
    folder, aside = tmp_path / "0-journal", tmp_path / "aside"
    folder.mkdir()
    (first, _) = written(folder, b"first", b"second")
    for _ in range(2):  # as after a kill between the copy and the note of the place
        segments.set_aside(folder, first, aside)
    segments.set_aside(folder, SegmentPosition(1), aside)
    assert segments.numbers(aside) == [1, 2]
    assert read_all(aside) == [b"second", b"first"]
    assert {path.stat().st_mode & 0o777 for path in aside.iterdir()} == {0o600}


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
    segments.remove_before(tmp_path, SegmentPosition(3))
    assert segments.numbers(tmp_path) == [3]
    assert segments.has_more(tmp_path, SegmentPosition(3))
    assert not segments.has_more(tmp_path, end)
    segments.remove_before(tmp_path, end, with_own=True)
    assert segments.numbers(tmp_path) == []
    assert segments.prepare(tmp_path, end) == end
