"""Reputation of an inbox: how much of its email bounced or had complaints, and when it is suspended."""

from msgspec import Struct

from postroom.accounts import audit
from postroom.accounts.actors import THE_SERVER, Actor
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.config import Config
from postroom.events import kinds, notifications
from postroom.events.announce import announce_notice
from postroom.events.payload import SystemNotice
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.outward import simulator
from postroom.outward.holding import stop
from postroom.outward.holding.decide import Decision
from postroom.storage.database import Tx

LOOKED_BACK = 7 * DAY
COUNTED = 10_000  # events of a kind at most
INBOXES_AT_ONCE = 100


class Reputation(Struct, frozen=True):
    """Emails tried since a moment: how many were refused, at once or later, and how many had complaints.

    Mail only to the simulator does not count.
    """

    tried: int
    bounced: int
    complained: int


def list_harmed(tx: Tx, since: int) -> list[str]:
    """List the inboxes with mail that bounced, failed or had complaints since a moment."""
    rows = tx.all(
        "select distinct inbox_id from events where created_at >= :since"
        " and kind in (:bounced, :failed, :complained) order by inbox_id limit :limit",
        since=since,
        bounced=kinds.MESSAGE_BOUNCED,
        failed=kinds.MESSAGE_FAILED,
        complained=kinds.MESSAGE_COMPLAINED,
        limit=INBOXES_AT_ONCE,
    )
    return [row["inbox_id"] for row in rows]


def measure(tx: Tx, inbox_id: str, since: int, service_domain: str) -> Reputation:
    simulated = simulator.domain_of(service_domain)
    sent = _count(tx, inbox_id, kinds.MESSAGE_SENT, since, simulated)
    returned = _count(tx, inbox_id, kinds.MESSAGE_BOUNCED, since, simulated)
    refused = _count_refused(tx, inbox_id, since, simulated)
    complained = _count(tx, inbox_id, kinds.MESSAGE_COMPLAINED, since, simulated)
    return Reputation(sent + refused, returned + refused, complained)


def _count(tx: Tx, inbox_id: str, kind: str, since: int, simulated: str) -> int:
    row = tx.one(
        "select count(*) as number from (select message_id from events where inbox_id = :inbox_id"
        " and kind = :kind and created_at >= :since order by position desc limit :most) as told"
        " where exists (select 1 from deliveries where deliveries.message_id = told.message_id"
        " and deliveries.kind = 'mail' and deliveries.lane <> :simulated)",
        inbox_id=inbox_id,
        kind=kind,
        since=since,
        most=COUNTED,
        simulated=simulated,
    )
    return int(row["number"]) if row else 0


def _count_refused(tx: Tx, inbox_id: str, since: int, simulated: str) -> int:
    """Count what servers refused: failures without an answer say nothing about the inbox."""
    row = tx.one(
        "select count(*) as number from (select distinct message_id from events where inbox_id = :inbox_id"
        " and kind = :kind and created_at >= :since limit :most) as told"
        " join deliveries on deliveries.message_id = told.message_id"
        " where deliveries.kind = 'mail' and deliveries.state = 'failed' and deliveries.last_code >= 500"
        " and deliveries.lane <> :simulated",
        simulated=simulated,
        inbox_id=inbox_id,
        kind=kinds.MESSAGE_FAILED,
        since=since,
        most=COUNTED,
    )
    return int(row["number"]) if row else 0


def find_fault(found: Reputation, config: Config) -> str | None:
    """Return why an inbox should be suspended; None if it may go on."""
    if found.tried < config.suspend_after:
        return None
    shares = (
        (found.bounced, config.suspend_bounce_percent, "bounced"),
        (found.complained, config.suspend_complaint_percent, "were reported as spam"),
    )
    for number, percent, what in shares:
        if percent and number * 100 > percent * found.tried:
            return f"{number} of {found.tried} emails of the last 7 days {what}; the limit is {percent:g} %."
    return None


def check_inbox(tx: Tx, inbox_id: str, config: Config, now: int) -> None:
    """Suspends it if its email does harm, once, until a person ends that."""
    inbox = inboxes.find(tx, inbox_id)
    if inbox is None or pauses.find(tx, inbox.id) is not None:
        return
    since = max(now - LOOKED_BACK, _reactivated_at(tx, inbox.id) + 1)
    found = measure(tx, inbox.id, since, config.domain)
    fault = find_fault(found, config)
    if fault is not None:
        suspend(tx, inbox, fault, config.base_url, now)


def _reactivated_at(tx: Tx, inbox_id: str) -> int:
    row = tx.one("select reactivated_at from inboxes where id = :id", id=inbox_id)
    return int(row["reactivated_at"]) if row else 0


def suspend(tx: Tx, inbox: Inbox, reason: str, base_url: str, now: int) -> None:
    stop.begin_pause(tx, inbox.scope, Decision(THE_SERVER, base_url, now), reason)
    audit.record(tx, THE_SERVER, kinds.INBOX_SUSPENDED, inbox.id, inbox.scope, now, after={"reason": reason})
    _emit(tx, inbox.scope, kinds.INBOX_SUSPENDED, reason, THE_SERVER, now)
    link = f"{base_url}/app/inboxes/{inbox.id}"
    subject = f"{inbox.address} is suspended: {reason}"
    notifications.notify(tx, inbox.account_id, notifications.PAUSED, subject, link, now)


def reactivate(tx: Tx, within: Scope, reason: str, actor: Actor, now: int) -> None:
    """Reactivate an inbox. A person has ended the pause that the server began: counting starts again."""
    assert within.inbox_id is not None
    tx.run("update inboxes set reactivated_at = :now where id = :id", now=now, id=within.inbox_id)
    _emit(tx, within, kinds.INBOX_REACTIVATED, reason, actor, now)


def _emit(tx: Tx, within: Scope, kind: str, reason: str, actor: Actor, now: int) -> None:
    assert within.inbox_id is not None
    announce_notice(
        tx,
        SystemNotice(
            within.account_id, within.pod_id or "", kind, now, within.inbox_id, reason=reason, actor=actor
        ),
    )
