"""How far each journal is deposited, which journals a data folder has, and what is left in them."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from postroom.storage import segments
from postroom.storage.database import Tx
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader

FOLDER = "journal"
ASIDE = "aside"  # emails that could not be stored, one segment each
DAMAGED = "damaged"  # bytes of segments in which there is no whole email, a file for each piece
OUTCOMES_DAMAGED = "outcomes.damaged"  # the same of the journal of outcomes


def find(tx: Tx, journal: str) -> SegmentPosition:
    row = tx.one("select segment, position from journal_places where journal = :journal", journal=journal)
    return SegmentPosition() if row is None else SegmentPosition(row["segment"], row["position"])


def note(tx: Tx, journal: str, place: SegmentPosition) -> None:
    """Called in the transaction that deposits the emails before the place."""
    tx.run(
        "insert into journal_places (journal, segment, position) values (:journal, :segment, :position)"
        " on conflict (journal) do update set segment = excluded.segment, position = excluded.position",
        journal=journal,
        segment=place.segment,
        position=place.offset,
    )


def remove(tx: Tx, journal: str) -> None:
    tx.run("delete from journal_places where journal = :journal", journal=journal)


def of_slot(data_dir: Path, slot: int) -> Path:
    """The journal folder of one worker, or of the server itself; its name is unique to this data folder."""
    folder = data_dir / FOLDER
    found = sorted(folder.glob(f"{slot}-*"))
    return found[0] if found else folder / f"{slot}-{secrets.token_hex(8)}"


def others(data_dir: Path, used: Sequence[Path]) -> list[Path]:
    """Journals that nobody writes any more: there were more workers before, or emails are to be retried."""
    folder = data_dir / FOLDER
    found = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [path for path in found if path.name not in (ASIDE, DAMAGED) and path not in used]


def count_aside(data_dir: Path) -> int:
    return len(segments.numbers(data_dir / FOLDER / ASIDE))


def count_damaged(data_dir: Path) -> int:
    """Counts the kept pieces of journals of mail, and of the journal of outcomes."""
    folders = data_dir / FOLDER / DAMAGED, data_dir / OUTCOMES_DAMAGED
    return sum(path.suffix != ".part" for folder in folders for path in folder.glob("*"))


def count_bytes(data_dir: Path) -> int:
    everything = SegmentPosition(), SegmentPosition(1 << 60)
    return sum(segments.bytes_between(folder, *everything) for folder in others(data_dir, ()))


class Left(Struct, frozen=True):
    """The emails behind the place reached; with damage, as many as could be read."""

    journal: str
    mails: int
    size_bytes: int
    damage: str = ""


def survey(tx: Tx, data_dir: Path) -> list[Left]:
    """Every journal with emails left. While it is being written, its end may look torn."""
    found = [_look_through(folder, find(tx, folder.name)) for folder in others(data_dir, ())]
    return [left for left in found if left.mails or left.damage]


def _look_through(folder: Path, place: SegmentPosition) -> Left:
    reader, mails, size, damage = SegmentReader(folder, place), 0, 0, ""
    last = max(segments.numbers(folder), default=0)
    end = SegmentPosition(last, segments.size_of(folder, last))
    while True:
        try:
            found = reader.next(end)
        except DamagedSegment as error:
            damage = damage or str(error)
            continue
        if found is None:
            reader.close()
            return Left(folder.name, mails, size, damage)
        mails, size = mails + 1, size + len(found.record)
