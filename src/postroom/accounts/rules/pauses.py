"""Pauses: nothing leaves an account, a pod or an inbox until a person ends the pause."""

from msgspec import Struct

from postroom.accounts import actors
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.storage.database import LOCK_ROWS, Tx, insert_new

# A condition on a row of `inboxes`: it, its pod or its account is paused.
IS_PAUSED = "exists (select 1 from pauses where scope_id in (inboxes.id, inboxes.pod_id, inboxes.account_id))"


class Pause(Struct, frozen=True):
    since: int
    actor: Actor
    reason: str | None = None  # why the server began it


def scope_of(scope: Scope) -> str:
    return scope.inbox_id or scope.pod_id or scope.account_id


def find(tx: Tx, scope_id: str) -> Pause | None:
    row = tx.one("select since, actor, reason from pauses where scope_id = :id", id=scope_id)
    if row is None:
        return None
    actor = actors.decode(row["actor"])
    assert actor is not None
    return Pause(row["since"], actor, row["reason"])


class PausedScope(Struct, frozen=True):
    """An account, a pod or an inbox by its id."""

    scope_id: str
    account_id: str
    pause: Pause


def list_all(tx: Tx, limit: int) -> list[PausedScope]:
    """List the pauses of every account, for the operator."""
    rows = tx.all("select * from pauses order by scope_id limit :limit", limit=limit)
    return [
        PausedScope(row["scope_id"], row["account_id"], Pause(row["since"], actor, row["reason"]))
        for row in rows
        if (actor := actors.decode(row["actor"])) is not None
    ]


def add(tx: Tx, account_id: str, scope_id: str, actor: Actor, now: int, reason: str | None = None) -> None:
    """Add a pause. An existing one stays unchanged."""
    who = actors.encode(actor)
    insert_new(tx, "pauses", scope_id=scope_id, account_id=account_id, since=now, actor=who, reason=reason)


def remove(tx: Tx, scope_id: str) -> bool:
    return tx.run("delete from pauses where scope_id = :id", id=scope_id) == 1


def is_inbox_paused(tx: Tx, inbox_id: str) -> bool:
    """Return whether the inbox is paused.

    If so, the pause cannot end before this transaction: its end wakes what it held.
    """
    locked = tx.all(
        "select scope_id from pauses where scope_id in (select id from inboxes where id = :id union all"
        " select pod_id from inboxes where id = :id union all select account_id from inboxes where id = :id)"
        f" order by scope_id {LOCK_ROWS}",
        id=inbox_id,
    )
    return bool(locked)
