"""Mails that were read, put into their inboxes: threads, messages, events; many mails by few statements."""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET, structs

from postroom import ids
from postroom.clock import to_iso
from postroom.events.announce import announce_all
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import News
from postroom.inward import admit, examine, review_answers, suspicion
from postroom.inward.addressing import delivery_role, participants
from postroom.inward.admit import Names
from postroom.inward.attribute import About
from postroom.inward.bounces import apply_report
from postroom.inward.examine import Examination
from postroom.inward.mails import Copy, Destination, Handover, ReadMail
from postroom.inward.review_answers import ReviewAnswer, Reviewed
from postroom.inward.suspicion import Suspicion
from postroom.mail.parse import ParsedMail
from postroom.mailbox import (
    attachments,
    correspondents,
    inboxes,
    messages,
    raw_mails,
    related,
    threads,
    usage,
)
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND, RECEIVED, NewMessage
from postroom.mailbox.search import indexing
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx

BODY_MAX_CHARACTERS = 1_000_000
PART_MAX_SIZE = 1024 * 1024


def deposit(tx: Tx, mails: list[ReadMail]) -> list[list[str]]:
    """Gives for each mail the bells to ring after the commit."""
    bells: list[list[str]] = [[] for _ in mails]
    taken = take_over(tx, set_answers_aside(tx, mails, bells))
    kept_back = inboxes.find_guarded(tx, {destination.inbox_id for _, _, destination in taken})
    owners = count_mails(tx, taken, kept_back)
    for part in in_parts(taken):
        copies = store(tx, part, owners, kept_back)
        for number, rung in tell(tx, copies):
            bells[number] += rung
    return bells


def take_over(tx: Tx, handed: list[Handover]) -> list[Handover]:
    """A mail for each of its inboxes, but not where the inbox has the same mail already.

    Without a Message-ID every handover is a mail of its own: devices repeat themselves, and mean it.
    """
    hashed = [each for each in handed if each[1].content_hash]
    are_new = messages.take_over(
        tx, [(destination.inbox_id, read.content_hash, read.now) for _, read, destination in hashed]
    )
    known = {id(each) for each, is_new in zip(hashed, are_new, strict=True) if not is_new}
    return [each for each in handed if id(each) not in known]


def set_answers_aside(tx: Tx, mails: list[ReadMail], bells: list[list[str]]) -> list[Handover]:
    """Answers of reviewers wait until it is known who wrote them. Gives what goes into inboxes.

    The same mail may go to an inbox as well, or answer for several mails: it is no second handover then.
    """
    handed = [(number, read, to) for number, read in enumerate(mails) for to in read.arrival.destinations]
    answers = [(number, read, reviewed) for number, read, to in handed if (reviewed := to.review) is not None]
    review_answers.add_all(tx, [to_answer(read, reviewed) for _, read, reviewed in answers])
    for number, _, _ in answers:
        bells[number].append(review_answers.BELL)
    return [each for each in handed if each[2].review is None and not each[2].is_dropped]


def to_answer(read: ReadMail, reviewed: Reviewed) -> ReviewAnswer:
    arrival = read.arrival
    first_line = next((line for line in read.reply_text.splitlines() if line.strip()), "")
    return ReviewAnswer(
        id=review_answers.new_id(read.now),
        message_id=reviewed.message_id,
        reviewer=reviewed.reviewer,
        from_address=read.mail.from_address,
        first_line=first_line[:1000],
        is_automated=read.mail.automated or arrival.mail_from == "",
        peer_ip=arrival.peer_ip,
        helo=arrival.helo,
        mail_from=arrival.mail_from,
        content=raw_mails.restore(read.kept, read.body_text, read.mail.body_html)[len(arrival.trace) :],
        due_at=read.now,
    )


def count_mails(tx: Tx, taken: list[Handover], kept_back: frozenset[str]) -> dict[str, Inbox]:
    """Before anything else, and in the order of the ids: so nodes wait for each other in one order only.

    A mail that names no other starts a thread for sure. What is kept back is counted when it is let in.
    """
    let_in = [each for each in taken if not each[2].is_kept_back(kept_back)]
    counts = Counter(destination.inbox_id for _, _, destination in let_in)
    started = Counter(destination.inbox_id for _, read, destination in let_in if not names_others(read.mail))
    sizes: Counter[str] = Counter()
    for _, read, destination in taken:
        sizes[destination.inbox_id] += read.size_bytes
    return {
        inbox_id: inboxes.count(
            tx,
            inbox_id,
            inbound=counts[inbox_id],
            new_threads=started[inbox_id],
            unread=started[inbox_id],
            stored_bytes=sizes[inbox_id],
        )
        for inbox_id in sorted({destination.inbox_id for _, _, destination in taken})
    }


def names_others(mail: ParsedMail) -> bool:
    return bool(mail.in_reply_to or mail.references)


def in_parts(taken: list[Handover]) -> Iterator[list[Handover]]:
    """Parts in which no mail answers another, so that each finds what it answers in the database.

    They are small as well, since all rows of a part are in memory together.
    """
    part: list[Handover] = []
    known: set[str] = set()
    size = 0
    for each in taken:
        read = each[1]
        is_answer = not (known.isdisjoint(read.mail.in_reply_to) and known.isdisjoint(read.mail.references))
        if part and (is_answer or size + row_size(read) > PART_MAX_SIZE):
            yield part
            part, known, size = [], set(), 0
        part.append(each)
        known.add(read.mail.message_id)
        size += row_size(read)
    if part:
        yield part


def row_size(read: ReadMail) -> int:
    """In bytes or characters."""
    return len(read.kept.content) + len(read.body_text) + len(read.mail.body_html)


def store(tx: Tx, part: list[Handover], owners: dict[str, Inbox], kept_back: frozenset[str]) -> list[Copy]:
    copies = [
        put_outside(*handed, owners[handed[2].inbox_id])
        if handed[2].is_kept_back(kept_back)
        else put_into_thread(tx, *handed, owners[handed[2].inbox_id])
        for handed in part
    ]
    count_late_starts(tx, copies)
    copies = look_at_senders(tx, copies)
    started = [copy for copy in copies if copy.starts_thread]
    threads.add_all(tx, [copy.thread for copy in started])
    threads.add_participants(
        tx, [(copy.thread.id, address) for copy in started for address in participants(copy.read.mail)]
    )
    messages.add_all(tx, [to_new_message(copy) for copy in copies])
    attachments.add_all(tx, [(copy.document.id, file) for copy in copies for file in copy.read.attachments])
    inside = [copy for copy in copies if not copy.is_kept_back]
    related.note_all(tx, [to_placed(copy) for copy in inside])
    for copy in inside:
        threads.note_verdict(tx, copy.thread.id, copy.document.verdict)
    admit.keep(tx, [(copy.document.id, to_names(copy.read.mail)) for copy in copies if copy.is_kept_back])
    usage.count_all(tx, [copy.inbox.stores(copy.read.size_bytes, copy.read.now) for copy in copies])
    return copies


def look_at_senders(tx: Tx, copies: list[Copy]) -> list[Copy]:
    """Notes who wrote. One who is new may pass for another; of mail to be examined that is said later."""
    new = correspondents.add(
        tx,
        [
            (copy.inbox.id, copy.read.mail.from_address, not copy.read.needs_examination)
            for copy in copies
            if not copy.is_kept_back
        ],
    )
    return [
        with_sender(tx, copy, copy.read.findings)
        if copy.read.findings is not None and (copy.inbox.id, copy.read.mail.from_address) in new
        else copy
        for copy in copies
    ]


def with_sender(tx: Tx, copy: Copy, before: Suspicion) -> Copy:
    mail = copy.read.mail
    name = suspicion.name_of(mail.from_addr)
    known = correspondents.list_trusted(tx, copy.inbox.id, name, besides=mail.from_address)
    dmarc = copy.read.verdicts.dmarc if copy.read.arrival.peer_ip else suspicion.INSIDE
    found = suspicion.with_sender(before, mail, dmarc, known)
    correspondents.note_name(tx, copy.inbox.id, mail.from_address, name, dmarc == "pass")
    return structs.replace(copy, document=suspicion.judged(copy.document, found))


def put_outside(number: int, read: ReadMail, destination: Destination, inbox: Inbox) -> Copy:
    """In no thread, until it is let in."""
    nowhere = structs.replace(
        threads.new(inbox, read.mail.subject, is_read=False, now=read.now), id="", message_count=0
    )
    document = to_document(inbox, nowhere, read, is_new_participant=False)
    return Copy(number, read, destination.bounce_path, inbox, nowhere, False, document, is_kept_back=True)


def to_names(mail: ParsedMail) -> Names:
    return Names(
        list(mail.in_reply_to),
        list(mail.references),
        participants(mail),
        mail.from_address,
        list(mail.senders),
    )


def put_into_thread(tx: Tx, number: int, read: ReadMail, destination: Destination, inbox: Inbox) -> Copy:
    mail = read.mail
    joined = threads.resolve(tx, inbox.id, mail.in_reply_to, mail.references)
    if joined is None:
        thread, is_new_participant = threads.new(inbox, mail.subject, is_read=False, now=read.now), False
    else:
        is_new_participant = not threads.has_participant(tx, joined.id, mail.from_address)
        threads.add_participants(tx, [(joined.id, address) for address in participants(mail)])
        thread = threads.add_message(tx, joined, is_read=False, now=read.now)
    document = to_document(inbox, thread, read, is_new_participant)
    return Copy(number, read, destination.bounce_path, inbox, thread, joined is None, document)


def to_placed(copy: Copy) -> related.Placed:
    mail = copy.read.mail
    named = related.names_of(mail.in_reply_to, mail.references)
    return related.Placed(copy.inbox.id, copy.thread.id, mail.message_id, named)


def count_late_starts(tx: Tx, copies: list[Copy]) -> None:
    """Threads that mails start because what they name is not here."""
    late = Counter(copy.inbox.id for copy in copies if copy.starts_thread and names_others(copy.read.mail))
    for inbox_id, count in late.items():
        inboxes.count(tx, inbox_id, new_threads=count, unread=count)


def tell(tx: Tx, copies: list[Copy]) -> Iterator[tuple[int, list[str]]]:
    """The events, or the examinations that will record them. Gives numbers of mails with bells to ring."""
    waiting = [copy for copy in copies if copy.needs_examination]
    examine.add_all(tx, [to_examination(copy) for copy in waiting])
    yield from ((copy.number, [examine.BELL]) for copy in waiting)
    ready = [copy for copy in copies if not copy.needs_examination]
    indexing.enqueue_all(tx, [copy.document.id for copy in ready])
    told = announce_all(tx, [to_news(copy) for copy in ready], copies[0].read.base_url)
    yield from ((copy.number, rung) for copy, rung in zip(ready, told, strict=True))
    yield from ((copy.number, follow_report(tx, copy)) for copy in copies)


def follow_report(tx: Tx, copy: Copy) -> list[str]:
    """What a bounce or a complaint means for the mail that it is about."""
    read, path = copy.read, copy.bounce_path
    report, about = read.report, read.about
    if path is not None:
        report, about = read.returned, About(path.message_id, path.recipient_index)
    if report is None:
        return []
    return apply_report(tx, copy.inbox, report, about, read.base_url, read.now)


def to_new_message(copy: Copy) -> NewMessage:
    read = copy.read
    return NewMessage(
        document=copy.document,
        status=RECEIVED,
        from_address=read.mail.from_address,
        has_attachments=bool(read.attachments),
        raw=None if read.blob else read.kept.content,
        text_at=read.kept.text_at,
        html_at=read.kept.html_at,
        blob=read.blob,
        created_at=read.now,
        trace_bytes=len(read.arrival.trace),
        is_blocked=copy.is_kept_back,
        size_bytes=read.size_bytes,
    )


def to_examination(copy: Copy) -> Examination:
    arrival = copy.read.arrival
    return Examination(copy.document.id, arrival.peer_ip, arrival.helo, arrival.mail_from, copy.read.now)


def to_news(copy: Copy) -> News:
    inbox, read = copy.inbox, copy.read
    return News(inbox.account_id, inbox.pod_id, MESSAGE_RECEIVED, copy.document, read.attachments, read.now)


def to_document(inbox: Inbox, thread: Thread, read: ReadMail, is_new_participant: bool) -> Document:
    mail = read.mail
    document = Document(
        id=ids.new(ids.MESSAGE, read.now),
        thread_id=thread.id,
        inbox_id=inbox.id,
        direction=INBOUND,
        from_addr=mail.from_addr,
        to_addr=inbox.address,
        header_to=mail.header_to,
        delivery_role=delivery_role(inbox.address, mail),
        cc=[str(address) for address in mail.cc],
        subject=mail.subject,
        body_text=read.body_text,
        body_html=mail.body_html[:BODY_MAX_CHARACTERS],
        created_at=to_iso(read.now),
        rfc_message_id=mail.message_id,
        reply_text=read.reply_text,
        auth=read.verdicts,
        automated=read.kind.category != "personal",
        new_participant=is_new_participant,
        codes=read.codes,
        links=[link.url for link in read.link_details],
        link_details=read.link_details,
        category=read.kind.category,
        auto_replyable=read.kind.auto_replyable and not is_calendar_answer(read),
        calendar=read.calendar or UNSET,
        parse_error=mail.parse_error or UNSET,
    )
    return document if read.findings is None else suspicion.judged(document, read.findings)


def is_calendar_answer(read: ReadMail) -> bool:
    """Accepted, declined: nothing is asked that a program could answer."""
    return read.calendar is not None and (read.calendar.method or "").lower() == "reply"
