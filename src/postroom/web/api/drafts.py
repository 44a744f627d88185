"""Drafts over REST: write one in steps, with no permission to send, and send it whole."""

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from postroom import ids
from postroom.errors import ApiError, BadRequest, DraftChanged, no_such
from postroom.fields import PageQuery
from postroom.mailbox import drafts, file_links, inboxes
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.operations import drafts as verbs
from postroom.operations.client_ids import AlreadyThere
from postroom.operations.drafts import (
    DraftBody,
    DraftChange,
    DraftEdit,
    DraftPage,
    DraftToSend,
    NewDraft,
    NewFiles,
    ShownDraft,
    WholeDraft,
)
from postroom.operations.sending.files import FetchedFile, SentFile
from postroom.operations.sending.send import read_order
from postroom.outward.send import preview
from postroom.outward.send_stages import (
    DraftVersion,
    Order,
    SendAnswer,
    SendReceipt,
    require_files_fit,
    require_no_steering,
)
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.web.api.attached import Whole, are_named, fetch
from postroom.web.api.messages import remove_blobs
from postroom.web.api.send import RawReceipt, accept_order, to_response
from postroom.web.api.templates import fill_changed_draft, fill_new_draft
from postroom.web.call import Call, Tx
from postroom.web.requests.request_body import require_idempotency_key
from postroom_mail.writing.compose import DraftAttachment
from postroom_mail.writing.content_view import ContentView
from postroom_mail.writing.header_words import DraftError

T = TypeVar("T")
SEND_ATTEMPTS = 3
VERSION = re.compile(r'(?P<quote>"?)(?P<version>[0-9]{1,15})(?P=quote)')


class Seen(Struct, frozen=True):
    """The version and content that the sender of a draft has seen: nothing else is sent."""

    version: int | None
    content_hash: str | None
    undo_seconds: int = 0  # how long it can be undone, if the draft itself does not say it

    @property
    def is_named(self) -> bool:
        return self.version is not None or self.content_hash is not None


class DraftView(Struct, frozen=True):
    draft: ShownDraft
    content: ContentView | None
    problem: str = ""


async def create_draft(call: Call, inbox_id: str, body: NewDraft) -> ShownDraft:
    """Create a draft: any field of a send may still be missing"""
    body = await fill_new_draft(call, inbox_id, body)
    given = await read_fields(call, body)
    verb = partial(verbs.create_draft, client_id=body.client_id)
    try:
        return show(await write_with_files(call, body.attachments or [], verb, inbox_id, given))
    except AlreadyThere as there:
        raise AlreadyThere(show(there.item)) from None


async def read_fields(call: Call, body: DraftBody) -> dict[str, Any]:
    """Return the fields of the body, read in a thread: a draft may hold long lists."""
    given = await pools.COMPOSING.run(verbs.read_fields, body)
    require_no_steering(given.get("headers") or (), call.resources.config.allowed_headers)
    return given


async def list_drafts(call: Call, inbox_id: str, query: PageQuery) -> DraftPage:
    """List the drafts of an inbox, newest first"""
    found, total = await call.resources.db.read(verbs.list_drafts, call.caller, inbox_id, query)
    return DraftPage([show(each) for each in found.items], total, found.is_cut or UNSET)


async def get_draft(call: Call, draft_id: str) -> ShownDraft:
    """Get a draft"""
    return show(await call.resources.db.read(verbs.get_draft, call.caller, draft_id))


async def change_draft(call: Call, draft_id: str, body: DraftChange) -> ShownDraft:
    """Change a draft: missing fields stay, null clears, attachments replace the old ones"""
    seen = seen_version(call, body.version)
    body = await fill_changed_draft(call, draft_id, body)
    edit = DraftEdit(await read_fields(call, body), replaces_files=body.attachments is not UNSET)
    changed, unneeded = await write_with_files(
        call, body.attachments or [], verbs.change_draft, draft_id, seen, edit
    )
    await remove_blobs(call.resources, unneeded)
    return show(changed)


async def delete_draft(call: Call, draft_id: str) -> None:
    """Delete a draft"""
    db, seen = call.resources.db, seen_version(call)
    unneeded = await db.write(verbs.delete_draft, call.caller, draft_id, seen, call.now())
    await remove_blobs(call.resources, unneeded)


async def add_draft_files(call: Call, draft_id: str, body: NewFiles) -> ShownDraft:
    """Attach files to a draft"""
    if not body.attachments:
        raise BadRequest("attachments has no file.", field="attachments")
    seen = seen_version(call)
    return show(await write_with_files(call, body.attachments, verbs.add_draft_files, draft_id, seen))


async def delete_draft_file(call: Call, draft_id: str, filename: str) -> None:
    """Remove a file from a draft"""
    db, seen = call.resources.db, seen_version(call)
    unneeded = await db.write(verbs.delete_draft_file, call.caller, draft_id, seen, filename, call.now())
    await remove_blobs(call.resources, unneeded)


async def send_draft(
    call: Call, draft_id: str, body: DraftToSend, seen_hash: str | None = None, undo_seconds: int = 0
) -> RawReceipt:
    """Send a draft; it is deleted once accepted"""
    seen = Seen(seen_version(call, body.version), seen_hash, undo_seconds)
    for attempt in range(SEND_ATTEMPTS):
        try:
            return await send_once(call, draft_id, seen)
        except DraftChanged:  # between reading it and its acceptance
            if seen.is_named or attempt == SEND_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def send_once(call: Call, draft_id: str, seen: Seen) -> RawReceipt:
    """Send the draft at the version that was seen. Raise DraftChanged if it changes before acceptance."""
    found = await call.resources.db.read(look_up, call, draft_id)
    if isinstance(found, SendAnswer):
        return to_response(found)
    draft, files = found
    drafts.require_version(draft.version, seen.version)
    order = await to_order(call, draft, files, require_idempotency_key(call.request))
    order = structs.replace(
        order,
        draft=DraftVersion(draft.id, draft.version),
        seen_hash=seen.content_hash,
        undo_seconds=order.undo_seconds or (0 if order.send_at else seen.undo_seconds),
    )
    answer = await accept_order(call, order)
    if not answer.is_replay:
        await remove_blobs(call.resources, [file.blob for file in files])
    return to_response(answer)


def look_up(tx: Tx, call: Call, draft_id: str) -> SendAnswer | tuple[KeptDraft, list[KeptFile]]:
    """Return the draft with its files, or the stored answer if it was sent with this key.

    A known key is answered even if its draft is gone.
    """
    draft = drafts.find(tx, call.scope, draft_id)
    if draft is None and "idempotency-key" not in call.request.headers:
        raise no_such("draft")
    key = require_idempotency_key(call.request)
    inbox = None if draft is None else inboxes.find(tx, draft.inbox_id)
    known = idempotency.find_answer(tx, call.scope, inbox, key, hash_of(draft_id), call.now())
    if known is not None:
        inboxes.get(tx, call.scope, msgspec.json.decode(known, type=SendReceipt).inbox_id)
        return SendAnswer(known, is_replay=True)
    if draft is None:
        raise no_such("draft")
    return draft, drafts.read_files(tx, draft.id)


def seen_version(call: Call, given: int | UnsetType = UNSET) -> int | None:
    """Return the version in If-Match (RFC 9110, section 13.1.1) or in the body, or None for any version."""
    field = call.request.headers.get("if-match", "*").strip()
    named = VERSION.fullmatch(field)
    if field != "*" and named is None:
        raise BadRequest("If-Match must be the version of the draft in quotes.", field="If-Match")
    in_header = None if named is None else int(named["version"])
    if given is UNSET or in_header == given:
        return in_header
    if in_header is not None:
        raise BadRequest("If-Match and version differ.", field="version")
    return given


def hash_of(draft_id: str) -> str:
    return idempotency.hash_request(b"draft", draft_id.encode())


async def to_order(call: Call, draft: KeptDraft, files: Sequence[KeptFile], key: str) -> Order:
    return await with_files(call.resources, await pools.COMPOSING.run(read_draft, draft, key), files)


async def with_files(resources: Resources, order: Order, files: Sequence[KeptFile]) -> Order:
    taken = tuple(dict.fromkeys(file.of_message for file in files if file.of_message is not None))
    contents = await pools.FILES.run(read_files, resources, files)
    return structs.replace(order, files=contents, files_of=taken)


async def view_draft(call: Call, draft_id: str) -> DraftView:
    """Return the draft with the email that would be sent now, or with the reason why it cannot be sent."""
    found = await call.resources.db.read(verbs.read_draft, call.caller, draft_id)
    shown = show(found)
    try:
        order = await to_order(call, found.draft, found.files, f"preview-{secrets.token_urlsafe(16)}")
        return DraftView(shown, await preview(call.resources, call.caller, order))
    except DraftError as error:
        return DraftView(shown, None, f"This cannot be written into an email: {error}")
    except ApiError as error:
        if error.status >= 500:
            raise
        return DraftView(shown, None, error.message)


def read_draft(draft: KeptDraft, key: str) -> Order:
    """Return the draft as an order: the preview shows it, and sending sends it."""
    order = read_order(draft.inbox_id, key, hash_of(draft.id), verbs.to_send_body(draft))
    return structs.replace(order, agent_text=draft.agent_text)


def read_files(resources: Resources, files: Iterable[KeptFile]) -> tuple[DraftAttachment, ...]:
    try:
        return tuple(
            DraftAttachment(file.filename, file.content_type, read_content(resources, file)) for file in files
        )
    except FileNotFoundError:  # somebody else has just sent, changed or deleted it
        raise DraftChanged("The draft was changed while it was being sent. Send it again.") from None


def read_content(resources: Resources, file: KeptFile) -> bytes:
    if file.content is not None:
        return file.content
    assert file.blob is not None
    return resources.blobs.get(file.blob)


def show(found: WholeDraft) -> ShownDraft:
    return verbs.show(found.draft, found.files)


async def write_with_files(
    call: Call, sent: Sequence[SentFile], verb: Callable[..., T], *arguments: Any
) -> T:
    """Store the files, then run `verb`: a blob is durable before the row that names it."""
    resources, found = call.resources, Whole(list(sent))
    if are_named(sent):
        inbox_id = await resources.db.read(inbox_of, call, arguments[0])
        found = await fetch(call, inbox_id, sent)
        verb = partial(take_and_run, inbox_id, found.uploads, verb)
    require_files_fit(len(file.content) for file in found.files)
    files = await pools.FILES.run(put_files, resources, found.files) if sent else []
    try:
        result = await resources.db.write(verb, call.caller, *arguments, files, call.now())
    except (ApiError, AlreadyThere) as error:
        if not isinstance(error, ApiError) or error.status < 500:  # else nobody knows whether it committed
            await remove_blobs(resources, [file.blob for file in files])
        raise
    await remove_blobs(resources, found.blobs)
    return result


def inbox_of(tx: Tx, call: Call, named: str) -> str:
    if ids.is_id(ids.DRAFT, named):
        return drafts.get(tx, call.scope, named).inbox_id
    return inboxes.get(tx, call.scope, named).id


def take_and_run(inbox_id: str, uploads: Sequence[str], verb: Callable[..., T], tx: Tx, *arguments: Any) -> T:
    """Use up the uploads, and run the verb. The last argument is the time."""
    if uploads:
        file_links.take(tx, inbox_id, uploads, arguments[-1])
    return verb(tx, *arguments)


def put_files(resources: Resources, sent: Iterable[SentFile]) -> list[KeptFile]:
    return [put_file(resources, file) for file in sent]


def put_file(resources: Resources, file: SentFile) -> KeptFile:
    content = file.content
    kept = KeptFile(
        file.filename,
        file.media_type,
        len(content),
        of_message=file.of_message if isinstance(file, FetchedFile) else None,
    )
    if drafts.is_small(content):
        return structs.replace(kept, content=content)
    return structs.replace(kept, blob=resources.blobs.put(content))
