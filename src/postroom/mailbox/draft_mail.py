"""Drafts as mail clients see them: a draft written as an email, and an email read into a draft's fields."""

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from postroom import limits
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.mailbox.inboxes import Inbox
from postroom_mail.mime import address, headers
from postroom_mail.mime.address import Address
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.writing import compose
from postroom_mail.writing.compose import Draft, DraftAttachment
from postroom_mail.writing.header_words import DraftError

HEADER_BYTES = 256 * 1024


class DraftFields(Struct, rename="camel", frozen=True, omit_defaults=True):
    """The fields of a draft that are part of its mail, named as in the interface."""

    to: list[str] = []
    cc: list[str] = []
    bcc: list[str] = []
    subject: str = ""
    body: str = ""
    body_html: str | None = None
    thread_id: str | None = None
    include_quote: bool = True
    reply_to: str | None = None
    from_address: str | None = None


class ReadDraft(Struct, frozen=True):
    fields: DraftFields
    answers: tuple[str, ...]  # Message-IDs, the nearest first
    files: tuple[DraftAttachment, ...]


def fields_of(draft: KeptDraft) -> DraftFields:
    return msgspec.json.decode(draft.fields, type=DraftFields)


def write(
    inbox: Inbox, draft: KeptDraft, files: Iterable[KeptFile], read_blob: Callable[[str], bytes]
) -> bytes:
    """Compose the email of a draft: the same bytes each time for the same version."""
    attached = tuple(
        DraftAttachment(file.filename, file.content_type, _content(file, read_blob)) for file in files
    )
    fields = fields_of(draft)
    try:
        return _write(inbox, draft, fields, attached)
    except DraftError:  # what cannot be in a header is reported when it is sent
        return _write(inbox, draft, DraftFields(body=fields.body), attached)


def _write(
    inbox: Inbox, draft: KeptDraft, fields: DraftFields, attached: tuple[DraftAttachment, ...]
) -> bytes:
    sender = fields.from_address or inbox.sender
    bcc = compose.header("Bcc", compose.mailbox_list("bcc", fields.bcc))
    return bcc + compose.compose(
        Draft(
            from_name=inbox.display_name or "",
            from_address=sender,
            to=tuple(fields.to),
            cc=tuple(fields.cc),
            subject=fields.subject,
            text=fields.body,
            html=fields.body_html,
            reply_to=fields.reply_to,
            message_id=f"<{draft.id}.{draft.version}@{sender.rpartition('@')[2]}>",
            date_at=draft.updated_at,
            attachments=attached,
        )
    )


def _content(file: KeptFile, read_blob: Callable[[str], bytes]) -> bytes:
    if file.content is not None:
        return file.content
    assert file.blob is not None
    return read_blob(file.blob)


def read(raw: bytes) -> ReadDraft:
    """Read an email into a draft. Invalid addresses, such as half-written ones, are left out."""
    mail = parse_mail(raw)
    block = headers.split(raw[:HEADER_BYTES], 0).headers
    fields = DraftFields(
        to=_valid(mail.to),
        cc=_valid(mail.cc),
        bcc=_valid(address.parse_list(block.joined("bcc"))),
        subject=" ".join(mail.subject.split())[: limits.SUBJECT_CHARACTERS],
        body=mail.body_text,
        body_html=mail.body_html or None,
        include_quote=False,  # it has the quote that the program wrote
    )
    return ReadDraft(fields, _answered(mail), _files(mail))


def _valid(found: Iterable[Address]) -> list[str]:
    valid = []
    for each in found:
        try:
            valid.append(str(Address(each.name, address.validate(each.address))))
        except ValueError:
            continue
    return valid[: limits.RECIPIENTS]


def _answered(mail: ParsedMail) -> tuple[str, ...]:
    return (*mail.in_reply_to, *reversed(mail.references))


def _files(mail: ParsedMail) -> tuple[DraftAttachment, ...]:
    return tuple(DraftAttachment(each.filename, each.content_type, each.content) for each in mail.attachments)
