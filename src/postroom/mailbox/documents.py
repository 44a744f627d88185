"""Documents: all of a message that neither changes nor expires, stored in the fields of the interface.

The reply text is nearly always a part of the text; then the row stores its span instead of a second copy.
A document is compressed if that makes it shorter; its length is then stored too. Lists read an outline of
large ones.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from postroom.mailbox.origins import CarriedOrigins
from postroom.storage import packing, pages
from postroom.storage.database import Row, Tx, all_of
from postroom_mail.reading.calendar import Attendee, Occurrence
from postroom_mail.reading.category import Category
from postroom_mail.reading.links import LinkDetail

AS_GIVEN = "As it came, if it has invisible characters, which the other leaves out."
ANOTHER_ADDRESS = "The alias or other address of the inbox that the email came to, if not its own."
AS_IT_CAME = "The message that this one redirects unchanged, still from its author."
OF_TRACE = "Of the trace (W3C) that the message belongs to, if it was sent or received in one."
NOT_ANALYZED = "`failed`: a reader of its meaning failed. The message holds what could be read."
RULED = "The rules that matched it when it came, and what they did."
COPIED = "The message of another inbox that a rule copied here."
COLUMNS = "document, reply_at, reply_bytes"
WRITTEN_COLUMNS = f"{COLUMNS}, document_bytes, kept_category"
# Lists read an outline of documents that are larger as JSON; `0144_outlines.sql` has the number too.
LARGE_BYTES = 32 * 1024
# The size of the document as JSON, in SQL. `document_bytes` is behind the document, and SQLite reads all
# pages up to a column; the length of a document is known without them, and a compressed one is never longer.
SIZE = (
    f"case when length(document) > {LARGE_BYTES} then coalesce((select document_bytes from message_outlines"
    " where message_id = messages.id), messages.document_bytes, length(document))"
    " else coalesce(messages.document_bytes, length(document)) end"
)
_LISTED = (
    f"case when length(document) > {LARGE_BYTES} then %s"
    f" when document_bytes > {LARGE_BYTES} then %s else %s end"
)
_OUTLINE = "(select outline from message_outlines where message_id = messages.id)"
# As COLUMNS, but of a large document its outline; null if that is not made yet.
LISTED_COLUMNS = ", ".join(
    f"{_LISTED % (large, large, column)} as {column}"
    for column, large in (("document", _OUTLINE), ("reply_at", "null"), ("reply_bytes", "null"))
)
OUTLINE_CHARACTERS = 1_000
OUTLINE_ADDRESSES = 50
Columns = tuple[bytes, int | None, int | None]
WrittenColumns = tuple[bytes, int | None, int | None, int | None, str | None]
Piece = bytes | memoryview  # of JSON
_BODY_KEY, _BEHIND_BODY, _REPLY_KEY = b'"bodyText":"', b'","bodyHtml":"', b'"replyText":"'

Verdict = Literal["clean", "suspicious", "malicious"]
Disposed = Literal["none", "quarantine"]
OF_POLICY = "What the domain asks for where DMARC fails, if it asks for anything: quarantine or reject."


OF_DISPOSITION = (
    "What the server did with what the domain asks for: none, or quarantine, which counts as junk."
)
OF_OVERRIDE = "Why it did less than that: trusted_forwarder, mailing_list, policy_test_mode or local_policy."


class Verdicts(Struct, frozen=True):
    """What SPF, DKIM and DMARC say of the sender (RFC 8601 words); and ARC, where forwarders sealed it."""

    spf: str
    dkim: str
    dmarc: str
    domain: str
    arc: str | UnsetType = UNSET
    policy: Annotated[str, Meta(description=OF_POLICY)] | UnsetType = UNSET
    disposition: Annotated[Disposed, Meta(description=OF_DISPOSITION)] | UnsetType = UNSET
    override: Annotated[str, Meta(description=OF_OVERRIDE)] | UnsetType = UNSET


class Signal(Struct, frozen=True):
    """A warning about an email: why, and which of its words caused it."""

    name: str
    weight: int
    reason: str
    excerpt: str


class RuleStep(Struct, rename="camel", frozen=True):
    """What an action of a rule did; `reason` says why not. `messageId` is what it sent or copied."""

    type: str
    outcome: Literal["done", "queued", "skipped", "failed"]
    reason: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET


class RuleTrace(Struct, frozen=True):
    """A rule that matched the message, and what it did."""

    id: str
    name: str
    actions: list[RuleStep]


class Appointment(Struct, rename="camel", frozen=True):
    """`start` and `end` are as written (ISO 8601); the moments are known if the zone is.

    `recurrence_id` names the one occurrence of a series that it is about; `occurrences` differ from it.
    """

    method: str
    uid: str
    summary: str
    start: str
    end: str
    start_at: str | None
    end_at: str | None
    all_day: bool
    time_zone: str
    location: str
    organizer: str
    attendees: list[Attendee]
    attendee_count: int
    answer_expected: bool
    recurrence: str
    status: str
    recurrence_id: str = ""
    sequence: int = 0
    ex_dates: list[str] = []
    occurrences: list[Occurrence] = []
    join_url: str = ""


class JunkReason(Struct, frozen=True):
    """One thing that speaks for junk (weight above 0) or against it, in log-odds."""

    name: str
    weight: float


class Junk(Struct, rename="camel", frozen=True):
    """How likely a received email is junk: `score` from 0 to 1, and what it is made of."""

    score: float
    is_junk: bool
    reasons: list[JunkReason]


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
    link_details: list[LinkDetail] = []
    category: Category | None = None  # of mail that came in, like all below
    auto_replyable: bool = False
    verdict: Verdict | None = None  # None: not examined yet
    signals: list[Signal] = []
    junk: Junk | None = None
    calendar: Appointment | UnsetType = UNSET
    parse_error: str | UnsetType = UNSET
    analysis: Annotated[Literal["failed"], Meta(description=NOT_ANALYZED)] | UnsetType = UNSET
    rules: Annotated[list[RuleTrace], Meta(description=RULED)] | UnsetType = UNSET
    copied_from: Annotated[str, Meta(description=COPIED)] | UnsetType = UNSET
    trace_id: Annotated[str, Meta(description=OF_TRACE)] | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET  # the sender's own, never sent
    bcc: list[str] | UnsetType = UNSET  # of mail that goes out, like all below
    reply_to: str | UnsetType | None = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    redirect_of: Annotated[str, Meta(description=AS_IT_CAME)] | UnsetType = UNSET
    origins: CarriedOrigins | UnsetType = UNSET
    subject_raw: Annotated[str, Meta(description=AS_GIVEN)] | UnsetType = UNSET
    from_addr_raw: Annotated[str, Meta(description=AS_GIVEN)] | UnsetType = UNSET
    header_to_raw: Annotated[str, Meta(description=AS_GIVEN)] | UnsetType = UNSET
    cc_raw: Annotated[list[str], Meta(description=AS_GIVEN)] | UnsetType = UNSET
    delivered_to: Annotated[str, Meta(description=ANOTHER_ADDRESS)] | UnsetType = UNSET


class _Texts(Struct, rename="camel", frozen=True):
    body_text: Raw
    reply_text: Raw | UnsetType = UNSET


class _Traced(Struct, rename="camel", frozen=True):
    trace_id: str = ""


_texts = msgspec.json.Decoder(_Texts)
_traced = msgspec.json.Decoder(_Traced)


class Texts(Struct, frozen=True):
    """The texts of a message encoded as JSON, without the quotes around them."""

    body: bytes
    reply: bytes


def encode(document: Document) -> bytes:
    return msgspec.json.encode(document)


def decode(stored: bytes) -> Document:
    return msgspec.json.decode(stored, type=Document)


def trace_of(stored: bytes) -> str:
    """Return the id of the trace of a stored message; empty if it has none."""
    return _traced.decode(stored).trace_id


def trace_of_message(tx: Tx, message_id: str) -> str:
    row = tx.one(f"select {COLUMNS} from messages where id = :id", id=message_id)
    return "" if row is None else trace_of(from_row(row))


def outline(document: Document) -> Document:
    """Return what lists show of a document: short texts, the first addresses, no links and no HTML."""
    return structs.replace(
        document,
        from_addr=document.from_addr[:OUTLINE_CHARACTERS],
        header_to=first_addresses(document.header_to),
        cc=document.cc[:OUTLINE_ADDRESSES],
        bcc=document.bcc[:OUTLINE_ADDRESSES] if document.bcc else document.bcc,
        subject=document.subject[:OUTLINE_CHARACTERS],
        body_text=document.body_text[:OUTLINE_CHARACTERS],
        body_html="",
        reply_text=document.reply_text[:OUTLINE_CHARACTERS],
        links=[],
        link_details=[],
        signals=[],
        calendar=UNSET,
        metadata=UNSET,
        headers=UNSET,
        subject_raw=UNSET,
        from_addr_raw=UNSET,
        header_to_raw=UNSET,
        cc_raw=UNSET,
    )


def first_addresses(field: str) -> str:
    """Cut at a comma, so that the last one is whole."""
    most = OUTLINE_ADDRESSES * 100
    return field if len(field) <= most else field[:most].rpartition(",")[0]


def size_of(written: WrittenColumns) -> int:
    stored, _, _, document_bytes, _ = written
    return len(stored) if document_bytes is None else document_bytes


def to_written(document: Document) -> WrittenColumns:
    """Return the columns, compressed if that makes them smaller."""
    stored, reply_at, reply_bytes = to_columns(document)
    packed = packing.pack(stored)
    if packed is None:
        return stored, reply_at, reply_bytes, None, document.category
    return packed, reply_at, reply_bytes, len(stored), document.category


def to_columns(document: Document) -> Columns:
    """Return the same as `without_reply`, faster if the text begins with the reply text, as most do."""
    if not document.body_text.startswith(document.reply_text):
        return without_reply(encode(document))
    stored = encode(structs.replace(document, reply_text=UNSET))
    at = stored.index(_BODY_KEY) + len(_BODY_KEY)
    rest = msgspec.json.encode(document.body_text[len(document.reply_text) :])  # mostly a line break or two
    return stored, at, stored.index(_BEHIND_BODY, at) - at - (len(rest) - len('""'))


def without_reply(whole: bytes) -> Columns:
    """Compares texts as JSON: the span holds exactly the reply text."""
    found = _texts.decode(whole)
    if found.reply_text is UNSET:
        return whole, None, None
    reply = bytes(found.reply_text)[1:-1]
    begin = whole.index(_BODY_KEY) + len(_BODY_KEY)
    end = begin + len(memoryview(found.body_text)) - 2
    # Searching for a long text takes ten times as long, and most begin with the text.
    at = begin if whole.startswith(reply, begin, end) else whole.find(reply, begin, end)
    if at == -1:
        return whole, None, None
    field = whole.index(_REPLY_KEY, end)
    return whole[:field] + whole[field + len(_REPLY_KEY) + len(reply) + len('",') :], at, len(reply)


def from_row(row: Row) -> bytes:
    """Return the whole document as JSON."""
    return b"".join(pieces(columns_of(row)))


def columns_of(row: Row) -> Columns:
    return plain(row["document"]), row["reply_at"], row["reply_bytes"]


def plain(stored: bytes) -> bytes:
    return packing.unpack_json(bytes(stored))


def pieces(columns: Columns, ending: bytes = b"}") -> tuple[Piece, ...]:
    """Return the whole document as JSON, with `ending` in place of its last brace. Nothing is copied."""
    document, at, reply_bytes = columns
    view = memoryview(document)
    if at is None or reply_bytes is None:
        return view[:-1], ending
    return view[:-1], b',"replyText":"', view[at : at + reply_bytes], b'"', ending


def texts(row: Row) -> Texts:
    document, at = plain(row["document"]), row["reply_at"]
    found = _texts.decode(document)
    body = bytes(found.body_text)[1:-1]
    if at is not None:
        return Texts(body, document[at : at + row["reply_bytes"]])
    return Texts(body, b"" if found.reply_text is UNSET else bytes(found.reply_text)[1:-1])


# --- outlines


def add_outlines(tx: Tx, new: Sequence[tuple[Document, WrittenColumns]]) -> None:
    rows = [
        (document.id, size, encode(outline(document)))
        for document, written in new
        if (size := size_of(written)) > LARGE_BYTES
    ]
    if rows:
        tx.many("insert into message_outlines (message_id, document_bytes, outline) values :rows", rows)


def replace_outline(tx: Tx, document: Document, written: WrittenColumns) -> None:
    tx.run("delete from message_outlines where message_id = :id", id=document.id)
    add_outlines(tx, [(document, written)])


def list_sizes(tx: Tx, message_ids: Sequence[str]) -> list[int]:
    """List the sizes of these messages' documents; 0 for one that does not exist."""
    rows = all_of(tx, f"select id, {SIZE} as size from messages where :wanted", "id", message_ids)
    found = {row["id"]: row["size"] for row in rows}
    return [found.get(message_id, 0) for message_id in message_ids]


def count_fitting(tx: Tx, message_ids: Sequence[str]) -> int:
    """Return how many of these messages fit into a page with their texts."""
    return pages.fitting(list_sizes(tx, message_ids))


def outline_columns(tx: Tx, row: Row) -> Columns:
    """Return the outline, from a row of LISTED_COLUMNS. Without one, the message is read whole."""
    if row["document"] is not None:
        return columns_of(row)
    whole = tx.one(f"select {COLUMNS} from messages where id = :id", id=row["id"])
    assert whole is not None
    return columns_of(whole)


def _read(tx: Tx, message_id: str) -> Document:
    row = tx.one(f"select {COLUMNS} from messages where id = :id", id=message_id)
    assert row is not None
    return decode(from_row(row))


def add_due_outline(tx: Tx) -> bool:
    """Store the outline of one large message from before. False if none is left."""
    row = tx.one(
        f"select outlines_due.message_id, {SIZE} as size from outlines_due"
        " left join messages on messages.id = outlines_due.message_id limit 1"
    )
    if row is None:
        return False
    if row["size"] is not None:  # it was not deleted meanwhile
        tx.run(
            "insert into message_outlines (message_id, document_bytes, outline)"
            " values (:id, :size, :outline) on conflict do nothing",
            id=row["message_id"],
            size=row["size"],
            outline=encode(outline(_read(tx, row["message_id"]))),
        )
    tx.run("delete from outlines_due where message_id = :id", id=row["message_id"])
    return True
