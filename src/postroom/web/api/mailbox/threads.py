"""Threads over REST."""

from collections.abc import Sequence

from postroom.mailbox import inboxes, labels, message_json, messages, related, threads
from postroom.mailbox.threads import Thread
from postroom.upkeep import deletion
from postroom.web.api.mailbox.messages import remove_blobs
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import ThreadChange, ThreadMessageQuery, ThreadQuery, ThreadsQuery
from postroom.web.interface.shapes import shapes


async def list_threads(call: Call, inbox_id: str, query: ThreadQuery) -> shapes.ThreadPage:
    """List the threads of an inbox, newest first"""

    def work(tx: Tx) -> shapes.ThreadPage:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        return list_page(tx, call, query, inbox.id, None)

    return await call.read_page(query.offset, work)


async def list_all_threads(call: Call, query: ThreadsQuery) -> shapes.ThreadPage:
    """List threads across inboxes, newest first; the total stops counting behind the page"""
    return await call.read_page(
        query.offset, lambda tx: list_page(tx, call, query, query.inbox_id, query.pod_id)
    )


def list_page(
    tx: Tx, call: Call, query: ThreadQuery | ThreadsQuery, inbox_id: str | None, pod_id: str | None
) -> shapes.ThreadPage:
    reach = inboxes.narrow(tx, call.reach, inbox_id, pod_id)
    if reach is None:
        return shapes.ThreadPage([], 0)
    label = None if query.label is None else labels.fold(query.label)
    found, total = threads.list_within(tx, reach, query.flag, label, query.limit, query.offset)
    return shapes.ThreadPage(show_all(tx, found), total)


def show_all(tx: Tx, found: Sequence[Thread]) -> list[shapes.Thread]:
    thread_ids = [thread.id for thread in found]
    labelled, others = labels.of_threads(tx, thread_ids), related.list_of_threads(tx, thread_ids)
    return [
        shapes.Thread.of(thread, labelled.get(thread.id, ()), others.get(thread.id, ())) for thread in found
    ]


async def get_thread(call: Call, thread_id: str) -> shapes.Thread:
    """Get a thread"""
    return await call.resources.db.read(lambda tx: show_all(tx, [threads.get(tx, call.reach, thread_id)])[0])


async def change_thread(call: Call, thread_id: str, body: ThreadChange) -> shapes.ChangedThread:
    """Set the read flag of a thread, add labels to it and remove some"""
    flag = body.flag

    def work(tx: Tx) -> shapes.ChangedThread:
        thread = threads.get(tx, call.reach, thread_id)
        if flag is not None:
            thread = threads.mark_read(tx, thread, flag)
        changed = labels.change(tx, thread, body.add_labels, body.remove_labels)
        return shapes.ChangedThread.of(thread, changed, related.list_of_thread(tx, thread.id))

    return await call.resources.db.write(work)


async def delete_thread(call: Call, thread_id: str) -> None:
    """Delete a thread and its messages for good"""

    def work(tx: Tx) -> tuple[list[str], bool]:
        thread = threads.get(tx, call.reach, thread_id)
        blobs, is_gone = deletion.remove_some_of_thread(tx, call.reach, thread.id, call.now())
        if is_gone:
            where = inboxes.get(tx, call.reach, thread.inbox_id).reach
            call.record(tx, "thread.deleted", thread.id, within=where, before={"subject": thread.subject})
        return blobs, is_gone

    is_gone = False
    while not is_gone:
        blobs, is_gone = await call.resources.db.write(work)
        await remove_blobs(call, blobs)


async def list_thread_messages(
    call: Call, thread_id: str, query: ThreadMessageQuery
) -> shapes.ThreadMessages:
    """List the messages of a thread, oldest first unless told otherwise"""

    def work(tx: Tx) -> shapes.ThreadMessages:
        thread = threads.get(tx, call.reach, thread_id)
        found = messages.list_of_thread(tx, thread.id, query.limit, query.offset, query.order)
        shown, is_cut = message_json.to_page(tx, found, call.links())
        return shapes.ThreadMessages.of(thread, shown, related.list_of_thread(tx, thread.id), is_cut)

    return await call.read_page(query.offset, work)
