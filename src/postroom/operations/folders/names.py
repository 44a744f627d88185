"""Names of folders as mail clients see them, and who may use them."""

from collections.abc import Sequence
from typing import NamedTuple

from postroom.accounts import keys, permissions
from postroom.accounts.keys import Caller
from postroom.errors import Unauthorized
from postroom.mailbox import inboxes, labels
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of

SHOWN = {
    uid_map.INBOX: "INBOX",
    uid_map.SENT: "Sent",
    uid_map.DRAFTS: "Drafts",
    uid_map.JUNK: "Junk",
    uid_map.TRASH: "Trash",
}


class FolderRefused(Exception):
    """Something that cannot be done with folders; `word` is a response code of RFC 5530."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word
        self.message = message


class InboxLogin(NamedTuple):
    caller: Caller
    inbox: Inbox


def log_in(tx: Tx, name: str, token: str, needed: tuple[str, ...], now: int) -> InboxLogin:
    """Log in with the address or id of an inbox and a key. A wrong name and a wrong key look the same."""
    caller = keys.find_caller(tx, token, now)
    by_id = inboxes.find(tx, name) if name.startswith("inb_") else None
    inbox = by_id or inboxes.find_by_address(tx, mailbox_of(name))
    if caller is None or inbox is None or not inboxes.is_within(inbox, caller.scope):
        raise Unauthorized("The user name is the inbox's address, the password an API key for it.")
    permissions.require_any(caller.permissions, needed)
    return InboxLogin(caller, inbox)


def require(tx: Tx, caller: Caller, inbox_id: str, needed: tuple[str, ...], now: int) -> tuple[Caller, Inbox]:
    """Return the caller with the key's current permissions: the login may be long ago."""
    fresh = keys.find_caller_by_id(tx, caller.key_id, now)
    if fresh is None:
        raise Unauthorized("This API key is no longer valid.")
    permissions.require_any(fresh.permissions, needed)
    return fresh, inboxes.get(tx, fresh.scope, inbox_id)


def find_allowed(
    tx: Tx, asked: Sequence[tuple[str, str]], either: Sequence[str], now: int
) -> set[tuple[str, str]]:
    """Return the pairs of key and inbox that still exist and where the key has one of the permissions."""
    allowed = keys.find_allowed(tx, sorted({key_id for key_id, _ in asked}), either, now)
    there = {inbox_id for inbox_id in {each for _, each in asked} if inboxes.find(tx, inbox_id) is not None}
    return {(key_id, inbox_id) for key_id, inbox_id in asked if key_id in allowed and inbox_id in there}


def open_folders(tx: Tx, caller: Caller, inbox_id: str, now: int) -> int:
    """Assign UIDs to all existing messages, once; return the UIDVALIDITY."""
    require(tx, caller, inbox_id, permissions.READING, now)
    return uid_map.open_inbox(tx, inbox_id, now)


def list_folders(tx: Tx, inbox_id: str) -> dict[str, str]:
    """Return the folders by name, the fixed ones first. A label named like one of them gets no folder."""
    labelled = {
        folder: escaped(shown)
        for folder, shown in views.list_labels(tx, inbox_id).items()
        if folder.removeprefix(uid_map.LABEL) not in SHOWN
    }
    return SHOWN | labelled


def find_folder(tx: Tx, inbox_id: str, name: str) -> str | None:
    folder = folder_of(name)
    return folder if views.has(tx, inbox_id, folder) else None


def folder_of(name: str) -> str:
    """Return the folder of a name, compared without case."""
    folded = labels.fold(unescaped(name))
    return folded if folded in SHOWN else uid_map.of_label(folded)


def require_folder(tx: Tx, inbox_id: str, name: str, is_target: bool = False) -> str:
    folder = find_folder(tx, inbox_id, name)
    if folder is None:
        raise FolderRefused("TRYCREATE" if is_target else "NONEXISTENT", "No such folder.")
    return folder


def escaped(label: str) -> str:
    """Return the label escaped: a slash would make folders inside folders."""
    return label.replace("%", "%25").replace("/", "%2F")


def unescaped(name: str) -> str:
    return name.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")
