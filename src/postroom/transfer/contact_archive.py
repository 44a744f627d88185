"""A zip file with all that is stored about a contact, written and taken piece by piece."""

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec
from msgspec import Struct

from postroom.accounts.audit_entries import AuditEntry, Entry
from postroom.accounts.audit_erasure import mention_of
from postroom.accounts.scope import Scope, default_pod
from postroom.accounts.signing_keys import digest
from postroom.mailbox import contact_mail, message_json
from postroom.mailbox.contact_mail import MailCursor
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import Message
from postroom.mailbox.search import contents
from postroom.storage import packing
from postroom.storage.database import Tx
from postroom_mail.mime import filenames
from postroom_mail.mime.parse import parse_mail

ROWS = 50


class ExportedMessage(Struct, frozen=True):
    """A message as JSON, and what the search index is made of."""

    id: str
    shown: bytes
    indexed: bytes


class ExportPage(Struct, frozen=True):
    """Some lines of JSON, and where to go on; None at the end."""

    lines: Sequence[bytes]
    following: tuple[int, str] | None


class ContactArchive:
    """`take` returns what was written since the last time: nobody holds the whole file."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED)
        self._files: list[dict[str, Any]] = []
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, path: str, content: bytes) -> None:
        self._write(path, content)
        self._counts[kind] += 1

    def _write(self, path: str, content: bytes) -> None:
        self._zip.writestr(path, content)
        self._files.append({"path": path, "sizeBytes": len(content), "sha256": digest(content)})

    def add_lines(self, kind: str, lines: Sequence[bytes]) -> bytes:
        """Return some lines as a file; no file without lines."""
        if lines:
            number = sum(each["path"].startswith(f"{kind}/") for each in self._files) + 1
            self.add(kind, f"{kind}/{number:06}.jsonl", b"\n".join(lines) + b"\n")
            self._counts[kind] += len(lines) - 1
        return self.take()

    def add_message(self, message: ExportedMessage, raw: bytes, as_it_came: bytes) -> bytes:
        """Add a message and each of its files. Takes a while for a large one."""
        self.add("messages", f"messages/{message.id}.eml", raw)
        self._write(f"messages/{message.id}.json", message.shown)
        self.add("indexEntries", f"index/{message.id}.json", message.indexed)
        parts = parse_mail(as_it_came).attachments if as_it_came else []
        for name, part in zip(filenames.unique([each.filename for each in parts]), parts, strict=True):
            self.add("files", f"files/{message.id}/{filenames.clean(name)}", part.content)
        return self.take()

    def close(self, about: dict[str, Any]) -> bytes:
        """Return the end of the file, with the manifest."""
        manifest = {**about, "counts": dict(sorted(self._counts.items())), "files": self._files}
        self._zip.writestr("manifest.json", msgspec.json.encode(manifest))
        self._zip.close()
        return self.take()

    def take(self) -> bytes:
        return self._sink.take()


class _Sink(io.RawIOBase):
    """Takes bytes that cannot be written again: a zip file then has its sizes behind each file."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._pieces.append(bytes(content))
        return len(self._pieces[-1])

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def list_messages(
    tx: Tx, place: MailCursor, address: str, until: int
) -> tuple[list[ExportedMessage], MailCursor | None]:
    found, following = contact_mail.list_page(tx, place, until, ROWS)
    return [_export(tx, each) for each in contact_mail.of_address(tx, found, address)], following


def _export(tx: Tx, message: Message) -> ExportedMessage:
    [shown] = message_json.to_json(tx, [message], Links("", 0, b""))
    return ExportedMessage(message.id, shown, msgspec.json.encode(contents.read(tx, message)))


def list_rows(tx: Tx, place: MailCursor, address: str) -> tuple[list[bytes], MailCursor | None]:
    """List the drafts or appointments that name the address."""
    kind = contact_mail.OF_INBOX[place.part]
    rows = tx.all(
        f"select * from {kind} where inbox_id = :inbox_id and id > :id order by id limit :limit",
        inbox_id=place.inbox_id,
        id=place.id,
        limit=ROWS,
    )
    column = "fields" if place.part == contact_mail.DRAFTS else "content"
    lines = []
    for row in rows:
        stored = row[column].encode() if isinstance(row[column], str) else bytes(row[column])
        if mention_of(address).search(stored.decode(errors="replace")):
            shown = {"id": row["id"], "inboxId": row["inbox_id"], column: msgspec.Raw(stored)}
            lines.append(msgspec.json.encode(shown))
    following = msgspec.structs.replace(place, id=rows[-1]["id"]) if len(rows) == ROWS else None
    return lines, following


def list_events(tx: Tx, scope: Scope, address: str, behind: tuple[int, str], until: int) -> ExportPage:
    rows = tx.all(
        "select position, pod_id, payload from events where account_id = :account_id"
        " and position > :after and created_at <= :until order by position limit :rows",
        account_id=scope.account_id,
        after=behind[0],
        until=until,
        rows=ROWS,
    )
    mention, default = mention_of(address), default_pod(scope.account_id)
    stored = [
        packing.unpack_json(bytes(row["payload"]))
        for row in rows
        if scope.pod_id in (None, row["pod_id"] or default)
    ]
    lines = [each for each in stored if mention.search(each.decode(errors="replace"))]
    return ExportPage(lines, (rows[-1]["position"], "") if len(rows) == ROWS else None)


def list_audit(tx: Tx, scope: Scope, address: str, behind: tuple[int, str], until: int) -> ExportPage:
    owner, owner_id = scope.owner
    rows = tx.all(
        f"select * from audit where {owner} = :owner_id and (created_at, id) > (:at, :id)"
        " and created_at <= :until order by created_at, id limit :rows",
        owner_id=owner_id,
        at=behind[0],
        id=behind[1],
        until=until,
        rows=ROWS,
    )
    mention = mention_of(address)
    lines = [
        msgspec.json.encode(AuditEntry.of(Entry.from_row(row)))
        for row in rows
        if any(mention.search(row[name] or "") for name in ("target", "before", "after"))
    ]
    return ExportPage(lines, (rows[-1]["created_at"], rows[-1]["id"]) if len(rows) == ROWS else None)
