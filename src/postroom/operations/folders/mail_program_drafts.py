"""Drafts that a mail program writes: the same rows as those of the interface."""

from collections.abc import Sequence

import msgspec

from postroom.accounts.keys import Caller
from postroom.accounts.people import own_letters
from postroom.accounts.permissions import WRITING
from postroom.errors import NotFound
from postroom.inward import into_thread
from postroom.mailbox import drafts, inboxes
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.folders import flags, views
from postroom.mailbox.folders.uid_map import DRAFTS
from postroom.mailbox.inboxes import Inbox
from postroom.operations.folders.mails import read_flags
from postroom.operations.folders.names import require
from postroom.outward.raw_submission.draft_mail import ReadDraft
from postroom.storage.database import Tx


def get_whole(tx: Tx, inbox_id: str, draft_id: str) -> tuple[Inbox, KeptDraft, list[KeptFile]]:
    inbox = inboxes.find(tx, inbox_id)
    if inbox is None:
        raise NotFound("No such inbox.")
    return inbox, drafts.get(tx, inbox.scope, draft_id), drafts.read_files(tx, draft_id)


def add_draft(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    read: ReadDraft,
    files: Sequence[KeptFile],
    given: frozenset[str],
    now: int,
) -> int:
    """Adds a draft to the thread of the mail that it answers. Returns its UID."""
    caller, inbox = require(tx, caller, inbox_id, WRITING, now)
    wanted = read_flags(given)
    thread = into_thread.resolve(tx, inbox.id, read.answers, ())
    fields = msgspec.structs.replace(read.fields, thread_id=None if thread is None else thread.id)
    texts = (fields.body, fields.body_html or "")  # a person may forward a letter of the server from here
    own_letters.end_shown_links(tx, inbox.id, texts, now)
    draft = drafts.add(tx, inbox.id, msgspec.json.encode(fields), files, caller.actor, now)
    flags.set_all(tx, inbox.id, DRAFTS, {draft.id: wanted | {flags.DRAFT}})
    return views.find_uids(tx, inbox.id, DRAFTS, [draft.id])[draft.id]
