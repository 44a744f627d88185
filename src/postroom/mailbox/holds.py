"""Holds: why a send waits, until when, and what was decided. One row per message."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from postroom.accounts import actors
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.mailbox.inboxes import IS_THERE
from postroom.mailbox.origins import ValueOrigin
from postroom.storage.database import Row, Tx, all_of, count, item_from_row

HELD, SCHEDULED, APPROVED, RELEASED = "held", "scheduled", "approved", "released"
REJECTED, EXPIRED, CANCELLED = "rejected", "expired", "cancelled"
PAUSED = "paused"  # the only reason without an approval: it ends with its pause
RISKS = {"suspicious": 1, "malicious": 2}  # by verdict
CANARY_RISK = 3
CANARY = "canary"  # it contains the token that only the agent of its inbox can read
KEY_REVOKED = "key_revoked"  # the key that sent it is gone
COUNTED_BEYOND_PAGE = 1000


class Choice(Struct, frozen=True):
    """Filters holds of a state: by condition, by sending key, by recipient."""

    condition: str = "1 = 1"
    key_id: str = ""
    recipient: str = ""
    without: tuple[str, ...] = ()  # messages that a person has just decided about, and may still undo

    @property
    def where(self) -> str:
        of_key = " and key_id = :key_id" if self.key_id else ""
        to_one = (
            " and exists (select 1 from deliveries where deliveries.message_id = holds.message_id"
            " and kind = 'mail' and target = :recipient)"
        )
        others = ", ".join(f":without_{number}" for number in range(len(self.without)))
        rest = f" and message_id not in ({others})" if others else ""
        return f"{self.condition}{of_key}{to_one if self.recipient else ''}{rest}"

    @property
    def values(self) -> dict[str, str]:
        given = {"key_id": self.key_id, "recipient": self.recipient}
        given |= {f"without_{number}": each for number, each in enumerate(self.without)}
        return {name: value for name, value in given.items() if value}


ALL = Choice()
# Held mail that a person decides about, and held email that only waits for the end of a pause.
FOR_A_PERSON = Choice("""reasons <> '["paused"]'""")
FOR_ITS_PAUSE = Choice("""reasons = '["paused"]'""")


class GivenApproval(Struct, frozen=True):
    """One of several approvals that a send needs. `person` is the same for all identities of one person."""

    person: str
    actor: Actor
    given_at: int


class Hold(Struct, frozen=True):
    message_id: str
    account_id: str
    pod_id: str
    inbox_id: str
    key_id: str
    state: str
    reasons: tuple[str, ...]
    content_hash: str
    bcc: tuple[str, ...]
    is_paused: bool
    expires_at: int | None
    send_at: int | None
    let_go_at: int | None
    due_at: int | None  # when the loop has to look at it
    created_at: int
    decided_at: int | None = None
    actor: Actor | None = None
    note: str | None = None
    key_lineage: tuple[str, ...] = ()  # the keys that the sender's key descends from, also deleted ones
    excused: str = ""  # the reason against the key when a person approved it: no reason to hold again
    approvals_needed: int = 1
    approvals: tuple[GivenApproval, ...] = ()  # so far, where it needs more than one
    origins: tuple[ValueOrigin, ...] = ()  # values that came from others than its recipients
    risk: int = 0  # of its thread and contents: what waits is listed by it

    @classmethod
    def from_row(cls, row: Row) -> "Hold":
        lists = {name: tuple(msgspec.json.decode(row[name], type=list[str])) for name in ("reasons", "bcc")}
        return item_from_row(
            cls,
            row,
            **lists,
            is_paused=bool(row["is_paused"]),
            actor=actors.decode(row["actor"]),
            key_lineage=tuple(row["key_lineage"].split()),
            origins=tuple(msgspec.json.decode(row["origins"] or "[]", type=list[ValueOrigin])),
            approvals=tuple(msgspec.json.decode(row["approvals"], type=list[GivenApproval])),
        )

    @property
    def needs_approval(self) -> bool:
        return any(reason != PAUSED for reason in self.reasons)


COLUMNS = ", ".join(Hold.__struct_fields__)


class ShownHold(Struct, rename="camel", frozen=True):
    """A hold."""

    state: str
    reasons: list[str]
    content_hash: str
    expires_at: str | None
    send_at: str | None
    decided_at: str | None
    decided_by: Actor | None
    note: str | None
    approvals_needed: int
    approved_by: list[Actor]
    origins: list[ValueOrigin]


def show(hold: Hold) -> ShownHold:
    return ShownHold(
        state=hold.state,
        reasons=list(hold.reasons),
        content_hash=hold.content_hash,
        expires_at=_iso(hold.expires_at),
        send_at=_iso(hold.send_at),
        decided_at=_iso(hold.decided_at),
        decided_by=hold.actor,
        note=hold.note,
        approvals_needed=hold.approvals_needed,
        approved_by=[given.actor for given in hold.approvals],
        origins=list(hold.origins),
    )


def _iso(moment: int | None) -> str | None:
    return None if moment is None else to_iso(moment)


def add_all(tx: Tx, new: Sequence[Hold]) -> None:
    tx.many(f"insert into holds ({COLUMNS}) values :rows", [_to_row(hold) for hold in new])


def put(tx: Tx, hold: Hold) -> Hold:
    """Stores a hold, replacing any before."""
    tx.run("delete from holds where message_id = :id", id=hold.message_id)
    add_all(tx, [hold])
    tx.run("update messages set has_hold = 1 where id = :id and has_hold = 0", id=hold.message_id)
    return hold


def _to_row(hold: Hold) -> tuple[object, ...]:
    lists = {
        name: msgspec.json.encode(getattr(hold, name)).decode()
        for name in ("reasons", "bcc", "approvals", "origins")
    }
    columns = structs.asdict(hold) | lists
    columns["is_paused"] = int(hold.is_paused)
    columns["actor"] = None if hold.actor is None else actors.encode(hold.actor)
    columns["key_lineage"] = " ".join(hold.key_lineage)
    return tuple(columns.values())


def find(tx: Tx, message_id: str) -> Hold | None:
    row = tx.one(f"select {COLUMNS} from holds where message_id = :id", id=message_id)
    return None if row is None else Hold.from_row(row)


def list_of_messages(tx: Tx, message_ids: Sequence[str]) -> dict[str, Hold]:
    rows = all_of(tx, f"select {COLUMNS} from holds where :wanted", "message_id", message_ids)
    return {row["message_id"]: Hold.from_row(row) for row in rows}


def list_within(
    tx: Tx, scope: Scope, state: str, limit: int, offset: int, choice: Choice = ALL
) -> tuple[list[Hold], int]:
    """List holds: waiting ones oldest first, decided ones newest first.

    The total is counted up to a limit.
    """
    owner, owner_id = scope.owner
    order = "created_at, message_id" if state in (HELD, SCHEDULED) else "created_at desc, message_id desc"
    rows = tx.all(
        f"select {COLUMNS} from holds where {owner} = :owner_id and state = :state and {choice.where}"
        f" and {IS_THERE} order by {order} limit :limit offset :offset",
        owner_id=owner_id,
        state=state,
        limit=limit,
        offset=offset,
        **choice.values,
    )
    return [Hold.from_row(row) for row in rows], count_within(tx, scope, state, offset + limit, choice)


def list_waiting(
    tx: Tx, scope: Scope, limit: int, offset: int, choice: Choice = FOR_A_PERSON
) -> tuple[list[Hold], int]:
    """List the held sends, riskiest first, then oldest first."""
    owner, owner_id = scope.owner
    rows = tx.all(
        f"select {COLUMNS} from holds where {owner} = :owner_id and state = 'held' and {choice.where}"
        f" and {IS_THERE} order by risk desc, created_at, message_id limit :limit offset :offset",
        owner_id=owner_id,
        limit=limit,
        offset=offset,
        **choice.values,
    )
    return [Hold.from_row(row) for row in rows], count_within(tx, scope, HELD, offset + limit, choice)


def raise_risk(tx: Tx, thread_id: str, verdict: str | None) -> None:
    """Raise the risk of what waits in a thread to that of its worst message."""
    if verdict in RISKS:
        tx.run(
            "update holds set risk = :risk where state = 'held' and risk < :risk"
            " and message_id in (select id from messages where thread_id = :thread_id and has_hold = 1)",
            risk=RISKS[verdict],
            thread_id=thread_id,
        )


def count_within(tx: Tx, scope: Scope, state: str, shown: int = 0, choice: Choice = ALL) -> int:
    owner, owner_id = scope.owner
    return count(
        tx,
        f"select count(*) as number from (select 1 from holds where {owner} = :owner_id and state = :state"
        f" and {choice.where} and {IS_THERE} limit :limit) as counted",
        owner_id=owner_id,
        state=state,
        limit=shown + COUNTED_BEYOND_PAGE,
        **choice.values,
    )


def list_scheduled(tx: Tx, scope: Scope, limit: int) -> list[str]:
    """List the messages in scope that are scheduled for later."""
    owner, owner_id = scope.owner_of_inboxes
    rows = tx.all(
        "select holds.message_id from inboxes join holds on holds.inbox_id = inboxes.id"
        " and holds.state = 'scheduled' and holds.let_go_at is null"
        f" where inboxes.{owner} = :owner_id limit :limit",
        owner_id=owner_id,
        limit=limit,
    )
    return [row["message_id"] for row in rows]


def list_due(tx: Tx, limit: int, now: int) -> list[str]:
    """List the messages whose hold must be checked now."""
    rows = tx.all(
        "select message_id from holds where due_at <= :now order by due_at limit :limit", now=now, limit=limit
    )
    return [row["message_id"] for row in rows]


def wake_scheduled(tx: Tx, account_id: str, key_id: str, now: int) -> bool:
    """Makes the loop check what a key has scheduled. False if there is nothing."""
    woken = tx.run(
        "update holds set due_at = :now where key_id = :key_id and account_id = :account_id"
        " and state = 'scheduled' and let_go_at is null",
        now=now,
        key_id=key_id,
        account_id=account_id,
    )
    return woken > 0


def wake_paused(tx: Tx, scope: Scope, now: int) -> None:
    """Make the loop check all that a pause held, after it has ended."""
    owner, owner_id = scope.owner
    tx.run(
        f"update holds set due_at = :now where account_id = :account_id and {owner} = :owner_id"
        " and is_paused = 1",
        now=now,
        account_id=scope.account_id,
        owner_id=owner_id,
    )
