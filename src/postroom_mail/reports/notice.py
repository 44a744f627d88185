"""An email that may be a report, opened: its author, its parts, and its text for people.

Reports come from anyone: all of it is linear in the size of the email, and no bytes make it raise.
"""

import re
from functools import cached_property

from msgspec import Struct

from postroom_mail.html.text import html_to_text
from postroom_mail.mime import address, charset, headers, parts, transfer_encoding
from postroom_mail.mime.headers import Headers
from postroom_mail.mime.parts import Part
from postroom_mail.reports.plain_forms import COPY_STARTS

PARTS_LIMIT = 20
PART_LIMIT_BYTES = 200_000
HTML_LIMIT = 100_000
TEXT_LIMIT = 60_000
LINE_LIMIT = 1_000
LINES_LIMIT = 300
WORDS_LIMIT = 16_000
SUBJECT_LIMIT = 500

STATUS_TYPES = {"message/delivery-status", "message/global-delivery-status"}
RETURNED_TYPES = {"message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"}
HEADER_ONLY_TYPES = {"text/rfc822-headers", "message/global-headers"}

_MESSAGE_ID = re.compile(r"^[> \t]{0,8}(?:x-)?message-?id[ \t]{0,9}:\s{0,9}(<[^<>\s]{1,900}>)", re.I | re.M)
_RETURN_PATH = re.compile(
    r"^[> \t]{0,8}(?:return-path|x-envelope-from|x-original-mail-from)[ \t]{0,9}:\s{0,9}<?([^<>\s]{3,320})",
    re.I | re.M,
)
_FROM_LINE = re.compile(r"^[> \t]{0,8}from[ \t]{0,9}:[^\n]{0,900}", re.I | re.M)
RETURN_PATHS_LIMIT = 5


class Notice(Struct, frozen=True, dict=True):
    """Its text is read only when needed: the header of most mail shows that it is no report."""

    fields: Headers
    content_type: str
    leaves: tuple[Part, ...]
    subject: str
    from_name: str
    from_address: str

    @cached_property
    def text(self) -> str:
        """Return what a person reads, including the returned mail if it is part of the text."""
        return _text_for_people(self.leaves)

    @cached_property
    def words(self) -> str:
        """The text up to where it begins to quote the returned mail."""
        return _own_words(self.text)

    def first_of(self, types: set[str]) -> Part | None:
        return next((part for part in self.leaves if part.content_type in types), None)


def read_notice(raw: bytes) -> Notice:
    raw = headers.with_line_feeds(raw)
    block = headers.split(raw, 0)
    root = parts.read(raw, block).root
    senders = address.parse_list(headers.decode_words(block.headers.text("from"))[:2_000])
    return Notice(
        fields=block.headers,
        content_type=root.content_type,
        leaves=tuple(_leaves(root)),
        subject=charset.clean_line(headers.decode_words(block.headers.text("subject")[:4_000]))[
            :SUBJECT_LIMIT
        ],
        from_name=senders[0].name if senders else block.headers.text("from")[:200],
        from_address=senders[0].address.lower() if senders else "",
    )


def _leaves(root: Part) -> list[Part]:
    """Return the first few leaves, in order; an email inside the email stays closed."""
    leaves: list[Part] = []
    waiting = [root]
    while waiting and len(leaves) < PARTS_LIMIT:
        part = waiting.pop()
        if part.is_multipart:
            waiting += reversed(part.children)
        else:
            leaves.append(part)
    return leaves


def _text_for_people(leaves: tuple[Part, ...]) -> str:
    plain = [text_of(part) for part in leaves if part.content_type == "text/plain"]
    if any(text.strip() for text in plain):
        return unix_lines("\n\n".join(plain))[:TEXT_LIMIT]
    pages = [text_of(part) for part in leaves if part.content_type == "text/html"]
    return unix_lines("\n\n".join(html_to_text(page[:HTML_LIMIT]) for page in pages[:2]))[:TEXT_LIMIT]


def _own_words(text: str) -> str:
    """Return the text up to the copy of the returned email, without lines that quote one."""
    lines: list[str] = []
    for line in text.split("\n", LINES_LIMIT)[:LINES_LIMIT]:
        if COPY_STARTS.match(line) and lines:
            break
        if not line.startswith(">") or line.startswith(">>> "):
            lines.append(line[:LINE_LIMIT])
    return "\n".join(lines)[:WORDS_LIMIT]


def content_of(part: Part) -> bytes:
    return transfer_encoding.decode(part.body, part.headers.text("content-transfer-encoding")).content


def text_of(part: Part) -> str:
    """Return the first part of its text: no report needs more."""
    body = transfer_encoding.decode(
        part.body[:PART_LIMIT_BYTES], part.headers.text("content-transfer-encoding")
    )
    label = part.parameters.get("charset", charset.UNDECLARED)
    return unix_lines(charset.decode(body.content, label))


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def returned_head(notice: Notice) -> str:
    """Return the header of the returned email, without a body that anyone may have written into it."""
    part = notice.first_of(RETURNED_TYPES)
    if part is None:
        return ""
    body = transfer_encoding.decode(
        part.body[:PART_LIMIT_BYTES], part.headers.text("content-transfer-encoding")
    )
    return head_text(body.content, part.parameters.get("charset", charset.UNDECLARED))


def head_text(original: bytes, label: str) -> str:
    """Return the header of an email as text: it ends where it ends for every other reader."""
    original = headers.with_line_feeds(original.lstrip(b"\r\n"))
    return unix_lines(charset.decode(original[: headers.split(original, 0).body_start], label))


def has_returned_mail(notice: Notice) -> bool:
    if notice.first_of(RETURNED_TYPES) is not None:
        return True
    return message_id_in(notice.text[len(notice.words) :]) is not None


def message_id_in(head: str) -> str | None:
    match = _MESSAGE_ID.search(head)
    return match[1] if match else None


def from_line_in(head: str) -> str:
    match = _FROM_LINE.search(head)
    return match[0] if match else ""


def return_paths_in(head: str) -> tuple[str, ...]:
    found = dict.fromkeys(match[1] for match in _RETURN_PATH.finditer(head))
    return tuple(path for path in list(found)[:RETURN_PATHS_LIMIT] if "@" in path)
