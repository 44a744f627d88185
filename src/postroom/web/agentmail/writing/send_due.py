"""The loop over scheduled drafts of /v0: each is sent with the rights of the key that scheduled it."""

from contextlib import closing

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.errors import ApiError, BadRequest, Unauthorized
from postroom.mailbox import drafts
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.outward.send import send_mail
from postroom.queue import deliveries
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources, Tx
from postroom.web.agentmail.writing.drafts import prepare
from postroom.web.api.messages import remove_blobs
from postroom_mail.writing.header_words import DraftError

AT_ONCE = 50


async def send_due_drafts(resources: Resources) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(deliveries.HOLDS_BELL)) as subscription:
        while True:
            due = await resources.db.read(drafts.list_due, AT_ONCE, resources.now())
            for draft in due:
                await try_to_send(resources, draft)
            if len(due) < AT_ONCE:
                await subscription.wait(IDLE_SECONDS)


async def try_to_send(resources: Resources, draft: KeptDraft) -> None:
    """Send a due draft. A refused one stays, with the reason. A failing one does not block others."""
    try:
        await send(resources, draft)
        resources.loops.works("a draft")
    except ApiError as error:
        if error.status >= 500:
            resources.loops.failed("a draft", error)
        else:
            await resources.db.write(drafts.record_failure, draft, error.message)
    except Exception as error:
        resources.loops.failed("a draft", error)


async def send(resources: Resources, draft: KeptDraft) -> None:
    """Send a draft only once, even if tried twice at once or again after a crash: acceptance removes it."""
    caller, files = await resources.db.read(read_whole, draft, resources.now())
    key = f"draft-{draft.id}-{draft.version}"
    order = await prepare(resources, draft, files, key, draft.labels)
    try:
        await send_mail(resources, caller, order)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into an email: {error}", field=error.field) from None
    await remove_blobs(resources, [file.blob for file in files])


def read_whole(tx: Tx, draft: KeptDraft, now: int) -> tuple[Caller, list[KeptFile]]:
    caller = keys.find_caller_by_id(tx, draft.due_for or "", now)
    if caller is None:
        raise Unauthorized("The key that scheduled this draft was revoked.")
    drafts.get(tx, caller.scope, draft.id)
    return caller, drafts.read_files(tx, draft.id)
