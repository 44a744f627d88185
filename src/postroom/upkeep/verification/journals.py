"""Checks the journals: are their records whole, and were emails or damaged bytes set aside?"""

from postroom.inward.journal import positions
from postroom.resources import Resources, Tx
from postroom.upkeep.verification.parts import PAGE_SECONDS, Finding, Page, StoredPart

NAME, ASIDE, DAMAGED = "journal", "emails set aside", "damaged journals"


async def look(resources: Resources, after: str) -> Page:
    """Return what is not deposited yet, in one page, since it is little."""
    data_dir = resources.config.data_dir
    left = await resources.db.read_long(positions.survey, PAGE_SECONDS, data_dir)
    found = [Finding(NAME, each.journal, each.damage) for each in left if each.damage]
    if count := positions.count_aside(data_dir):
        found.append(Finding(ASIDE, positions.ASIDE, f"{count} could not be stored"))
    if count := positions.count_damaged(data_dir):
        what = f"{count} damaged pieces of journals are kept; emails or outcomes in them are lost"
        found.append(Finding(DAMAGED, positions.DAMAGED, what))
    return Page(found, sum(each.mails for each in left), None)


def count(tx: Tx) -> int:
    """Return 0: the count is not known before it is read."""
    return 0


PART = StoredPart(NAME, count, look)
