"""What the actions of a rule do to a message, in the transaction that lets it in."""

from collections.abc import Callable, Mapping

from msgspec import UNSET, Struct

from postroom.accounts.actors import RULE, Actor
from postroom.accounts.people import users
from postroom.clock import DAY, start_of_day
from postroom.events import thread_events
from postroom.events.announce import announce_notice
from postroom.events.kinds import THREAD_ASSIGNED, THREAD_DONE, THREAD_SNOOZED
from postroom.inward.rules import tasks
from postroom.limits import LABELS_OF_A_THREAD
from postroom.mailbox import labels, thread_states, threads, trash
from postroom.mailbox.documents import Document, RuleStep
from postroom.mailbox.folders import flags, uid_map
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.rules import LATER, Rule, RuleAction
from postroom.mailbox.search.message_facts import Facts
from postroom.mailbox.thread_work import DONE, SNOOZED
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx, insert_new, one_of
from postroom_mail.mime.address import mailbox_of, normalize, parse_list

FLAGGED = "flagged"  # the label next to the flag of mail clients
LOOP_FIELD = "x-loop"
HIDING = ("silent", "trash", "junk")  # a message that a rule hides has no event


class RuleFailed(Exception):
    """The rule cannot do what it says, now or later: it is switched off with this reason."""


class Arrived(Struct, frozen=True):
    """A message that has just been let into its inbox, and what is known of it."""

    inbox: Inbox
    document: Document
    facts: Facts
    now: int

    @property
    def own_addresses(self) -> frozenset[str]:
        return self.inbox.mailboxes


def carry_out(tx: Tx, rule: Rule, place: int, arrived: Arrived) -> RuleStep:
    """Does an action, or queues it. Raises RuleFailed."""
    action = rule.actions[place]
    if action.type not in LATER:
        reason = _AT_ONCE[action.type](tx, rule, action, arrived)
        return RuleStep(action.type, "skipped" if reason else "done", reason or UNSET)
    reason = why_not(tx, action, arrived)
    if reason is None and action.type == "reply" and not _is_first_reply_today(tx, arrived):
        reason = "The sender got an automatic answer of this inbox today."
    if reason is not None:
        return RuleStep(action.type, "skipped", reason)
    tasks.add(tx, rule, place, arrived.inbox.id, arrived.document.id, arrived.now)
    return RuleStep(action.type, "queued")


def why_not(tx: Tx, action: RuleAction, arrived: Arrived) -> str | None:
    """Return why a message is not sent on, copied or answered; None if nothing speaks against it.

    Raises RuleFailed for a message that has been here before: the rule would send it round and round.
    """
    if action.type in ("webhook", "judge", "junk"):
        return None
    document = arrived.document
    if document.copied_from is not UNSET:
        return "A rule copied it here: copies are not sent or copied again."
    if action.type == "copyTo":
        return "It is in this inbox." if action.inbox_id == arrived.inbox.id else None
    if document.verdict == "malicious":
        return "Its verdict is malicious."
    if action.type == "reply":
        return _why_no_reply(arrived)
    return _why_not_forwarded(tx, action, arrived)


def _why_no_reply(arrived: Arrived) -> str | None:
    """Return why there is no reply: to a machine, a list, a forged or unreadable sender (RFC 3834, 2)."""
    document = arrived.document
    if not document.auto_replyable:
        return "It is automated, from a list, or its sender takes no answers."
    if document.auth is not None and document.auth.dmarc == "fail":
        return "Its sender may be forged."
    if _senders(document) & arrived.own_addresses:
        return "It is from this inbox itself."
    return None


def _why_not_forwarded(tx: Tx, action: RuleAction, arrived: Arrived) -> str | None:
    own, target = arrived.own_addresses, mailbox_of(action.to or "")
    passed = {
        mailbox_of(value.decode(errors="replace").strip()) for value in arrived.facts.field(tx, LOOP_FIELD)
    }
    if passed & own:
        raise RuleFailed("It forwarded an email that came back: forwarding it again would be a loop.")
    if target in own:
        raise RuleFailed("It forwards to its own inbox.")
    if _senders(arrived.document) & (own | {target}):
        return "It is from the address that it would go to, or from this inbox."
    if arrived.document.category == "bounce":
        return "It is a bounce."
    return None


def _senders(document: Document) -> set[str]:
    return {mailbox_of(each.address) for each in parse_list(document.from_addr)[:2] if each.address}


def _is_first_reply_today(tx: Tx, arrived: Arrived) -> bool:
    sender = next(iter(parse_list(arrived.document.from_addr)), None)
    address = normalize(sender.address) if sender else ""
    day = start_of_day(arrived.now)
    return insert_new(tx, "rule_replies", inbox_id=arrived.inbox.id, address=address, day=day) == 1


def actor_of(rule: Rule) -> Actor:
    return Actor(RULE, rule.id, rule.name)


def _thread(tx: Tx, arrived: Arrived) -> Thread:
    return threads.get(tx, arrived.inbox.scope, arrived.document.thread_id)


def _label(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> str | None:
    return _put_label(tx, action.label or "", arrived)


def _put_label(tx: Tx, label: str, arrived: Arrived) -> str | None:
    thread_id = arrived.document.thread_id
    there = {labels.fold(each) for each in labels.of_threads(tx, [thread_id]).get(thread_id, ())}
    if labels.fold(label) not in there and len(there) >= LABELS_OF_A_THREAD:
        return f"The thread has {LABELS_OF_A_THREAD} labels."
    labels.change_of_messages(tx, _thread(tx, arrived), [arrived.document.id], [label], (), arrived.now)
    return None


def _archive(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    _set_state(tx, rule, arrived, DONE, None, THREAD_DONE)


def _snooze(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    until = arrived.now + (action.days or 1) * DAY
    _set_state(tx, rule, arrived, SNOOZED, until, THREAD_SNOOZED)


def _set_state(tx: Tx, rule: Rule, arrived: Arrived, state: int, until: int | None, kind: str) -> None:
    changed = thread_states.put(tx, _thread(tx, arrived), state, until)
    announce_notice(tx, thread_events.notice(kind, changed, arrived.now, actor=actor_of(rule)))


def _mark_read(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    labels.mark_seen(tx, _thread(tx, arrived), [arrived.document.id], True, arrived.now)


def _flag(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> str | None:
    r"""Sets \Flagged where mail clients have opened the inbox, and the label everywhere."""
    inbox_id, message_id = arrived.inbox.id, arrived.document.id
    if uid_map.find_opened(tx, [inbox_id]):
        is_asked, asked = one_of("message_id", [message_id])
        row = tx.one(f"select is_seen, flags from mail_flags where {is_asked}", **asked)
        there = flags.of_row(row["is_seen"], row["flags"], 0) if row else frozenset()
        flags.set_all(tx, inbox_id, uid_map.INBOX, {message_id: there | {"\\Flagged"}})
    return _put_label(tx, FLAGGED, arrived)


def _assign(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    user, thread = users.find(tx, action.assignee_id or ""), _thread(tx, arrived)
    if user is None or not thread_states.may_see(user, thread):
        raise RuleFailed("It assigns threads to a user who is gone or does not see the inbox.")
    changed = thread_states.assign(tx, thread, user.id)
    announce_notice(tx, thread_events.notice(THREAD_ASSIGNED, changed, arrived.now, actor=actor_of(rule)))


def _trash(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    trash.add(tx, arrived.inbox.id, [arrived.document.id], arrived.now)


def _silent(tx: Tx, rule: Rule, action: RuleAction, arrived: Arrived) -> None:
    """Do nothing and announce no event."""


_AT_ONCE: Mapping[str, Callable[[Tx, Rule, RuleAction, Arrived], str | None]] = {
    "label": _label,
    "archive": _archive,
    "markRead": _mark_read,
    "flag": _flag,
    "assign": _assign,
    "snooze": _snooze,
    "trash": _trash,
    "silent": _silent,
}
