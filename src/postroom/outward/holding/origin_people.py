"""The people that a message names: who wrote it, who is to be answered, and to whom it went."""

from postroom.mailbox.documents import Document
from postroom_mail.mime.address import normalize, parse_list


def people_of(document: Document) -> set[str]:
    named = parse_list(", ".join((document.header_to, *document.cc)))
    return {normalize(each.address) for each in named}


def readers_of(document: Document) -> set[str]:
    """Return its author, whom its author wants to be answered, and to whom it went."""
    named = parse_list(", ".join((document.from_addr, document.reply_to or "")))
    hidden = document.bcc or []
    written = {normalize(each.address) for each in (*named, *parse_list(", ".join(hidden)))}
    return written | people_of(document)


def is_ordinary(document: Document | None) -> bool:
    """Return whether an email is neither suspicious nor junk: one campaign writes in many names."""
    if document is None or document.verdict not in (None, "clean"):
        return False
    return document.junk is None or not document.junk.is_junk
