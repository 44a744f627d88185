"""A claimed delivery of mail: hand it to a courier, then record the outcome with all that follows from it."""

from dataclasses import dataclass
from email.utils import formatdate

from msgspec import Struct

from postroom import log
from postroom.accounts import accounts, domains
from postroom.accounts.domains import DkimKey
from postroom.accounts.rules.pauses import IS_PAUSED
from postroom.clock import DAY, SECOND
from postroom.events import kinds
from postroom.events.announce import announce, announce_all
from postroom.events.payload import Fate, News
from postroom.inward import review_answers
from postroom.inward.addressing import is_nobodys
from postroom.inward.deposit import deposit
from postroom.inward.mails import NOBODY, Arrival, Destination
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mail import simulator
from postroom.mail.address import mailbox_of
from postroom.mail.bounces import reasons
from postroom.mail.writing import return_path, review_path
from postroom.mail.writing.content_hash import content_hash
from postroom.mailbox import attachments, documents, holds, inboxes, messages, raw_mails
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import SENT, Message
from postroom.outward.courier import DeliveryError, MailCourier, OutgoingMail, Receipt
from postroom.outward.holding import decide
from postroom.outward.sign_mail import Signers, Unsigned
from postroom.outward.simulate import simulate
from postroom.processes import pools, process_metrics
from postroom.queue import deliveries, retries, suppressions
from postroom.queue.deliveries import CAPTURED, DONE, Delivery
from postroom.resources import Resources
from postroom.storage.database import Tx

REPLY_MAX_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Outbound:
    """What it takes to send mail: the way out, who signs, the secret that signs return paths, and who reads
    a mail that stays inside."""

    courier: MailCourier
    signers: Signers
    return_path_secret: bytes
    reader: Reader


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that has to leave: who sends it, to how many, and its bytes or the blob that holds them."""

    message: Message
    sender: str
    pod_id: str
    is_paused: bool
    hold: Hold | None
    recipients: int
    content: bytes | None
    blob: str | None


@dataclass(frozen=True, slots=True)
class MailJob:
    """A claimed delivery and all that the database knows about it."""

    delivery: Delivery
    outgoing: Outgoing
    is_local: bool
    is_simulated: bool
    key: DkimKey | None

    @property
    def message(self) -> Message:
        return self.outgoing.message

    @property
    def domain(self) -> str:
        return domain_of(self.delivery.target)

    @property
    def sender_domain(self) -> str:
        return domain_of(self.outgoing.sender)


class AcceptedMail(Struct, frozen=True):
    """A mail to one recipient, which a server has taken."""

    job: MailJob
    receipt: Receipt
    base_url: str
    started_at: int
    now: int


async def deliver_mail(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    """A process that dies anywhere in here leaves a claim that comes due again."""
    job = await resources.db.read(look_up, delivery, resources.config.domain)
    if job is None:
        await resources.db.write(deliveries.cancel, delivery.message_id, resources.now())
        return
    if job.outgoing.is_paused:
        base_url, now = resources.config.base_url, resources.now()
        resources.db.ring(*await resources.db.write(hold_until_pause_ends, job, base_url, now))
        return
    started_at = resources.now()
    outcome = await try_to_hand_over(resources, outbound, job)
    resources.db.ring(*await record(resources, job, outcome, started_at))
    note(job, outcome)


async def record(
    resources: Resources, job: MailJob, outcome: Receipt | DeliveryError, started_at: int
) -> list[str]:
    """Most mails go to one recipient, and are taken: those that wait together are recorded together."""
    base_url, now = resources.config.base_url, resources.now()
    if isinstance(outcome, Receipt) and is_simple(job, outcome):
        accepted = AcceptedMail(job, outcome, base_url, started_at, now)
        return await resources.db.write_together(record_accepted, accepted)
    return await resources.db.write(record_outcome, job, outcome, base_url, started_at, now)


def is_simple(job: MailJob, receipt: Receipt) -> bool:
    return job.outgoing.recipients == 1 and not receipt.answers and receipt.captured is None


def note(job: MailJob, outcome: Receipt | DeliveryError) -> None:
    """One line for each movement. The domain tells enough: whom an agent writes to is its own affair."""
    failure = outcome if isinstance(outcome, DeliveryError) else None
    process_metrics.MAIL_ATTEMPTS.increment(
        process_metrics.DONE
        if failure is None
        else process_metrics.FAILED
        if failure.permanent
        else process_metrics.AGAIN
    )
    log.get().info(
        "mail delivered" if failure is None else "mail not delivered",
        message=job.message.id,
        domain=job.domain,
        attempt=job.delivery.attempts,
        code=outcome.code,
        final=failure is None or failure.permanent,
    )


def hold_until_pause_ends(tx: Tx, job: MailJob, base_url: str, now: int) -> list[str]:
    deliveries.note_answer(tx, job.delivery, None, "Sending is paused.", 0)
    return decide.pause_message(tx, job.message.id, base_url, now)


def look_up(tx: Tx, delivery: Delivery, service_domain: str) -> MailJob | None:
    """None when nothing may leave any more."""
    outgoing = find_outgoing(tx, delivery.message_id)
    if outgoing is None:
        return None
    target = domain_of(delivery.target)
    is_simulated = target == simulator.domain_of(service_domain)
    is_local = not is_simulated and domains.is_served(tx, target, service_domain)
    key = (
        None
        if is_local or is_simulated
        else domains.signing_key(tx, domain_of(outgoing.sender), service_domain)
    )
    return MailJob(delivery, outgoing, is_local, is_simulated, key)


def find_outgoing(tx: Tx, message_id: str) -> Outgoing | None:
    """None when the inbox that sent it has been deleted: nothing more leaves for it."""
    row = tx.one(
        f"select {messages.COLUMNS}, inboxes.address as sender, inboxes.pod_id,"
        f" {IS_PAUSED} as is_paused,"
        " raw_mails.content, raw_mails.blob,"
        " (select count(*) from deliveries where message_id = :id and kind = 'mail') as recipients"
        " from messages join inboxes on inboxes.id = messages.inbox_id"
        " left join raw_mails on raw_mails.message_id = messages.id where messages.id = :id",
        id=message_id,
    )
    if row is None:
        return None
    content = None if row["content"] is None else bytes(row["content"])
    message = Message.from_row(row)
    return Outgoing(
        message=message,
        sender=row["sender"],
        pod_id=row["pod_id"],
        is_paused=bool(row["is_paused"]),
        hold=holds.find(tx, message.id) if message.has_hold else None,
        recipients=row["recipients"],
        content=content,
        blob=row["blob"],
    )


def domain_of(address: str) -> str:
    return address.rpartition("@")[2]


async def try_to_hand_over(resources: Resources, outbound: Outbound, job: MailJob) -> Receipt | DeliveryError:
    """Whatever goes wrong counts as an attempt, so that nothing is tried again and again without a pause."""
    try:
        raw = await read_raw(resources, job.outgoing)
        await require_unchanged(job, raw)
        if job.is_simulated:
            sender = job.outgoing.sender
            return await simulate(resources, outbound.reader, job.message, job.delivery, sender, raw)
        if job.is_local:
            return await deliver_inside(resources, outbound.reader, job, raw)
        return await outbound.courier.deliver(await address_and_sign(resources, outbound, job, raw))
    except DeliveryError as error:
        return error
    except Exception:
        log.get().exception("a mail could not be handed over", message=job.message.id)
        return DeliveryError("4.3.0 An error on this server.", permanent=False, enhanced="4.3.0")


async def require_unchanged(job: MailJob, raw: bytes) -> None:
    """What was approved is what leaves."""
    hold = job.outgoing.hold
    if hold is None or not hold.content_hash:
        return
    if await pools.COMPOSING.run(content_hash, raw, hold.bcc) != hold.content_hash:
        reason = "5.7.0 The mail is not what was approved: it was changed since."
        raise DeliveryError(reason, permanent=True, enhanced="5.7.0")


async def read_raw(resources: Resources, outgoing: Outgoing) -> bytes:
    if outgoing.content is not None:
        return outgoing.content
    assert outgoing.blob is not None
    return await pools.FILES.run(resources.blobs.get, outgoing.blob)


async def address_and_sign(
    resources: Resources, outbound: Outbound, job: MailJob, raw: bytes
) -> OutgoingMail:
    today = resources.now() // DAY
    path = return_path.encode(outbound.return_path_secret, job.message.id, job.delivery.position, today)
    signature = b""
    if job.key is not None:
        unsigned = Unsigned(job.message.id, raw, job.sender_domain, job.key, resources.now())
        signature = await outbound.signers.sign(unsigned)
    return OutgoingMail(
        mail_from=f"{path}@{job.sender_domain}",
        recipient=job.delivery.target,
        raw=signature + raw,
        domain=job.domain,
        signature_bytes=len(signature),
    )


async def deliver_inside(resources: Resources, reader: Reader, job: MailJob, raw: bytes) -> Receipt:
    """Through the same receive path as any mail; nothing crosses the network."""
    destination = await resources.db.read(find_inside, job.delivery.target)
    if destination is None:
        raise DeliveryError("5.1.1 No such inbox here.", permanent=True, code=550, enhanced="5.1.1")
    if await resources.db.read(is_full, destination):
        raise DeliveryError(
            "4.2.2 The mailbox has no room left.", permanent=False, code=452, enhanced="4.2.2"
        )
    date = formatdate(resources.now() / SECOND, usegmt=True).replace("GMT", "+0000")
    trace = f"Received: by {resources.config.domain} id {job.delivery.id};\r\n\t{date}\r\n"
    arrival = Arrival(
        destinations=(destination,),
        raw=raw,
        trace=trace.encode(),
        peer_ip="",
        helo="",
        mail_from=job.outgoing.sender,
    )
    try:
        await receive_mail(resources, reader, arrival)
    except TooManyHops:
        reason = "5.4.6 Mail has passed too many servers."
        raise DeliveryError(reason, permanent=True, code=554, enhanced="5.4.6") from None
    return Receipt(250, "2.1.5 Stored in the inbox.")


def is_full(tx: Tx, destination: Destination) -> bool:
    """An answer of a reviewer takes no room, as it is put into no inbox."""
    inbox = inboxes.find(tx, destination.inbox_id) if destination.review is None else None
    return inbox is not None and accounts.is_full(tx, inbox.account_id)


def find_inside(tx: Tx, address: str) -> Destination | None:
    local_part = address.rpartition("@")[0]
    if review_path.is_review_path(local_part):
        reviewed = review_answers.find_reviewed(tx, local_part)
        return None if reviewed is None else Destination(reviewed.inbox_id, review=reviewed)
    mailbox = mailbox_of(address)
    inbox = inboxes.find_by_address(tx, mailbox)
    if inbox is None:
        return NOBODY if is_nobodys(mailbox) else None
    return Destination(inbox.id)


def record_accepted(tx: Tx, accepted: list[AcceptedMail]) -> list[list[str]]:
    """What `record_outcome` does for each, with few statements for all of their events."""
    is_sent = {
        each.job.delivery.id: finish_only(tx, each.job, each.receipt, each.now - each.started_at, each.now)
        for each in sorted(accepted, key=lambda each: each.job.message.id)  # as other nodes may do
    }
    sent = [each for each in accepted if is_sent[each.job.delivery.id]]
    news = [to_news(tx, each.job, kinds.MESSAGE_SENT, None, each.now) for each in sent]
    told = iter(announce_all(tx, news, accepted[0].base_url))
    return [next(told) if is_sent[each.job.delivery.id] else [] for each in accepted]


def record_outcome(
    tx: Tx, job: MailJob, outcome: Receipt | DeliveryError, base_url: str, started_at: int, now: int
) -> list[str]:
    """Attempt, state, status, suppression and event in one transaction. Gives the bells to ring."""
    took = now - started_at
    if not isinstance(outcome, DeliveryError):
        return record_success(tx, job, outcome, took, base_url, now)
    reply = outcome.reason[:REPLY_MAX_CHARACTERS]
    messages.lock(tx, job.message.id)
    deliveries.note_answer(tx, job.delivery, outcome.code, reply, took)
    wait = None if outcome.permanent else retries.wait_after(job.delivery.kind, job.delivery.waits_used)
    if wait is None:
        return record_failure(tx, job, outcome, reply, base_url, now)
    deliveries.try_again_at(tx, job.delivery, now + wait, outcome.code, reply)
    return []


def record_success(tx: Tx, job: MailJob, receipt: Receipt, took: int, base_url: str, now: int) -> list[str]:
    if receipt.answers:
        inboxes.lock(tx, job.message.inbox_id)  # first, as everywhere, since mail comes in below
    if receipt.captured is not None:
        messages.mark_captured(tx, job.message.id)
        raw_mails.keep_signature(tx, job.message.id, receipt.captured)
    finish = finish_only if job.outgoing.recipients == 1 else finish_one_of_several
    is_sent = finish(tx, job, receipt, took, now)
    rung = tell(tx, job, kinds.MESSAGE_SENT, None, base_url, now) if is_sent else []
    return rung + [bell for bells in deposit(tx, list(receipt.answers)) for bell in bells]


def finish_only(tx: Tx, job: MailJob, receipt: Receipt, took: int, now: int) -> bool:
    """True when the message is sent by it. The status is set first, which also holds the message."""
    is_sent = messages.set_status(tx, job.message.id, SENT)
    if finish_delivery(tx, job.delivery, receipt, took, now):
        return is_sent
    deliveries.settle(tx, job.message.id)  # it was given up meanwhile
    return False


def finish_one_of_several(tx: Tx, job: MailJob, receipt: Receipt, took: int, now: int) -> bool:
    """True when the message is sent by it, the last one."""
    messages.lock(tx, job.message.id)
    is_finished = finish_delivery(tx, job.delivery, receipt, took, now)
    return deliveries.settle(tx, job.message.id) == SENT and is_finished


def finish_delivery(tx: Tx, delivery: Delivery, receipt: Receipt, took: int, now: int) -> bool:
    """False when it was finished otherwise meanwhile."""
    reply = receipt.text[:REPLY_MAX_CHARACTERS]
    way = deliveries.way_to(receipt.host, receipt.has_tls)
    deliveries.note_answer(tx, delivery, receipt.code, way + reply, took)
    state = DONE if receipt.captured is None else CAPTURED
    return deliveries.finish(tx, delivery, state, receipt.code, reply, now)


def record_failure(
    tx: Tx, job: MailJob, error: DeliveryError, reply: str, base_url: str, now: int
) -> list[str]:
    delivery = job.delivery
    if not deliveries.finish(tx, delivery, deliveries.FAILED, error.code, reply, now):
        return []
    if error.permanent:
        fault = reasons.fault_of(error.code, error.enhanced or None, error.reason)
        suppressions.add_after_failure(tx, delivery, fault, reply, now)
    deliveries.settle(tx, job.message.id)
    return tell(tx, job, kinds.MESSAGE_FAILED, Fate(delivery.target, reply), base_url, now)


def tell(tx: Tx, job: MailJob, kind: str, fate: Fate | None, base_url: str, now: int) -> list[str]:
    """Records the event. Gives the bells to ring."""
    return announce(tx, to_news(tx, job, kind, fate, now), base_url)


def to_news(tx: Tx, job: MailJob, kind: str, fate: Fate | None, now: int) -> News:
    message = job.message
    found = attachments.list_of_messages(tx, [message.id] if message.has_attachments else [])
    document, files = documents.decode(message.document), found.get(message.id, [])
    return News(job.delivery.account_id, job.outgoing.pod_id, kind, document, files, now, fate)
