"""Operations on drafts: created, changed in steps, scheduled, deleted. Their files were stored before."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from postroom import limits
from postroom.accounts.actors import Actor
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import require_word
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.errors import BadRequest
from postroom.fields import PageQuery, Timestamp, Truncated, explain
from postroom.mailbox import drafts, inboxes, messages, threads
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.inboxes import Inbox
from postroom.operations import client_ids
from postroom.operations.client_ids import AlreadyThere, OwnId
from postroom.operations.sending import expecting
from postroom.operations.sending import send as send_fields
from postroom.operations.sending.address_fields import read_addresses, read_reply_to
from postroom.operations.sending.calendar import InvitationBody, read_invitation
from postroom.operations.sending.files import SentFiles
from postroom.operations.sending.send import LISTS
from postroom.outward.send_stages import own_sender, parse_moment, require_ahead, require_files_fit
from postroom.storage.database import Tx
from postroom.storage.pages import CutPage

Given = Mapping[str, Any]  # fields of a draft, by their names in the interface; None clears


class DraftBody(Struct, rename="camel", frozen=True):
    """In a change null clears, and given attachments replace the old ones."""

    to: Annotated[send_fields.Addresses, Meta(description="Recipients.")] | UnsetType | None = UNSET
    body: send_fields.Body | UnsetType | None = UNSET
    subject: (
        Annotated[str, Meta(max_length=send_fields.READ_LIMIT, description="The subject.")] | UnsetType | None
    ) = UNSET
    body_html: send_fields.BodyHtml | UnsetType | None = UNSET
    thread_id: send_fields.ThreadId | UnsetType | None = UNSET
    include_quote: send_fields.IncludeQuote | UnsetType | None = UNSET
    reply_to: send_fields.ReplyTo | UnsetType | None = UNSET
    cc: Annotated[send_fields.Addresses, Meta(description="Recipients of a copy.")] | UnsetType | None = UNSET
    bcc: (
        Annotated[send_fields.Addresses, Meta(description="Recipients of a blind copy.")] | UnsetType | None
    ) = UNSET
    attachments: send_fields.Files | UnsetType | None = UNSET
    automated: send_fields.Automated | UnsetType | None = UNSET
    reply_all: send_fields.ReplyAll | UnsetType | None = UNSET
    forward_of: send_fields.ForwardOf | UnsetType | None = UNSET
    headers: send_fields.OwnHeaders | UnsetType | None = UNSET
    metadata: send_fields.Metadata | UnsetType | None = UNSET
    send_at: send_fields.SendAt | UnsetType | None = UNSET
    undo_seconds: send_fields.UndoSeconds | UnsetType | None = UNSET
    calendar: send_fields.CalendarField | UnsetType | None = UNSET
    reply_to_message_id: send_fields.ReplyToMessageId | UnsetType | None = UNSET
    template: send_fields.TemplateOf | UnsetType | None = UNSET
    fields: send_fields.TemplateFields | UnsetType | None = UNSET
    unsubscribe: send_fields.Unsubscribe | UnsetType | None = UNSET
    from_address: send_fields.FromAddress | UnsetType | None = UNSET
    expect_reply_by: expecting.ExpectReplyBy | UnsetType | None = UNSET
    follow_ups: expecting.FollowUps | UnsetType | None = UNSET


Version = Annotated[int, Meta(ge=1, description="The version you saw: another one is 409 `draft_changed`.")]


class NewDraft(DraftBody, rename="camel", frozen=True):
    """`clientId` is kept as long as the draft is there."""

    client_id: OwnId | None = None


class DraftChange(DraftBody, rename="camel", frozen=True):
    """`version` may also be given in If-Match."""

    version: Version | UnsetType = UNSET


class DraftToSend(Struct, frozen=True):
    """`version` may also be given in If-Match."""

    version: Version | UnsetType = UNSET


class NewFiles(Struct, rename="camel", frozen=True):
    attachments: Annotated[SentFiles, Meta(min_length=1)] = []


class ShownFile(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    size_bytes: int


class ShownDraft(Struct, rename="camel", frozen=True, kw_only=True):
    """What is missing is null or empty."""

    id: str
    client_id: str | None = None
    version: int
    inbox_id: str
    to: list[str] = []
    cc: list[str] = []
    bcc: list[str] = []
    subject: str | None = None
    body: str | None = None
    body_html: str | None = None
    thread_id: str | None = None
    include_quote: bool = True
    reply_to: str | None = None
    reply_all: bool = False
    forward_of: str | None = None
    reply_to_message_id: str | None = None
    automated: bool = False
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    send_at: str | None = None
    scheduled: Annotated[bool, Meta(description="It is sent automatically at `sendAt`.")] = False
    undo_seconds: int = 0
    unsubscribe: bool = False
    from_address: str | None = None
    expect_reply_by: str | expecting.ReplyWithin | None = None
    follow_ups: list[expecting.FollowUpStep] = []
    calendar: InvitationBody | None = None
    attachments: list[ShownFile]
    created_by: Actor
    created_at: Timestamp
    updated_at: Timestamp


class DraftPage(Struct, rename="camel", frozen=True):
    data: list[ShownDraft]
    total: int
    truncated: Truncated | UnsetType = UNSET


class WholeDraft(Struct, frozen=True):
    draft: KeptDraft
    files: list[KeptFile]


class DraftEdit(Struct, frozen=True):
    """Changes to a draft besides added files; fields not given stay."""

    given: Given = {}
    replaces_files: bool = False
    removed_files: Sequence[str] = ()
    added_labels: Sequence[str] = ()
    removed_labels: Sequence[str] = ()


def create_draft(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    given: Given,
    files: Sequence[KeptFile],
    now: int,
    client_id: str | None = None,
) -> WholeDraft:
    inbox = inboxes.get(tx, caller.scope, inbox_id)
    require_new(tx, inbox.id, client_id)
    require_named(tx, inbox, given)
    draft = drafts.add(tx, inbox.id, merge(b"{}", given), files, caller.actor, now)
    record_agent_text(tx, caller, draft.id, given)
    if client_id is not None:
        drafts.name(tx, draft.id, client_id, ())
        draft = structs.replace(draft, client_id=client_id)
    return whole(tx, draft)


def record_agent_text(tx: Tx, caller: Caller, draft_id: str, given: Given) -> None:
    """Keeps the words that a program gave a draft: a person may change them before it is sent."""
    said = [str(given[name]) for name in ("body", "bodyHtml") if given.get(name)]
    if said and not caller.is_person:
        drafts.set_agent_text(tx, draft_id, " ".join(said))


def require_new(tx: Tx, inbox_id: str, client_id: str | None) -> None:
    """Raise AlreadyThere if the inbox has a draft with this clientId."""
    client_ids.require_valid(client_id)
    if client_id is None:
        return
    inboxes.lock(tx, inbox_id)
    known = drafts.find_by_client_id(tx, inbox_id, client_id)
    if known is not None:
        raise AlreadyThere(whole(tx, known))


def list_drafts(tx: Tx, caller: Caller, inbox_id: str, query: PageQuery) -> tuple[CutPage[WholeDraft], int]:
    inbox = inboxes.get(tx, caller.scope, inbox_id)
    found, total = drafts.list_of_inbox(tx, inbox.id, query.limit, query.offset)
    files = drafts.list_files(tx, [draft.id for draft in found.items])
    return CutPage([WholeDraft(draft, files[draft.id]) for draft in found.items], found.is_cut), total


def get_draft(tx: Tx, caller: Caller, draft_id: str) -> WholeDraft:
    return whole(tx, drafts.get(tx, caller.scope, draft_id))


def read_draft(tx: Tx, caller: Caller, draft_id: str) -> WholeDraft:
    """Return the draft with the bytes of files that are stored in their rows."""
    draft = drafts.get(tx, caller.scope, draft_id)
    return WholeDraft(draft, drafts.read_files(tx, draft.id))


def change_draft(
    tx: Tx,
    caller: Caller,
    draft_id: str,
    version: int | None,
    edit: DraftEdit,
    files: Sequence[KeptFile],
    now: int,
) -> tuple[WholeDraft, list[str]]:
    """Change a draft; return it and the blobs that are no longer needed."""
    draft = drafts.get_for_change(tx, caller.scope, draft_id, now, version)
    require_named(tx, inboxes.get(tx, caller.scope, draft.inbox_id), edit.given)
    drafts.set_fields(tx, draft.id, merge(draft.fields, edit.given))
    record_agent_text(tx, caller, draft.id, edit.given)
    follow_clock(tx, draft, edit.given)
    unneeded = drafts.remove_files(tx, draft.id) if edit.replaces_files else []
    for filename in edit.removed_files:
        unneeded += drafts.remove_file(tx, draft.id, filename)
    if files:
        add_files(tx, draft.id, files)
    if edit.added_labels or edit.removed_labels:
        own = changed_labels(draft, edit.added_labels, edit.removed_labels)
        drafts.name(tx, draft.id, draft.client_id, own)
    return get_draft(tx, caller, draft_id), unneeded


def delete_draft(tx: Tx, caller: Caller, draft_id: str, version: int | None, now: int) -> list[str]:
    """Delete a draft unless it changed since that version; return the blobs that are no longer needed."""
    return drafts.remove(tx, drafts.get_for_change(tx, caller.scope, draft_id, now, version).id)


def add_draft_files(
    tx: Tx, caller: Caller, draft_id: str, version: int | None, files: Sequence[KeptFile], now: int
) -> WholeDraft:
    draft = drafts.get_for_change(tx, caller.scope, draft_id, now, version)
    add_files(tx, draft.id, files)
    return whole(tx, draft)


def delete_draft_file(
    tx: Tx, caller: Caller, draft_id: str, version: int | None, filename: str, now: int
) -> list[str]:
    """Delete a file of a draft; return the blobs that are no longer needed."""
    draft = drafts.get_for_change(tx, caller.scope, draft_id, now, version)
    return drafts.remove_file(tx, draft.id, filename)


def schedule_draft(tx: Tx, caller: Caller, draft_id: str, send_at: str | None, now: int) -> None:
    """Schedule a draft to be sent at a time; None cancels it. This needs the permission to send."""
    due_at = None if send_at is None else parse_moment(send_at)
    if due_at is not None:
        require_word(caller.words, "draft_send")
        require_ahead(due_at, now)
    draft = drafts.get(tx, caller.scope, draft_id)
    drafts.set_fields(tx, draft.id, merge(draft.fields, {"sendAt": send_at}))
    drafts.put_on_clock(tx, draft.id, due_at, caller.key_id)


def require_named(tx: Tx, inbox: Inbox, given: Given) -> None:
    """Raise unless the sender, the thread and the messages that a draft names are of its inbox."""
    if given.get("fromAddress"):
        own_sender(given["fromAddress"], inbox)
    here = Scope(inbox.account_id, None, inbox.id)
    if given.get("threadId") is not None:
        threads.get(tx, here, given["threadId"])
    for name in ("forwardOf", "replyToMessageId"):
        if given.get(name) is not None:
            messages.get(tx, here, given[name])


def follow_clock(tx: Tx, draft: KeptDraft, given: Given) -> None:
    """Move the sending of a scheduled draft to its new time, or cancel it if there is none."""
    if draft.due_for is not None and "sendAt" in given:
        moment = given["sendAt"]
        drafts.put_on_clock(tx, draft.id, None if moment is None else parse_moment(moment), draft.due_for)


def add_files(tx: Tx, draft_id: str, files: Sequence[KeptFile]) -> None:
    there = drafts.list_files(tx, [draft_id])[draft_id]
    require_files_fit(file.size_bytes for file in (*there, *files))
    drafts.add_files(tx, draft_id, files)


def changed_labels(draft: KeptDraft, added: Sequence[str], removed: Sequence[str]) -> list[str]:
    kept = [label for label in dict.fromkeys((*draft.labels, *added)) if label not in removed]
    if len(kept) > limits.LABELS_OF_A_THREAD:
        raise BadRequest(f"A draft has at most {limits.LABELS_OF_A_THREAD} labels.", field="add_labels")
    return kept


def merge(fields: bytes, given: Given) -> bytes:
    merged = {**msgspec.json.decode(fields), **given}
    return msgspec.json.encode({name: value for name, value in merged.items() if value is not None})


def whole(tx: Tx, draft: KeptDraft) -> WholeDraft:
    return WholeDraft(draft, drafts.list_files(tx, [draft.id])[draft.id])


def read_fields(body: DraftBody) -> dict[str, Any]:
    """Return the given fields, validated, by their names in the API; None clears a field."""
    given: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(body, attachments=UNSET))
    for name in ("version", "clientId"):
        given.pop(name, None)
    for name in LISTS:
        if given.get(name) is not None:
            given[name] = [str(address) for address in read_addresses(name, given[name])]
    if given.get("subject") is not None:
        send_fields.require_subject(given["subject"])
    if given.get("sendAt") is not None:
        parse_moment(given["sendAt"])
    if body.expect_reply_by is not UNSET:
        expecting.read_expectation(body.expect_reply_by)
    expecting.read_follow_ups(body.follow_ups or [])
    read_reply_to(given.get("replyTo"))
    send_fields.read_headers(given.get("headers") or {})
    if isinstance(body.calendar, InvitationBody):
        read_invitation(body.calendar)
    return given


def to_send_body(draft: KeptDraft) -> send_fields.SendBody:
    """Return the draft as a send, without its files. Raise an error that names a missing field."""
    try:
        return msgspec.json.decode(draft.fields, type=send_fields.SendBody)
    except msgspec.ValidationError as error:
        raise explain(error) from None


def show(draft: KeptDraft, files: list[KeptFile]) -> ShownDraft:
    return msgspec.convert(
        {
            **msgspec.json.decode(draft.fields),
            "id": draft.id,
            "clientId": draft.client_id,
            "version": draft.version,
            "inboxId": draft.inbox_id,
            "attachments": [
                {"filename": file.filename, "contentType": file.content_type, "sizeBytes": file.size_bytes}
                for file in files
            ],
            "scheduled": draft.due_at is not None and draft.failure is None,
            "createdBy": msgspec.to_builtins(draft.actor),
            "createdAt": to_iso(draft.created_at),
            "updatedAt": to_iso(draft.updated_at),
        },
        ShownDraft,
    )
