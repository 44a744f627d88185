"""Deletion of threads over REST: a long one takes several transactions."""

from postroom.operations import threads
from postroom.web.api.mailbox.messages import remove_blobs
from postroom.web.call import Call


async def delete_thread(call: Call, thread_id: str) -> None:
    """Delete a thread and its messages for good"""
    db, is_gone = call.resources.db, False
    while not is_gone:
        blobs, is_gone = await db.write(threads.delete_some_of_thread, call.decider, thread_id, call.now())
        await remove_blobs(call.resources, blobs)
