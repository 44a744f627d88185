"""All that leaves with an email that is redirected as it came, for the rule `links` and for approvers.

Such an email has Resent- fields of ours; no email that is composed here has any.
"""

from collections.abc import Iterator

from msgspec import Struct

from postroom_mail.mime import charset, headers, parts, transfer_encoding
from postroom_mail.mime.headers import Headers
from postroom_mail.mime.parts import Part
from postroom_mail.screening import mentions

MOST_OF_THE_SOURCE = 200_000
SHOWN = frozenset(
    "from to cc reply-to subject in-reply-to references date message-id mime-version received"
    " dkim-signature".split()
)
LONG_LINE_BYTES = 60
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"


class TextPart(Struct, frozen=True):
    content_type: str
    text: str


def is_passed_on(fields: Headers) -> bool:
    return fields.count("resent-message-id") > 0


def text_parts(raw: bytes) -> list[TextPart]:
    """Return every text of an email, also alternatives of which a reader shows only the last."""
    root = parts.read(raw, headers.split(raw, 0)).root
    return [TextPart(part.content_type, text_of(part)) for part in _leaves(root) if _is_text(part)]


def mentions_a_link(raw: bytes) -> bool:
    """Return whether any text, list field, or file that mail clients show mentions a link."""
    block = headers.split(raw, 0)
    lists = (block.headers.joined(name) for name in block.headers.fields if name.startswith("list-"))
    if any("<" in value and ":" in value for value in lists):
        return True
    return mentions.files_mention_a_link(map(_as_file, _leaves(parts.read(raw, block).root)))


def further_fields(fields: Headers) -> list[tuple[str, str]]:
    """Return fields that no other part of an approval shows, without those that servers add on the way."""
    return [
        (name.title(), ", ".join(headers.decode_words(headers.unfold(value)) for value in values))
        for name, values in fields.fields.items()
        if name not in SHOWN and not name.startswith(("x-", "arc-", "content-"))
    ]


def source(raw: bytes) -> str:
    """Return the email as it is sent, without the encoded lines of files: each is listed with its hash."""
    shown: list[bytes] = []
    place = size = encoded = 0
    while place < len(raw) and size < MOST_OF_THE_SOURCE:
        end = raw.find(b"\n", place) + 1 or len(raw)
        line, place = raw[place:end], end
        if len(line) >= LONG_LINE_BYTES and not line.translate(None, _BASE64):
            encoded += 1
            continue
        shown.append(_left_out(encoded) + line[:MOST_OF_THE_SOURCE])
        size, encoded = size + len(shown[-1]), 0
    text = charset.decode(b"".join([*shown, _left_out(encoded)]), charset.UNDECLARED).replace("\r\n", "\n")
    return text if place == len(raw) else f"{text}\n[{len(raw) - place:,} more bytes]"


def _left_out(encoded_lines: int) -> bytes:
    return b"[%d encoded lines]\r\n" % encoded_lines if encoded_lines else b""


def _leaves(part: Part) -> Iterator[Part]:
    if not part.children:
        yield part
    for child in part.children:
        yield from _leaves(child)


def _is_text(part: Part) -> bool:
    return part.content_type.startswith("text/") and part.content_type != "text/calendar"


def _content(part: Part) -> bytes:
    return transfer_encoding.decode(part.body, part.headers.text("content-transfer-encoding")).content


def text_of(part: Part) -> str:
    return charset.decode(_content(part), part.parameters.get("charset", charset.UNDECLARED))


def _as_file(part: Part) -> tuple[str, str, bytes]:
    return f"{part.content_type}; charset={part.parameters.get('charset', '')}", "", _content(part)
