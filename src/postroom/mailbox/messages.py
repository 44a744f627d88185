"""Messages: one mail in one inbox. Its JSON for the interface is encoded once and passed through."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct, UnsetType

from postroom import ids
from postroom.errors import NotFound
from postroom.mailbox import attachments
from postroom.mailbox.attachments import Attachment
from postroom.storage.database import Row, Tx

INBOUND, OUTBOUND = "inbound", "outbound"
PENDING, SENT, RECEIVED, FAILED = "pending", "sent", "received", "failed"
RAW_IN_ROW_BYTES = 64 * 1024
THREAD_IDS_LIMIT = 300

COLUMNS = "messages.id, messages.inbox_id, messages.thread_id, status, has_attachments, document"


class Verdicts(Struct, frozen=True):
    """What SPF, DKIM and DMARC say of the sender (RFC 8601 words)."""

    spf: str
    dkim: str
    dmarc: str
    domain: str


class Document(Struct, rename="camel", frozen=True):
    """All of a message that neither changes nor expires."""

    id: str
    thread_id: str
    inbox_id: str
    direction: str
    from_addr: str
    to_addr: str
    header_to: str
    delivery_role: str | None
    cc: list[str]
    subject: str
    body_text: str
    body_html: str
    created_at: str
    rfc_message_id: str
    reply_text: str
    auth: Verdicts | None
    automated: bool
    new_participant: bool
    codes: list[str]
    links: list[str]
    parse_error: str | UnsetType = UNSET


class ShownAttachment(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    size_bytes: int
    url: str
    parsed_text: str | UnsetType = UNSET
    extraction_method: str | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    inbox_id: str
    thread_id: str
    status: str
    has_attachments: bool
    document: bytes

    @classmethod
    def from_row(cls, row: Row) -> "Message":
        return cls(
            row["id"],
            row["inbox_id"],
            row["thread_id"],
            row["status"],
            bool(row["has_attachments"]),
            bytes(row["document"]),
        )


class NewMessage(Struct, frozen=True):
    """A message to be stored, with the mail as it came or the blob that holds it."""

    document: Document
    status: str
    from_address: str
    has_attachments: bool
    raw: bytes | None
    blob: str | None
    created_at: int
    trace_bytes: int = 0  # of our own trace field, before the mail as it came


@dataclass(frozen=True, slots=True)
class RawMail:
    """The bytes, or the name of the blob that holds them; how many of them are our own trace field."""

    content: bytes | None
    blob: str | None
    trace_bytes: int


@dataclass(frozen=True, slots=True)
class Links:
    """Makes the links of a message's attachments, valid from `now`."""

    base_url: str
    secret: bytes
    now: int

    def url(self, message_id: str, filename: str) -> str:
        return attachments.signed_url(self.base_url, self.secret, message_id, filename, self.now)


def take_over(tx: Tx, handovers: Sequence[tuple[str, str, int]]) -> list[bool]:
    """Remembers that an inbox was handed a content at a time; for each, whether it is the first time."""
    returned = tx.many(
        "insert into handovers (inbox_id, content_hash, received_at) values :rows on conflict do nothing"
        " returning inbox_id, content_hash",
        handovers,
    )
    new = {(row["inbox_id"], row["content_hash"]) for row in returned}
    answers = []
    for inbox_id, content_hash, _ in handovers:
        answers.append((inbox_id, content_hash) in new)
        new.discard((inbox_id, content_hash))
    return answers


def add_all(tx: Tx, new: Sequence[NewMessage]) -> None:
    tx.many(
        "insert into messages (id, inbox_id, thread_id, direction, status, rfc_message_id, from_address,"
        " has_attachments, document, created_at) values :rows",
        [_to_row(message) for message in new],
    )
    tx.many(
        "insert into raw_mails (message_id, content, blob, trace_bytes) values :rows",
        [(message.document.id, message.raw, message.blob, message.trace_bytes) for message in new],
    )


def _to_row(new: NewMessage) -> tuple[object, ...]:
    document = new.document
    return (
        document.id,
        document.inbox_id,
        document.thread_id,
        document.direction,
        new.status,
        document.rfc_message_id,
        new.from_address,
        int(new.has_attachments),
        msgspec.json.encode(document),
        new.created_at,
    )


def set_verdicts(tx: Tx, message: Message, verdicts: Verdicts | None) -> Document:
    """None leaves them as they were."""
    document = read_document(message)
    if verdicts is None:
        return document
    judged = msgspec.structs.replace(document, auth=verdicts)
    tx.run(
        "update messages set document = :document where id = :id",
        document=msgspec.json.encode(judged),
        id=message.id,
    )
    return judged


def find(tx: Tx, message_id: str) -> Message | None:
    row = tx.one(f"select {COLUMNS} from messages where id = :id", id=message_id)
    return None if row is None else Message.from_row(row)


def find_outbound(tx: Tx, inbox_id: str, rfc_message_id: str, since: int) -> Message | None:
    row = tx.one(
        f"select {COLUMNS} from messages where inbox_id = :inbox_id and rfc_message_id = :rfc_message_id"
        " and direction = 'outbound' and created_at >= :since limit 1",
        inbox_id=inbox_id,
        rfc_message_id=rfc_message_id,
        since=since,
    )
    return None if row is None else Message.from_row(row)


def get(tx: Tx, account_id: str, scope: str | None, message_id: str) -> Message:
    """`scope` is the one inbox that the caller's key reaches; None reaches all of the account."""
    row = ids.is_id(ids.MESSAGE, message_id) and tx.one(
        f"select {COLUMNS} from messages join inboxes on inboxes.id = messages.inbox_id"
        " where messages.id = :id and inboxes.account_id = :account_id",
        id=message_id,
        account_id=account_id,
    )
    if not row or scope not in (None, row["inbox_id"]):
        raise NotFound("No such message.")
    return Message.from_row(row)


def find_last(tx: Tx, thread_id: str, direction: str | None = None) -> Document | None:
    """The newest message of a thread, or the newest of one direction."""
    filtered = "" if direction is None else " and direction = :direction"
    row = tx.one(
        f"select document from messages where thread_id = :thread_id{filtered}"
        " order by created_at desc, id desc limit 1",
        thread_id=thread_id,
        **({} if direction is None else {"direction": direction}),
    )
    return None if row is None else msgspec.json.decode(bytes(row["document"]), type=Document)


def rfc_ids_of_thread(tx: Tx, thread_id: str) -> list[str]:
    """Oldest first; of an endless thread the first and the newest."""
    newest = tx.all(
        "select rfc_message_id from messages where thread_id = :thread_id"
        " order by created_at desc, id desc limit :limit",
        thread_id=thread_id,
        limit=THREAD_IDS_LIMIT,
    )
    first = tx.all(
        "select rfc_message_id from messages where thread_id = :thread_id order by created_at, id limit 1",
        thread_id=thread_id,
    )
    found = [row["rfc_message_id"] for row in (*first, *reversed(newest))]
    return [rfc_id for rfc_id in dict.fromkeys(found) if rfc_id]


def hold(tx: Tx, message_id: str) -> None:
    """Keeps other transactions off the message and its recipients until this one ends.

    Without it two last recipients could finish side by side, and neither would see that all are done.
    """
    tx.run("update messages set status = status where id = :id", id=message_id)


def set_status(tx: Tx, message_id: str, status: str) -> bool:
    """False when the message has it already."""
    changed = tx.run(
        "update messages set status = :status where id = :id and status <> :status",
        status=status,
        id=message_id,
    )
    return changed == 1


def read_document(message: Message) -> Document:
    return msgspec.json.decode(message.document, type=Document)


def require_visible(tx: Tx, message_id: str) -> None:
    """For links that carry no account: the message is there until its inbox is deleted."""
    found = ids.is_id(ids.MESSAGE, message_id) and tx.one(
        "select 1 as found from messages join inboxes on inboxes.id = messages.inbox_id"
        " where messages.id = :id",
        id=message_id,
    )
    if not found:
        raise NotFound("No such message.")


def get_raw(tx: Tx, message_id: str) -> RawMail:
    row = tx.one("select content, blob, trace_bytes from raw_mails where message_id = :id", id=message_id)
    if row is None:
        raise NotFound("No such message.")
    content = None if row["content"] is None else bytes(row["content"])
    return RawMail(content, row["blob"], row["trace_bytes"])


def is_blob_used(tx: Tx, blob: str) -> bool:
    return tx.one("select 1 as found from raw_mails where blob = :blob limit 1", blob=blob) is not None


def list_of_thread(tx: Tx, thread_id: str, limit: int, offset: int) -> list[Message]:
    rows = tx.all(
        f"select {COLUMNS} from messages where thread_id = :thread_id"
        " order by created_at, id limit :limit offset :offset",
        thread_id=thread_id,
        limit=limit,
        offset=offset,
    )
    return [Message.from_row(row) for row in rows]


def list_of_inbox(
    tx: Tx, inbox_id: str, direction: str | None, limit: int, offset: int
) -> tuple[list[Message], int]:
    filtered = "" if direction is None else " and direction = :direction"
    rows = tx.all(
        f"select {COLUMNS} from messages where inbox_id = :inbox_id{filtered}"
        " order by created_at desc, id desc limit :limit offset :offset",
        inbox_id=inbox_id,
        limit=limit,
        offset=offset,
        **({} if direction is None else {"direction": direction}),
    )
    return [Message.from_row(row) for row in rows], _total(tx, inbox_id, direction)


def to_json(tx: Tx, found: Sequence[Message], links: Links) -> list[bytes]:
    """The stored bytes, with what changes or expires put in at the end."""
    carrying = [message.id for message in found if message.has_attachments]
    files = attachments.list_of_messages(tx, carrying)
    return [_complete(message, files.get(message.id, []), links) for message in found]


def _complete(message: Message, files: Sequence[Attachment], links: Links) -> bytes:
    shown = msgspec.json.encode([_show(message.id, file, links) for file in files])
    return b'%s,"status":"%s","attachments":%s}' % (message.document[:-1], message.status.encode(), shown)


def _show(message_id: str, file: Attachment, links: Links) -> ShownAttachment:
    return ShownAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=links.url(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else file.parsed_text,
        extraction_method=UNSET if file.extraction_method is None else file.extraction_method,
    )


def _total(tx: Tx, inbox_id: str, direction: str | None) -> int:
    row = tx.one("select inbound_count, outbound_count from inboxes where id = :id", id=inbox_id)
    if row is None:
        return 0
    counts = {INBOUND: row["inbound_count"], OUTBOUND: row["outbound_count"]}
    return int(sum(counts.values()) if direction is None else counts[direction])
