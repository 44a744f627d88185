"""Drafts of /v0: the drafts of /v1, with labels and a client_id."""

from collections.abc import Sequence, Set
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.errors import BadRequest, no_such
from postroom.fields import iso
from postroom.mailbox import documents, drafts, inboxes, labels, messages, raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.operations import drafts as verbs
from postroom.operations.drafts import DraftBody, DraftEdit
from postroom.operations.sending.send import Addresses, read_order
from postroom.outward import fill_from_message
from postroom.outward.send_stages import DraftVersion, Order
from postroom.processes import pools
from postroom.resources import Resources, Tx
from postroom.web.agentmail import names, paging, shapes, showing
from postroom.web.agentmail.messages import own_labels
from postroom.web.agentmail.writing.sending import read_files, read_key, text_of, to_sent
from postroom.web.api import drafts as api
from postroom.web.api.messages import remove_blobs
from postroom.web.api.send import accept_order
from postroom.web.call import Call
from postroom_mail.mime.address import mailbox_of


class NamedMessages(Struct, rename="camel", frozen=True):
    reply_to_message_id: str | None = None
    forward_of: str | None = None


RENAMED = {"to": "to", "cc": "cc", "bcc": "bcc", "subject": "subject", "text": "body", "html": "body_html"}


def show(tx: Tx, found: Sequence[KeptDraft], *, is_item: bool = False) -> list[shapes.Page]:
    files = drafts.list_files(tx, [draft.id for draft in found])
    addresses = inboxes.addresses_of(tx, sorted({draft.inbox_id for draft in found}))
    return [
        show_one(draft, files[draft.id], addresses.get(draft.inbox_id, ""), is_item)
        | named_messages(tx, draft)
        for draft in found
    ]


def named_messages(tx: Tx, draft: KeptDraft) -> shapes.Page:
    """Return the messages that it replies to or forwards, under their /v0 names."""
    fields = msgspec.json.decode(draft.fields, type=NamedMessages)
    named = {"in_reply_to": fields.reply_to_message_id, "forward_of": fields.forward_of}
    return {name: showing.name_by_id(tx, message_id) for name, message_id in named.items() if message_id}


def show_one(draft: KeptDraft, files: Sequence[KeptFile], address: str, is_item: bool) -> shapes.Page:
    shown = verbs.show(draft, list(files))
    item: shapes.Page = {
        "inbox_id": address,
        "draft_id": draft.id,
        "client_id": draft.client_id,
        "labels": labels_of(draft),
        "to": shown.to,
        "cc": shown.cc,
        "bcc": shown.bcc,
        "subject": shown.subject,
        "preview": showing.preview(shown.body or ""),
        "attachments": [showing.show_file(draft.id, number, file) for number, file in enumerate(files)],
        "send_status": status_of(draft),
        "send_at": iso(draft.due_at),
        "updated_at": to_iso(draft.updated_at),
    }
    if is_item:
        return item
    reply_to = [] if shown.reply_to is None else [shown.reply_to]
    texts = {"text": shown.body, "html": shown.body_html, "reply_to": reply_to}
    return {**item, **texts, "created_at": to_iso(draft.created_at)}


def status_of(draft: KeptDraft) -> str | None:
    return None if draft.due_at is None else "scheduled" if draft.failure is None else "failed"


def labels_of(draft: KeptDraft) -> list[str]:
    """Return the labels, with `scheduled` while it has a time to be sent."""
    clock = [showing.SCHEDULED] if status_of(draft) == "scheduled" else []
    return sorted({*draft.labels, *clock})


async def create_draft(call: Call, body: shapes.NewDraft) -> shapes.Page:
    """Create a draft. The same client_id again returns the first one, if it still exists."""
    assert call.inbox is not None
    files = read_files(body.attachments or [])
    if body.in_reply_to is not None and not body.to:
        body = await addressed(call, call.inbox, body.in_reply_to, body)
    return await api.write_with_files(call, files, store, call.inbox.id, body)


async def addressed(call: Call, inbox: Inbox, answered: str, body: shapes.NewDraft) -> shapes.NewDraft:
    """Return the draft with the recipients of the reply, to show whom it goes to."""
    document = await call.resources.db.read(find_document, call.caller, inbox, answered)
    raw = await raw_mails.read(call.resources, document.id, with_trace=False)
    return await pools.READING.run(with_recipients, document, raw, inbox.mailboxes, body)


def with_recipients(document: Document, raw: bytes, own: Set[str], body: shapes.NewDraft) -> shapes.NewDraft:
    to = fill_from_message.who_answers(document, raw, own)
    if not body.reply_all:
        return structs.replace(body, to=list(map(str, to)) or None)
    known = {*own, *(mailbox_of(each.address) for each in to)}
    others = fill_from_message.unknown(
        fill_from_message.writable(", ".join((document.header_to, *document.cc))), known
    )
    return structs.replace(body, to=list(map(str, to)) or None, cc=body.cc or list(map(str, others)) or None)


def find_document(tx: Tx, caller: Caller, inbox: Inbox, name: str) -> Document:
    return documents.decode(messages.get(tx, caller.scope, find_shown(tx, caller, inbox, name)).document)


def find_shown(tx: Tx, caller: Caller, inbox: Inbox, name: str) -> str:
    """Return the id of a message that the key may see.

    A draft reveals its sender, and quotes it when sent.
    """
    message_id = names.find_message(tx, inbox, name)
    names.require_shown(tx, caller, messages.get_outline(tx, inbox.scope, message_id))
    return message_id


def store(
    tx: Tx, caller: Caller, inbox_id: str, body: shapes.NewDraft, files: list[KeptFile], now: int
) -> shapes.Page:
    inbox = inboxes.lock(tx, inbox_id)
    known = None if body.client_id is None else drafts.find_by_client_id(tx, inbox.id, body.client_id)
    if known is not None:
        return show(tx, [known])[0]
    given = structs.replace(to_body(body), **messages_of(tx, caller, inbox, body))
    draft = verbs.create_draft(tx, caller, inbox.id, verbs.read_fields(given), files, now).draft
    drafts.name(tx, draft.id, body.client_id, own_labels(body.labels, "labels"))
    if body.send_at is not None:
        verbs.schedule_draft(tx, caller, draft.id, body.send_at, now)
    return get_draft(tx, caller, draft.id)


def messages_of(tx: Tx, caller: Caller, inbox: Inbox, body: shapes.NewDraft) -> dict[str, Any]:
    if body.in_reply_to is not None and body.forward_of is not None:
        raise BadRequest("An email is either a reply or a forward.", field="forward_of")
    if body.in_reply_to is not None:
        answered = find_shown(tx, caller, inbox, body.in_reply_to)
        return {"reply_to_message_id": answered, "reply_all": bool(body.reply_all)}
    if body.forward_of is not None:
        return {"forward_of": find_shown(tx, caller, inbox, body.forward_of)}
    return {}


def to_body(body: shapes.NewDraft | shapes.DraftChange) -> DraftBody:
    """Return the body. Null or empty fields are missing or cleared."""
    named = {
        ours: getattr(body, theirs) or None
        for theirs, ours in RENAMED.items()
        if getattr(body, theirs) is not UNSET
    }
    if body.reply_to is not UNSET:
        named["reply_to"] = one_address(body.reply_to)
    return DraftBody(**named)


def one_address(given: Addresses | None) -> str | None:
    found = [given] if isinstance(given, str) else list(given or [])
    if len(found) > 1:
        raise BadRequest("reply_to of a draft must be one address.", field="reply_to")
    return found[0] if found else None


def list_drafts(tx: Tx, place: Scope, query: shapes.DraftQuery) -> shapes.Page:
    found = drafts.list_span(tx, place, paging.span_of(query))
    some, behind = paging.cut(found.items, query.limit, paging.place_of)
    if found.is_cut and behind is None:
        behind = paging.place_of(some[-1])
    asked = {labels.fold(label) for label in query.labels}
    kept = [draft for draft in some if asked <= set(labels_of(draft))]
    return paging.page("drafts", show(tx, kept, is_item=True), query.limit, behind)


def get_draft(tx: Tx, caller: Caller, draft_id: str) -> shapes.Page:
    return show(tx, [drafts.get(tx, caller.scope, draft_id)])[0]


async def change_draft(call: Call, draft_id: str, body: shapes.DraftChange) -> shapes.Page:
    files = read_files(body.add_attachments or [])
    shown, unneeded = await api.write_with_files(call, files, change, draft_id, body)
    await remove_blobs(call.resources, unneeded)
    return shown


def change(
    tx: Tx, caller: Caller, draft_id: str, body: shapes.DraftChange, files: list[KeptFile], now: int
) -> tuple[shapes.Page, list[str]]:
    """Change a draft. Return it with the blobs that are no longer needed."""
    edit = DraftEdit(
        verbs.read_fields(to_body(body)),
        removed_files=[find_file(tx, draft_id, name)[1].filename for name in body.remove_attachments or ()],
        added_labels=own_labels(body.add_labels, "add_labels"),
        removed_labels=own_labels(body.remove_labels, "remove_labels"),
    )
    _, unneeded = verbs.change_draft(tx, caller, draft_id, None, edit, files, now)
    if body.send_at is not UNSET:
        verbs.schedule_draft(tx, caller, draft_id, body.send_at, now)
    return get_draft(tx, caller, draft_id), unneeded


def get_draft_file(
    tx: Tx, caller: Caller, draft_id: str, attachment_id: str, links: Links
) -> shapes.ShownFile:
    number, file = find_file(tx, draft_id, attachment_id)
    return showing.show_link(tx, draft_id, number, file, links)


def find_file(tx: Tx, draft_id: str, attachment_id: str) -> tuple[int, KeptFile]:
    for number, file in enumerate(drafts.list_files(tx, [draft_id])[draft_id]):
        if attachment_id == showing.file_id(draft_id, number):
            return number, file
    raise no_such("attachment")


async def send_draft(call: Call, draft_id: str, body: shapes.LabelChange) -> shapes.SentMessage:
    """Sends it with its labels, changed as the body says."""
    found = await call.resources.db.read(verbs.read_draft, call.caller, draft_id)
    added, removed = (
        own_labels(body.add_labels, "add_labels"),
        own_labels(body.remove_labels, "remove_labels"),
    )
    own = verbs.changed_labels(found.draft, added, removed)
    order = await prepare(call.resources, found.draft, found.files, read_key(call), own)
    answer = await accept_order(call, order)
    if not answer.is_replay:
        await remove_blobs(call.resources, [file.blob for file in found.files])
    return to_sent(answer)


async def prepare(
    resources: Resources, draft: KeptDraft, files: Sequence[KeptFile], key: str, own: Sequence[str]
) -> Order:
    order = await pools.COMPOSING.run(to_order, draft, key, own)
    return await api.with_files(resources, order, files)


def to_order(draft: KeptDraft, key: str, own: Sequence[str]) -> Order:
    """Sends at once, even if scheduled. A missing text is made from the HTML."""
    fields = msgspec.json.decode(draft.fields)
    fields.pop("sendAt", None)
    fields["body"] = text_of(fields.get("body"), fields.get("bodyHtml")) or " "
    body = verbs.to_send_body(replace(draft, fields=msgspec.json.encode(fields)))
    order = read_order(draft.inbox_id, key, api.hash_of(draft.id), body, needs_subject=False)
    return structs.replace(
        order,
        draft=DraftVersion(draft.id, draft.version),
        labels=tuple(own),
        copies_sender=False,
    )
