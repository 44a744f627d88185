"""Threads of /v0: of an inbox, a pod or the whole scope of a key."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.fields import Cursor
from postroom.mailbox import inboxes, keyset_listing, labels, messages, threads
from postroom.mailbox.message_json import Links
from postroom.operations import messages as message_verbs
from postroom.operations import threads as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes, showing
from postroom.web.agentmail.messages import (
    filter_of,
    find,
    get_message_file,
    given_of,
    look_through,
    read_change,
    subject_of,
    wanted_trash,
)
from postroom.web.call import Call

LOOKED_THROUGH = 100


def list_threads(tx: Tx, caller: Caller, place: Scope, query: shapes.ThreadQuery) -> shapes.Page:
    asked = [labels.fold(label) for label in query.labels]
    keeps = filter_of(
        asked,
        showing.hidden_from(caller),
        (query.senders, lambda thread: thread.senders),
        (query.recipients, lambda thread: thread.recipients),
        (query.subject, subject_of),
    )
    most = query.limit if keeps is None else LOOKED_THROUGH
    is_read = False if showing.UNREAD in asked else None
    span = replace(paging.span_of(query), limit=most + 1)
    found = keyset_listing.list_threads(tx, place, given_of(asked), wanted_trash(query, asked), is_read, span)
    show = partial(showing.show_threads, tx)
    kept, behind = look_through(found, most, show, keeps, query.limit, place_of, showing.THREADS_AT_ONCE)
    return paging.page("threads", kept, query.limit, behind)


def place_of(thread: threads.Thread) -> Cursor:
    return Cursor(thread.last_message_at, thread.id)


async def search_threads(
    call: Call, query: shapes.SearchQuery, inbox_id: str | None = None, pod_id: str | None = None
) -> shapes.Page:
    found, behind = await find(call, query, inbox_id, pod_id)
    snippets = {each.thread_id: each.snippet for each in reversed(found)}
    thread_ids = list(dict.fromkeys(each.thread_id for each in found))
    shown = await call.resources.db.read(show_by_ids, call, thread_ids)
    marked = [replace(thread, highlights={"text": [snippets[thread.thread_id]]}) for thread in shown]
    return paging.page("threads", marked, query.limit, behind)


def show_by_ids(tx: Tx, call: Call, thread_ids: Sequence[str]) -> list[shapes.Thread]:
    shown = showing.show_threads(tx, [threads.get(tx, call.scope, thread_id) for thread_id in thread_ids])
    hidden = showing.hidden_from(call.caller)
    return [thread for thread in shown if hidden.isdisjoint(thread.labels)]


def get_thread(tx: Tx, caller: Caller, thread_id: str, query: shapes.MessagesOfThreadQuery) -> shapes.Page:
    """Return the newest messages of a thread, oldest first; the next page has older ones."""
    thread = threads.get(tx, caller.scope, thread_id)
    span = replace(paging.span_of(query), is_ascending=False)
    listed = keyset_listing.list_of_thread(tx, thread, span)
    places, behind = paging.cut(listed, query.limit, lambda place: place)
    found = showing.show_whole(tx, [place.id for place in places])
    if len(found) < len(places):
        behind = places[len(found) - 1]
    (shown,) = showing.show_threads(tx, [thread])
    page: dict[str, Any] = paging.page("messages", found[::-1], query.limit, behind)
    return {**shapes.to_builtins(shown), **page}


def get_thread_file(
    tx: Tx, caller: Caller, thread_id: str, attachment_id: str, links: Links
) -> shapes.ShownFile:
    threads.get(tx, caller.scope, thread_id)
    message = messages.get(tx, caller.scope, attachment_id.partition(".")[0])
    if message.thread_id != thread_id:
        raise no_such("attachment")
    return get_message_file(tx, caller, message.id, attachment_id, links)


def change_thread(tx: Tx, caller: Caller, thread_id: str, body: shapes.LabelChange, now: int) -> shapes.Page:
    """Changes all its messages."""
    asked = read_change(body)
    thread = threads.get(tx, caller.scope, thread_id)
    if asked.is_trashed is not None:
        moved = message_verbs.LabelChange(is_trashed=asked.is_trashed)
        inbox = inboxes.get(tx, caller.scope, thread.inbox_id)
        message_verbs.change_labels(tx, inbox, keyset_listing.ids_of_thread(tx, thread_id), moved, now)
    if asked.add_labels or asked.remove_labels or asked.is_read is not None:
        is_read = UNSET if asked.is_read is None else asked.is_read
        change = verbs.ThreadChange(is_read, add_labels=asked.add_labels, remove_labels=asked.remove_labels)
        verbs.change_thread(tx, caller, thread_id, change, now)
    (shown,) = showing.show_threads(tx, [threads.get(tx, caller.scope, thread_id)])
    return {"thread_id": shown.thread_id, "labels": shown.labels}
