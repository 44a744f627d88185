"""Random segments with random damage: every record that is whole outside of it is stored exactly once.

The reader dies again and again, and the next one goes on from the place that was noted with the records.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from postroom.storage import segments
from postroom.storage.records import framed
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader, SegmentWriter

START, PAGE = SegmentPosition(), 4096
Change = Callable[[random.Random, bytes, int], tuple[bytes, int, int]]  # new content, and the bytes touched


def flip(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    return content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :], at, at + 1


def zero_page(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    start, end = at - at % PAGE, min(len(content), at - at % PAGE + PAGE)
    return content[:start] + bytes(end - start) + content[end:], start, end


def noise(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    end = min(len(content), at + chance.randrange(1, 3 * PAGE))
    return content[:at] + chance.randbytes(end - at) + content[end:], at, end


def truncate(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    return content[:at], at, len(content)


def write_over_with_another_piece(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    """A write that went to the wrong place."""
    size = chance.randrange(1, 3 * PAGE)
    other = chance.randrange(len(content))
    piece = content[other : other + size][: len(content) - at]
    return content[:at] + piece + content[at + len(piece) :], at, at + len(piece)


def insert_another_piece(chance: random.Random, content: bytes, at: int) -> tuple[bytes, int, int]:
    other = chance.randrange(len(content))
    return content[:at] + content[other : other + chance.randrange(1, 3 * PAGE)] + content[at:], at, at


CHANGES: list[Change] = [
    flip,
    zero_page,
    noise,
    truncate,
    write_over_with_another_piece,
    insert_another_piece,
]


class Written:
    """Records in segments, and which of them damage has left untouched."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.ranges: dict[bytes, tuple[int, int, int]] = {}  # of each record: segment, start and end
        folder.mkdir()
        for number in range(1, chance.randrange(2, 4)):
            writer = SegmentWriter(folder, number)
            for _ in range(chance.randrange(1, 6)):
                records = [content_of(chance) for _ in range(chance.randrange(1, 8))]
                start = writer.end.offset if writer.end.segment == number else 0
                for record, end in zip(records, writer.append([[each] for each in records]), strict=True):
                    self.ranges[record] = (number, start, end.offset)
                    start = end.offset
            writer.close()
        self.untouched = set(self.ranges)

    def damage(self, chance: random.Random, change: Change) -> None:
        number = chance.choice(segments.numbers(self.folder))
        path = segments.path_of(self.folder, number)
        content = path.read_bytes()
        new, start, end = change(chance, content, chance.randrange(len(content)))
        path.write_bytes(new)
        self.untouched -= {
            record
            for record, (segment, first, behind) in self.ranges.items()
            if segment == number and first < max(end, start + 1) and start < behind
        }


def content_of(chance: random.Random) -> bytes:
    """Now and then with what looks like whole records, by another marker or in the first format."""
    content = chance.randbytes(chance.randrange(16, 3_000))
    if chance.random() < 0.3:
        content += b"".join(framed([chance.randbytes(20)], chance.randbytes(16), 3)) * 5
    return content


class Store:
    """What is committed: records with the place behind them. What is kept outside comes before the commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = START
        self.records: list[bytes] = []

    def replay(self, chance: random.Random, kept: Path, lives: int) -> None:
        """As a process does from its start until it dies; the last one lives to the end."""
        for life in reversed(range(lives)):
            end = segments.prepare(self.folder, self.place)
            reader = SegmentReader(self.folder, self.place)
            while True:
                dies = life and chance.random() < 0.1
                try:
                    found = reader.next(end)
                except DamagedSegment as damage:
                    segments.keep_damage(self.folder, damage.start, damage.end, kept)
                    if dies:
                        break
                    self.place = damage.end
                    continue
                if found is None or dies:
                    break
                self.records.append(found.record)
                self.place = found.end
            reader.close()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(25))
def test_damage_costs_only_the_records_it_touches_however_often_the_reader_dies(
    tmp_path: Path, change: Change, seed: int
) -> None:
    chance = random.Random(f"{change.__name__} {seed}")
    written = Written(tmp_path / "0-journal", chance)
    for each in [*chance.choices(CHANGES[:3], k=chance.randrange(3)), change]:  # the last may move bytes
        written.damage(chance, each)
    sizes = {number: segments.size_of(written.folder, number) for number in segments.numbers(written.folder)}
    contents = {number: segments.path_of(written.folder, number).read_bytes() for number in sizes}
    store = Store(written.folder)
    store.replay(chance, tmp_path / "damaged", lives=chance.randrange(1, 12))

    counts = Counter(store.records)
    assert set(counts) <= set(written.ranges), "nothing is stored that was not written"
    assert set(counts.values()) <= {1}, "nothing is stored twice"
    assert written.untouched <= set(counts), "nothing whole is lost"
    # Every byte of the segments is in a record that is stored, kept as damage, or a torn end.
    kept = {path.name: path.read_bytes() for path in (tmp_path / "damaged").glob("*")}
    for name, damaged in kept.items():
        _, number, offset = name.split(".")
        assert contents[int(number, 16)][int(offset) :].startswith(damaged)
    stored = sum(written.ranges[record][2] - written.ranges[record][1] for record in counts)
    torn = sum(sizes.values()) - stored - sum(map(len, kept.values()))
    last = max(sizes)
    assert torn == sizes[last] - segments.size_of(written.folder, last)
