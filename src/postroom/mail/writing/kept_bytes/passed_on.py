"""All that leaves with an email that is redirected as it came, for the rule `links` and for approvers.

Such an email has Resent- fields of ours; no email that is composed here has any.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from postroom.mail import charset, headers, mentions, mime, transfer
from postroom.mail.headers import Headers
from postroom.mail.mime import Part

MOST_OF_THE_SOURCE = 200_000
SHOWN = frozenset(
    "from to cc reply-to subject in-reply-to references date message-id mime-version received"
    " dkim-signature".split()
)
# Lines that a file is encoded in; its content is listed with its hash.
_ENCODED = re.compile(rb"(?:^[A-Za-z0-9+/=]{60,}+\r?\n){3,}", re.MULTILINE)


class TextPart(Struct, frozen=True):
    content_type: str
    text: str


def is_passed_on(fields: Headers) -> bool:
    return fields.count("resent-message-id") > 0


def text_parts(raw: bytes) -> list[TextPart]:
    """Every text of an email, also alternatives of which a reader shows only the last."""
    root = mime.read(raw, headers.split(raw, 0)).root
    return [TextPart(part.content_type, _text(part)) for part in _leaves(root) if _is_text(part)]


def mentions_a_link(raw: bytes) -> bool:
    """Over all of its texts, its list fields and the files that mail clients show."""
    block = headers.split(raw, 0)
    lists = (block.headers.joined(name) for name in block.headers.fields if name.startswith("list-"))
    if any("<" in value and ":" in value for value in lists):
        return True
    return any(_part_mentions_a_link(part) for part in _leaves(mime.read(raw, block).root))


def further_fields(fields: Headers) -> list[tuple[str, str]]:
    """Fields that no other part of an approval shows, without those that servers add on the way."""
    return [
        (name.title(), ", ".join(headers.decode_words(headers.unfold(value)) for value in values))
        for name, values in fields.fields.items()
        if name not in SHOWN and not name.startswith(("x-", "arc-", "content-"))
    ]


def source(raw: bytes) -> str:
    """The email as it is sent, without the encoded lines of files."""
    shown = _ENCODED.sub(lambda lines: b"[%d encoded lines]\r\n" % lines[0].count(b"\n"), raw)
    text = charset.decode(shown[:MOST_OF_THE_SOURCE], charset.UNDECLARED).replace("\r\n", "\n")
    left = len(shown) - MOST_OF_THE_SOURCE
    return f"{text}\n[{left:,} more bytes]" if left > 0 else text


def _leaves(part: Part) -> Iterator[Part]:
    if not part.children:
        yield part
    for child in part.children:
        yield from _leaves(child)


def _is_text(part: Part) -> bool:
    return part.content_type.startswith("text/") and part.content_type != "text/calendar"


def _content(part: Part) -> bytes:
    return transfer.decode(part.body, part.headers.text("content-transfer-encoding")).content


def _text(part: Part) -> str:
    return charset.decode(_content(part), part.parameters.get("charset", charset.UNDECLARED))


def _part_mentions_a_link(part: Part) -> bool:
    label = part.parameters.get("charset", "")
    return mentions.file_mentions_a_link(f"{part.content_type}; charset={label}", "", _content(part))
