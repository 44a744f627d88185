"""Runs all checks, reports progress, and repairs what is derived if asked to."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from postroom.resources import Resources, Tx
from postroom.upkeep.verification import counters, journals, large_mails, messages, search_index
from postroom.upkeep.verification.parts import PAGE_SECONDS, Finding, StoredPart

DATABASE = "database"
# Checks first what others are derived from.
PARTS: tuple[StoredPart, ...] = (
    journals.PART,
    messages.PART,
    large_mails.PART,
    *counters.PARTS,
    *search_index.PARTS,
)
OnProgress = Callable[[int], None]


class Verified(Struct, frozen=True):
    """How much was checked, what was found, and what was repaired."""

    looked_at: int
    findings: list[Finding]
    repaired: list[Finding]

    @property
    def left(self) -> list[Finding]:
        return [finding for finding in self.findings if finding not in self.repaired]


async def count_all(resources: Resources, parts: Sequence[StoredPart] = PARTS) -> int:
    def count(tx: Tx) -> int:
        return sum(part.count(tx) for part in parts)

    return await resources.db.read_long(count, PAGE_SECONDS)


async def verify(
    resources: Resources, repairs: bool, report: OnProgress, parts: Sequence[StoredPart] = PARTS
) -> Verified:
    """Verify the parts. If the database file is damaged, only that is reported."""
    if damage := await resources.db.find_damage():
        return Verified(0, [Finding(DATABASE, "", damage)], [])
    looked_at, findings, repaired = 0, list[Finding](), list[Finding]()
    if damage := await resources.db.find_damage(of_index=True):
        findings.append(Finding(search_index.NAME, "", damage, is_derived=True))
        if repairs:
            await resources.db.repair_index(is_asked=True)
            repaired += findings
        parts = [part for part in parts if part not in search_index.PARTS]
    for part in parts:
        after: str | None = ""
        while after is not None:
            page = await part.look(resources, after)
            findings += page.findings
            if repairs and part.repair is not None and page.findings:
                await resources.db.write(part.repair, [finding.id for finding in page.findings])
                repaired += page.findings
            looked_at += page.looked_at
            report(page.looked_at)
            after = page.after
    return Verified(looked_at, findings, repaired)
