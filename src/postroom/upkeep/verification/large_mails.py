"""Checks large emails and files of drafts: each is in the store, with the bytes of its hash."""

from collections.abc import Sequence

from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.blobs import Blobs, DamagedBlob, is_sound
from postroom.storage.database import Tx
from postroom.upkeep.orphans import find_used_blobs
from postroom.upkeep.verification.parts import PAGE_SECONDS, Finding, Page, StoredPart

NAME = "large emails"
PAGE = 20
NAMED = (
    "select blob from raw_mails where blob is not null"
    " union select blob from draft_files where blob is not null"
    " union select blob from file_links where blob is not null"
)


def count(tx: Tx) -> int:
    row = tx.one(f"select count(*) as total from ({NAMED}) as named")
    return int(row["total"]) if row else 0


def next_blobs(tx: Tx, after: str) -> list[str]:
    rows = tx.all(
        f"select blob from ({NAMED}) as named where blob > :after order by blob limit :limit",
        after=after,
        limit=PAGE,
    )
    return [row["blob"] for row in rows]


async def look(resources: Resources, after: str) -> Page:
    blobs = await resources.db.read_long(next_blobs, PAGE_SECONDS, after)
    faults = await pools.FILES.run(_find_faults, resources.blobs, blobs)
    # What is missing may have been deleted since its name was read.
    used = await resources.db.read(find_used_blobs, list(faults)) if faults else set()
    findings = [Finding(NAME, blob, what) for blob, what in faults.items() if blob in used]
    return Page(findings, len(blobs), blobs[-1] if len(blobs) == PAGE else None)


def _find_faults(store: Blobs, blobs: Sequence[str]) -> dict[str, str]:
    faults: dict[str, str] = {}
    for blob in blobs:
        try:
            if not is_sound(blob, store.get_unchecked(blob)):
                faults[blob] = "its bytes are damaged"
        except FileNotFoundError:
            faults[blob] = "it is not in the store"
        except DamagedBlob:
            faults[blob] = "the disk cannot read it"
    return faults


PART = StoredPart(NAME, count, look)
