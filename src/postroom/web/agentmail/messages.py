"""Messages of /v0: listed, read, searched, labelled, deleted."""

import contextlib
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.clock import from_iso, to_iso
from postroom.errors import BadRequest, NotFound, no_such
from postroom.fields import Cursor, Span
from postroom.limits import PAGE_BYTES
from postroom.mailbox import attachments, infected, keyset_listing, labels, messages, raw_mails
from postroom.mailbox.folders import label_changes
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.keyset_listing import Wanted
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import INBOUND, OUTBOUND
from postroom.operations import messages as verbs
from postroom.operations.search import SearchQuery
from postroom.outward.fill_from_message import read_reply_to
from postroom.processes import pools
from postroom.resources import Tx
from postroom.web.agentmail import names, paging, shapes, showing
from postroom.web.agentmail.showing import ReadBytes
from postroom.web.api import search as finding
from postroom.web.call import Call
from postroom_mail.mime import headers
from postroom_mail.mime.charset import clean_line
from postroom_mail.mime.parse import parse_mail

Row = TypeVar("Row")
Shown = TypeVar("Shown")

LOOKED_THROUGH = 500  # rows of a list that is filtered by the content of the emails
GOT_AT_ONCE = 100
MAX_FIELDS = 200
MAX_FIELD_CHARS = 4_000
DIRECTIONS = {showing.RECEIVED_LABEL: INBOUND, showing.SENT_LABEL: OUTBOUND}


class FoundMessage(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    created_at: str
    snippet: str = ""


def list_messages(tx: Tx, caller: Caller, inbox: Inbox, query: shapes.MessageQuery) -> shapes.Page:
    asked = [labels.fold(label) for label in query.labels]
    keeps = filter_of(
        asked,
        showing.hidden_from(caller),
        (query.from_, lambda message: [message.from_]),
        (query.to, people_of),
        (query.subject, subject_of),
    )
    most = query.limit if keeps is None else LOOKED_THROUGH
    span = replace(paging.span_of(query), limit=most + 1)
    places = keyset_listing.list_messages(tx, inbox.id, wanted_of(query, asked), span)

    def show(some: Sequence[Cursor], read: ReadBytes) -> list[shapes.Message]:
        return showing.show_by_ids(tx, [place.id for place in some], read, with_origins=True)

    found, behind = look_through(places, most, show, keeps, query.limit, lambda place: place)
    return paging.page("messages", found, query.limit, behind)


def wanted_of(query: shapes.MessageQuery, asked: Sequence[str]) -> Wanted:
    """Return conditions on rows; the rest is checked on the messages."""
    directions = {DIRECTIONS[label] for label in asked if label in DIRECTIONS}
    return Wanted(
        labels=tuple(given_of(asked)),
        direction=directions.pop() if len(directions) == 1 else None,
        is_unread=showing.UNREAD in asked,
        is_trashed=wanted_trash(query, asked),
        with_junk=bool(query.include_spam) or showing.SPAM in asked,
        with_blocked=bool(query.include_blocked) or showing.BLOCKED in asked,
    )


def given_of(asked: Sequence[str]) -> list[str]:
    """Return the labels given by users, which are stored as such."""
    return [label for label in dict.fromkeys(asked) if label not in showing.SYSTEM | showing.FLAGS]


def wanted_trash(query: shapes.MailQuery, asked: Sequence[str]) -> bool | None:
    """Return whether to list mail in Trash (True), outside it (False), or both (None)."""
    return True if showing.TRASH in asked else None if query.include_trash else False


def filter_of(
    asked: Sequence[str], hidden: frozenset[str], *parts: tuple[Sequence[str], Callable[[Any], Sequence[str]]]
) -> Callable[[Any], bool] | None:
    """Return a filter by labels and by parts of the shown texts. None if the rows decide everything."""
    system = showing.SYSTEM.intersection(asked)
    if not (system or hidden or any(words for words, _ in parts)):
        return None

    def keeps(shown: Any) -> bool:
        is_shown = system.issubset(shown.labels) and hidden.isdisjoint(shown.labels)
        return is_shown and all(contains(texts(shown), words) for words, texts in parts)

    return keeps


def subject_of(shown: shapes.Message | shapes.Thread) -> list[str]:
    return [shown.subject or ""]


def people_of(message: shapes.Message) -> list[str]:
    return [*message.to, *(message.cc or ()), *(message.bcc or ())]


def contains(texts: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether each part is in one of the texts, ignoring case."""
    folded = [text.casefold() for text in texts]
    return all(any(part.casefold() in text for text in folded) for part in parts)


def look_through(
    rows: Sequence[Row],
    most: int,
    show: Callable[[Sequence[Row], ReadBytes], list[Shown]],
    keeps: Callable[[Any], bool] | None,
    limit: int,
    place: Callable[[Row], Cursor],
    at_once: int = showing.AT_ONCE,
) -> tuple[list[Shown], Cursor | None]:
    """Return as many items as fit, and where the next page begins: an empty page need not be the last.

    Stop after reading as much as a page may hold.
    """
    kept: list[tuple[Row, Shown]] = []
    read, looked_at = showing.ReadBytes(), 0
    while looked_at < len(rows) and len(kept) <= limit and read.total <= PAGE_BYTES:
        some = rows[looked_at : looked_at + at_once]
        pairs = zip(some, show(some, read), strict=True)
        kept += [(row, shown) for row, shown in pairs if keeps is None or keeps(shown)]
        looked_at += len(some)
    found, behind = paging.cut(kept, limit, lambda pair: place(pair[0]))
    if behind is None and (len(rows) > most or looked_at < len(rows)):
        behind = place(rows[looked_at - 1])
    return [shown for _, shown in found], behind


async def search_messages(call: Call, inbox_id: str, query: shapes.SearchQuery) -> shapes.Page:
    found, behind = await find(call, query, inbox_id, None)
    shown = await call.resources.db.read(show_found, found)
    return paging.page("messages", shown, query.limit, behind)


def show_found(tx: Tx, found: Sequence[FoundMessage]) -> list[shapes.Message]:
    snippets = {each.id: each.snippet for each in found}
    there = messages.list_outlines(tx, list(snippets))
    all_shown = showing.show_messages(tx, there, with_origins=True)
    return [
        replace(shown, highlights={"text": [snippets[message.id]]})
        for message, shown in zip(there, all_shown, strict=True)
        if showing.HIDDEN.isdisjoint(shown.labels)
    ]


async def find(
    call: Call, query: shapes.SearchQuery, inbox_id: str | None, pod_id: str | None
) -> tuple[list[FoundMessage], Cursor | None]:
    """Uses the search of /v1, newest first; also returns where the next page begins."""
    behind = paging.read_token(query.page_token)
    span = paging.span_of(query)
    asked = SearchQuery(query.q, inbox_id, pod_id, query.limit, None if behind is None else behind.id)
    page = await finding.search_messages(call, asked)
    found = [
        replace(msgspec.json.decode(each.message, type=FoundMessage), snippet=each.snippet)
        for each in page.data
    ]
    kept = [each for each in found if lies_within(from_iso(each.created_at), span)]
    return kept, None if page.next is None else Cursor(0, page.next)


def lies_within(moment: int, span: Span) -> bool:
    return (span.since is None or moment > span.since) and (span.until is None or moment < span.until)


async def get_message(call: Call, message_id: str) -> shapes.Message:
    """Includes header fields, which are read from the email itself."""
    (shown,) = await call.resources.db.read(show_whole, call, message_id)
    raw = await raw_mails.read(call.resources, message_id, with_trace=False)
    mail = await pools.READING.run(parse_mail, raw)
    is_received = showing.RECEIVED_LABEL in shown.labels
    return replace(
        shown,
        headers=await pools.READING.run(read_fields, raw) if is_received else shown.headers,
        in_reply_to=mail.in_reply_to[0] if mail.in_reply_to else None,
        references=list(mail.references) or None,
        reply_to=await pools.READING.run(read_mailboxes, raw) or None,
    )


def read_mailboxes(raw: bytes) -> list[str]:
    """Return the addresses that want the answers."""
    return showing.mailboxes(read_reply_to(raw))


def read_fields(raw: bytes) -> dict[str, str]:
    """Return the first value of each header field, by its name in lower case."""
    fields = headers.split(raw, 0).headers
    values = ((name, fields.text(name)[:MAX_FIELD_CHARS]) for name in islice(fields.fields, MAX_FIELDS))
    return {name: clean_line(headers.decode_words(value)) for name, value in values}


def show_whole(tx: Tx, call: Call, message_id: str) -> list[shapes.Message]:
    message = messages.get(tx, call.scope, message_id)
    return showing.show_messages(tx, [message], is_whole=True)


def get_raw(tx: Tx, caller: Caller, message_id: str, links: Links) -> shapes.Page:
    """Return a link to the raw email that needs no key."""
    message = messages.get(tx, caller.scope, message_id)
    infected.require_whole(tx, message.id)
    (shown,) = showing.show_messages(tx, [message])
    secret = attachments.link_secret(tx)
    return {
        "message_id": shown.message_id,
        "size": shown.size,
        "download_url": attachments.signed_raw_url(links.base_url, secret, message.id, links.now),
        "expires_at": to_iso(links.now + attachments.LINK_LIFETIME),
    }


def get_message_file(
    tx: Tx, caller: Caller, message_id: str, attachment_id: str, links: Links
) -> shapes.ShownFile:
    message = messages.get(tx, caller.scope, message_id)
    for file in attachments.list_of_messages(tx, [message.id]).get(message.id, []):
        if attachment_id == showing.file_id(message.id, file.position):
            return showing.show_link(tx, message.id, file.position, file, links)
    raise no_such("attachment")


def batch_get(tx: Tx, caller: Caller, inbox: Inbox, body: shapes.MessageIds) -> shapes.Page:
    found = find_all(tx, caller, inbox, body.message_ids)
    shown = showing.show_whole(tx, found[:GOT_AT_ONCE])
    page: shapes.Page = {"limit": len(body.message_ids), "count": len(shown), "messages": shown}
    return page | ({"truncated": True} if len(shown) < len(found[:GOT_AT_ONCE]) else {})


def find_all(tx: Tx, caller: Caller, inbox: Inbox, given: Sequence[str]) -> list[str]:
    """Return the ids of those that exist."""
    found = []
    for name in dict.fromkeys(given):
        with contextlib.suppress(NotFound):
            message_id = names.find_message(tx, inbox, name)
            names.require_shown(tx, caller, messages.get_outline(tx, inbox.scope, message_id))
            found.append(message_id)
    return found


def change_labels(tx: Tx, inbox: Inbox, message_id: str, body: shapes.LabelChange, now: int) -> shapes.Page:
    return change_all(tx, inbox, [message_id], body, now)[0]


def batch_update(tx: Tx, caller: Caller, inbox: Inbox, body: shapes.LabelChanges, now: int) -> shapes.Page:
    """Changes all that exist, or none."""
    message_ids = find_all(tx, caller, inbox, body.message_ids)
    updates = change_all(tx, inbox, message_ids, body, now)
    return {"limit": len(body.message_ids), "count": len(updates), "updates": updates}


def change_all(
    tx: Tx, inbox: Inbox, message_ids: Sequence[str], body: shapes.LabelChange, now: int
) -> list[shapes.Page]:
    verbs.change_labels(tx, inbox, message_ids, read_change(body), now)
    shown = showing.show_by_ids(tx, message_ids)
    return [{"message_id": message.message_id, "labels": message.labels} for message in shown]


def list_label_changes(tx: Tx, caller: Caller, inbox: Inbox, query: shapes.PageQuery) -> shapes.Page:
    """List the labels added and removed, newest first.

    A page is shorter if the key may not see all its messages.
    """
    found = label_changes.list_span(tx, inbox.id, paging.span_of(query))
    some, behind = paging.cut(found, query.limit, paging.place_of)
    if hidden := showing.hidden_from(caller):
        there = messages.list_outlines(tx, list({change.message_id for change in some}))
        pairs = zip(there, showing.show_messages(tx, there), strict=True)
        seen = {message.id for message, shown in pairs if hidden.isdisjoint(shown.labels)}
        some = [change for change in some if change.message_id in seen]
    events = [show_label_change(tx, inbox, change) for change in some]
    return paging.page("events", events, query.limit, behind)


def show_label_change(tx: Tx, inbox: Inbox, change: label_changes.LabelChange) -> shapes.Page:
    return {
        "organization_id": inbox.account_id,
        "pod_id": inbox.pod_id,
        "inbox_id": inbox.address,
        "event_id": change.id,
        "event_type": "label.added" if change.is_added else "label.removed",
        "message_id": showing.name_by_id(tx, change.message_id),
        "label": change.label,
        "event_at": to_iso(change.created_at),
        "created_at": to_iso(change.created_at),
    }


def read_change(body: shapes.LabelChange) -> verbs.LabelChange:
    """Read a change of labels.

    They are lower case; of the system labels only `unread` and `trash` may be set.
    """
    added = folded(body.add_labels, "add_labels")
    removed = folded(body.remove_labels, "remove_labels")
    if not added and not removed:
        raise BadRequest("Name labels to add or to remove.", field="add_labels")
    flags = dict.fromkeys(added, True) | dict.fromkeys(removed, False)
    is_unread = flags.get(showing.UNREAD)
    return verbs.LabelChange(
        add_labels=given_of(added),
        remove_labels=given_of(removed),
        is_read=None if is_unread is None else not is_unread,
        is_trashed=flags.get(showing.TRASH),
    )


def folded(given: shapes.OneOrMore | None, field: str) -> list[str]:
    asked = [given] if isinstance(given, str) else given or []
    labels.require_valid(asked, field)
    found = [labels.fold(label) for label in asked]
    for label in found:
        if label in showing.SYSTEM:
            raise BadRequest(f"{label} is a system label and cannot be set.", field=field)
    return found


def own_labels(given: shapes.OneOrMore | None, field: str) -> list[str]:
    """Return the labels for drafts and sends; refuse labels of received mail."""
    found = folded(given, field)
    for label in showing.FLAGS.intersection(found):
        raise BadRequest(f"{label} is for messages, not for drafts and sends.", field=field)
    return found
