"""Drafts of /v0: the drafts of the interface, with labels and a name of the client's."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.permissions import require_word
from postroom.accounts.reach import Reach
from postroom.clock import to_iso
from postroom.errors import BadRequest, NotFound
from postroom.fields import iso
from postroom.mailbox import drafts, inboxes, labels
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.outward.orders import (
    DraftVersion,
    Order,
    parse_moment,
    require_ahead,
    require_files_fit,
)
from postroom.processes import pools
from postroom.resources import Resources, Tx
from postroom.web.agentmail import names, paging, shapes, showing
from postroom.web.agentmail.messages import own_labels
from postroom.web.agentmail.writing.sending import read_files, read_key, text_of, to_sent
from postroom.web.api.mailbox.messages import remove_blobs
from postroom.web.api.outward import drafts as verbs
from postroom.web.api.outward.send import accept_order
from postroom.web.call import Call
from postroom.web.interface.bodies import draft_body
from postroom.web.interface.bodies.draft_body import DraftBody
from postroom.web.interface.bodies.send_body import Addresses, read_order


class SpokenOf(Struct, rename="camel", frozen=True):
    reply_to_message_id: str | None = None
    forward_of: str | None = None


RENAMED = {"to": "to", "cc": "cc", "bcc": "bcc", "subject": "subject", "text": "body", "html": "body_html"}


def show(tx: Tx, found: Sequence[KeptDraft], *, is_item: bool = False) -> list[shapes.Page]:
    files = drafts.list_files(tx, [draft.id for draft in found])
    addresses = inboxes.addresses_of(tx, sorted({draft.inbox_id for draft in found}))
    return [
        show_one(draft, files[draft.id], addresses.get(draft.inbox_id, ""), is_item) | spoken_of(tx, draft)
        for draft in found
    ]


def spoken_of(tx: Tx, draft: KeptDraft) -> shapes.Page:
    """The messages that it answers or passes on, by the names that they have there."""
    fields = msgspec.json.decode(draft.fields, type=SpokenOf)
    named = {"in_reply_to": fields.reply_to_message_id, "forward_of": fields.forward_of}
    return {name: showing.name_by_id(tx, message_id) for name, message_id in named.items() if message_id}


def show_one(draft: KeptDraft, files: Sequence[KeptFile], address: str, is_item: bool) -> shapes.Page:
    shown = draft_body.show(draft, list(files))
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
    """`scheduled` while it is on the clock."""
    clock = [showing.SCHEDULED] if status_of(draft) == "scheduled" else []
    return sorted({*draft.labels, *clock})


async def create_draft(call: Call, body: shapes.NewDraft) -> shapes.Page:
    """The same client_id again gives the first one, if it is still there."""
    files = read_files(body.attachments or [])
    return await verbs.write_with_files(call.resources, files, partial(store, call=call, body=body))


def store(tx: Tx, files: list[KeptFile], call: Call, body: shapes.NewDraft) -> shapes.Page:
    assert call.inbox is not None
    inbox = inboxes.lock(tx, call.inbox.id)
    known = None if body.client_id is None else drafts.find_by_client_id(tx, inbox.id, body.client_id)
    if known is not None:
        return show(tx, [known])[0]
    given = structs.replace(to_body(body), **messages_of(tx, inbox, body))
    fields = draft_body.merge(b"{}", draft_body.read_fields(given))
    draft = drafts.add(tx, inbox.id, fields, files, call.caller.actor, call.now())
    own = own_labels(body.labels, "labels")
    drafts.name(tx, draft.id, body.client_id, own)
    schedule(tx, call, draft, UNSET if body.send_at is None else body.send_at)
    return show(tx, [drafts.get(tx, inbox.reach, draft.id)])[0]


def messages_of(tx: Tx, inbox: Inbox, body: shapes.NewDraft) -> dict[str, Any]:
    if body.in_reply_to is not None and body.forward_of is not None:
        raise BadRequest("A mail is either an answer or a forward.", field="forward_of")
    if body.in_reply_to is not None:
        answered = names.find_message(tx, inbox, body.in_reply_to)
        return {"reply_to_message_id": answered, "reply_all": bool(body.reply_all)}
    if body.forward_of is not None:
        return {"forward_of": names.find_message(tx, inbox, body.forward_of)}
    return {}


def to_body(body: shapes.NewDraft | shapes.DraftChange) -> DraftBody:
    """What is null or empty is not there yet, or is cleared."""
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
        raise BadRequest("reply_to of a draft is one address.", field="reply_to")
    return found[0] if found else None


def schedule(tx: Tx, call: Call, draft: KeptDraft, send_at: str | UnsetType | None) -> None:
    """From then on it goes by itself; null takes it off the clock. Only for whoever may send."""
    if send_at is UNSET:
        return
    due_at = None if send_at is None else parse_moment(send_at)
    if due_at is not None:
        require_word(call.caller.words, "draft_send")
        require_ahead(due_at, call.now())
    drafts.set_fields(tx, draft.id, draft_body.merge(draft.fields, {"sendAt": send_at}))
    drafts.put_on_clock(tx, draft.id, due_at, call.caller.key_id)


def list_drafts(tx: Tx, place: Reach, query: shapes.DraftQuery) -> shapes.Page:
    found = drafts.list_span(tx, place, paging.span_of(query))
    some, behind = paging.cut(found, query.limit, paging.place_of)
    asked = {labels.fold(label) for label in query.labels}
    kept = [draft for draft in some if asked <= set(labels_of(draft))]
    return paging.page("drafts", show(tx, kept, is_item=True), query.limit, behind)


def get_draft(tx: Tx, caller: Caller, draft_id: str) -> shapes.Page:
    return show(tx, [drafts.get(tx, caller.reach, draft_id)])[0]


async def change_draft(call: Call, draft_id: str, body: shapes.DraftChange) -> shapes.Page:
    files = read_files(body.add_attachments or [])
    unneeded: list[str] = []
    work = partial(change, call=call, draft_id=draft_id, body=body, unneeded=unneeded)
    shown = await verbs.write_with_files(call.resources, files, work)
    await remove_blobs(call.resources, unneeded)
    return shown


def change(
    tx: Tx,
    files: list[KeptFile],
    call: Call,
    draft_id: str,
    body: shapes.DraftChange,
    unneeded: list[str],
) -> shapes.Page:
    draft = drafts.get_for_change(tx, call.reach, draft_id, call.now())
    drafts.set_fields(tx, draft.id, draft_body.merge(draft.fields, draft_body.read_fields(to_body(body))))
    removed = [find_file(tx, draft.id, name)[1] for name in body.remove_attachments or ()]
    unneeded[:] = [blob for file in removed for blob in drafts.remove_file(tx, draft.id, file.filename)]
    there = drafts.list_files(tx, [draft.id])[draft.id]
    require_files_fit(file.size_bytes for file in (*there, *files))
    drafts.add_files(tx, draft.id, files)
    drafts.name(tx, draft.id, draft.client_id, changed_labels(draft, body.add_labels, body.remove_labels))
    schedule(tx, call, drafts.get(tx, call.reach, draft.id), body.send_at)
    return show(tx, [drafts.get(tx, call.reach, draft.id)])[0]


def get_draft_file(
    tx: Tx, caller: Caller, draft_id: str, attachment_id: str, links: Links
) -> shapes.ShownFile:
    number, file = find_file(tx, draft_id, attachment_id)
    return showing.show_link(tx, draft_id, number, file, links)


def find_file(tx: Tx, draft_id: str, attachment_id: str) -> tuple[int, KeptFile]:
    for number, file in enumerate(drafts.list_files(tx, [draft_id])[draft_id]):
        if attachment_id == showing.file_id(draft_id, number):
            return number, file
    raise NotFound("No such attachment.")


def changed_labels(
    draft: KeptDraft, added: shapes.OneOrMore | None, removed: shapes.OneOrMore | None
) -> list[str]:
    gone = own_labels(removed, "remove_labels")
    wanted = (*draft.labels, *own_labels(added, "add_labels"))
    kept = [label for label in dict.fromkeys(wanted) if label not in gone]
    if len(kept) > labels.LABELS_OF_A_THREAD:
        raise BadRequest(f"A draft has at most {labels.LABELS_OF_A_THREAD} labels.", field="add_labels")
    return kept


async def send_draft(call: Call, draft_id: str, body: shapes.LabelChange) -> shapes.SentMessage:
    """As it is; its labels go with it."""
    draft, files = await call.resources.db.read(verbs.read_whole, call, draft_id)
    own = changed_labels(draft, body.add_labels, body.remove_labels)
    order = await prepare(call.resources, draft, files, read_key(call), own)
    answer = await accept_order(call, order)
    if not answer.is_replay:
        await remove_blobs(call.resources, [file.blob for file in files])
    return to_sent(answer)


async def prepare(
    resources: Resources, draft: KeptDraft, files: Sequence[KeptFile], key: str, own: Sequence[str]
) -> Order:
    order = await pools.COMPOSING.run(to_order, draft, key, own)
    return structs.replace(order, files=await pools.FILES.run(verbs.read_files, resources, files))


def to_order(draft: KeptDraft, key: str, own: Sequence[str]) -> Order:
    """Now, whatever the clock says. A text is made of HTML that is there alone."""
    fields = msgspec.json.decode(draft.fields)
    fields.pop("sendAt", None)
    fields["body"] = text_of(fields.get("body"), fields.get("bodyHtml")) or " "
    body = draft_body.to_send_body(replace(draft, fields=msgspec.json.encode(fields)))
    order = read_order(draft.inbox_id, key, verbs.hash_of(draft.id), body, needs_subject=False)
    return structs.replace(
        order,
        draft=DraftVersion(draft.id, draft.version),
        labels=tuple(own),
        copies_sender=False,
    )
