"""The audit log: who decided what, when and from which address. Written with the change, never altered."""

from typing import TypedDict

import msgspec

from postroom import ids
from postroom.accounts import audit_chain
from postroom.accounts.actors import Actor
from postroom.accounts.audit_entries import Entry
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import DAY, MINUTE
from postroom.storage import pages
from postroom.storage.database import Tx, field_names

LIFETIME = 365 * DAY
REFUSED = "refused"  # the action of an attempt that a permission, a scope or a rule did not allow
VALUE_CHARACTERS = 8_000
TARGET_CHARACTERS = 400
AGENT_CHARACTERS = 200
NOT_INSERTED = ("actor", "erased_by")
NEWEST = 300  # entries, whose actors can be chosen on the page


class CameFrom(TypedDict):
    address: str
    user_agent: str
    asked_at: int | None
    trace_id: str
    method: str


def list_actors(tx: Tx, scope: Scope) -> list[Actor]:
    """Return who made the newest entries, by name: to choose from, where all of the log would take long."""
    place = "pod_id = :pod_id" if scope.pod_id is not None else "account_id = :account_id"
    rows = tx.all(
        "select actor_id, max(actor_type) as actor_type, max(actor_name) as actor_name from (select actor_id,"
        f" actor_type, actor_name from audit where {place} order by created_at desc, id desc limit :newest)"
        " as recent group by actor_id order by max(actor_name), actor_id",
        newest=NEWEST,
        **({"account_id": scope.account_id} if scope.pod_id is None else {"pod_id": scope.pod_id}),
    )
    return [Actor(row["actor_type"], row["actor_id"], row["actor_name"]) for row in rows]


def list_actions(tx: Tx, account_id: str) -> list[str]:
    """Return each action in the log of an account, by one step in the index for each."""
    after = "select min(action) from audit where account_id = :account_id and action >"
    rows = tx.all(
        "with recursive found (action) as (select min(action) from audit where account_id = :account_id"
        f" union all select ({after} found.action) from found where found.action is not null)"
        " select action from found where action is not null",
        account_id=account_id,
    )
    return [row["action"] for row in rows]


def record(
    tx: Tx,
    actor: Actor,
    action: str,
    target: str,
    within: Scope,
    now: int,
    *,
    address: str = "",
    before: object = None,
    after: object = None,
    minute: int | None = None,
    user_agent: str = "",
    asked_at: int | None = None,
    trace_id: str = "",
    method: str = "",
) -> str:
    """Called in the transaction of the change. `within` is where it happened: an account, a pod or an inbox.

    Returns its id. With a `minute`, repeats within it are only counted, and the entry joins the chain later.
    """
    entry = Entry(
        id=ids.new(ids.AUDIT, now),
        pod_id=within.pod_id,
        inbox_id=within.inbox_id,
        actor=actor,
        address=address,
        action=action,
        target=target[:TARGET_CHARACTERS],
        before=_encode(before),
        after=_encode(after),
        count=1,
        created_at=now,
        user_agent=user_agent[:AGENT_CHARACTERS],
        asked_at=asked_at,
        trace_id=trace_id or None,
        method=method,
    )
    if minute is None:
        entry = audit_chain.join(tx, within.account_id, entry)
    _insert(tx, entry, within, minute)
    return entry.id


def _insert(tx: Tx, entry: Entry, within: Scope, minute: int | None) -> None:
    tx.run(
        "insert into audit (id, account_id, pod_id, inbox_id, actor_type, actor_id, actor_name, address,"
        " action, target, before, after, count, minute, created_at, user_agent, asked_at, trace_id,"
        " method, sequence,"
        " previous_hash, hash) values (:id, :account_id, :pod_id,"
        " :inbox_id, :actor_type, :actor_id, :actor_name, :address, :action, :target, :before, :after,"
        " :count, :minute, :created_at, :user_agent, :asked_at, :trace_id, :method,"
        " :sequence, :previous_hash, :hash)"
        " on conflict (account_id, actor_id, action, target, minute) where minute is not null"
        " do update set count = audit.count + 1 where audit.sequence is null",
        account_id=within.account_id,
        actor_type=entry.actor.type,
        actor_id=entry.actor.id,
        actor_name=entry.actor.name,
        minute=minute,
        **{name: getattr(entry, name) for name in field_names(Entry) if name not in NOT_INSERTED},
    )


def record_by(
    tx: Tx,
    caller: Caller,
    action: str,
    target: str,
    now: int,
    *,
    within: Scope | None = None,
    before: object = None,
    after: object = None,
) -> None:
    """Record a decision of the caller.

    `within` is where it happened; the default is the caller's whole scope.
    """
    where = within or caller.scope
    record(tx, caller.actor, action, target, where, now, before=before, after=after, **came_from(caller))


def came_from(caller: Caller) -> CameFrom:
    """Return where the caller's request came from, and when it was asked for if it is done later."""
    return CameFrom(
        address=caller.address,
        user_agent=caller.user_agent,
        asked_at=caller.asked_at,
        trace_id=caller.trace_id,
        method=caller.sign_in_method,
    )


def record_refusal(
    tx: Tx, actor: Actor, target: str, within: Scope, now: int, *, address: str = "", after: object = None
) -> None:
    """Record a refused attempt.

    Each actor and target has one row a minute, with a count: repeats cannot fill the log.
    """
    minute = now // MINUTE
    counted = tx.run(
        "update audit set count = count + 1 where account_id = :account_id and actor_id = :actor_id"
        " and action = :action and target = :target and minute = :minute and minute is not null"
        " and sequence is null",
        account_id=within.account_id,
        actor_id=actor.id,
        action=REFUSED,
        target=target[:TARGET_CHARACTERS],
        minute=minute,
    )
    if not counted:
        record(tx, actor, REFUSED, target, within, now, address=address, after=after, minute=minute)


def _encode(value: object) -> str | None:
    """Encode a value for the log. A value that is too long is replaced by its length."""
    if value is None:
        return None
    encoded = msgspec.json.encode(value).decode()
    if len(encoded) <= VALUE_CHARACTERS:
        return encoded
    return msgspec.json.encode({"omitted": f"{len(encoded)} characters"}).decode()


def list_within(
    tx: Tx,
    scope: Scope,
    since: int | None,
    until: int | None,
    actor_id: str | None,
    action: str | None,
    limit: int,
    offset: int,
) -> tuple[list[Entry], int]:
    """List the entries, newest first. The total counts at most a thousand more than the page shows."""
    within = {"account_id": scope.account_id, "pod_id": scope.pod_id, "inbox_id": scope.inbox_id}
    rows, total = pages.newest(
        tx, "audit", limit, offset, since, until, **within, actor_id=actor_id, action=action
    )
    return [Entry.from_row(row) for row in rows], total
