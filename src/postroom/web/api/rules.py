"""Try a rule on the last messages before it is saved."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.clock import to_iso
from postroom.errors import BadRequest, NotFound, Unavailable
from postroom.fields import Timestamp
from postroom.inward.rules import actions, matching
from postroom.inward.rules.actions import Arrived, RuleFailed
from postroom.limits import RULE_TEST_MESSAGES
from postroom.mailbox import attachments, inboxes, messages
from postroom.mailbox.documents import Document, RuleStep
from postroom.mailbox.messages import Message
from postroom.mailbox.rules import LATER, RuleAction
from postroom.mailbox.search import contents, message_facts, message_search
from postroom.operations.rules import RuleTrial, require_valid
from postroom.resources import Overdue
from postroom.web.call import Call, Tx

SHOWN = 20
READ_TOGETHER = 50
SECONDS = 10.0


class TriedMessage(Struct, rename="camel", frozen=True):
    """What the rule would have done to a message; `skipped` says what it would have left out, and why."""

    id: str
    thread_id: str
    inbox_id: str
    from_addr: str
    subject: str
    created_at: Timestamp
    actions: list[RuleStep]


class TriedRule(Struct, rename="camel", frozen=True):
    """How many of the examined messages match; the newest 20 of them. Nothing was changed."""

    matched: int
    examined: Annotated[int, Meta(description="The last 1,000 received messages, or all.")]
    messages: list[TriedMessage]


async def try_rule(call: Call, body: RuleTrial) -> TriedRule:
    """Try a rule on the last 1,000 received messages; nothing is changed"""
    try:
        return await call.resources.db.read_long(try_on_messages, SECONDS, call, body)
    except Overdue:
        raise Unavailable("Trying this rule takes too long. Give an inbox.", retry_after=1) from None


def try_on_messages(tx: Tx, call: Call, body: RuleTrial) -> TriedRule:
    place = call.scope
    if body.inbox_id is not None:
        try:
            place = inboxes.get(tx, call.scope, body.inbox_id).scope
        except NotFound:
            raise BadRequest(
                "inboxId is not an inbox of this key. GET /v1/inboxes lists them.", field="inboxId"
            ) from None
    require_valid(tx, call.caller, place, body.query, body.actions)
    asked = message_search.parse(body.query, "query")
    asks_header = any(each.name == "header" for group in asked.filters for each in group)
    recent = message_facts.list_newest(tx, place, RULE_TEST_MESSAGES)
    matched, shown = 0, list[TriedMessage]()
    for start in range(0, len(recent), READ_TOGETHER):
        found = messages.list_by_ids(tx, recent[start : start + READ_TOGETHER])
        facts = message_facts.read_facts(tx, [each.id for each in found], asks_header)
        files = attachments.list_of_messages(tx, [each.id for each in found if each.has_attachments])
        for message in found:
            known = facts[message.id]
            mail = contents.to_searchable(known.document, files.get(message.id, ()))
            if not matching.matches(tx, asked, mail, known):
                continue
            matched += 1
            if len(shown) < SHOWN:
                shown.append(_show(tx, call, message, known, body.actions))
    return TriedRule(matched, len(recent), shown)


def _show(
    tx: Tx, call: Call, message: Message, facts: message_facts.Facts, wanted: list[RuleAction]
) -> TriedMessage:
    document: Document = facts.document
    inbox = inboxes.get(tx, call.scope, document.inbox_id)
    arrived = Arrived(inbox, document, facts, call.now())
    return TriedMessage(
        id=document.id,
        thread_id=document.thread_id,
        inbox_id=document.inbox_id,
        from_addr=document.from_addr,
        subject=document.subject,
        created_at=to_iso(message.created_at),
        actions=[_step(tx, each, arrived) for each in wanted],
    )


def _step(tx: Tx, action: RuleAction, arrived: Arrived) -> RuleStep:
    if action.type not in LATER:
        return RuleStep(action.type, "done")
    try:
        reason = actions.why_not(tx, action, arrived)
    except RuleFailed as failure:
        return RuleStep(action.type, "failed", str(failure))
    return RuleStep(action.type, "done") if reason is None else RuleStep(action.type, "skipped", reason)
