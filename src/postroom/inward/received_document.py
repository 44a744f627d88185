"""The document of an email that is put into an inbox: all that was read of it."""

from msgspec import UNSET, structs

from postroom import ids
from postroom.clock import to_iso
from postroom.inward import screening
from postroom.inward.addressing import delivery_role
from postroom.inward.into_thread import ThreadMatch
from postroom.inward.mails import AcceptedMail, ReadMail
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND
from postroom_mail.html.text import visible
from postroom_mail.mime.address import parse_list, shown
from postroom_mail.mime.parse import ParsedMail

BODY_MAX_CHARACTERS = 1_000_000


def to_document(inbox: Inbox, accepted: AcceptedMail, place: ThreadMatch | None, came_to: str) -> Document:
    read, mail = accepted.read, accepted.read.mail
    sender, subject = shown_sender(mail), visible(mail.subject)
    to, cc = [str(shown(each)) for each in mail.to], [str(shown(each)) for each in mail.cc]
    given_cc = [str(each) for each in mail.cc]
    document = Document(
        id=ids.new(ids.MESSAGE, accepted.now),
        thread_id="" if place is None else place.thread.id,
        inbox_id=inbox.id,
        direction=INBOUND,
        from_addr=sender,
        to_addr=inbox.address,
        header_to=", ".join(to),
        delivery_role=delivery_role(inbox.mailboxes | {came_to}, mail),
        cc=cc,
        subject=subject,
        body_text=mail.body_text,
        body_html=mail.body_html[:BODY_MAX_CHARACTERS],
        created_at=to_iso(accepted.now),
        rfc_message_id=mail.message_id,
        reply_text=read.reply_text,
        auth=read.verdicts,
        automated=read.kind.category != "personal",
        new_participant=place is not None and place.is_new_participant,
        codes=read.codes,
        links=[link.url for link in read.link_details],
        link_details=read.link_details,
        category=read.kind.category,
        auto_replyable=read.kind.auto_replyable and not is_calendar_answer(read),
        calendar=read.calendar or UNSET,
        parse_error=mail.parse_error or UNSET,
        analysis="failed" if read.failed else UNSET,
        trace_id=accepted.trace_id or UNSET,
        subject_raw=UNSET if subject == mail.subject else mail.subject,
        from_addr_raw=UNSET if sender == mail.from_addr else mail.from_addr,
        header_to_raw=UNSET if ", ".join(to) == mail.header_to else mail.header_to,
        cc_raw=UNSET if cc == given_cc else given_cc,
        delivered_to=came_to or UNSET,
    )
    if (original := accepted.original) is not None:
        return structs.replace(
            document,
            auth=original.auth,
            verdict=original.verdict,
            signals=original.signals,
            junk=original.junk,
            auto_replyable=document.auto_replyable and original.auto_replyable,
            copied_from=UNSET if accepted.is_filed else original.id,
        )
    return document if read.findings is None else screening.judged(document, read.findings)


def shown_sender(mail: ParsedMail) -> str:
    """Return the sender as shown: plain text if it has no readable address."""
    if mail.from_addr.isascii():
        return mail.from_addr
    return str(shown(parse_list(mail.from_addr)[0])) if mail.from_address else visible(mail.from_addr)


def is_calendar_answer(read: ReadMail) -> bool:
    """Return whether it only accepts or declines an invitation: nothing that a program could answer."""
    return read.calendar is not None and (read.calendar.method or "").lower() == "reply"
