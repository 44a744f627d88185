"""What the entry of a message in the search index is made of."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from postroom.mailbox import attachments
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import OUTBOUND, Message
from postroom.processes import analysis
from postroom.processes.analysis import Analysis
from postroom.storage.database import Row, Tx
from postroom_mail.reading.category import Category
from postroom_mail.search import days, index_entry
from postroom_mail.search.index_entry import IndexEntry, Searchable

READ_TOGETHER = 8
HAS_FILES, SENT, BLOCKED, JUNK = "a", "s", "b", "j"  # scopes of the index, besides that of an inbox


class _EntryParts(Struct, rename="camel", frozen=True):
    """The fields of a document that an entry needs. All others, above all HTML, are skipped."""

    subject: str
    from_addr: str
    header_to: str
    cc: list[str]
    to_addr: str
    body_text: str
    category: Category | None = None


_parts = msgspec.json.Decoder(_EntryParts)


def inbox_scope(inbox_id: str) -> str:
    return f"i{inbox_id[4:]}"


def category_scope(category: str) -> str:
    return f"c{category}"


def read(tx: Tx, message: Message) -> Searchable:
    return to_searchable(_parts.decode(message.stored[0]), _files(tx, message))


def read_with_scopes(tx: Tx, row: Row) -> tuple[Searchable, list[str]]:
    message = Message.from_row(row)
    document = _parts.decode(message.stored[0])
    return to_searchable(document, _files(tx, message)), _scopes(row, document.category)


def to_searchable(document: Document | _EntryParts, files: Sequence[Attachment]) -> Searchable:
    return Searchable(
        subject=document.subject,
        sender=document.from_addr,
        recipients=[document.header_to, *document.cc, document.to_addr],
        text=document.body_text,
        filenames=[file.filename for file in files],
        file_texts=[file.parsed_text for file in files if file.parsed_text],
    )


def to_entry(mail: Searchable, realm: str, scopes: Sequence[str]) -> IndexEntry:
    """Return the index entry of an email, without its words if they cannot be read.

    One message must not stop the index.
    """
    readers = Analysis()
    entry = readers.run(
        "search",
        index_entry.without_words(realm, scopes),
        lambda: index_entry.of_mail(mail, realm, scopes),
    )
    analysis.count(readers.failed)
    return entry


def _files(tx: Tx, message: Message) -> list[Attachment]:
    return attachments.list_of_messages(tx, [message.id])[message.id] if message.has_attachments else []


def _scopes(row: Row, category: Category | None) -> list[str]:
    marks = {HAS_FILES: row["has_attachments"], SENT: row["direction"] == OUTBOUND}
    marks[BLOCKED] = row["direction"] == "blocked" and not row["is_junk"]
    marks[JUNK] = row["is_junk"]
    flags = [mark for mark, holds in marks.items() if holds]
    if category is not None:
        flags.append(category_scope(category))
    return [inbox_scope(row["inbox_id"]), *flags, *days.words_of(row["created_at"])]


def in_parts(message_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Reads few at a time, since rows may be large."""
    for start in range(0, len(message_ids), READ_TOGETHER):
        yield message_ids[start : start + READ_TOGETHER]
