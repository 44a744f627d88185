"""What a client knows of its selected folder: the UID of each message number."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeVar

from postroom.imap.dialogue.requests import STAR, NumberSet

T = TypeVar("T")


class FolderView:
    """Takes four bytes per message."""

    def __init__(
        self,
        folder: str,
        is_read_only: bool,
        uids: Iterable[int],
        modseq: int,
        keywords: Iterable[str] = (),
    ) -> None:
        self.folder = folder
        self.is_read_only = is_read_only
        self.uids = array("I", uids)
        self.modseq = modseq
        self.keywords = set(keywords)  # those that the client knows
        self.recent: list[tuple[int, int]] = []  # ranges of UIDs, in order: both ends included
        self.must_compare = False  # some are gone that the client does not know of yet

    def add_recent(self, first: int, behind: int) -> None:
        if first >= behind:
            return
        if self.recent and self.recent[-1][1] + 1 == first:
            first = self.recent.pop()[0]
        self.recent.append((first, behind - 1))

    def is_recent(self, uid: int) -> bool:
        at = bisect_right(self.recent, (uid, STAR)) - 1
        return at >= 0 and uid <= self.recent[at][1]

    @property
    def recent_count(self) -> int:
        return sum(bisect_right(self.uids, high) - bisect_left(self.uids, low) for low, high in self.recent)

    def number_of(self, uid: int) -> int | None:
        at = bisect_left(self.uids, uid)
        return at + 1 if at < len(self.uids) and self.uids[at] == uid else None

    def select(self, which: NumberSet, by_uid: bool) -> list[int]:
        """Return the UIDs that are meant, in order, each once. Numbers without a message are left out.

        `*` is the last message, so `9:*` has it even if its UID is below 9 (RFC 3501, 6.4.8).
        """
        found: list[int] = []
        count = len(self.uids)
        for low, high in which.ranges(self.last_uid if by_uid else count):
            if by_uid:
                found += self.uids[bisect_left(self.uids, low) : bisect_right(self.uids, high)]
            else:
                found += self.uids[max(low, 1) - 1 : min(high, count)]
        return found

    def has_all(self, which: NumberSet) -> bool:
        """Return whether each of these numbers has a message."""
        return all(high <= len(self.uids) for pair in which.pairs for high in pair if high != STAR)

    def drop(self, kept: Iterable[int]) -> list[int]:
        """Keeps these; returns the numbers of the others, last to first, as EXPUNGE reports them.

        Each EXPUNGE counts down the numbers above it (RFC 3501 section 7.4.1).
        """
        there = set(kept)
        gone = [place for place, uid in enumerate(self.uids) if uid not in there]
        self.uids = array("I", (uid for uid in self.uids if uid in there))
        return [place + 1 for place in reversed(gone)]

    def add(self, uids: Iterable[int]) -> None:
        self.uids.extend(uids)

    @property
    def last_uid(self) -> int:
        return self.uids[-1] if self.uids else 0


def batches(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
