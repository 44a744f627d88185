"""Deliveries: the queue of outgoing mail and webhooks, and every attempt made."""

from collections.abc import Sequence

from msgspec import Struct, structs

from postroom.accounts.scope import Scope
from postroom.mailbox import messages
from postroom.queue.leases import LEASE
from postroom.storage.database import SKIP_LOCKED, Row, Tx, all_of, item_from_row, literal, one_of

MAIL, WEBHOOK, NOTICE = "mail", "webhook", "notice"
BELL = "deliveries"
WEBHOOK_BELL = "webhooks"
HOLDS_BELL = "holds"
NOTICE_BELL = "notices"
BELLS = {MAIL: BELL, WEBHOOK: WEBHOOK_BELL, NOTICE: NOTICE_BELL}
PENDING, DONE, FAILED, CANCELLED, BOUNCED = "pending", "delivered", "failed", "cancelled", "bounced"
CAPTURED = "captured"  # kept here instead of sent
HELD = "held"  # it waits for a person, a time or the end of a pause

LANE_WIDTH = 4  # how many of one lane run at once; the couriers take no more

# The last attempt has no answer yet, and its claim is still renewed.
UNDER_WAY = (
    "due_at > :now and exists (select 1 from attempts where delivery_id = deliveries.id"
    " and number = deliveries.attempts and milliseconds is null)"
)


class Delivery(Struct, frozen=True):
    id: str
    account_id: str
    inbox_id: str
    kind: str
    message_id: str
    event_id: str | None
    target: str
    lane: str
    position: int
    state: str
    attempts: int
    waits_used: int
    due_at: int
    last_code: int | None
    last_reply: str
    created_at: int
    webhook_owner: str | None
    is_replay: bool = False  # a person asked for it again
    tls: str | None = None  # none, opportunistic, mta-sts or dane, at the server that took it
    has_unsubscribe: bool = False  # the mail has an unsubscribe link
    provider: str | None = None  # the organization whose external server ended it

    @classmethod
    def from_row(cls, row: Row) -> "Delivery":
        return item_from_row(
            cls, row, is_replay=bool(row["is_replay"]), has_unsubscribe=bool(row["has_unsubscribe"])
        )


class NewDelivery(Struct, frozen=True, kw_only=True):
    """A delivery not tried yet; the fields are the columns."""

    id: str
    account_id: str
    inbox_id: str
    kind: str
    message_id: str
    event_id: str | None = None
    target: str
    lane: str
    position: int = 0
    webhook_owner: str | None = None
    is_cold: int = 0
    is_replay: int = 0
    has_unsubscribe: int = 0
    state: str = PENDING
    attempts: int = 0
    waits_used: int = 0
    due_at: int
    last_reply: str = ""
    created_at: int


def add_all(tx: Tx, new: Sequence[NewDelivery]) -> None:
    columns = ", ".join(NewDelivery.__struct_fields__)
    tx.many(f"insert into deliveries ({columns}) values :rows", [structs.astuple(each) for each in new])


def claim(tx: Tx, delivery_ids: Sequence[str], now: int) -> list[Delivery]:
    """Claims those that nobody else has claimed or is claiming, for a lease, in the given order."""
    free = _lock_free(tx, delivery_ids, now) if delivery_ids else []
    if not free:
        return []
    is_free, params = one_of("id", free)
    rows = tx.all(
        "update deliveries set due_at = :lease_ends, attempts = attempts + 1, waits_for = null"
        f" where {is_free} returning *",
        lease_ends=now + LEASE,
        **params,
    )
    claimed = {row["id"]: Delivery.from_row(row) for row in rows}
    _record_attempts(tx, list(claimed.values()), now)
    return [claimed[delivery_id] for delivery_id in delivery_ids if delivery_id in claimed]


def _lock_free(tx: Tx, delivery_ids: Sequence[str], now: int) -> list[str]:
    """Lock in a separate statement: within the update PostgreSQL may run it again for each row."""
    is_wanted, wanted = one_of("id", delivery_ids)
    rows = tx.all(
        f"select id from deliveries where {is_wanted} and due_at <= :now and state = 'pending' {SKIP_LOCKED}",
        now=now,
        **wanted,
    )
    return [row["id"] for row in rows]


def _record_attempts(tx: Tx, claimed: Sequence[Delivery], now: int) -> None:
    """Record the attempts before they are made."""
    tx.many(
        "insert into attempts (delivery_id, number, started_at) values :rows",
        [(delivery.id, delivery.attempts, now) for delivery in claimed],
    )


def oldest_due_at(tx: Tx, now: int) -> int:
    """Return when the delivery that has waited longest came due; now, if none waits."""
    oldest = now
    for kind in (MAIL, WEBHOOK):
        row = tx.one(
            f"select min(due_at) as due_at from deliveries where state = 'pending' and kind = {literal(kind)}"
        )
        if row is not None and row["due_at"] is not None:
            oldest = min(oldest, int(row["due_at"]))
    return oldest


def renew(tx: Tx, running: Sequence[Delivery], now: int) -> None:
    """Renew claims of attempts without an answer.

    A delivery that waits for a retry must not come due early.
    """
    for delivery in running:
        tx.run(
            "update deliveries set due_at = :lease_ends where id = :id and attempts = :number and exists"
            " (select 1 from attempts where delivery_id = :id and number = :number and milliseconds is null)",
            lease_ends=now + LEASE,
            id=delivery.id,
            number=delivery.attempts,
        )


def record_answer(
    tx: Tx,
    delivery: Delivery,
    code: int | None,
    answer: str,
    milliseconds: int,
    host: str = "",
    has_tls: bool = False,
    handed_over: tuple[str, str] = ("", ""),
) -> bool:
    """Return False if the attempt has its answer already. `host` took the mail over, with TLS or without.

    `handed_over` is the hash of the bytes that were offered, and their envelope sender.
    """
    changed = tx.run(
        "update attempts set code = :code, answer = :answer, milliseconds = :milliseconds, host = :host,"
        " has_tls = :has_tls, content_hash = :content_hash, mail_from = :mail_from"
        " where delivery_id = :id and number = :number and milliseconds is null",
        code=code,
        answer=answer,
        milliseconds=milliseconds,
        host=host or None,
        has_tls=int(has_tls) if host else None,
        content_hash=handed_over[0] or None,
        mail_from=handed_over[1] if handed_over[0] else None,
        id=delivery.id,
        number=delivery.attempts,
    )
    return changed == 1


def finish(
    tx: Tx,
    delivery: Delivery,
    state: str,
    code: int | None,
    reply: str,
    now: int,
    tls: str = "",
    provider: str = "",
) -> bool:
    """Return False if it was finished, cancelled or retried meanwhile; but an acceptance always counts."""
    is_open = "state in ('pending', 'held') and attempts = :number"
    if state in (DONE, CAPTURED):
        is_open = "state in ('pending', 'held', 'cancelled')"
    changed = tx.run(
        "update deliveries set state = :state, last_code = :code, last_reply = :reply, finished_at = :now,"
        f" tls = :tls, provider = :provider where id = :id and {is_open}",
        state=state,
        code=code,
        reply=reply,
        now=now,
        tls=tls or None,
        provider=provider or None,
        id=delivery.id,
        **({"number": delivery.attempts} if ":number" in is_open else {}),
    )
    return changed == 1


def try_again_at(tx: Tx, delivery: Delivery, due_at: int, code: int | None, reply: str) -> bool:
    """Return False if it has ended or was retried meanwhile."""
    changed = tx.run(
        "update deliveries set due_at = :due_at, waits_used = waits_used + 1, last_code = :code,"
        " last_reply = :reply where id = :id and state = 'pending' and attempts = :number",
        due_at=due_at,
        code=code,
        reply=reply,
        id=delivery.id,
        number=delivery.attempts,
    )
    return changed == 1


def list_of_message(tx: Tx, message_id: str, kind: str = MAIL) -> list[Delivery]:
    rows = tx.all(
        f"select * from deliveries where message_id = :id and kind = {literal(kind)} order by position",
        id=message_id,
    )
    return [Delivery.from_row(row) for row in rows]


def bounced_of(tx: Tx, message_ids: Sequence[str]) -> set[str]:
    """Return the messages that bounced from at least one recipient."""
    if not message_ids:
        return set()
    is_wanted, wanted = one_of("message_id", message_ids)
    rows = tx.all(
        f"select distinct message_id from deliveries where {is_wanted}"
        " and kind = 'mail' and state = 'bounced'",
        **wanted,
    )
    return {row["message_id"] for row in rows}


def list_lost(tx: Tx, message_id: str) -> list[Delivery]:
    """List the recipients that will not get the email."""
    return [delivery for delivery in list_of_message(tx, message_id) if delivery.state in (FAILED, BOUNCED)]


def list_unfinished(tx: Tx, message_id: str) -> list[Delivery]:
    """List the recipients that have neither got the email nor failed."""
    return [delivery for delivery in list_of_message(tx, message_id) if delivery.state in (PENDING, HELD)]


def start_again(tx: Tx, message_id: str, now: int) -> list[str]:
    """Makes failed and waiting mail due now, with all its retries. Returns the addresses."""
    rows = tx.all(
        "update deliveries set state = 'pending', due_at = :now, waits_used = 0, finished_at = null"
        " where message_id = :id and kind = 'mail' and state in ('pending', 'failed')"
        f" and not ({UNDER_WAY}) returning target",
        now=now,
        id=message_id,
    )
    return [row["target"] for row in rows]


def cancel(tx: Tx, message_id: str, now: int) -> int:
    return tx.run(
        "update deliveries set state = 'cancelled', last_reply = 'cancelled', finished_at = :now"
        " where message_id = :id and kind = 'mail' and state in ('pending', 'held')",
        now=now,
        id=message_id,
    )


def hold_back(tx: Tx, message_id: str) -> int:
    """Holds what has not left of an email; an attempt under way may still succeed."""
    return tx.run(
        "update deliveries set state = 'held' where message_id = :id and kind = 'mail' and state = 'pending'",
        id=message_id,
    )


def let_go(tx: Tx, message_id: str, now: int) -> None:
    """Release the deliveries. An attempt under way when the email was held, and still is, keeps its claim."""
    tx.run(
        f"update deliveries set state = 'pending', due_at = case when {UNDER_WAY} then due_at else :now end"
        " where message_id = :id and kind = 'mail' and state = 'held'",
        now=now,
        id=message_id,
    )


def hasten(tx: Tx, scope: Scope, key_id: str, now: int) -> bool:
    """Makes mail of a key that waits for a retry due now. False if there is none."""
    owner, owner_id = scope.owner_of_inboxes
    hastened = tx.run(
        "update deliveries set due_at = :now where kind = 'mail' and state = 'pending' and due_at > :now"
        f" and inbox_id in (select id from inboxes where {owner} = :owner_id)"
        " and message_id in (select id from messages where messages.id = deliveries.message_id"
        f" and key_id = :key_id) and not ({UNDER_WAY})",
        now=now,
        owner_id=owner_id,
        key_id=key_id,
    )
    return hastened > 0


def put_back(tx: Tx, delivery: Delivery, now: int) -> None:
    """Makes a delivery due at once whose attempt was not made."""
    tx.run(
        "update deliveries set due_at = :now where id = :id and state = 'pending' and attempts = :number",
        now=now,
        id=delivery.id,
        number=delivery.attempts,
    )


def put_off(tx: Tx, delivery: Delivery, due_at: int, waits_for: str, reason: str) -> None:
    """Postpones a delivery whose attempt was not made: uses no retry, and records only why the mail waits."""
    is_put_off = tx.run(
        "update deliveries set due_at = :due_at, attempts = attempts - 1, waits_for = :waits_for,"
        " last_code = null, last_reply = :reason"
        " where id = :id and state = 'pending' and attempts = :number",
        due_at=due_at,
        waits_for=waits_for,
        reason=reason,
        id=delivery.id,
        number=delivery.attempts,
    )
    if is_put_off:
        tx.run(
            "delete from attempts where delivery_id = :id and number = :number and milliseconds is null",
            id=delivery.id,
            number=delivery.attempts,
        )


def list_waiting(tx: Tx, scope: Scope, limit: int) -> list[str]:
    """List the messages in scope with at least one recipient that still waits."""
    owner, owner_id = scope.owner_of_inboxes
    rows = tx.all(
        "select distinct deliveries.message_id from inboxes"
        " join deliveries on deliveries.inbox_id = inboxes.id and deliveries.kind = 'mail'"
        f" and deliveries.state = 'pending' where inboxes.{owner} = :owner_id limit :limit",
        owner_id=owner_id,
        limit=limit,
    )
    return [row["message_id"] for row in rows]


def mark_bounced(tx: Tx, delivery: Delivery, reason: str, now: int) -> bool:
    """Return False if it was known already: the same report may come twice."""
    changed = tx.run(
        "update deliveries set state = 'bounced', last_reply = :reason, finished_at = :now"
        " where id = :id and state in ('pending', 'delivered')",
        reason=reason,
        now=now,
        id=delivery.id,
    )
    return changed == 1


def record_last_word(tx: Tx, delivery: Delivery, words: str) -> None:
    """Stores what a server says of an email that is neither delivered nor lost."""
    tx.run(
        "update deliveries set last_reply = :words where id = :id and state in ('pending', 'delivered')",
        words=words,
        id=delivery.id,
    )


def settle(tx: Tx, message_id: str) -> str | None:
    """Sets the message's status from the states of its recipients. Returns it if it changed."""
    states = {delivery.state for delivery in list_of_message(tx, message_id)}
    if states - {PENDING, HELD, DONE, CAPTURED}:
        status = messages.FAILED
    else:
        status = messages.SENT if states <= {DONE, CAPTURED} else messages.PENDING
    return status if messages.set_status(tx, message_id, status) else None


def wrote_to_all(tx: Tx, inbox_id: str, addresses: Sequence[str]) -> bool:
    """Return whether this inbox writes to each of these addresses.

    Mail that a person holds back does not count.
    """
    rows = all_of(
        tx,
        "select distinct target from deliveries where inbox_id = :inbox_id and kind = 'mail' and :wanted"
        " and state not in ('held', 'cancelled')",
        "target",
        addresses,
        inbox_id=inbox_id,
    )
    return {row["target"] for row in rows} >= set(addresses)
