"""Compares what REST, IMAP and a second reader see of one message; a disagreement is a sentence."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.adversary.imap_reading import ClientView, Leaf

ASCII_CHARSETS = ("", "us-ascii", "utf-8", "iso-8859-1", "koi8-r", "x-unknown")  # ASCII letters are one byte

_BLANKS = str.maketrans("\t\r\n", "   ")


@dataclass(frozen=True)
class ApiView:
    """A message as REST shows it, with the bytes of the message and of each attachment."""

    message: dict[str, Any]
    raw: bytes
    files: tuple[bytes, ...]


def compare(api: ApiView, client: ClientView) -> list[str]:
    """Return how an agent (REST) and a person (IMAP) see different things."""
    return [*_bytes_differ(api, client), *_files_differ(api, client), *_texts_differ(api, client)]


def _bytes_differ(api: ApiView, client: ClientView) -> Iterable[str]:
    if api.raw != client.raw:
        yield "REST and IMAP give different bytes"
    if client.header + client.text != client.raw:
        yield "HEADER and TEXT are not the whole message"


def _files_differ(api: ApiView, client: ClientView) -> Iterable[str]:
    """Every attachment of REST is a part for the mail client."""
    seen = Counter(digest(leaf.content) for leaf in client.leaves)
    shown = Counter(digest(content) for content in api.files)
    if missing := shown - seen:
        yield f"{missing.total()} of {shown.total()} attachments are no part for a mail client"


def _texts_differ(api: ApiView, client: ClientView) -> Iterable[str]:
    """Every part that is no attachment is text, and its words are in the text or HTML that REST shows."""
    left = Counter(digest(content) for content in api.files)
    shown = words(f"{api.message['bodyText']} {api.message['bodyHtml']}")
    files_first = sorted(client.leaves, key=lambda leaf: leaf.content_type.startswith("text/"))
    for leaf in files_first:  # an empty file and an empty text have one digest
        key = digest(leaf.content)
        if left[key]:
            left[key] -= 1
        elif not leaf.content_type.startswith("text/"):
            yield f"part {leaf.section} ({leaf.content_type}) is not shown by REST"
        elif (
            not leaf.is_alternative
            and leaf.charset in ASCII_CHARSETS
            and (unseen := _ascii_words(leaf) - shown)
        ):
            yield f"part {leaf.section} says {sorted(unseen)[:3]}, and REST does not"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def words(text: str) -> set[str]:
    return set(text.split())


def _ascii_words(leaf: Leaf) -> set[str]:
    """Words between blanks: `str.split` takes controls for white space, which REST leaves out."""
    lines = leaf.content.decode("ascii", "replace").translate(_BLANKS)
    return {word for word in lines.split(" ") if word.isalnum()}
