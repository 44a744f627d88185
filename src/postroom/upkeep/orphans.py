"""Removes blobs that no mail and no draft uses: their process died before it stored the row."""

from collections.abc import Iterator, Sequence
from itertools import islice

from postroom.mailbox import drafts, file_links, raw_mails
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx

ORPHAN_AGE_SECONDS = 3600.0
SWEPT_AT_ONCE = 200
SWEPT_IN_A_ROUND = 10_000


async def sweep_orphans(resources: Resources) -> None:
    """Sweep all blobs, however long it takes."""
    sweep = Sweep(resources)
    while not await sweep.sweep_page():
        pass


class Sweep:
    """Goes through all blobs page by page, over many rounds of upkeep."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._names: Iterator[str] | None = None

    async def sweep_pages(self) -> None:
        for _ in range(SWEPT_IN_A_ROUND // SWEPT_AT_ONCE):
            if await self.sweep_page():
                return

    async def sweep_page(self) -> bool:
        """Return True at the end; then it starts again."""
        names = await pools.FILES.run(self._next_names)
        if not names:
            self._names = None
            return True
        used = await self._resources.db.read(find_used_blobs, names)
        await remove_blobs(self._resources, [name for name in names if name not in used])
        return False

    def _next_names(self) -> list[str]:
        if self._names is None:
            self._names = iter(self._resources.blobs.names(ORPHAN_AGE_SECONDS))
        return list(islice(self._names, SWEPT_AT_ONCE))


def find_used_blobs(tx: Tx, names: Sequence[str]) -> set[str]:
    """Return those that an email, a draft or an upload uses."""
    in_drafts = drafts.find_used_blobs(tx, names)
    return raw_mails.find_used_blobs(tx, names) | in_drafts | file_links.find_used_blobs(tx, names)


async def remove_blobs(resources: Resources, names: Sequence[str]) -> None:
    for name in names:
        await pools.FILES.run(resources.blobs.remove, name)
