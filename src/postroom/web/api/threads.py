"""Threads over REST."""

from postroom.mailbox import inboxes, message_json, messages, threads
from postroom.mailbox.threads import Thread
from postroom.web import shapes
from postroom.web.body import Page, ThreadChange, ThreadQuery
from postroom.web.call import Call, Tx


async def list_threads(call: Call, inbox_id: str, query: ThreadQuery) -> shapes.ThreadPage:
    """List the threads of an inbox, newest first"""

    def work(tx: Tx) -> tuple[list[Thread], int]:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        return threads.list_of_inbox(tx, inbox.id, query.flag, query.limit, query.offset)

    found, total = await call.read_page(query.offset, work)
    return shapes.ThreadPage([shapes.Thread.of(thread) for thread in found], total)


async def get_thread(call: Call, thread_id: str) -> shapes.Thread:
    """Get a thread"""
    thread = await call.resources.db.read(threads.get, call.reach, thread_id)
    return shapes.Thread.of(thread)


async def change_thread(call: Call, thread_id: str, body: ThreadChange) -> shapes.ChangedThread:
    """Set the read flag of a thread"""
    thread = await call.resources.db.write(threads.mark_read_by_id, call.reach, thread_id, body.flag)
    return shapes.ChangedThread.of(thread)


async def list_thread_messages(call: Call, thread_id: str, query: Page) -> shapes.ThreadMessages:
    """List the messages of a thread, oldest first"""

    def work(tx: Tx) -> tuple[Thread, list[bytes], bool]:
        thread = threads.get(tx, call.reach, thread_id)
        found = messages.list_of_thread(tx, thread.id, query.limit, query.offset)
        return thread, *message_json.to_page(tx, found, call.links(tx))

    thread, documents, is_cut = await call.read_page(query.offset, work)
    return shapes.ThreadMessages.of(thread, documents, is_cut)
