"""Checks messages: each is readable, has its bytes, and is in an existing inbox and thread."""

from collections.abc import Iterator, Sequence

import msgspec

from postroom.mailbox import documents, raw_mails
from postroom.mailbox.messages import BLOCKED
from postroom.storage import packing
from postroom.storage.database import Row, Tx, one_of
from postroom.upkeep.verification.parts import Finding, Page, next_ids, of_rows

NAME = "messages"
PAGE = 100


def look(tx: Tx, after: str) -> Page:
    ids, following = next_ids(tx, "messages", "id", after, PAGE)
    findings = [Finding(NAME, row["id"], what) for row in _rows(tx, ids) for what in _faults(row)]
    return Page(findings, len(ids), following)


def _rows(tx: Tx, ids: Sequence[str]) -> list[Row]:
    if not ids:
        return []
    is_wanted, wanted = one_of("messages.id", ids)
    return tx.all(
        f"select messages.id, {documents.COLUMNS}, messages.direction, messages.thread_id,"
        " messages.has_attachments, inboxes.id as inbox, removed_inboxes.inbox_id as removed,"
        " threads.id as thread, raw_mails.message_id as raw, raw_mails.blob, raw_mails.content,"
        " raw_mails.content_bytes, raw_mails.size_bytes, raw_mails.text_at, raw_mails.html_at,"
        " (select count(*) from attachments where attachments.message_id = messages.id) as files"
        " from messages left join inboxes on inboxes.id = messages.inbox_id"
        " left join removed_inboxes on removed_inboxes.inbox_id = messages.inbox_id"
        " left join threads on threads.id = messages.thread_id"
        f" left join raw_mails on raw_mails.message_id = messages.id where {is_wanted}",
        **wanted,
    )


def _faults(row: Row) -> Iterator[str]:
    if row["inbox"] is None:
        if row["removed"] is None:
            yield "its inbox is missing"
        return  # of a deleted inbox, of which upkeep removes some rows at a time
    if row["direction"] != BLOCKED and row["thread"] is None:
        yield "its thread is missing"
    if bool(row["has_attachments"]) != bool(row["files"]):
        yield "its attachments do not match"
    document = _document(row)
    if document is None:
        yield "its fields cannot be read"
    if row["raw"] is None:
        yield "its bytes are missing"
    elif document is not None and row["blob"] is None and _size(row, document) != row["size_bytes"]:
        yield "its size differs from what was stored"


def _document(row: Row) -> documents.Document | None:
    try:
        return documents.decode(documents.from_row(row))
    except (msgspec.DecodeError, UnicodeDecodeError, packing.NotPacked):
        return None


def _size(row: Row, document: documents.Document) -> int | None:
    """Return None if the remaining bytes are unreadable."""
    try:
        content = raw_mails.plain(row["content"] or b"", row["content_bytes"])
    except packing.NotPacked:
        return None
    kept = raw_mails.Cut(content, row["text_at"], row["html_at"])
    return len(raw_mails.restore(kept, document.body_text, document.body_html))


PART = of_rows(NAME, "messages", look)
