"""Raw mail to ParsedMail. Any bytes give an answer, at worst one with a `parse_error` note."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct, structs

from postroom_mail.mime import address, charset, filenames, flowed, headers, parts, transfer_encoding
from postroom_mail.mime.address import Address
from postroom_mail.mime.header_signs import NO_SIGNS, Signs, read_signs
from postroom_mail.mime.headers import Headers
from postroom_mail.mime.parts import Part

MAX_SUBJECT_LENGTH = 4_000
MAX_REFERENCES = 200
MAX_SENDERS = 50
MAX_IN_REPLY_TO = 20
MAX_CONTENT_ID_LENGTH = 500
MAX_RAW_NAME_LENGTH = 1_000
MAX_UNSUBSCRIBE_LENGTH = 4_000

UNREAD = "the email could not be read"  # in `parse_error`: no reader may look at it again

# Values of Precedence that no automatic reply may answer (RFC 3834 section 2).
_BULK = frozenset(("bulk", "list", "junk", "auto_reply"))
_OF_MACHINES = frozenset(("auto-submitted", "precedence", "list-id"))
# RFC 2046 section 5.2.1, RFC 6532 section 3.7.
_EMBEDDED_MAIL = frozenset(("message/rfc822", "message/global"))
_LONE_RETURN = re.compile(r"\r(?!\n)")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,10}=\s{0,10}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class ParsedAttachment(Struct, frozen=True):
    filename: str
    content_type: str
    content: bytes
    content_id: str
    inline: bool
    filename_raw: str = ""  # as given, if that is not the name
    charset: str = ""  # as declared


class ParsedMail(Struct, frozen=True):
    """An email as read. Ids are in angle brackets, times are milliseconds UTC, absent text is ""."""

    message_id: str
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    subject: str
    from_addr: str
    from_address: str
    senders: tuple[
        str, ...
    ]  # every From address, in the form that is compared; one more than are kept: too many
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    header_to: str
    body_text: str
    body_html: str
    attachments: tuple[ParsedAttachment, ...]
    automated: bool
    signs: Signs
    received_count: int
    has_dkim_signature: bool
    report_type: str
    list_unsubscribe: str
    parse_error: str
    reply_to: tuple[Address, ...] = ()


class _Content(Struct, frozen=True):
    """What a part of the tree adds to the mail."""

    texts: tuple[str, ...] = ()
    htmls: tuple[str, ...] = ()
    attachments: tuple[ParsedAttachment, ...] = ()
    notes: tuple[str, ...] = ()
    charset_label: str = charset.UNDECLARED


def parse_mail(raw: bytes) -> ParsedMail:
    """Parse an email; never raises. `parse_error` says what was left out or could not be read."""
    try:
        return _parsed(headers.with_line_feeds(raw))
    except Exception as error:
        return unread(raw, f"the header could not be read ({type(error).__name__})")


def unread(raw: bytes, parse_error: str) -> ParsedMail:
    """Return an email whose header is unknown, with its whole body as text. Runs no reader that may fail."""
    head, _, body = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").partition(b"\n\n")
    return ParsedMail(
        message_id="",
        in_reply_to=(),
        references=(),
        subject="",
        from_addr="",
        from_address="",
        senders=(),
        to=(),
        cc=(),
        header_to="",
        body_text=(body or head).replace(b"\0", b"").decode("utf-8", "replace"),
        body_html="",
        attachments=(),
        automated=False,
        signs=NO_SIGNS,
        received_count=0,
        has_dkim_signature=False,
        report_type="",
        list_unsubscribe="",
        parse_error=parse_error,
    )


def _parsed(raw: bytes) -> ParsedMail:
    block = headers.split(raw, 0)
    try:
        content = _read_content(raw, block)
    except Exception as error:
        text = _unix_lines(charset.decode(raw[block.body_start :], charset.UNDECLARED))
        content = _Content(
            texts=(text,), notes=(f"the structure could not be read ({type(error).__name__})",)
        )
    return _assembled(block.headers, content)


def _all_senders(fields: Headers, label: str, of_first: tuple[str, ...]) -> tuple[str, ...]:
    """Return the senders of every From field: a mail client may show any of them."""
    is_only = fields.count("from") == 1
    listed = of_first if is_only else _normalized(address.parse_list(fields.joined("from", label)))
    return tuple(dict.fromkeys(listed))[: MAX_SENDERS + 1]


def _normalized(mailboxes: Iterable[Address]) -> tuple[str, ...]:
    return tuple(address.normalize(mailbox.address) for mailbox in mailboxes)


def _assembled(fields: Headers, content: _Content) -> ParsedMail:
    label = content.charset_label
    senders = address.parse_list(fields.text("from", label))
    addresses = _normalized(senders)
    to = address.parse_list(fields.joined("to", label))
    return ParsedMail(
        message_id=message_id_of(fields),
        in_reply_to=headers.message_ids(fields.text("in-reply-to"), MAX_IN_REPLY_TO),
        references=headers.message_ids(fields.text("references"), MAX_REFERENCES),
        subject=_shown(fields.text("subject", label))[:MAX_SUBJECT_LENGTH],
        from_addr=str(senders[0])
        if senders
        else _shown(fields.text("from", label))[: address.MAX_NAME_LENGTH],
        from_address=addresses[0] if addresses else "",
        senders=_all_senders(fields, label, addresses),
        to=to,
        cc=address.parse_list(fields.joined("cc", label)),
        reply_to=address.parse_list(fields.joined("reply-to", label)),
        header_to=", ".join(map(str, to)),
        body_text=_joined(content.texts),
        body_html=_joined(content.htmls),
        attachments=_named(content.attachments),
        automated=_is_automated(fields),
        signs=read_signs(fields),
        received_count=fields.count("received"),
        has_dkim_signature=fields.count("dkim-signature") > 0,
        report_type=_report_type(fields.text("content-type")),
        list_unsubscribe=fields.text("list-unsubscribe")[:MAX_UNSUBSCRIBE_LENGTH],
        parse_error="; ".join(dict.fromkeys(content.notes)),
    )


def _shown(value: str) -> str:
    return charset.clean_line(headers.decode_words(value))


def message_id_of(fields: Headers) -> str:
    """Return the first id of the field; a value without brackets or "@" is an id too."""
    value = fields.text("message-id")
    ids = headers.message_ids(value, MAX_IN_REPLY_TO)
    if ids or not value or len(value) > headers.MAX_ID_LENGTH:
        return ids[0] if ids else ""
    return f"<{''.join(value.split()).strip('<>')}>"


def _is_automated(fields: Headers) -> bool:
    if _OF_MACHINES.isdisjoint(fields.fields):
        return False
    submitted = fields.text("auto-submitted").partition(";")[0].split()
    return (
        (bool(submitted) and submitted[0].lower() != "no")
        or fields.text("precedence").lower() in _BULK
        or fields.count("list-id") > 0
    )


def _report_type(content_type: str) -> str:
    """Return the type of a report (RFC 6522), such as delivery-status; "" if the email is none."""
    if not content_type.lower().startswith("multipart/report"):
        return ""
    return charset.clean_line(headers.parameters(content_type).get("report-type", "").lower())[:100]


def _joined(texts: Sequence[str]) -> str:
    """Return the texts one below the other, each beginning on a new line."""
    if len(texts) == 1:
        return texts[0]
    texts = [text for text in texts if text]
    lines = [text if text.endswith("\n") else text + "\n" for text in texts[:-1]]
    return "".join(lines + texts[-1:])


def _named(attachments: tuple[ParsedAttachment, ...]) -> tuple[ParsedAttachment, ...]:
    if not attachments:
        return ()
    names = [
        attachment.filename or filenames.default(number, attachment.content_type)
        for number, attachment in enumerate(attachments, 1)
    ]
    return tuple(
        structs.replace(
            attachment,
            filename=name,
            filename_raw="" if attachment.filename_raw == name else attachment.filename_raw,
        )
        for attachment, name in zip(attachments, filenames.unique(names), strict=True)
    )


def _read_content(raw: bytes, block: headers.Block) -> _Content:
    tree = parts.read(raw, block)
    content = _content_of(tree.root, "")
    return structs.replace(content, notes=tree.notes + content.notes) if tree.notes else content


def _content_of(part: Part, parent_type: str) -> _Content:
    if not part.is_multipart:
        return _leaf(part, parent_type)
    contents = [_content_of(child, part.content_type) for child in part.children]
    pick = _best if part.content_type == "multipart/alternative" else _all
    return _Content(
        texts=pick([content.texts for content in contents]),
        htmls=pick([content.htmls for content in contents]),
        attachments=tuple(chain.from_iterable(content.attachments for content in contents)),
        notes=tuple(chain.from_iterable(content.notes for content in contents)),
        charset_label=next((content.charset_label for content in contents if content.charset_label), ""),
    )


def _all(texts: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(texts))


def _best(alternatives: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the last one with content: the sender puts the best last (RFC 2046, 5.1.4)."""
    return next((texts for texts in reversed(alternatives) if any(map(str.strip, texts))), ())


def _leaf(part: Part, parent_type: str) -> _Content:
    disposition = part.headers.text("content-disposition")
    kind = disposition.partition(";")[0].strip().lower()
    given = _filename(part, disposition)
    name = filenames.clean(given) if given else ""
    decoded = transfer_encoding.decode(part.body, part.headers.text("content-transfer-encoding"))
    notes = ("a part with damaged encoding",) if decoded.is_damaged else ()
    if kind == "attachment" or not _is_body(part.content_type, name, parent_type):
        return _Content(attachments=(_attachment(part, kind, name, given, decoded.content),), notes=notes)
    label = _charset_label(part, decoded.content)
    if part.content_type == "text/html":
        html = _unix_lines(charset.decode(decoded.content, label))
        return _Content(htmls=(html,), notes=notes, charset_label=label)
    return _Content(texts=(_text(part, decoded.content, label),), notes=notes, charset_label=label)


def _is_body(content_type: str, name: str, parent_type: str) -> bool:
    """Return whether to show a text in place.

    A name makes it a file, unless it is the whole email or an alternative.
    """
    if parent_type == "":
        return content_type.startswith("text/")
    is_text = content_type in ("text/plain", "text/html")
    return is_text and (not name or parent_type == "multipart/alternative")


def _attachment(part: Part, kind: str, name: str, given: str, content: bytes) -> ParsedAttachment:
    content_id = charset.clean_line(part.headers.text("content-id")).strip("<> ")[:MAX_CONTENT_ID_LENGTH]
    if name and part.content_type in _EMBEDDED_MAIL and not name.lower().endswith(".eml"):
        name = filenames.clean(f"{name}.eml")
    is_inline = kind == "inline" or (kind != "attachment" and content_id != "")
    raw_name = charset.clean(given[:MAX_RAW_NAME_LENGTH])
    label = part.parameters.get("charset", charset.UNDECLARED)
    return ParsedAttachment(name, part.content_type, content, content_id, is_inline, raw_name, label)


def _filename(part: Part, disposition: str) -> str:
    """Return the filename, "" if there is none. The disposition wins over the type (RFC 2183, 2.3)."""
    given = headers.parameters(disposition).get("filename") or part.parameters.get("name", "")
    return headers.decode_words(given) if given else ""


def _text(part: Part, content: bytes, label: str) -> str:
    text = _unix_lines(charset.decode(content, label))
    if part.parameters.get("format", "").lower() != "flowed":
        return text
    return flowed.unwrap(text, deletes_space=part.parameters.get("delsp", "").lower() == "yes")


def _charset_label(part: Part, content: bytes) -> str:
    label = part.parameters.get("charset", charset.UNDECLARED)
    if not label and part.content_type == "text/html" and (meta := _META_CHARSET.search(content, 0, 2_048)):
        return meta[1].decode("ascii", "replace")
    return label


def _unix_lines(text: str) -> str:
    if _LONE_RETURN.search(text):
        return text.replace("\r\n", "\n").replace("\r", "\n")
    # Removing single bytes is three times as fast as removing letters, or replacing pairs.
    return text.encode().replace(b"\r", b"").decode() if text.isascii() else text.replace("\r", "")
