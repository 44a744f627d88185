"""Applies rules to messages that have just been let in, in the transaction that does so.

What a rule did is kept in the message. A rule that fails is switched off and announced; the message stays.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from postroom.accounts import actors, audit
from postroom.accounts.scope import Scope
from postroom.events import notifications
from postroom.events.announce import announce_notice
from postroom.events.kinds import RULE_DISABLED
from postroom.events.notice_subjects import EventRule
from postroom.events.payload import SystemNotice
from postroom.inward.rules import actions
from postroom.inward.rules.actions import HIDING, Arrived, RuleFailed
from postroom.inward.rules.matching import Book, Books, matching
from postroom.mailbox import messages, rules
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document, RuleStep, RuleTrace
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.rules import Rule
from postroom.mailbox.search import contents
from postroom.mailbox.search.message_facts import Facts
from postroom.processes.analysis import Analysis
from postroom.storage.database import Tx

BOOKS = Books()
PAGE = "/app/settings/rules"


class LetIn(Struct, frozen=True):
    """A message that is in its inbox and its thread now."""

    inbox: Inbox
    document: Document
    files: Sequence[Attachment]
    came_at: int
    size_bytes: int | None = None


class Ruled(Struct, frozen=True):
    """The message with its trail. A hidden one has no event."""

    document: Document
    is_hidden: bool = False


def apply_all(tx: Tx, let_in: Sequence[LetIn], now: int) -> list[Ruled]:
    """Apply the rules to all. Accounts without rules cost one statement."""
    known = rules.versions(tx, sorted({each.inbox.account_id for each in let_in})) if let_in else {}
    return [
        Ruled(each.document)
        if each.inbox.account_id not in known
        else _apply(tx, each, BOOKS.of_inbox(tx, each.inbox.scope, known[each.inbox.account_id]), now)
        for each in let_in
    ]


def _apply(tx: Tx, one: LetIn, book: Book, now: int) -> Ruled:
    for rule in book.unreadable:
        disable(tx, rule, "This version of the server cannot read its search.", now)
    if not book.rules:
        return Ruled(one.document)
    facts = Facts(one.document, one.came_at, bool(one.files), one.size_bytes)
    mail = contents.to_searchable(one.document, one.files)
    nothing: list[Rule] = []
    found = Analysis().run("rules", nothing, lambda: list(matching(tx, book, mail, facts)))
    if not found:
        return Ruled(one.document)
    arrived = Arrived(one.inbox, one.document, facts, now)
    traces = [_carry_out(tx, rule, arrived) for rule in found]
    rules.record_matches(tx, [(rule.id, one.document.id, now) for rule in found])
    document = structs.replace(one.document, rules=traces)
    messages.set_document(tx, document)
    return Ruled(document, any(_hides(trace) for trace in traces))


def _hides(trace: RuleTrace) -> bool:
    return any(step.type in HIDING and step.outcome in ("done", "queued") for step in trace.actions)


def _carry_out(tx: Tx, rule: Rule, arrived: Arrived) -> RuleTrace:
    """Carry out the actions of a rule, up to the first that fails."""
    steps: list[RuleStep] = []
    for place, action in enumerate(rule.actions):
        try:
            steps.append(actions.carry_out(tx, rule, place, arrived))
        except RuleFailed as failure:
            steps.append(RuleStep(action.type, "failed", str(failure)))
            disable(tx, rule, str(failure), arrived.now)
            break
    return RuleTrace(rule.id, rule.name, steps)


def disable(tx: Tx, rule: Rule, reason: str, now: int) -> None:
    """Switches a rule off, with an event and an entry in the audit log. Once, by the first that notices."""
    if not rules.disable(tx, rule, reason):
        return
    place = scope_of(rule)
    announce_notice(
        tx,
        SystemNotice(
            rule.account_id,
            place.pod_id or "",
            RULE_DISABLED,
            now,
            inbox_id=place.inbox_id or "",
            rule=EventRule(rule.id, rule.name, reason),
        ),
    )
    notifications.notify(tx, rule.account_id, notifications.RULE_DISABLED, rule.name, PAGE, now)
    audit.record(tx, actors.THE_SERVER, RULE_DISABLED, rule.id, place, now, after={"reason": reason})


def scope_of(rule: Rule) -> Scope:
    """Return where a rule is: its account, its pod or its inbox, without the pod of that."""
    kind = rule.owner.partition("_")[0]
    return Scope(
        rule.account_id,
        rule.owner if kind == "pod" else None,
        rule.owner if kind == "inb" else None,
    )
