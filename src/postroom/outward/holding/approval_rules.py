"""Whether a person must approve a send, and why: the rules of its account, pod, inbox and key."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from postroom.accounts.accounts import IS_FULL
from postroom.accounts.keys import Caller
from postroom.accounts.rules import approval, pauses, policy
from postroom.accounts.rules.approval import Conditions
from postroom.accounts.rules.pauses import IS_PAUSED
from postroom.accounts.rules.policy import HAS_POLICY
from postroom.accounts.scope import Scope
from postroom.clock import DAY, start_of_day
from postroom.mailbox import correspondents, documents, messages, threads
from postroom.storage.database import Tx, all_of

# Reasons that a trusted recipient is exempt from. What prompted the agent to write still counts.
LIFTED = frozenset((approval.ALWAYS, approval.STRANGERS, approval.ATTACHMENTS, approval.LINKS))
LEVELS = ("of_account", "of_pod", "of_inbox")


class InboxRules(Struct, frozen=True):
    """What applies to every send of an inbox: approval, pause, policy, quota."""

    levels: tuple[str, ...] = ()
    is_paused: bool = False
    has_policy: bool = False
    is_full: bool = False  # nothing more may be stored
    has_canary: bool = False  # a canary token must not leave
    disclosure: str | None = None  # how an agent's email says that it is one
    guards: tuple[str | None, ...] = ()  # what the origin guard does, of each level

    def ask_nothing(self, caller: Caller) -> bool:
        """Return whether nobody has to approve what the caller sends."""
        return not self.levels and caller.approval is None


class Sending(Struct, frozen=True):
    """What the rules check of one send."""

    caller: Caller
    inbox_id: str
    thread_id: str | None
    addresses: Sequence[str]
    has_links: bool
    has_files: bool
    now: int
    passes_on: Sequence[str] = ()  # messages that it forwards, or whose files it attaches


def read_all(tx: Tx, inbox_ids: Collection[str]) -> dict[str, InboxRules]:
    rows = all_of(
        tx,
        "select inboxes.id, inboxes.approval as of_inbox, inboxes.canary, pods.approval as of_pod,"
        " accounts.approval as of_account, inboxes.origin_guard as guard_of_inbox,"
        " pods.origin_guard as guard_of_pod, accounts.origin_guard as guard_of_account,"
        " coalesce(inboxes.disclosure, pods.disclosure, accounts.disclosure) as disclosure,"
        f" {IS_PAUSED} as is_paused, {HAS_POLICY} as has_policy, {IS_FULL} as is_full"
        " from inboxes join pods on pods.id = inboxes.pod_id"
        " join accounts on accounts.id = inboxes.account_id"
        " where :wanted",
        "inboxes.id",
        sorted(inbox_ids),
    )
    return {
        row["id"]: InboxRules(
            tuple([row[level] for level in LEVELS if row[level] is not None]),
            is_paused=bool(row["is_paused"]) and pauses.is_inbox_paused(tx, row["id"]),
            has_policy=bool(row["has_policy"]),
            is_full=bool(row["is_full"]),
            has_canary=row["canary"] is not None,
            disclosure=row["disclosure"],
            guards=tuple([row[f"guard_{level}"] for level in LEVELS]),
        )
        for row in rows
    }


def conditions(rules: InboxRules, caller: Caller) -> Conditions:
    return approval.add_up((*rules.levels, caller.approval))


def find_reasons(tx: Tx, sending: Sending, rules: InboxRules) -> list[str]:
    """In the order in which the interface lists them; empty: no approval is needed."""
    wanted = conditions(rules, sending.caller)
    reasons = [word for word in approval.WORDS if word in wanted.words and _applies(tx, word, sending)]
    if rules.has_policy and not LIFTED.isdisjoint(reasons) and _is_to_trusted(tx, sending):
        reasons = [word for word in reasons if word not in LIFTED]
    if wanted.over_per_day is not None and _has_sent_today(tx, sending, wanted.over_per_day):
        reasons.append(approval.OVER_PER_DAY)
    return reasons


def _applies(tx: Tx, word: str, sending: Sending) -> bool:
    if word == approval.STRANGERS:
        return _writes_to_strangers(tx, sending)
    if word == approval.ATTACHMENTS:
        return sending.has_files
    if word == approval.LINKS:
        return sending.has_links
    if word == approval.RISK:
        is_risky = sending.thread_id is not None and threads.is_risky(tx, sending.thread_id)
        return is_risky or _passes_on_risk(tx, sending)
    return True


def _passes_on_risk(tx: Tx, sending: Sending) -> bool:
    """Return whether it passes on a received message that is not clean, not judged yet, or deleted."""
    if not sending.passes_on:
        return False
    found = messages.list_outlines(tx, sending.passes_on)
    if len(found) < len(sending.passes_on):
        return True
    passed_on = [documents.decode(message.document) for message in found]
    return any(each.direction == messages.INBOUND and each.verdict != "clean" for each in passed_on)


def _is_to_trusted(tx: Tx, sending: Sending) -> bool:
    row = tx.one("select account_id, pod_id from inboxes where id = :id", id=sending.inbox_id)
    assert row is not None
    inbox = Scope(row["account_id"], row["pod_id"], sending.inbox_id)
    return policy.are_trusted(tx, inbox, sending.addresses)


def _writes_to_strangers(tx: Tx, sending: Sending) -> bool:
    """Return whether a recipient never wrote to this inbox, or only in forged emails."""
    asked = [(sending.inbox_id, address) for address in sending.addresses]
    return len(correspondents.find(tx, asked, only_trusted=True)) < len(set(asked))


def _has_sent_today(tx: Tx, sending: Sending, count: int) -> bool:
    """Return whether `count` sends of this UTC day, without this one, were accepted."""
    if count == 0:
        return True
    row = tx.one(
        "select created_at from messages where inbox_id = :inbox_id and direction = 'outbound'"
        " and created_at >= :today and created_at < :tomorrow"
        " order by created_at desc limit 1 offset :offset",
        inbox_id=sending.inbox_id,
        today=start_of_day(sending.now),
        tomorrow=start_of_day(sending.now) + DAY,
        offset=count - 1,
    )
    return row is not None
