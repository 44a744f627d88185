"""Drafts over REST: written in steps, by whoever may not send as well, and sent as a whole."""

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from postroom.accounts.reach import Reach
from postroom.errors import ApiError, BadRequest, DraftChanged, NotFound
from postroom.fields import PageQuery
from postroom.mail.writing.compose import DraftAttachment
from postroom.mail.writing.content_view import ContentView
from postroom.mail.writing.header_words import DraftError
from postroom.mailbox import drafts, inboxes, messages, threads
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.outward.orders import (
    DraftVersion,
    Order,
    SendAnswer,
    SendReceipt,
    parse_moment,
    require_files_fit,
    require_no_steering,
)
from postroom.outward.send import preview
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.web.api.mailbox.messages import remove_blobs
from postroom.web.api.outward.send import accept_order, to_response
from postroom.web.api.outward.templates import fill_changed_draft, fill_new_draft
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies import draft_body
from postroom.web.interface.bodies.draft_body import (
    DraftBody,
    DraftChange,
    DraftPage,
    DraftToSend,
    NewFiles,
    ShownDraft,
)
from postroom.web.interface.bodies.send_body import read_order, require_idempotency_key
from postroom.web.interface.bodies.uploads import SentFile
from postroom.web.interface.shapes import answer_shapes

T = TypeVar("T")
SEND_ATTEMPTS = 3
VERSION = re.compile(r'(?P<quote>"?)(?P<version>[0-9]{1,15})(?P=quote)')


class Seen(Struct, frozen=True):
    """What whoever sends a draft has before his eyes: nothing else is sent."""

    version: int | None
    content_hash: str | None
    undo_seconds: int = 0  # how long it can be taken back, where the draft itself does not say it

    @property
    def is_named(self) -> bool:
        return self.version is not None or self.content_hash is not None


class DraftView(Struct, frozen=True):
    draft: ShownDraft
    content: ContentView | None
    problem: str = ""


async def create_draft(call: Call, inbox_id: str, body: DraftBody) -> ShownDraft:
    """Begin a mail: any field of a send may still be missing"""
    body = await fill_new_draft(call, inbox_id, body)
    given = await read_fields(call, body)
    fields = draft_body.merge(b"{}", given)

    def work(tx: Tx, files: list[KeptFile]) -> ShownDraft:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        require_named(tx, call.account_id, inbox.id, given)
        draft = drafts.add(tx, inbox.id, fields, files, call.caller.actor, call.now())
        return show(tx, [draft])[0]

    return await write_with_files(call.resources, body.attachments or [], work)


async def read_fields(call: Call, body: DraftBody) -> dict[str, Any]:
    """Off the loop: a draft is changed now and then, and may hold long lists."""
    given = await pools.COMPOSING.run(draft_body.read_fields, body)
    require_no_steering(given.get("headers") or (), call.resources.config.allowed_headers)
    return given


async def list_drafts(call: Call, inbox_id: str, query: PageQuery) -> DraftPage:
    """List the drafts of an inbox, newest first"""

    def work(tx: Tx) -> DraftPage:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        found, total = drafts.list_of_inbox(tx, inbox.id, query.limit, query.offset)
        return DraftPage(show(tx, found), total)

    return await call.resources.db.read(work)


async def get_draft(call: Call, draft_id: str) -> ShownDraft:
    """Get a draft"""
    return await call.resources.db.read(lambda tx: show(tx, [drafts.get(tx, call.reach, draft_id)])[0])


async def change_draft(call: Call, draft_id: str, body: DraftChange) -> ShownDraft:
    """Change a draft: what is not named stays, null clears, attachments stand in for those that were there"""
    seen = seen_version(call, body.version)
    body = await fill_changed_draft(call, draft_id, body)
    given = await read_fields(call, body)
    unneeded: list[str] = []

    def work(tx: Tx, files: list[KeptFile]) -> ShownDraft:
        draft = drafts.get_for_change(tx, call.reach, draft_id, call.now(), seen)
        require_named(tx, call.account_id, draft.inbox_id, given)
        drafts.set_fields(tx, draft.id, draft_body.merge(draft.fields, given))
        follow_clock(tx, draft, given)
        if body.attachments is not msgspec.UNSET:
            unneeded[:] = drafts.remove_files(tx, draft.id)
            drafts.add_files(tx, draft.id, files)
        return show(tx, [drafts.get(tx, call.reach, draft_id)])[0]

    shown = await write_with_files(call.resources, body.attachments or [], work)
    await remove_blobs(call.resources, unneeded)
    return shown


def follow_clock(tx: Tx, draft: KeptDraft, given: dict[str, Any]) -> None:
    """A draft that is sent by itself goes at the moment that it names, and stays if it names none."""
    if draft.due_for is not None and "sendAt" in given:
        moment = given["sendAt"]
        drafts.put_on_clock(tx, draft.id, None if moment is None else parse_moment(moment), draft.due_for)


async def delete_draft(call: Call, draft_id: str) -> None:
    """Throw a draft away"""
    seen = seen_version(call)

    def work(tx: Tx) -> list[str]:
        return drafts.remove(tx, drafts.get_for_change(tx, call.reach, draft_id, call.now(), seen).id)

    await remove_blobs(call.resources, await call.resources.db.write(work))


async def add_draft_files(call: Call, draft_id: str, body: NewFiles) -> ShownDraft:
    """Attach files to a draft"""
    if not body.attachments:
        raise BadRequest("attachments holds no file.", field="attachments")
    seen = seen_version(call)

    def work(tx: Tx, files: list[KeptFile]) -> ShownDraft:
        draft = drafts.get_for_change(tx, call.reach, draft_id, call.now(), seen)
        there = drafts.list_files(tx, [draft.id])[draft.id]
        require_files_fit(file.size_bytes for file in (*there, *files))
        drafts.add_files(tx, draft.id, files)
        return show(tx, [draft])[0]

    return await write_with_files(call.resources, body.attachments, work)


async def delete_draft_file(call: Call, draft_id: str, filename: str) -> None:
    """Take a file off a draft"""
    seen = seen_version(call)

    def work(tx: Tx) -> list[str]:
        draft = drafts.get_for_change(tx, call.reach, draft_id, call.now(), seen)
        return drafts.remove_file(tx, draft.id, filename)

    await remove_blobs(call.resources, await call.resources.db.write(work))


async def send_draft(
    call: Call, draft_id: str, body: DraftToSend, seen_hash: str | None = None, undo_seconds: int = 0
) -> answer_shapes.RawReceipt:
    """Send a draft, which is gone once it is accepted"""
    seen = Seen(seen_version(call, body.version), seen_hash, undo_seconds)
    for attempt in range(SEND_ATTEMPTS):
        try:
            return await send_once(call, draft_id, seen)
        except DraftChanged:  # between our reading it and its acceptance
            if seen.is_named or attempt == SEND_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def send_once(call: Call, draft_id: str, seen: Seen) -> answer_shapes.RawReceipt:
    """At the version that was seen; its acceptance takes that one alone."""
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
    """The draft first: if it went with this very key, the key is seen after it. A known key is answered
    although its draft is gone."""
    draft = drafts.find(tx, call.reach, draft_id)
    if draft is None and "idempotency-key" not in call.request.headers:
        raise NotFound("No such draft.")
    key = require_idempotency_key(call.request)
    known = idempotency.find_answer(tx, call.account_id, key, hash_of(draft_id), call.now())
    if known is not None:
        inboxes.get(tx, call.reach, msgspec.json.decode(known, type=SendReceipt).inbox_id)
        return SendAnswer(known, is_replay=True)
    if draft is None:
        raise NotFound("No such draft.")
    return draft, drafts.read_files(tx, draft.id)


def seen_version(call: Call, given: int | UnsetType = UNSET) -> int | None:
    """Of If-Match (RFC 9110 section 13.1.1), with quotes or without, or of the body; None: any version."""
    field = call.request.headers.get("if-match", "*").strip()
    named = VERSION.fullmatch(field)
    if field != "*" and named is None:
        raise BadRequest("If-Match holds the version of the draft in quotes.", field="If-Match")
    in_header = None if named is None else int(named["version"])
    if given is UNSET or in_header == given:
        return in_header
    if in_header is not None:
        raise BadRequest("If-Match and version name two versions.", field="version")
    return given


def hash_of(draft_id: str) -> str:
    return idempotency.hash_request(b"draft", draft_id.encode())


async def to_order(call: Call, draft: KeptDraft, files: Sequence[KeptFile], key: str) -> Order:
    order = await pools.COMPOSING.run(read_draft, draft, key)
    return structs.replace(order, files=await pools.FILES.run(read_files, call.resources, files))


async def view_draft(call: Call, draft_id: str) -> DraftView:
    """As it is now, and what would leave if it were sent now; or why it could not."""
    draft, files = await call.resources.db.read(read_whole, call, draft_id)
    shown = draft_body.show(draft, files)
    try:
        order = await to_order(call, draft, files, f"preview-{secrets.token_urlsafe(16)}")
        return DraftView(shown, await preview(call.resources, call.caller, order))
    except DraftError as error:
        return DraftView(shown, None, f"This cannot be written into a mail: {error}")
    except ApiError as error:
        if error.status >= 500:
            raise
        return DraftView(shown, None, error.message)


def read_whole(tx: Tx, call: Call, draft_id: str) -> tuple[KeptDraft, list[KeptFile]]:
    draft = drafts.get(tx, call.reach, draft_id)
    return draft, drafts.read_files(tx, draft.id)


def read_draft(draft: KeptDraft, key: str) -> Order:
    return read_order(draft.inbox_id, key, hash_of(draft.id), draft_body.to_send_body(draft))


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


def require_named(tx: Tx, account_id: str, inbox_id: str, given: dict[str, Any]) -> None:
    """The thread and the message that a draft speaks of are of its inbox."""
    here = Reach(account_id, None, inbox_id)
    if given.get("threadId") is not None:
        threads.get(tx, here, given["threadId"])
    if given.get("forwardOf") is not None:
        messages.get(tx, here, given["forwardOf"])
    if given.get("replyToMessageId") is not None:
        messages.get(tx, here, given["replyToMessageId"])


def show(tx: Tx, found: Sequence[KeptDraft]) -> list[ShownDraft]:
    files = drafts.list_files(tx, [draft.id for draft in found])
    return [draft_body.show(draft, files[draft.id]) for draft in found]


async def write_with_files(
    resources: Resources, sent: Sequence[SentFile], work: Callable[[Tx, list[KeptFile]], T]
) -> T:
    """Blobs are durable before the rows that name them."""
    require_files_fit(len(file.data) for file in sent)
    files = await pools.FILES.run(put_files, resources, sent) if sent else []
    try:
        return await resources.db.write(work, files)
    except ApiError as error:
        if error.status < 500:  # of a fault nobody knows whether it came before the commit or after it
            await remove_blobs(resources, [file.blob for file in files])
        raise


def put_files(resources: Resources, sent: Iterable[SentFile]) -> list[KeptFile]:
    return [
        KeptFile(file.filename, file.content_type, len(file.data), content=file.data)
        if drafts.is_small(file.data)
        else KeptFile(file.filename, file.content_type, len(file.data), blob=resources.blobs.put(file.data))
        for file in sent
    ]
