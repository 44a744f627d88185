"""Puts emails that were read into their inboxes, many with few statements. One email goes this way:

1. `set_answers_aside`, `set_reports_aside`, `without_own_emails`: email that belongs in no inbox leaves.
2. `without_taken`, `without_known`: an inbox that already has the email gets no second one.
3. `count_mails`: its inbox counts it, and stays locked by that until the commit.
4. `to_copy`, `look_at_senders`: it gets a document, a thread and a known sender; blocked, only a document.
5. `store`: all of it becomes rows; what it answers was stored in an earlier part (`in_parts`).
6. `emit`: its event is recorded, or the examination that will do so; then what it reports of a sent email.
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from postroom import log
from postroom.accounts.people import own_emails
from postroom.events import event_log
from postroom.events.announce import announce_all, count_unannounced
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import NewEvent
from postroom.inward import admit, examine, genuine, into_thread, received_reports, review_answers, screening
from postroom.inward.attribute import About
from postroom.inward.bounces import apply_report
from postroom.inward.colleagues import list_colleagues
from postroom.inward.examine import Examination
from postroom.inward.junk.senders import FROM_INSIDE, NOTHING_KNOWN, find_history
from postroom.inward.junk.waiting import JunkWaiting, find_waiting
from postroom.inward.junk.weighing import Evidence, weigh
from postroom.inward.mails import AcceptedMail, AddressedMail, ReadMail, StoredCopy
from postroom.inward.received_document import to_document
from postroom.inward.review_answers import ReviewAnswer, Reviewed
from postroom.inward.rules.apply import LetIn, apply_all
from postroom.inward.screening import Screening
from postroom.mailbox import attachments, correspondents, inboxes, messages, origins, thread_digests, usage
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import RECEIVED, NewMessage
from postroom.mailbox.origins import HeldValues
from postroom.mailbox.search import indexing
from postroom.mailbox.thread_digests import Digest
from postroom.processes.analysis import Analysis
from postroom.queue import idempotency
from postroom.storage.database import Tx
from postroom_mail.html.text import visible
from postroom_mail.mime.parse import ParsedMail

PART_MAX_SIZE = 1024 * 1024


def deposit(tx: Tx, mails: list[AcceptedMail]) -> list[list[str]]:
    """Returns for each mail the bells to ring after the commit."""
    bells: list[list[str]] = [[] for _ in mails]
    addressed = set_reports_aside(tx, set_answers_aside(tx, mails, bells), bells)
    new = without_taken(tx, without_known(tx, without_own_emails(tx, addressed)))
    waiting = find_waiting(tx, new)
    owners = count_mails(tx, new, waiting)
    for part in in_parts(new):
        copies = store(tx, part, owners, waiting)
        for number, rung in emit(tx, copies):
            bells[number] += rung
    return bells


def without_own_emails(tx: Tx, addressed: list[AddressedMail]) -> list[AddressedMail]:
    """Leaves out the server's own emails, pulled or forwarded: their links sign in, or decide."""
    own = {id(each) for each in addressed if own_emails.is_own(tx, each.read.own_marks)}
    for each in addressed:
        if id(each) in own:
            log.get().error("an email of this server was kept out of an inbox", inbox=each.inbox_id)
    return [each for each in addressed if id(each) not in own]


def without_known(tx: Tx, addressed: list[AddressedMail]) -> list[AddressedMail]:
    """Leaves out inboxes that already have the mail.

    A mail without a hash is always new: devices repeat mails without a Message-ID on purpose.
    """
    hashed = [each for each in addressed if each.read.content_hash]
    are_new = idempotency.record_handovers(
        tx, [(each.inbox_id, each.read.content_hash, each.mail.now) for each in hashed]
    )
    known = {id(each) for each, is_new in zip(hashed, are_new, strict=True) if not is_new}
    return [each for each in addressed if id(each) not in known]


def without_taken(tx: Tx, addressed: list[AddressedMail]) -> list[AddressedMail]:
    """Leaves out mails fetched from their mailbox before, however long ago and under whichever number."""
    taken = [(each, source) for each in addressed if (source := each.read.origin.taken) is not None]
    are_new = idempotency.record_taken(
        tx,
        [
            (source.connection_id, each.read.content_hash, source.uid_validity, source.uid, each.mail.now)
            for each, source in taken
        ],
    )
    known = {id(each) for (each, _), is_new in zip(taken, are_new, strict=True) if not is_new}
    return [each for each in addressed if id(each) not in known]


def set_answers_aside(tx: Tx, mails: list[AcceptedMail], bells: list[list[str]]) -> list[AddressedMail]:
    """Stores answers of reviewers until their author is verified. Returns the mails that go into inboxes.

    The same mail may also go to an inbox, or answer several mails: that is no second handover.
    """
    addressed = [each for number, mail in enumerate(mails) for each in to_each_inbox(mail, number)]
    answers = [to_answer(each.mail, reviewed) for each in addressed if (reviewed := each.destination.review)]
    review_answers.add_all(tx, answers)
    for each in addressed:
        if each.destination.review is not None:
            bells[each.number].append(review_answers.BELL)
    return [each for each in addressed if each.destination.review is None and not each.destination.is_dropped]


def set_reports_aside(tx: Tx, addressed: list[AddressedMail], bells: list[list[str]]) -> list[AddressedMail]:
    """Stores reports about domains until they are read. Returns the mails that go into inboxes."""
    reports = [each for each in addressed if each.destination.report_domain]
    received_reports.add_all(tx, [received_reports.to_report(each) for each in reports])
    for each in reports:
        bells[each.number].append(received_reports.BELL)
    return [each for each in addressed if not each.destination.report_domain]


def to_each_inbox(mail: AcceptedMail, number: int = 0) -> list[AddressedMail]:
    return [AddressedMail(number, mail, destination) for destination in mail.read.origin.each_once]


def to_answer(mail: AcceptedMail, reviewed: Reviewed) -> ReviewAnswer:
    read, origin = mail.read, mail.read.origin
    first_line = next((line for line in read.reply_text.splitlines() if line.strip()), "")
    return ReviewAnswer(
        id=review_answers.new_id(mail.now),
        message_id=reviewed.message_id,
        reviewer=reviewed.reviewer,
        from_address=read.mail.from_address,
        first_line=first_line[:1000],
        is_automated=read.mail.automated or origin.mail_from == "",
        peer_ip=origin.peer_ip,
        helo=origin.helo,
        mail_from=origin.mail_from,
        content=read.content,
        due_at=mail.now,
    )


def count_mails(tx: Tx, addressed: list[AddressedMail], waiting: JunkWaiting) -> dict[str, Inbox]:
    """Runs before mails are stored, in the order of ids, so that nodes take the locks in one order.

    A mail that names no other always starts a thread. Of blocked mail only the size is counted here; the
    rest when it is let in.
    """
    let_in = [each for each in addressed if not waiting.has_to_wait(each)]
    counts = Counter(each.inbox_id for each in let_in)
    started = Counter(each.inbox_id for each in let_in if not names_others(each.read.mail))
    sizes: Counter[str] = Counter()
    for each in addressed:
        sizes[each.inbox_id] += each.read.size_bytes
    return {
        inbox_id: inboxes.count(
            tx,
            inbox_id,
            inbound=counts[inbox_id],
            new_threads=started[inbox_id],
            unread=started[inbox_id],
            stored_bytes=sizes[inbox_id],
        )
        for inbox_id in sorted({each.inbox_id for each in addressed})
    }


def names_others(mail: ParsedMail) -> bool:
    return bool(mail.in_reply_to or mail.references)


def in_parts(addressed: list[AddressedMail]) -> Iterator[list[AddressedMail]]:
    """Splits into parts in which no mail answers another, so that each finds in the database what it answers.

    Parts are also small, since all rows of a part are in memory together.
    """
    part: list[AddressedMail] = []
    known: set[str] = set()
    size = 0
    for each in addressed:
        mail = each.read.mail
        is_answer = not (known.isdisjoint(mail.in_reply_to) and known.isdisjoint(mail.references))
        if part and (is_answer or size + row_size(each.read) > PART_MAX_SIZE):
            yield part
            part, known, size = [], set(), 0
        part.append(each)
        known.add(mail.message_id)
        size += row_size(each.read)
    if part:
        yield part


def row_size(read: ReadMail) -> int:
    """Return the size, in bytes or characters."""
    return len(read.kept.content) + len(read.mail.body_text) + len(read.mail.body_html)


def store(
    tx: Tx, part: list[AddressedMail], owners: dict[str, Inbox], waiting: JunkWaiting
) -> list[StoredCopy]:
    copies = [to_copy(tx, each, owners[each.inbox_id], waiting) for each in part]
    count_late_starts(tx, copies)
    copies = look_at_senders(tx, copies)
    for copy, mail in ((copy, copy.read.mail) for copy in copies):
        texts = (mail.header_to, *map(str, mail.cc), mail.body_text, mail.body_html)
        own_emails.end_shown_links(tx, copy.inbox.id, texts, copy.mail.now)
    placed = [(copy.place, copy.document) for copy in copies if copy.place is not None]
    into_thread.store_new_threads(tx, placed)
    messages.add_all(tx, [to_new_message(copy) for copy in copies])
    attachments.add_all(tx, [(copy.document.id, file) for copy in copies for file in copy.read.attachments])
    origins.add_all(tx, [HeldValues(copy.inbox.id, copy.document.id, copy.read.values) for copy in copies])
    into_thread.record_stored(tx, placed)
    blocked = [copy for copy in copies if copy.is_blocked]
    admit.keep(tx, [(copy.document.id, into_thread.names_of(copy.read.mail)) for copy in blocked])
    usage.count_all(tx, [copy.inbox.stores(copy.read.size_bytes, copy.mail.now) for copy in copies])
    return copies


def to_copy(tx: Tx, addressed: AddressedMail, inbox: Inbox, waiting: JunkWaiting) -> StoredCopy:
    """Return the copy for an inbox, in its thread, or in none until it is let in."""
    accepted, mail = addressed.mail, addressed.read.mail
    place = None
    if not waiting.has_to_wait(addressed):
        names, digest = into_thread.names_of(mail), to_digest(inbox, accepted)
        subject, is_imported = visible(mail.subject), accepted.is_imported
        place = into_thread.find_thread(
            tx,
            inbox,
            names,
            subject,
            accepted.now,
            digest,
            is_imported,
            accepted.read.kind.category == "personal",
        )
    document = to_document(inbox, accepted, place, addressed.destination.delivered_to)
    document = with_junk(tx, inbox, accepted, document, waiting)
    is_taught = addressed.is_from_outside and inbox.id in waiting.taught
    return StoredCopy(addressed.number, accepted, addressed.destination, inbox, place, document, is_taught)


def with_junk(
    tx: Tx, inbox: Inbox, accepted: AcceptedMail, document: Document, waiting: JunkWaiting
) -> Document:
    """Weigh the email's words by the model of all accounts. If more is needed, the examination adds it."""
    read = accepted.read
    if read.findings is None or accepted.is_filed:
        return document
    rules, evidence = waiting.rules[inbox.id], Evidence(read.junk_words)
    found = weigh(evidence, read.verdicts, NOTHING_KNOWN, rules)
    if read.origin.peer_ip == "":
        found = weigh(evidence, read.verdicts, FROM_INSIDE, rules)
    elif found.is_junk:
        answered = (*read.mail.in_reply_to, *read.mail.references)
        is_genuine = read.verdicts.dmarc in genuine.GENUINE
        senders = list(read.mail.senders)
        history = find_history(tx, inbox.scope, senders, answered, is_genuine, accepted.now)
        found = weigh(evidence, read.verdicts, history, rules)
    return structs.replace(document, junk=found)


def to_digest(inbox: Inbox, accepted: AcceptedMail) -> Digest:
    read, mail = accepted.read, accepted.read.mail
    return thread_digests.of_parts(
        "inbound",
        mail.from_addr,
        (*mail.to[: thread_digests.READ_PEOPLE], *mail.cc),
        read.reply_text or mail.body_text,
        read.codes,
        bool(read.attachments),
        accepted.now,
        thread_digests.of_inbox(inbox),
    )


def look_at_senders(tx: Tx, copies: list[StoredCopy]) -> list[StoredCopy]:
    """Records senders, and checks whether a new one resembles a known one, unless an examination will.

    The sender of an imported mail is checked, but not recorded.
    """
    new = correspondents.add(
        tx,
        [
            (copy.inbox.id, copy.read.mail.from_address, is_believed(copy))
            for copy in copies
            if not copy.is_blocked and not copy.mail.is_filed
        ],
        copies[0].mail.now if copies else 0,
    )
    imported = {(copy.inbox.id, copy.read.mail.from_address) for copy in copies if copy.mail.is_imported}
    new |= imported - correspondents.find(tx, sorted(imported)) if imported else set()
    return [
        with_sender(tx, copy, copy.read.findings)
        if copy.read.findings is not None and (copy.inbox.id, copy.read.mail.from_address) in new
        else copy
        for copy in copies
    ]


def is_believed(copy: StoredCopy) -> bool:
    """Return whether its sender becomes known at once; of a copy, if the original was genuine."""
    original = copy.mail.original
    return copy.read.is_believed and (original is None or genuine.is_genuine(original))


def with_sender(tx: Tx, copy: StoredCopy, before: Screening) -> StoredCopy:
    mail = copy.read.mail
    name = screening.name_of(mail.from_addr)
    known = correspondents.list_trusted(tx, copy.inbox.id, name, besides=mail.from_address)
    own = list_colleagues(tx, copy.inbox.id)
    dmarc = copy.read.verdicts.dmarc if copy.read.origin.peer_ip else screening.INSIDE
    found = Analysis().run("sender", before, lambda: screening.with_sender(before, mail, dmarc, known, own))
    if not copy.mail.is_filed:
        correspondents.record_name(tx, copy.inbox.id, mail.from_address, name, dmarc == "pass")
    return structs.replace(copy, document=screening.judged(copy.document, found))


def count_late_starts(tx: Tx, copies: list[StoredCopy]) -> None:
    """Counts threads that start because the mails they name are not here."""
    late = Counter(
        copy.inbox.id
        for copy in copies
        if copy.place is not None and copy.place.starts_thread and names_others(copy.read.mail)
    )
    for inbox_id, count in late.items():
        inboxes.count(tx, inbox_id, new_threads=count, unread=count)


def emit(tx: Tx, copies: list[StoredCopy]) -> Iterator[tuple[int, list[str]]]:
    """Records the events, or the examinations that will do so. Yields numbers of mails with bells to ring."""
    waiting = [copy for copy in copies if copy.needs_examination]
    examine.add_all(tx, [to_examination(copy) for copy in waiting])
    yield from ((copy.number, [examine.BELL]) for copy in waiting)
    ready = [copy for copy in copies if not copy.needs_examination]
    indexing.enqueue_all(tx, [copy.document.id for copy in ready])
    woken = into_thread.notices_of_threads((copy.place, copy.mail.now) for copy in copies)
    told, hidden = follow_rules(tx, ready)
    rung = announce_all(tx, [*woken, *map(to_new_event, told)], copies[0].mail.base_url)[len(woken) :]
    count_unannounced(tx, list(map(to_new_event, hidden)))
    yield from ((copy.number, bells) for copy, bells in zip(told, rung, strict=True))
    yield from ((copy.number, [event_log.bell(copy.inbox.account_id)]) for copy in hidden)
    yield from ((copy.number, follow_report(tx, copy)) for copy in copies)


def follow_rules(tx: Tx, ready: list[StoredCopy]) -> tuple[list[StoredCopy], list[StoredCopy]]:
    """Returns the copies that are told to programs, and those that a rule hides from them."""
    let_in = [
        LetIn(copy.inbox, copy.document, copy.read.attachments, copy.mail.now, copy.read.size_bytes)
        for copy in ready
    ]
    ruled = apply_all(tx, let_in, ready[0].mail.now if ready else 0)
    told: list[StoredCopy] = []
    hidden: list[StoredCopy] = []
    for copy, found in zip(ready, ruled, strict=True):
        (hidden if found.is_hidden else told).append(structs.replace(copy, document=found.document))
    return told, hidden


def follow_report(tx: Tx, copy: StoredCopy) -> list[str]:
    """Carry out what a bounce or a complaint means for the mail that it is about; return the bells."""
    mail, path = copy.mail, copy.destination.bounce_path
    report, about = mail.read.report, mail.about
    if path is not None:
        report, about = mail.read.returned, About(path.message_id, path.recipient_index)
    if report is None:
        return []
    return apply_report(tx, copy.inbox, report, about, mail.base_url, mail.now)


def to_new_message(copy: StoredCopy) -> NewMessage:
    mail, read = copy.mail, copy.read
    return NewMessage(
        document=copy.document,
        status=RECEIVED,
        from_address=read.mail.from_address,
        has_attachments=bool(read.attachments),
        raw=None if mail.blob else read.kept.content,
        text_at=read.kept.text_at,
        html_at=read.kept.html_at,
        blob=mail.blob,
        created_at=mail.now,
        trace_bytes=len(read.origin.trace),
        is_blocked=copy.is_blocked,
        size_bytes=read.size_bytes,
        envelope=mail.envelope,
        is_imported=mail.is_imported,
    )


def to_examination(copy: StoredCopy) -> Examination:
    origin = copy.read.origin
    return Examination(copy.document.id, origin.peer_ip, origin.helo, origin.mail_from, copy.mail.now)


def to_new_event(copy: StoredCopy) -> NewEvent:
    inbox, files, now = copy.inbox, copy.read.attachments, copy.mail.now
    return NewEvent.of(inbox, MESSAGE_RECEIVED, copy.document, files, now)
