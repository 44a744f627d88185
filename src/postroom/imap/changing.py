"""STORE, COPY, MOVE, EXPUNGE, CLOSE, and creating, renaming and removing folders."""

from postroom.imap import listing
from postroom.imap.dialogue.requests import (
    CopyMails,
    CreateFolder,
    DeleteFolder,
    ExpungeMails,
    NumberSet,
    RenameFolder,
    StoreFlags,
    UnselectFolder,
)
from postroom.imap.state import ImapState
from postroom.imap.view import batches
from postroom.mailbox import raw_mails
from postroom.mailbox.folders import uid_map
from postroom.operations.folders import labels, mails, names
from postroom_mail.mime import imap_values

TOGETHER = 200
COPIED_TOGETHER = 5_000
READ_ONLY = b"NO [READ-ONLY] The folder was opened to be read alone."
NO_SUCH = b"BAD There is no message with such a number."
ALL = NumberSet(((1, 2**32),))


async def change_folders(client: ImapState, request: CreateFolder | DeleteFolder | RenameFolder) -> bytes:
    (caller, inbox_id), db, now = client.who, client.resources.db, client.resources.now()
    match request:
        case CreateFolder(name):
            await db.write(labels.create_folder, caller, inbox_id, name.removesuffix("/"), now)
        case DeleteFolder(name):
            await db.write(labels.delete_folder, caller, inbox_id, name, now)
        case RenameFolder(name, new_name):
            await db.write(labels.rename_folder, caller, inbox_id, name, new_name, now)
    return b"OK Done."


async def perform(
    client: ImapState, request: StoreFlags | CopyMails | ExpungeMails | UnselectFolder
) -> bytes:
    if isinstance(request, UnselectFolder):
        return await _unselect(client, request)
    if client.selected.is_read_only and not (isinstance(request, CopyMails) and not request.moves):
        return READ_ONLY
    if isinstance(request, ExpungeMails):
        return await _expunge(client, request)
    if not request.by_uid and not client.selected.has_all(request.which):
        return NO_SUCH
    if isinstance(request, StoreFlags):
        return await _store(client, request)
    return await _copy(client, request)


async def _unselect(client: ImapState, request: UnselectFolder) -> bytes:
    if request.expunges and not client.selected.is_read_only:
        await _expunge_marked(client, client.selected.uids.tolist())
    client.view = None
    return b"OK Done."


async def _store(client: ImapState, request: StoreFlags) -> bytes:
    view, (caller, inbox_id) = client.selected, client.who
    uids = view.select(request.which, request.by_uid)
    listing.want_modseq(client, request.unchanged_since is not None)
    refused: list[int] = []
    for some in batches(uids, TOGETHER):
        stored = await client.resources.db.write(
            mails.change_flags,
            caller,
            inbox_id,
            view.folder,
            some,
            request.mode,
            request.flags,
            request.unchanged_since,
            client.resources.now(),
        )
        refused += stored.refused
        for mail in stored.mails:
            if not request.is_silent or client.wants_modseq:
                listing.write_flags(client, mail.uid, mail.flags, mail.modseq, request.by_uid)
        await client.output.drain()
    known = frozenset(uids) - frozenset(refused)
    await listing.write_changes(client, may_expunge=request.by_uid, unreported=known, by_uid=request.by_uid)
    if refused:
        shown = refused if request.by_uid else [view.number_of(uid) or 0 for uid in refused]
        # RFC 7162 section 3.1.3
        return b"OK [MODIFIED " + imap_values.numbers(shown) + b"] Some had changed meanwhile."
    return b"OK Done."


async def _copy(client: ImapState, request: CopyMails) -> bytes:
    view, (caller, inbox_id) = client.selected, client.who
    uids = view.select(request.which, request.by_uid)
    db, now, config = client.resources.db, client.resources.now(), client.resources.config
    if view.is_read_only and mails.takes_away(view.folder, names.folder_of(request.folder)):
        return READ_ONLY
    if not uids:
        return b"OK There is no such message."
    pairs: list[tuple[int, int]] = []
    if request.moves:  # RFC 6851 section 4.4: it may stop midway
        for some in batches(uids, TOGETHER):
            pairs += await db.write(
                mails.move_mails, caller, inbox_id, view.folder, some, request.folder, config, now
            )
    elif len(uids) > COPIED_TOGETHER:
        return b"NO [LIMIT] Copy at most %d messages at once." % COPIED_TOGETHER
    else:  # all of them or none
        pairs = await db.write(
            mails.copy_mails, caller, inbox_id, view.folder, uids, request.folder, config, now
        )
    validity = await db.read(uid_map.find_validity, inbox_id)
    pairs.sort()
    there, here = (imap_values.numbers(side) for side in zip(*pairs, strict=True)) if pairs else (b"", b"")
    # RFC 4315 section 3
    code = b"[COPYUID %d %s %s] " % (validity or 0, there, here) if pairs else b""
    if request.moves:  # RFC 6851 section 4.3: before the numbers of the others change
        client.output.write(b"* OK %sMoved.\r\n" % code)
        code = b""
    # A program that copies to Trash by numbers goes on with STORE by the same numbers.
    may_expunge = request.moves or request.by_uid
    await listing.write_changes(client, may_expunge=may_expunge, by_uid=request.by_uid)
    return b"OK " + code + b"Done."


async def _expunge(client: ImapState, request: ExpungeMails) -> bytes:
    await _expunge_marked(client, client.selected.select(request.uids or ALL, by_uid=True))
    await listing.write_changes(client)
    return b"OK Done."


async def _expunge_marked(client: ImapState, uids: list[int]) -> None:
    view, (caller, inbox_id) = client.selected, client.who
    db, now = client.resources.db, client.resources.now
    for some in batches(uids, TOGETHER):
        for blob in await db.write(mails.expunge_mails, caller, inbox_id, view.folder, some, now()):
            await raw_mails.remove_blob(client.resources, blob)
