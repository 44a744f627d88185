"""A batch of the search index: entries made together, and stored in parts or one by one."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from postroom_mail.search.index_entry import IndexEntry


class AccountMoment(NamedTuple):
    """When a message came, and to which account."""

    account_id: str
    at: int


class Batch(Struct, frozen=True):
    """Entries by message, None for a deleted one. With `cursor` the batch is of earlier email, down to it."""

    changes: list[tuple[str, int]]  # messages and the numbers of their changes, ordered by number
    entries: dict[str, IndexEntry | None]
    new_pods: dict[str, str]  # pods of mail that could not be read yet, with their accounts
    cursor: str | None = None
    passed: int = 0  # how much earlier email was passed, including what needed no new entry
    arrivals: dict[str, AccountMoment] = field(default_factory=dict)  # of all that have an entry
    is_apart: bool = False  # for an index in its own file
    is_part: bool = False  # more changes were read than fit into it
    removed: dict[int, IndexEntry] = field(default_factory=dict)  # entries to take out, by their changes

    @property
    def is_of_earlier_mail(self) -> bool:
        return self.cursor is not None

    def parts(self, size: int) -> Iterator["Batch"]:
        """Splits into batches of at most `size` entries; earlier email stays whole: it has one cursor."""
        if self.is_of_earlier_mail:
            yield self
            return
        for start in range(0, len(self.changes), size):
            changes = self.changes[start : start + size]
            entries = {message_id: self.entries[message_id] for message_id, _ in changes}
            removed = {number: self.removed[number] for _, number in changes if number in self.removed}
            yield Batch(changes, entries, {}, arrivals=self.arrivals, removed=removed)

    def one_by_one(self) -> Iterator["Batch"]:
        if not self.is_of_earlier_mail:
            yield from self.parts(1)
            return
        for message_id, entry in sorted(self.entries.items(), reverse=True):
            yield Batch([], {message_id: entry}, {}, message_id, 1, self.arrivals)

    def without_words(self) -> "Batch":
        emptied = {
            message_id: None if entry is None else IndexEntry(entry.realm, scopes=entry.scopes)
            for message_id, entry in self.entries.items()
        }
        return replace(self, entries=emptied, removed={})
