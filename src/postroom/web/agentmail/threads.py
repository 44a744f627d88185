"""Threads of /v0, of an inbox, a pod or all that a key reaches."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.errors import BadRequest, NotFound
from postroom.fields import RowPlace
from postroom.mailbox import labels, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import listing
from postroom.operations import threads as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes, showing
from postroom.web.agentmail.inboxes import reach_of_pod
from postroom.web.agentmail.messages import contains, find, get_message_file, own_labels, read_flag
from postroom.web.api.mailbox import threads as deletion
from postroom.web.call import Call

LOOKED_THROUGH = 100


def list_threads(tx: Tx, caller: Caller, query: shapes.ThreadQuery, links: Links) -> shapes.Page:
    return list_within(tx, caller.reach, query, links)


def list_inbox_threads(tx: Tx, inbox: Inbox, query: shapes.ThreadQuery, links: Links) -> shapes.Page:
    return list_within(tx, inbox.reach, query, links)


def list_pod_threads(
    tx: Tx, caller: Caller, pod_id: str, query: shapes.ThreadQuery, links: Links
) -> shapes.Page:
    return list_within(tx, reach_of_pod(tx, caller, pod_id), query, links)


def list_within(tx: Tx, reach: Reach, query: shapes.ThreadQuery, links: Links) -> shapes.Page:
    asked = [labels.fold(label) for label in query.labels]
    keeps = filter_of(query, asked)
    span = paging.span_of(query)
    if keeps is not None:
        span = replace(span, limit=LOOKED_THROUGH + 1)
    own = [label for label in asked if label not in showing.SYSTEM and label != showing.UNREAD]
    hidden = () if query.include_trash or showing.TRASH in asked else (showing.TRASH,)
    is_read = False if showing.UNREAD in asked else None
    found = listing.list_threads(tx, reach, own, hidden, is_read, span)
    limit = query.limit if keeps is None else LOOKED_THROUGH
    some, behind = paging.cut(found, limit, lambda thread: RowPlace(thread.last_message_at, thread.id))
    kept = []
    for thread in some:
        (shown,) = showing.show_threads(tx, [thread], links)
        if keeps is None or keeps(shown):
            kept.append(shown)
        if keeps is not None and len(kept) == query.limit:
            behind = RowPlace(thread.last_message_at, thread.id)
            break
    return paging.page("threads", kept, query.limit, behind)


def filter_of(query: shapes.ThreadQuery, asked: Sequence[str]) -> Callable[[shapes.Thread], bool] | None:
    """None: the rows tell all that is asked."""
    system = {label for label in asked if label in showing.SYSTEM}
    if not (system or query.senders or query.recipients or query.subject):
        return None

    def keeps(thread: shapes.Thread) -> bool:
        return (
            system <= set(thread.labels)
            and contains(thread.senders, query.senders)
            and contains(thread.recipients, query.recipients)
            and contains([thread.subject or ""], query.subject)
        )

    return keeps


async def search_threads(call: Call, query: shapes.SearchQuery) -> shapes.Page:
    return await search_within(call, query, None, None)


async def search_inbox_threads(call: Call, inbox_id: str, query: shapes.SearchQuery) -> shapes.Page:
    return await search_within(call, query, inbox_id, None)


async def search_pod_threads(call: Call, pod_id: str, query: shapes.SearchQuery) -> shapes.Page:
    return await search_within(call, query, None, pod_id)


async def search_within(
    call: Call, query: shapes.SearchQuery, inbox_id: str | None, pod_id: str | None
) -> shapes.Page:
    found, behind = await find(call, query, inbox_id, pod_id)
    snippets = {each.thread_id: each.snippet for each in reversed(found)}
    thread_ids = list(dict.fromkeys(each.thread_id for each in found))
    shown = await call.resources.db.read(show_by_ids, call.reach, thread_ids, call.links())
    marked = [replace(thread, highlights={"text": [snippets[thread.thread_id]]}) for thread in shown]
    return paging.page("threads", marked, query.limit, behind)


def show_by_ids(tx: Tx, reach: Reach, thread_ids: Sequence[str], links: Links) -> list[shapes.Thread]:
    return showing.show_threads(tx, [threads.get(tx, reach, thread_id) for thread_id in thread_ids], links)


def get_thread(
    tx: Tx, caller: Caller, thread_id: str, query: shapes.MessagesOfThreadQuery, links: Links
) -> shapes.Page:
    """Its newest messages, oldest of them first; the next page has older ones."""
    thread = threads.get(tx, caller.reach, thread_id)
    span = replace(paging.span_of(query), is_ascending=False)
    places, behind = paging.cut(listing.list_of_thread(tx, thread.id, span), query.limit, lambda place: place)
    found = showing.show_by_ids(tx, [place.id for place in reversed(places)], links, is_whole=True)
    (shown,) = showing.show_threads(tx, [thread], links)
    page: dict[str, Any] = paging.page("messages", found, query.limit, behind)
    return {**shapes.to_builtins(shown), **page}


def get_thread_file(
    tx: Tx, caller: Caller, thread_id: str, attachment_id: str, links: Links
) -> shapes.ShownFile:
    threads.get(tx, caller.reach, thread_id)
    message = messages.get(tx, caller.reach, attachment_id.partition(".")[0])
    if message.thread_id != thread_id:
        raise NotFound("No such attachment.")
    return get_message_file(tx, caller, message.id, attachment_id, links)


def change_thread(
    tx: Tx, caller: Caller, thread_id: str, body: shapes.LabelChange, links: Links
) -> shapes.Page:
    """Of all its messages."""
    added = own_labels(shapes.words_of(body.add_labels), "add_labels")
    removed = own_labels(shapes.words_of(body.remove_labels), "remove_labels")
    if not added and not removed:
        raise BadRequest("Name labels to add or to remove.", field="add_labels")
    change = verbs.ThreadChange(
        add_labels=[label for label in added if label != showing.UNREAD],
        remove_labels=[label for label in removed if label != showing.UNREAD],
    )
    if (flag := read_flag(added, removed)) is not None:
        change = replace(change, is_read=flag)
    verbs.change_thread(tx, caller, thread_id, change)
    (shown,) = showing.show_threads(tx, [threads.get(tx, caller.reach, thread_id)], links)
    return {"thread_id": shown.thread_id, "labels": shown.labels}


async def delete_thread(call: Call, thread_id: str) -> None:
    await deletion.delete_thread(call, thread_id)


async def delete_inbox_thread(call: Call, inbox_id: str, thread_id: str) -> None:
    await deletion.delete_thread(call, thread_id)


async def delete_pod_thread(call: Call, pod_id: str, thread_id: str) -> None:
    await deletion.delete_thread(call, thread_id)
