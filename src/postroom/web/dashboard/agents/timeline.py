"""The history of one agent: mail for it, tool calls, drafts, sends, decisions and changes."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from postroom.accounts import audit
from postroom.accounts.audit_entries import AuditEntry
from postroom.accounts.keys import Key
from postroom.accounts.scope import Scope
from postroom.clock import from_iso
from postroom.events import tool_calls
from postroom.events.tool_calls import DONE
from postroom.fields import Span
from postroom.mailbox import drafts, holds, inboxes, keyset_listing, messages
from postroom.mailbox.holds import Hold
from postroom.mailbox.keyset_listing import Wanted
from postroom.mailbox.messages import INBOUND, Message
from postroom.outward import key_activity
from postroom.web.call import Tx
from postroom.web.dashboard.display.people import name_of
from postroom.web.dashboard.display.rendering import spoken
from postroom.web.dashboard.display.signs import HOLDS_OF_WHAT_WENT_ON
from postroom.web.dashboard.page_context import PageContext, plain
from postroom.web.dashboard.settings import audit_targets

EACH = 40
SHOWN = 80


class Step(Struct, frozen=True):
    at: int
    kind: str  # a word: received, called, submitted, draft, decided, changed
    what: str
    path: str = ""
    state: str = ""
    note: str = ""


class MailOutline(Struct, rename="camel", frozen=True):
    from_addr: str = ""
    header_to: str = ""
    subject: str = ""
    created_at: str = ""

    @property
    def title(self) -> str:
        return self.subject or "(no subject)"


class DraftSubject(Struct, frozen=True):
    subject: str | None = None


def read(tx: Tx, context: PageContext, key: Key) -> list[Step]:
    """Return the steps, newest first."""
    found = [*called(tx, key), *sends(tx, key), *changes(tx, context, key)]
    if key.inbox_id is not None:
        found += [*received(tx, key.inbox_id), *written(tx, key.inbox_id, key.id)]
    return sorted(found, key=lambda step: step.at, reverse=True)[:SHOWN]


def sends(tx: Tx, key: Key) -> Iterator[Step]:
    """Includes decisions about held ones."""
    found = messages.list_outlines(tx, key_activity.list_last(tx, key, EACH))
    held = holds.list_of_messages(tx, [message.id for message in found])
    for message in found:
        written = msgspec.json.decode(message.document, type=MailOutline)
        path, hold = f"/app/messages/{message.id}", held.get(message.id)
        title = f"to {name_of(written.header_to)}: {written.title}"
        yield Step(from_iso(written.created_at), "submitted", title, path, state_of(message, hold))
        if hold is not None and hold.decided_at is not None:
            yield decision(hold, hold.decided_at, written.title, path)


def state_of(message: Message, hold: Hold | None) -> str:
    """Return one word for where a submitted message is now."""
    if message.status == messages.PENDING:
        return "sending" if hold is None else hold.state
    if message.status == messages.SENT:
        return "captured" if message.is_captured else "delivered"
    return message.status if hold is None or hold.state in HOLDS_OF_WHAT_WENT_ON else hold.state


def decision(hold: Hold, at: int, title: str, path: str) -> Step:
    who = "" if hold.actor is None else hold.actor.name or hold.actor.type
    return Step(at, "decided", f"{hold.state} by {who}: {title}", path, hold.state, hold.note or "")


def received(tx: Tx, inbox_id: str) -> Iterator[Step]:
    found = keyset_listing.list_messages(tx, inbox_id, Wanted(direction=INBOUND), Span(limit=EACH))
    for message in messages.list_outlines(tx, [place.id for place in found]):
        came = msgspec.json.decode(message.document, type=MailOutline)
        title = f"from {name_of(came.from_addr)}: {came.title}"
        yield Step(from_iso(came.created_at), "received", title, f"/app/messages/{message.id}")


def called(tx: Tx, key: Key) -> Iterator[Step]:
    """Yield the MCP calls. Repeated calls share one row per minute."""
    found = tool_calls.list_last(tx, key.id, EACH)
    of_account = Scope(key.account_id)
    named = [inbox for each in {call.inbox_id for call in found} if (inbox := inboxes.find(tx, each))]
    addresses = {inbox.id: inbox.address for inbox in named if inboxes.is_within(inbox, of_account)}
    for call in found:
        times = f" {call.count} times" if call.count > 1 else ""
        place = f" for {addresses[call.inbox_id]}" if call.inbox_id in addresses else ""
        state = "" if call.outcome == DONE else call.outcome
        yield Step(call.called_at, "called", f"{call.tool}{place}{times}", state=state)


def written(tx: Tx, inbox_id: str, key_id: str) -> Iterator[Step]:
    found, _ = drafts.list_of_inbox(tx, inbox_id, EACH, 0)
    for draft in found.items:
        if draft.actor.id == key_id:
            title = msgspec.json.decode(draft.fields, type=DraftSubject).subject or "(no subject yet)"
            yield Step(draft.updated_at, "draft", title, f"/app/drafts/{draft.id}")


def changes(tx: Tx, context: PageContext, key: Key) -> Iterator[Step]:
    """Yield its entries in the audit log, including refused attempts."""
    scope = Scope(key.account_id)
    found, _ = audit.list_within(tx, scope, None, None, key.id, None, EACH, 0)
    shown = plain([AuditEntry.of(entry) for entry in found])
    targets = audit_targets.describe(tx, scope, shown)
    for entry, target in zip(found, targets, strict=True):
        state = "refused" if entry.action == audit.REFUSED else ""
        yield Step(entry.created_at, "changed", f"{spoken(entry.action)}: {target.label}", target.path, state)
