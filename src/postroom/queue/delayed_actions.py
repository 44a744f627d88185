"""Actions from a click on a page that run after a delay and can be undone until then."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.clock import DAY, MINUTE, SECOND
from postroom.storage.database import Row, Tx, insert_item, item_from_row, update

BELL = "delayed_actions"
DELAY = 10 * SECOND
LEASE = MINUTE  # after this, an action that its claimant did not finish can be claimed again
SHOWN = 5
LIFETIME = 30 * DAY  # of a refusal that was never read


class DelayedAction(Struct, frozen=True):
    id: str
    account_id: str
    session_id: str
    operation: str  # the name of a route
    arguments: str  # JSON: a list with the arguments of each call of the operation
    targets: tuple[str, ...]  # the ids that it is about
    said: str
    address: str  # the client's network address
    due_at: int
    refused: str | None = None  # why, when its time had come

    @classmethod
    def from_row(cls, row: Row) -> "DelayedAction":
        return item_from_row(cls, row, targets=tuple(row["targets"].split()))


def add(tx: Tx, action: DelayedAction) -> None:
    insert_item(tx, "delayed_actions", action, targets=" ".join(action.targets))


def list_of_session(tx: Tx, session_id: str, limit: int = SHOWN) -> list[DelayedAction]:
    """Return those that can still be undone or were refused, newest first."""
    rows = tx.all(
        "select * from delayed_actions where session_id = :session_id"
        " and (claimed_at is null or refused is not null) order by due_at desc limit :limit",
        session_id=session_id,
        limit=limit,
    )
    return [DelayedAction.from_row(row) for row in rows]


def targets_of(tx: Tx, session_id: str) -> set[str]:
    """Return the targets that this session's pending actions will remove: its lists hide them already."""
    rows = tx.all("select targets from delayed_actions where session_id = :session_id", session_id=session_id)
    return {target for row in rows for target in row["targets"].split()}


def list_due(tx: Tx, limit: int, now: int) -> list[str]:
    rows = tx.all(
        "select id from delayed_actions where due_at <= :now and refused is null"
        " and (claimed_at is null or claimed_at <= :lost) order by due_at limit :limit",
        now=now,
        lost=now - LEASE,
        limit=limit,
    )
    return [row["id"] for row in rows]


def claim(tx: Tx, action_id: str, now: int) -> DelayedAction | None:
    """Return None if it was undone, or somebody else does it."""
    row = tx.one(
        "update delayed_actions set claimed_at = :now where id = :id and refused is null"
        " and (claimed_at is null or claimed_at <= :lost) returning *",
        id=action_id,
        now=now,
        lost=now - LEASE,
    )
    return None if row is None else DelayedAction.from_row(row)


def take_back(tx: Tx, session_id: str, action_id: str) -> bool:
    """Return False if it is too late, or belongs to another session."""
    removed = tx.run(
        "delete from delayed_actions where id = :id and session_id = :session_id and claimed_at is null",
        id=action_id,
        session_id=session_id,
    )
    return removed > 0


def mark_refused(tx: Tx, action_id: str, reasons: Sequence[str]) -> None:
    """Mark as refused. Its targets are shown in lists again."""
    update(tx, "delayed_actions", action_id, refused=" ".join(reasons), targets="")


def dismiss(tx: Tx, session_id: str, action_id: str) -> None:
    tx.run(
        "delete from delayed_actions where id = :id and session_id = :session_id and refused is not null",
        id=action_id,
        session_id=session_id,
    )


def remove(tx: Tx, action_id: str) -> None:
    tx.run("delete from delayed_actions where id = :id", id=action_id)
