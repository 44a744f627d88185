"""Exports all mail of an account to files that other programs read: mbox, JSON, and every attachment."""

import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from postroom.accounts.accounts import Account
from postroom.clock import to_iso
from postroom.mailbox import inboxes, message_json, messages, raw_mails
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import Message
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.data_folder import make_folder
from postroom.storage.database import Tx
from postroom.transfer.mbox import to_mbox
from postroom_mail.mime.address import parse_list
from postroom_mail.mime.parse import parse_mail

PAGE = 50
# Each by its index: listed mail, blocked mail, and Trash.
PARTS = (messages.LISTED, "direction = 'blocked' and is_trashed = 0", "is_trashed = 1")
Exported = tuple[Message, dict[str, Any]]


async def export_account(
    resources: Resources, account: Account, folder: Path, report: Callable[[int], None]
) -> int:
    """Export into a new folder that only its owner can read. Return the number of messages."""
    _make_folder(folder)
    shown, count = [], 0
    async for inbox in _all_inboxes(resources, account):
        place = folder / inbox.address
        _make_folder(place)
        count += await _export_inbox(resources, inbox, place, lambda: report(1))
        shown.append(_show_inbox(inbox))
    with open_private(folder / "account.json") as file:
        file.write(json.dumps(_show_account(account, shown), indent=1, ensure_ascii=False).encode())
    return count


def _make_folder(folder: Path) -> None:
    """Raises FileExistsError."""
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700)


def open_private(path: Path) -> BinaryIO:
    """Open a new file, created so that only its owner can read it."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _show_account(account: Account, shown: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": account.id,
        "name": account.name,
        "plan": account.plan,
        "retentionDays": account.retention_days,
        "createdAt": to_iso(account.created_at),
        "inboxes": shown,
    }


def _show_inbox(inbox: Inbox) -> dict[str, Any]:
    return {
        "id": inbox.id,
        "address": inbox.address,
        "aliases": list(inbox.own_addresses[1:]),
        "catchAll": bool(inbox.catch_all),
        "subdomains": bool(inbox.subdomains),
        "displayName": inbox.display_name,
        "metadata": inboxes.decode_metadata(inbox.metadata),
        "retentionDays": inbox.retention_days,
        "createdAt": to_iso(inbox.created_at),
    }


async def _all_inboxes(resources: Resources, account: Account) -> AsyncIterator[Inbox]:
    after = ""
    while found := await resources.db.read(_list_inboxes, account.id, after):
        for inbox in found:
            yield inbox
        after = found[-1].id


def _list_inboxes(tx: Tx, account_id: str, after: str) -> list[Inbox]:
    rows = tx.all(
        "select * from inboxes where account_id = :id and id > :after order by id limit :rows",
        id=account_id,
        after=after,
        rows=PAGE,
    )
    return [Inbox.from_row(row) for row in rows]


async def _export_inbox(resources: Resources, inbox: Inbox, place: Path, report: Callable[[], None]) -> int:
    count = 0
    with open_private(place / "mail.mbox") as mbox, open_private(place / "messages.jsonl") as lines:
        for which in PARTS:
            after = (-1, "")
            while page := await resources.db.read(_list_messages, inbox, after, which):
                for message, document in page:
                    raw = await raw_mails.read(resources, message.id, with_trace=True)
                    mbox.write(to_mbox(raw, _sender(document), message.created_at))
                    if message.has_attachments:
                        as_it_came = await raw_mails.read(resources, message.id, with_trace=False)
                        await pools.FILES.run(_put_files, place, message.id, document, as_it_came)
                    lines.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
                    count += 1
                    report()
                after = page[-1][0].created_at, page[-1][0].id
    return count


def _list_messages(tx: Tx, inbox: Inbox, after: tuple[int, str], which: str) -> list[Exported]:
    """List the messages after a given one, oldest first."""
    rows = tx.all(
        f"select id from messages where inbox_id = :inbox_id and {which} and (created_at, id) > (:at, :id)"
        " order by created_at, id limit :rows",
        inbox_id=inbox.id,
        at=after[0],
        id=after[1],
        rows=PAGE,
    )
    found = [message for row in rows if (message := messages.find(tx, row["id"])) is not None]
    shown = map(msgspec.json.decode, message_json.to_json(tx, found, Links("", 0, b"")))
    return list(zip(found, shown, strict=True))


def _sender(document: dict[str, Any]) -> str:
    found = parse_list(document["fromAddr"])
    return "".join(found[0].address.split()) if found else ""


def _put_files(place: Path, message_id: str, document: dict[str, Any], raw: bytes) -> None:
    """Put each file next to the JSON, which names it instead of a link."""
    folder = place / "attachments" / message_id
    _make_folder(folder)
    parts = {part.filename: part.content for part in parse_mail(raw).attachments}
    for attachment in document["attachments"]:
        name = Path(attachment["filename"]).name
        attachment["url"] = f"attachments/{message_id}/{name}"
        with open_private(folder / name) as file:
            file.write(parts.get(attachment["filename"], b""))
