"""Checks stored counters against real counts."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.accounts import accounts
from postroom.mailbox import inboxes, threads
from postroom.mailbox.thread_selects import IS_LISTED
from postroom.storage.database import Tx, one_of
from postroom.upkeep.verification.parts import Finding, Page, StoredPart, next_ids, of_rows

PAGE = 100


class Counted(Struct, frozen=True):
    """A table whose columns are counted from others. `counts` has the select of each, for one row.

    `owner` must exist: leftovers of a deleted one are removed gradually, and not counted.
    """

    table: str
    counts: dict[str, str]
    owner: str

    @property
    def name(self) -> str:
        return f"counters of {self.table}"

    def select(self) -> str:
        counted = ", ".join(f"({sql}) as counted_{column}" for column, sql in self.counts.items())
        return f"select id, {', '.join(self.counts)}, {counted} from {self.table}"

    def look(self, tx: Tx, after: str) -> Page:
        ids, following = next_ids(tx, self.table, "id", after, PAGE)
        if not ids:
            return Page([], 0, None)
        is_wanted, wanted = one_of("id", ids)
        findings = [
            Finding(self.name, row["id"], f"{column} is {row[column]}, counted {counted}", is_derived=True)
            for row in tx.all(f"{self.select()} where {is_wanted} and {self.owner} order by id", **wanted)
            for column in self.counts
            if (counted := row[f"counted_{column}"]) != row[column]
        ]
        return Page(findings, len(ids), following)

    def repair(self, tx: Tx, ids: Sequence[str]) -> None:
        """Takes the lock that every change of these rows takes."""
        changes = ", ".join(f"{column} = ({sql})" for column, sql in self.counts.items())
        for each in sorted(set(ids)):
            _lock(tx, self.table, each)
            tx.run(f"update {self.table} set {changes} where id = :id", id=each)

    def part(self) -> StoredPart:
        return of_rows(self.name, self.table, self.look, self.repair)


def _lock(tx: Tx, table: str, row_id: str) -> None:
    if table == "inboxes":
        inboxes.lock(tx, row_id)
    elif table == "threads":
        row = tx.one("select inbox_id from threads where id = :id", id=row_id)
        if row is not None:
            inboxes.lock(tx, row["inbox_id"])
        threads.lock(tx, row_id)
    else:
        accounts.lock(tx, row_id)


_OF_INBOX = "select count(*) from messages where inbox_id = inboxes.id and is_trashed = 0 and direction ="
_OF_THREADS = f"select count(*) from threads where inbox_id = inboxes.id and {IS_LISTED}"

THREADS = Counted(
    "threads",
    {"message_count": "select count(*) from messages where thread_id = threads.id and is_trashed = 0"},
    owner="exists (select 1 from inboxes where inboxes.id = threads.inbox_id)",
)
INBOXES = Counted(
    "inboxes",
    {
        "thread_count": _OF_THREADS,
        "unread_count": f"{_OF_THREADS} and is_read = 0",
        "inbound_count": f"{_OF_INBOX} 'inbound'",
        "outbound_count": f"{_OF_INBOX} 'outbound'",
        # Mail that waits for its examination is counted when it is judged.
        "junk_count": f"{_OF_INBOX} 'blocked' and is_junk = 1",
        "blocked_count": f"{_OF_INBOX} 'blocked' and is_junk = 0 and not exists"
        " (select 1 from examinations where examinations.message_id = messages.id)",
        "stored_bytes": "select coalesce(sum(size_bytes), 0) from messages"
        " join raw_mails on raw_mails.message_id = messages.id where inbox_id = inboxes.id",
    },
    owner="exists (select 1 from accounts where accounts.id = inboxes.account_id and removed_at is null)",
)
PODS = Counted(
    "pods",
    {"inbox_count": "select count(*) from inboxes where pod_id = pods.id"},
    owner="exists (select 1 from accounts where accounts.id = pods.account_id and removed_at is null)",
)
ACCOUNTS = Counted(
    "accounts",
    {
        "pod_count": "select count(*) from pods where account_id = accounts.id",
        "inbox_count": "select count(*) from inboxes where account_id = accounts.id",
        "stored_bytes": "select coalesce(sum(stored_bytes), 0) from inboxes where account_id = accounts.id",
    },
    owner="removed_at is null",
)

# In this order: what an account stores is the sum of its inboxes.
PARTS = (THREADS.part(), INBOXES.part(), PODS.part(), ACCOUNTS.part())
