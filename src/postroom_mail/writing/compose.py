"""Writes a Draft as the bytes of one email (RFC 5322, MIME): CRLF lines, folded and encoded headers.

No field can add a header, a recipient or a part: what cannot be written safely is a DraftError.
"""

import binascii
import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

import idna
from msgspec import Struct

from postroom_mail.mime import charset
from postroom_mail.writing.dates import to_date
from postroom_mail.writing.header_words import (
    ATEXT,
    CONTROL,
    DraftError,
    cut,
    phrase_words,
    require_no_control,
    text_words,
)
from postroom_mail.writing.invitation import CalendarFile

LINE_LIMIT = 76  # RFC 2047 section 2: a line that holds an encoded word
ADDRESS_LIMIT_BYTES = 320  # RFC 5321 section 4.5.3.1: 64 + "@" + 255
REFERENCES_LIMIT_BYTES = 16_000  # some receivers refuse more than 32 kB of headers in all
SUBJECT_LIMIT = 998
BASE64_BLOCK = 57 * 1024  # bytes; a whole number of 76-column lines

DOT_ATOM = re.compile(r"[^\x00- \"(),.:;<>@\[-\]\x7f]+(?:\.[^\x00- \"(),.:;<>@\[-\]\x7f]+)*")  # RFC 6531
LOOSE_DOTS = re.compile(rf"[{ATEXT}.]+")
QUOTED_LOCAL = re.compile(r'"(?:[ !#-\[\]-~]|\\[ -~])*"')
DOMAIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[!-Z^-~]+\]")
MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,900}>")
MEDIA_TYPE = re.compile(r"(?!multipart/|message/)[a-z0-9][a-z0-9.+_-]{0,80}/[a-z0-9][a-z0-9.+_-]{0,80}", re.I)
KEPT_PARAMETER = re.compile(r';\s*(charset|method)="?([A-Za-z0-9._-]{1,40})"?\s*(?=;|$)', re.I)
PLAIN_FILENAME = re.compile(r"[A-Za-z0-9_(](?:[A-Za-z0-9 ._()+,@-]{0,58}[A-Za-z0-9_)])?")
CALENDAR_METHODS = frozenset(  # RFC 5546 section 1.4
    ("PUBLISH", "REQUEST", "REPLY", "ADD", "CANCEL", "REFRESH", "COUNTER", "DECLINECOUNTER")
)
REPLY_PREFIX = re.compile(
    r"(?:re|aw|antw|antwort|sv|odp|\u56de\u590d|\u56de\u8986|\u7b54\u590d)"
    r"\s{0,3}(?:[\[(]\d{1,4}[\])])?\s{0,3}[:\uff1a]",
    re.I,
)
# mbox stores alter a line that starts with "From ", which breaks signatures; "--=_" starts our boundaries.
UNSAFE_STARTS = (b"From ", b"--=_")
UNSAFE_LINES = tuple(b"\r\n" + beginning for beginning in UNSAFE_STARTS)
MOST_OF_A_LINE = 78
ASCII = bytes(range(128))
SEVEN_BIT = bytes([*b"\t\r\n", *range(0x20, 0x7F)])


class DraftAttachment(Struct, frozen=True):
    filename: str
    content_type: str
    content: bytes
    content_id: str = ""  # of a picture that the HTML shows as `cid:`


class Draft(Struct, frozen=True):
    """`to`, `cc` and `reply_to` hold `Name <address>` or a bare address; Bcc has no place in an email."""

    from_name: str
    from_address: str
    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str
    date_at: int
    cc: tuple[str, ...] = ()
    reply_to: str | tuple[str, ...] | None = None
    html: str | None = None
    attachments: tuple[DraftAttachment, ...] = ()
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    automated: bool = False
    headers: dict[str, str] = {}  # names begin with X-
    calendar: CalendarFile | None = None
    date: str = ""  # with the zone of its author; "" writes `date_at`


class WrittenPart(Struct, frozen=True):
    """A MIME part; the body is kept in pieces so that a large file is joined only once."""

    head: bytes
    body: tuple[bytes, ...]


def compose(draft: Draft) -> bytes:
    header_lines = message_header(draft)
    part = text_parts(draft)
    if files := attached(draft, is_shown=False):
        part = multipart("mixed", draft.message_id, [part, *files])
    return b"".join((header_lines, part.head, b"\r\n", *part.body))


def new_message_id(domain: str, unique: bytes) -> str:
    """Return a new id. `unique` is 16 bytes or more, 10 of them random: ids cannot be guessed."""
    if len(unique) < 16:
        raise ValueError("a Message-ID needs 16 bytes")
    return f"<{unique.hex()}@{ascii_domain('domain', domain)}>"


def is_message_id(value: str) -> bool:
    """Return whether an id, perhaps from a stranger's mail, can be used in In-Reply-To and References."""
    return MESSAGE_ID.fullmatch(value) is not None


def reply_subject(thread_subject: str) -> str:
    """Return a valid subject. One with a reply prefix, also a translated one (AW, SV), gets no second."""
    subject = " ".join(CONTROL.sub(" ", thread_subject).split())
    if not REPLY_PREFIX.match(subject):
        subject = f"Re: {subject}".rstrip()
    return subject[:SUBJECT_LIMIT].rstrip()


# --- the header of the message


def message_header(draft: Draft) -> bytes:
    fields = [
        sender_field(draft.from_name, draft.from_address),
        header("To", mailbox_list("to", draft.to)),
        header("Cc", mailbox_list("cc", draft.cc)) if draft.cc else b"",
        header("Reply-To", mailbox_list("reply_to", reply_addresses(draft))),
        header("Subject", text_words("subject", draft.subject)),
        b"Date: %s\r\n" % (draft.date or to_date(draft.date_at)).encode(),
        header("Message-ID", (own_message_id(draft.message_id),)),
        header("In-Reply-To", known_ids("in_reply_to", (draft.in_reply_to,))) if draft.in_reply_to else b"",
        header("References", bounded_ids(known_ids("references", draft.references)))
        if draft.references
        else b"",
        header("Auto-Submitted", (auto_submitted(draft),)) if draft.automated else b"",
        *(header(name, text_words("headers", value)) for name, value in draft.headers.items()),
        b"MIME-Version: 1.0\r\n",
    ]
    return b"".join(fields)


def header(name: str, words: Sequence[str]) -> bytes:
    """Return one field, folded between words. Some receivers need the first word next to the name."""
    whole = f"{name}: {' '.join(words)}\r\n"
    if len(whole) <= LINE_LIMIT + 2:
        return whole.encode() if words else b""
    lines = [f"{name}: {words[0]}"]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > LINE_LIMIT:
            lines.append(f" {word}")
        else:
            lines[-1] += f" {word}"
    return "\r\n".join([*lines, ""]).encode()


@lru_cache(maxsize=1024)
def sender_field(name: str, address: str) -> bytes:
    """Return the From field, cached: an inbox writes many emails under one name."""
    require_no_control("from_name", name)
    return header("From", mailbox_words("from_address", name, address))


def reply_addresses(draft: Draft) -> tuple[str, ...]:
    return (draft.reply_to,) if isinstance(draft.reply_to, str) else draft.reply_to or ()


def auto_submitted(draft: Draft) -> str:
    """Return the value of Auto-Submitted (RFC 3834, 5)."""
    return "auto-generated" if draft.in_reply_to is None else "auto-replied"


def own_message_id(message_id: str) -> str:
    if not is_message_id(message_id):
        raise DraftError("message_id", "not a message id")
    return message_id


def known_ids(field: str, ids: Sequence[str]) -> list[str]:
    """Return each id once. Ids come from strangers' emails: one that RFC 5322 cannot express is left out."""
    for value in ids:
        require_no_control(field, value)
    return [value for value in dict.fromkeys(ids) if is_message_id(value)]


def bounded_ids(ids: list[str]) -> list[str]:
    """Return the first id and as many of the last as fit: readers need the root and the nearest parents."""
    room = REFERENCES_LIMIT_BYTES - sum(len(value) + 1 for value in ids[:1])
    kept: list[str] = []
    for value in reversed(ids[1:]):
        room -= len(value) + 1
        if room < 0:
            break
        kept.append(value)
    return ids[:1] + kept[::-1]


# --- addresses


def mailbox_list(field: str, values: Sequence[str]) -> list[str]:
    words: list[str] = []
    for value in values:
        if words:
            words[-1] += ","
        words += mailbox_words(field, *split_mailbox(value))
    return words


def split_mailbox(value: str) -> tuple[str, str]:
    """Split `Name <address>` or a bare address into name and address."""
    name, bracket, rest = value.strip(" ").rpartition("<")
    if not bracket or not rest.endswith(">"):
        return "", value.strip(" ")
    name = name.strip(" ")
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    return name, rest[:-1]


def mailbox_words(field: str, name: str, address: str) -> list[str]:
    require_no_control(field, name + address)
    written = addr_spec(field, address)
    return [*phrase_words(name), f"<{written}>"] if name else [written]


def addr_spec(field: str, address: str) -> str:
    local, _, domain = address.rpartition("@")
    if len(address.encode()) > ADDRESS_LIMIT_BYTES:
        raise DraftError(field, "address too long")
    if DOT_ATOM.fullmatch(local) or QUOTED_LOCAL.fullmatch(local):
        return f"{local}@{ascii_domain(field, domain)}"
    if LOOSE_DOTS.fullmatch(local):  # such mailboxes exist; RFC 5322 can only write them in quotes
        return f'"{local}"@{ascii_domain(field, domain)}'
    raise DraftError(field, "not an email address")


def ascii_domain(field: str, domain: str) -> str:
    """Return the domain in DNS form, by IDNA 2008: the older rules map some letters to another domain."""
    try:
        written = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except UnicodeError:
        raise DraftError(field, "not a domain") from None
    if not DOMAIN.fullmatch(written):
        raise DraftError(field, "not a domain")
    return written


# --- MIME parts


def text_parts(draft: Draft) -> WrittenPart:
    """Return the texts, the richest last (RFC 2046, 5.1.4): an appointment's calendar (RFC 6047, 2.4)."""
    parts = [text_part("plain", draft.text)]
    if draft.html is not None:
        parts.append(html_part(draft, draft.html))
    if draft.calendar is not None:
        parts.append(calendar_part(draft.calendar))
    return parts[0] if len(parts) == 1 else multipart("alternative", draft.message_id, parts)


def html_part(draft: Draft, html: str) -> WrittenPart:
    """Return the HTML, together with the pictures that it shows (RFC 2387)."""
    pictures = attached(draft, is_shown=True)
    part = text_part("html", html)
    return multipart("related", draft.message_id, [part, *pictures], "text/html") if pictures else part


def calendar_part(calendar: CalendarFile) -> WrittenPart:
    encoding, body = encode_text(calendar.content)
    content_type = f"text/calendar; charset=utf-8; method={calendar.method}"
    return WrittenPart(part_head(content_type, encoding), (body,))


def text_part(subtype: str, text: str) -> WrittenPart:
    encoding, body = encode_text(crlf_lines(text))
    return WrittenPart(part_head(f"text/{subtype}; charset=utf-8", encoding), (body,))


def part_head(content_type: str, encoding: str) -> bytes:
    return f"Content-Type: {content_type}\r\nContent-Transfer-Encoding: {encoding}\r\n".encode()


def crlf_lines(text: str) -> bytes:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return lines.replace("\n", "\r\n").encode(errors="replace") + b"\r\n"


def encode_text(data: bytes) -> tuple[str, bytes]:
    if is_sendable_as_is(data):
        return "7bit", data
    if len(data.translate(None, ASCII)) * 6 <= len(data):  # beyond that base64 is shorter
        quoted = binascii.b2a_qp(data)
        if not quoted.startswith(b"From ") and b"\nFrom " not in quoted:
            return "quoted-printable", quoted
    return "base64", base64_lines(data)


def is_sendable_as_is(data: bytes) -> bool:
    """Looks at the whole text, not line by line, which takes a third longer."""
    if data.translate(None, SEVEN_BIT) or data.startswith(UNSAFE_STARTS):
        return False
    if any(beginning in data for beginning in UNSAFE_LINES):
        return False
    return max(map(len, data.split(b"\r\n"))) <= MOST_OF_A_LINE


def base64_lines(data: bytes) -> bytes:
    lines: list[bytes] = []
    for start in range(0, len(data), BASE64_BLOCK):
        block = binascii.b2a_base64(data[start : start + BASE64_BLOCK], newline=False)
        lines += [block[column : column + 76] for column in range(0, len(block), 76)]
    return b"\r\n".join([*lines, b""])


def multipart(
    subtype: str, message_id: str, parts: Sequence[WrittenPart], root_type: str = ""
) -> WrittenPart:
    """Return a multipart. Its boundary contains "=_", which no encoding can (RFC 2045, 6.7 and 6.8)."""
    boundary = f"=_{subtype}_{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"
    body: list[bytes] = []
    for part in parts:
        body += [f"--{boundary}\r\n".encode(), part.head, b"\r\n", *part.body, b"\r\n"]
    body.append(f"--{boundary}--\r\n".encode())
    root = f' type="{root_type}";\r\n' if root_type else ""
    head = f'Content-Type: multipart/{subtype};\r\n{root} boundary="{boundary}"\r\n'
    return WrittenPart(head.encode(), tuple(body))


# --- attachments


def attached(draft: Draft, is_shown: bool) -> list[WrittenPart]:
    """Return the pictures that the HTML shows, or all other files."""
    return [
        attachment_part(index, file)
        for index, file in enumerate(draft.attachments)
        if bool(file.content_id and draft.html is not None) == is_shown
    ]


def attachment_part(index: int, file: DraftAttachment) -> WrittenPart:
    require_no_control(f"attachments[{index}].filename", file.filename)
    require_no_control(f"attachments[{index}].content_type", file.content_type)
    name = file.filename or "attachment"
    # The plain fallback is in Content-Type: next to filename* many readers would take it for the real name.
    content_type = ";\r\n ".join([media_type(file.content_type), f'name="{ascii_filename(name)}"'])
    kind = "inline" if file.content_id else "attachment"
    disposition = ";\r\n ".join([f"Content-Disposition: {kind}", *filename_parameters(name)])
    head = part_head(content_type, "base64") + f"{disposition}\r\n".encode()
    if file.content_id:
        head += header("Content-ID", (own_message_id(f"<{file.content_id}>"),))
    return WrittenPart(head, (base64_lines(file.content),))


def media_type(content_type: str) -> str:
    """Return type, charset and method (of a calendar), if they are known ones: nothing else leaves in them.

    A type that is invalid or would nest becomes plain bytes.
    """
    kind, _, _ = content_type.partition(";")
    if not MEDIA_TYPE.fullmatch(kind.strip()):
        return "application/octet-stream"
    given = {name.lower(): value for name, value in KEPT_PARAMETER.findall(content_type[:400])}
    known = (f"{name}={value}" for name, value in given.items() if is_known_parameter(name, value))
    return "; ".join([kind.strip(), *known])


def is_known_parameter(name: str, value: str) -> bool:
    if name == "method":
        return value.upper() in CALENDAR_METHODS
    return value.lower() == "us-ascii" or charset.codec_for(value) != charset.UNDECLARED


def filename_parameters(name: str) -> list[str]:
    """Return RFC 2231 with continuations, except for names that every reader understands in quotes."""
    if PLAIN_FILENAME.fullmatch(name):
        return [f'filename="{name}"']
    pieces = [quote(piece, safe="") for piece in cut(name, 48, lambda char: len(quote(char, safe="")))]
    if len(pieces) == 1:
        return [f"filename*=utf-8''{pieces[0]}"]
    rest = (f"filename*{number}*={piece}" for number, piece in enumerate(pieces[1:], start=1))
    return [f"filename*0*=utf-8''{pieces[0]}", *rest]


def ascii_filename(name: str) -> str:
    letters = "".join(
        char for char in unicodedata.normalize("NFKD", name[-60:]) if not unicodedata.combining(char)
    )
    return re.sub(r"[^A-Za-z0-9 ._()+,@-]", "_", letters)[-60:]
