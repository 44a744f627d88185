"""Emails that could not be stored: each start tries them again, so an upgrade delivers what lies aside."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from postroom import log
from postroom.inward.journal import positions
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage import segments
from postroom.storage.data_folder import make_folder, sync_folder
from postroom.storage.database import Tx
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader


async def take_up(resources: Resources) -> None:
    """Call before any journal is deposited: makes a journal of them, which `deposit_others` deposits once."""
    data_dir = resources.config.data_dir
    if not positions.count_aside(data_dir):
        return
    waiting = await resources.db.read(_next_records, data_dir)
    if count := await pools.FILES.run(_move, data_dir, waiting):
        log.get().info("emails that were set aside are tried again", count=count)


def _next_records(tx: Tx, data_dir: Path) -> list[bytes]:
    """The next record of each journal. After a crash while it was set aside, it lies in both."""
    found = []
    for folder in positions.others(data_dir, ()):
        place = positions.find(tx, folder.name)
        records = _records(folder, place, SegmentPosition(1 << 60), most=1)
        found += records or []
    return found


def _move(data_dir: Path, waiting: Sequence[bytes]) -> int:
    """Returns how many segments it moved. Damaged ones stay: there is nothing to read in them."""
    aside = data_dir / positions.FOLDER / positions.ASIDE
    again = aside.with_name(f"again-{secrets.token_hex(8)}")
    moved = 0
    for number in segments.numbers(aside):
        end = SegmentPosition(number, segments.size_of(aside, number))
        records = _records(aside, SegmentPosition(number), end)
        path = segments.path_of(aside, number)
        if records and records[0] in waiting:
            path.unlink()
        elif records:
            make_folder(again)
            os.rename(path, again / path.name)
            moved += 1
    if moved:
        sync_folder(again)
        sync_folder(again.parent)
    sync_folder(aside)
    return moved


def _records(folder: Path, start: SegmentPosition, end: SegmentPosition, most: int = 0) -> list[bytes] | None:
    """The records between two positions, `most` of them at most (0: all); None if something is damaged."""
    reader, found = SegmentReader(folder, start), []
    try:
        while (record := reader.next(end)) is not None:
            found.append(record.record)
            if len(found) == most:
                break
    except DamagedSegment:
        return None
    finally:
        reader.close()
    return found
