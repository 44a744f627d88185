"""Folders that are labels: created, renamed and removed by a mail client."""

from postroom.accounts.keys import Caller
from postroom.accounts.permissions import WRITING
from postroom.errors import BadRequest
from postroom.mailbox import labels
from postroom.mailbox.folders import uid_map, views
from postroom.operations.folders.names import (
    SHOWN,
    FolderRefused,
    folder_of,
    require,
    require_folder,
    unescaped,
)
from postroom.storage.database import Tx, insert

FOLDERS_OF_AN_INBOX = 1000


def create_folder(tx: Tx, caller: Caller, inbox_id: str, name: str, now: int) -> None:
    """Create a folder: store a label without messages."""
    require(tx, caller, inbox_id, WRITING, now)
    uid_map.lock(tx, inbox_id)
    _add_folder(tx, inbox_id, name)


def _add_folder(tx: Tx, inbox_id: str, name: str) -> str:
    label, folder = unescaped(name).strip(), folder_of(name)
    if folder in SHOWN or views.has(tx, inbox_id, folder):
        raise FolderRefused("ALREADYEXISTS", "This folder already exists.")
    try:
        labels.require_valid([label], "label")
    except BadRequest as error:
        raise FolderRefused("CANNOT", error.message) from None
    if "/" in name:
        raise FolderRefused("CANNOT", "Folders cannot contain folders.")
    if len(views.list_labels(tx, inbox_id)) >= FOLDERS_OF_AN_INBOX:
        raise FolderRefused("LIMIT", f"An inbox has at most {FOLDERS_OF_AN_INBOX} folders.")
    insert(tx, "folders", inbox_id=inbox_id, folder=folder, shown=label, next_uid=1)
    return folder


def delete_folder(tx: Tx, caller: Caller, inbox_id: str, name: str, now: int) -> None:
    """Remove the label from all its messages; they stay in their other folders."""
    require(tx, caller, inbox_id, WRITING, now)
    folder = require_folder(tx, inbox_id, name)
    if folder in SHOWN:
        raise FolderRefused("CANNOT", "This folder is always there.")
    uid_map.lock(tx, inbox_id)
    of_folder = {"id": inbox_id, "folder": folder}
    label = folder.removeprefix(uid_map.LABEL)
    labels.take_off(tx, inbox_id, label, "inbox_id = :inbox", now, inbox=inbox_id)
    tx.run("delete from labels where inbox_id = :id and label = :label", id=inbox_id, label=label)
    tx.run("delete from folder_mails where inbox_id = :id and folder = :folder", **of_folder)
    tx.run("delete from folders where inbox_id = :id and folder = :folder", **of_folder)
    uid_map.record_removal(tx, inbox_id)


def rename_folder(tx: Tx, caller: Caller, inbox_id: str, name: str, new_name: str, now: int) -> None:
    require(tx, caller, inbox_id, WRITING, now)
    folder = require_folder(tx, inbox_id, name)
    if folder in SHOWN:
        raise FolderRefused("CANNOT", "This folder cannot be renamed.")
    uid_map.lock(tx, inbox_id)
    new = _add_folder(tx, inbox_id, new_name)
    old_label, new_label = folder.removeprefix(uid_map.LABEL), new.removeprefix(uid_map.LABEL)
    labels.rename(tx, inbox_id, old_label, new_label, unescaped(new_name).strip(), now)
    modseq = uid_map.record_removal(tx, inbox_id)
    tx.run(
        "update folder_mails set folder = :new, modseq = :modseq where inbox_id = :id and folder = :old",
        new=new,
        modseq=modseq,
        old=folder,
        id=inbox_id,
    )
    tx.run(
        "update folders set next_uid = (select next_uid from folders where inbox_id = :id and folder = :old)"
        " where inbox_id = :id and folder = :new",
        id=inbox_id,
        old=folder,
        new=new,
    )
    tx.run("delete from folders where inbox_id = :id and folder = :old", id=inbox_id, old=folder)
