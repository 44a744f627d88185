"""What a mail client does with the messages of a folder: flags, copies, moves, Trash, deletion."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.people import own_emails
from postroom.accounts.permissions import MANAGING, WRITING
from postroom.config import Config
from postroom.errors import BadRequest, NotFound, NothingToDo, no_such
from postroom.inward import admit, into_thread
from postroom.mailbox import drafts, inboxes, labels, messages, threads, trash
from postroom.mailbox.documents import Document
from postroom.mailbox.draft_mail import ReadDraft
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.folders import flags, uid_map, views
from postroom.mailbox.folders.flags import DELETED, MAX_KEYWORD_LENGTH, MOST_KEYWORDS, SEEN, SYSTEM
from postroom.mailbox.folders.uid_map import DRAFTS, INBOX, JUNK, LABEL, SENT, TRASH, FolderEntry, of_label
from postroom.mailbox.folders.views import FolderMail
from postroom.mailbox.inboxes import Inbox
from postroom.operations.folders import teaching
from postroom.operations.folders.names import SHOWN, FolderRefused, require, require_folder
from postroom.storage.database import Tx
from postroom.upkeep import deletion

HIDDEN = [of_label(name) for name in SHOWN]  # labels named like a fixed folder have none of their own


# A program that sets one of these says so, and moves the message itself.
TEACHING_FLAGS = {"$Junk": True, "$NotJunk": False}


class StoredFlags(Struct, frozen=True):
    """The messages as they are now, and the UIDs of those that had changed since the client read them."""

    mails: list[FolderMail]
    refused: list[int]


def change_flags(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    folder: str,
    uids: Sequence[int],
    mode: str,
    given: frozenset[str],
    unchanged_since: int | None,
    now: int,
) -> StoredFlags:
    """Change flags: `mode` + adds, - removes; without it, the flags replace all others."""
    caller, _ = require(tx, caller, inbox_id, WRITING, now)
    wanted = read_flags(given)
    inboxes.lock(tx, inbox_id)
    found = views.list_mails(tx, inbox_id, folder, uids)
    refused = [each.uid for each in found if unchanged_since is not None and each.modseq > unchanged_since]
    asked = set(uids) - set(refused)
    changes: dict[str, frozenset[str]] = {}
    moved: dict[bool, list[str]] = {True: [], False: []}
    for mail in found:
        after = _after(mail.flags, wanted, mode)
        if mail.uid in asked and after != mail.flags:
            _require_few(after)
            changes[mail.message_id] = after
            for flag, is_junk in TEACHING_FLAGS.items():
                if flag in after - mail.flags:
                    moved[is_junk].append(mail.message_id)
    seen_changed = {
        mail.message_id: SEEN in changes[mail.message_id]
        for mail in found
        if mail.message_id in changes and (SEEN in mail.flags) != (SEEN in changes[mail.message_id])
    }
    flags.set_all(tx, inbox_id, folder, changes)
    _follow_in_threads(tx, caller, seen_changed, now)
    for is_junk, message_ids in moved.items():
        teaching.record(tx, caller, inboxes.get(tx, caller.scope, inbox_id), message_ids, is_junk, now)
    now_there = [each for each in views.list_mails(tx, inbox_id, folder, uids) if each.uid in asked]
    return StoredFlags(now_there, refused)


def read_flags(given: frozenset[str]) -> frozenset[str]:
    known = {name.lower(): name for name in SYSTEM}
    found = frozenset(known.get(name.lower(), name) for name in given if name.lower() != "\\recent")
    for name in found:
        if (name.startswith("\\") and name not in SYSTEM) or len(name) > MAX_KEYWORD_LENGTH:
            raise BadRequest(f"{name[:40]} is not a supported flag.")
    return found


def _after(before: frozenset[str], wanted: frozenset[str], mode: str) -> frozenset[str]:
    return before | wanted if mode == "+" else before - wanted if mode == "-" else wanted


def _require_few(wanted: frozenset[str]) -> None:
    if len(wanted) > MOST_KEYWORDS:
        raise FolderRefused("LIMIT", f"A message has at most {MOST_KEYWORDS} flags.")


def _follow_in_threads(tx: Tx, caller: Caller, seen: dict[str, bool], now: int) -> None:
    """Record what was seen. A thread is read when all its received messages are."""
    asked = list(seen)
    for start in range(0, len(asked), uid_map.ASKED_TOGETHER):
        part = asked[start : start + uid_map.ASKED_TOGETHER]
        changed: dict[tuple[str, bool], list[str]] = {}
        for message_id, thread_id in flags.threads_of(tx, part).items():
            changed.setdefault((thread_id, seen[message_id]), []).append(message_id)
        for (thread_id, is_seen), message_ids in sorted(changed.items()):
            labels.mark_seen(tx, threads.get(tx, caller.scope, thread_id), message_ids, is_seen, now)


def copy_mails(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    folder: str,
    uids: Sequence[int],
    name: str,
    config: Config,
    now: int,
) -> list[tuple[int, int]]:
    """Copy messages; return pairs of UIDs, in this folder and in the target."""
    caller, _ = require(tx, caller, inbox_id, WRITING, now)
    target = require_folder(tx, inbox_id, name, is_target=True)
    inboxes.lock(tx, inbox_id)
    mails = views.list_mails(tx, inbox_id, folder, uids)
    if takes_away(folder, target):
        _move(tx, caller, inbox_id, folder, target, mails, config, now)
    else:
        _require_copyable(folder, target)
        _put_into(tx, caller, inbox_id, target, mails, now)
    return _pairs(tx, inbox_id, target, mails)


def takes_away(folder: str, target: str) -> bool:
    """Return whether a copy leaves the folder: a message is in Trash or Junk alone, or not there.

    Mail clients without MOVE copy a message there, and delete it here afterwards.
    """
    return (TRASH in (folder, target) or target == JUNK) and folder not in (DRAFTS, target)


def _require_copyable(folder: str, target: str) -> None:
    if target in (SENT, JUNK, DRAFTS, TRASH):
        raise FolderRefused("CANNOT", "Email cannot be copied or moved into this folder.")
    if folder == DRAFTS:
        raise FolderRefused("CANNOT", "A draft cannot be copied.")
    if folder == JUNK and target != folder:
        raise FolderRefused("CANNOT", "Move it into INBOX first: that releases it.")


def _put_into(
    tx: Tx, caller: Caller, inbox_id: str, target: str, mails: Sequence[FolderMail], now: int
) -> None:
    """Put messages into INBOX, or label them, which puts them into the label's folder."""
    if target.startswith(LABEL):
        _label_all(tx, caller, inbox_id, target, mails, now)
        return
    known = views.find_uids(tx, inbox_id, target, [mail.message_id for mail in mails])
    new = [mail.message_id for mail in mails if mail.message_id not in known]
    uid_map.place_all(tx, [FolderEntry(inbox_id, target, message_id) for message_id in new])


def _label_all(
    tx: Tx, caller: Caller, inbox_id: str, target: str, mails: Sequence[FolderMail], now: int
) -> None:
    shown = views.list_labels(tx, inbox_id)[target]
    for thread_id, message_ids in _by_thread(tx, mails).items():
        if not thread_id:
            raise FolderRefused("CANNOT", "This message is in no thread yet, and has no labels.")
        thread = threads.get(tx, caller.scope, thread_id)
        try:
            labels.change_of_messages(tx, thread, message_ids, [shown], [], now)
        except BadRequest as error:
            raise FolderRefused("LIMIT", error.message) from None


def _by_thread(tx: Tx, mails: Sequence[FolderMail]) -> dict[str, list[str]]:
    """Return the messages by thread, sorted by id: every change of labels locks threads in this order."""
    by_thread: dict[str, list[str]] = {}
    for message in messages.list_by_ids(tx, [mail.message_id for mail in mails]):
        by_thread.setdefault(message.thread_id, []).append(message.id)
    return dict(sorted(by_thread.items()))


def _pairs(tx: Tx, inbox_id: str, target: str, mails: Sequence[FolderMail]) -> list[tuple[int, int]]:
    there = views.find_uids(tx, inbox_id, target, [mail.message_id for mail in mails])
    return [(mail.uid, there[mail.message_id]) for mail in mails if mail.message_id in there]


def move_mails(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    folder: str,
    uids: Sequence[int],
    name: str,
    config: Config,
    now: int,
) -> list[tuple[int, int]]:
    target = require_folder(tx, inbox_id, name, is_target=True)
    caller, inbox = require(tx, caller, inbox_id, WRITING, now)
    inboxes.lock(tx, inbox_id)
    mails = views.list_mails(tx, inbox_id, folder, uids)
    if target == folder or (folder == DRAFTS and target != TRASH):
        raise FolderRefused("CANNOT", "This message cannot be moved there.")
    if folder == DRAFTS:
        for mail in mails:
            drafts.remove(tx, mail.message_id)  # deleted permanently; its files are swept later
    elif folder == JUNK and target != TRASH:
        _let_in(tx, caller, inbox, target, mails, config, now)
    else:
        _move(tx, caller, inbox_id, folder, target, mails, config, now)
    return _pairs(tx, inbox_id, target, mails)


def _move(
    tx: Tx,
    caller: Caller,
    inbox_id: str,
    folder: str,
    target: str,
    mails: Sequence[FolderMail],
    config: Config,
    now: int,
) -> None:
    if target == TRASH:
        _into_trash(tx, inbox_id, mails, now)
    elif target == JUNK and folder != TRASH:
        inbox = inboxes.get(tx, caller.scope, inbox_id)
        _teach(tx, caller, inbox, [mail.message_id for mail in mails], True, config, now)
    elif folder == TRASH:
        _restore(tx, caller, inbox_id, target, mails, now)
    else:
        _require_copyable(folder, target)
        _put_into(tx, caller, inbox_id, target, mails, now)
        _remove_from(tx, caller, inbox_id, folder, mails, now)


def _into_trash(tx: Tx, inbox_id: str, mails: Sequence[FolderMail], now: int) -> None:
    r"""Move emails to Trash. The flag \Deleted stays behind: it was set in the folder that they leave."""
    try:
        trash.add(tx, inbox_id, [mail.message_id for mail in mails], now)
    except BadRequest as error:
        raise FolderRefused("INUSE", error.message) from None


def _let_in(
    tx: Tx, caller: Caller, inbox: Inbox, target: str, mails: Sequence[FolderMail], config: Config, now: int
) -> None:
    if target != INBOX:
        raise FolderRefused("CANNOT", "Move it into INBOX first: that releases it.")
    for mail in mails:
        message = messages.get(tx, inbox.scope, mail.message_id)
        if message.is_junk:
            _teach(tx, caller, inbox, [message.id], False, config, now)
        elif message.is_blocked:
            require(tx, caller, inbox.id, MANAGING, now)
            audit.record_by(tx, caller, "message.released", message.id, now, within=inbox.scope)
            tx.ring(*admit.release(tx, inbox, message, config.base_url, now))
        else:
            uid_map.move(tx, inbox.id, message.id, INBOX)


def _teach(
    tx: Tx, caller: Caller, inbox: Inbox, message_ids: Sequence[str], is_junk: bool, config: Config, now: int
) -> None:
    taught = messages.list_by_ids(tx, message_ids)
    try:
        teaching.teach(tx, caller, inbox, taught, is_junk, config.base_url, now)
    except (BadRequest, NothingToDo) as error:
        raise FolderRefused("CANNOT", error.message) from None


def _restore(
    tx: Tx, caller: Caller, inbox_id: str, target: str, mails: Sequence[FolderMail], now: int
) -> None:
    """Move messages back to the folder they came from, or to a label."""
    is_label = target.startswith(LABEL)
    if not is_label and any(_home(tx, mail.message_id) != target for mail in mails):
        raise FolderRefused("CANNOT", "It can only go back to the folder it came from.")
    trash.restore(tx, inbox_id, [mail.message_id for mail in mails], now, goes_home=not is_label)
    if is_label:
        _label_all(tx, caller, inbox_id, target, mails, now)


def _home(tx: Tx, message_id: str) -> str:
    row = tx.one("select direction from messages where id = :id", id=message_id)
    return trash.home_of(row["direction"] if row else "")


def _remove_from(
    tx: Tx, caller: Caller, inbox_id: str, folder: str, mails: Sequence[FolderMail], now: int
) -> None:
    if not folder.startswith(LABEL):
        uid_map.remove(tx, inbox_id, folder, [mail.message_id for mail in mails])
        return
    for thread_id, message_ids in _by_thread(tx, mails).items():
        thread = threads.get(tx, caller.scope, thread_id)
        labels.change_of_messages(tx, thread, message_ids, [], [folder.removeprefix(LABEL)], now)


def expunge_mails(
    tx: Tx, caller: Caller, inbox_id: str, folder: str, uids: Sequence[int], now: int
) -> list[str]:
    r"""Expunge emails marked \Deleted: they go to Trash, or only leave this folder if a label has them.

    So a copy into that folder and a deletion here are a move (RFC 3501 has no other). From a label's folder
    they only lose the label. Drafts, and emails already in Trash, are deleted. Returns the blobs that are no
    longer needed.
    """
    caller, inbox = require(tx, caller, inbox_id, MANAGING if folder == TRASH else WRITING, now)
    inboxes.lock(tx, inbox_id)
    mails = [each for each in views.list_mails(tx, inbox_id, folder, uids) if DELETED in each.flags]
    if folder == DRAFTS:
        return [blob for mail in mails for blob in drafts.remove(tx, mail.message_id)]
    if folder == TRASH:
        return [blob for mail in mails for blob in _delete(tx, caller, inbox, mail, now)]
    if folder.startswith(LABEL):
        _remove_from(tx, caller, inbox_id, folder, mails, now)
    else:
        elsewhere = views.find_labelled(tx, inbox_id, [mail.message_id for mail in mails], HIDDEN)
        _remove_from(
            tx, caller, inbox_id, folder, [each for each in mails if each.message_id in elsewhere], now
        )
        _into_trash(tx, inbox_id, [each for each in mails if each.message_id not in elsewhere], now)
    return []


def _delete(tx: Tx, caller: Caller, inbox: Inbox, mail: FolderMail, now: int) -> list[str]:
    audit.record_by(tx, caller, "message.deleted", mail.message_id, now, within=inbox.scope)
    try:
        return deletion.remove_message(tx, inbox.scope, mail.message_id, now)
    except NotFound:
        return []


def file_imported(
    tx: Tx, caller: Caller, inbox_id: str, folder: str, document: Document, given: frozenset[str], now: int
) -> int:
    """Put a message from APPEND into its folder, with its flags; return its UID."""
    caller, _ = require(tx, caller, inbox_id, WRITING, now)
    if folder.startswith(LABEL):
        mail = FolderMail(0, document.id, 0, frozenset())
        _put_into(tx, caller, inbox_id, folder, [mail], now)
        uid_map.remove(tx, inbox_id, INBOX, [document.id])
        uid_map.remove(tx, inbox_id, SENT, [document.id])
    elif document.id not in views.find_uids(tx, inbox_id, folder, [document.id]):
        uid_map.move(tx, inbox_id, document.id, folder)
    wanted = read_flags(given)
    flags.set_all(tx, inbox_id, folder, {document.id: wanted})
    _follow_in_threads(tx, caller, {document.id: SEEN in wanted}, now)
    return views.find_uids(tx, inbox_id, folder, [document.id])[document.id]


def get_draft(tx: Tx, inbox_id: str, draft_id: str) -> tuple[Inbox, KeptDraft, list[KeptFile]]:
    inbox = inboxes.find(tx, inbox_id)
    if inbox is None:
        raise no_such("inbox")
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
    """Add a draft to the thread of the message that it answers; return its UID."""
    caller, inbox = require(tx, caller, inbox_id, WRITING, now)
    wanted = read_flags(given)
    thread = into_thread.resolve(tx, inbox.id, read.answers, ())
    fields = msgspec.structs.replace(read.fields, thread_id=None if thread is None else thread.id)
    texts = (fields.body, fields.body_html or "")  # a person may forward an email of the server from here
    own_emails.end_shown_links(tx, inbox.id, texts, now)
    draft = drafts.add(tx, inbox.id, msgspec.json.encode(fields), files, caller.actor, now)
    flags.set_all(tx, inbox.id, DRAFTS, {draft.id: wanted | {flags.DRAFT}})
    return views.find_uids(tx, inbox.id, DRAFTS, [draft.id])[draft.id]


def find_sent(tx: Tx, inbox_id: str, rfc_message_id: str) -> int | None:
    """Return the UID in Sent of a message sent from here, which a client gets that appends its own copy."""
    found = messages.find_outbound(tx, inbox_id, rfc_message_id, 0) if rfc_message_id else None
    return None if found is None else views.find_uids(tx, inbox_id, SENT, [found.id]).get(found.id)
