"""Delivers a claimed mail: hands it to a courier, then records the outcome and its consequences."""

from dataclasses import replace

from msgspec import Struct, structs

from postroom import log
from postroom.accounts import domains
from postroom.accounts.signing_keys import digest
from postroom.clock import DAY
from postroom.errors import Unavailable
from postroom.events import kinds
from postroom.events.announce import announce_all
from postroom.events.payload import DeliveryFailure, NewEvent
from postroom.external_mailboxes.sending_through import SendingThrough
from postroom.inward import destinations
from postroom.inward.deposit import deposit
from postroom.inward.mails import UNKNOWN_PEER, Arrival, Origin, trace_inside
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mailbox import attachments, documents, inboxes, messages, raw_mails
from postroom.mailbox.messages import SENT
from postroom.outward import spans
from postroom.outward.courier import (
    DeliveryError,
    MailCourier,
    OutgoingMail,
    Receipt,
    domain_of,
    find_relay,
    record_outcome,
    to_outcome,
)
from postroom.outward.delivering import admission, aftermath, mail_job
from postroom.outward.delivering.mail_job import Admission, MailJob, Outgoing, TriedMail, look_up
from postroom.outward.delivering.receivers import Receivers
from postroom.outward.holding import stop
from postroom.outward.sign_mail import Signers, Unsigned
from postroom.outward.simulate import simulate
from postroom.processes import pools
from postroom.queue import deliveries, outcomes, suppressions
from postroom.queue.deliveries import CAPTURED, FAILED, PENDING, Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.queue.providers.paces import PaceRules
from postroom.queue.recording import Recorder
from postroom.resources import Resources
from postroom.storage.blobs import DamagedBlob
from postroom.storage.database import Tx
from postroom_mail.mime import headers, parsing_cost
from postroom_mail.mime.address import mailbox_of, parse_list
from postroom_mail.reports import reasons
from postroom_mail.writing import return_path, unsubscribe_link
from postroom_mail.writing.content_hash import content_hash
from postroom_mail.writing.unsubscribe_link import Unsubscription


class Outbound(Struct, frozen=True):
    """All that sending mail needs: courier, signers, the secret of return paths, the reader of local
    mail, the recorder of outcomes, connected mailboxes to send through, and the finder of providers.
    """

    courier: MailCourier
    signers: Signers
    return_path_secret: bytes
    reader: Reader
    recorder: Recorder
    through: SendingThrough | None = None
    receivers: Receivers | None = None


class Recorded(Struct, frozen=True):
    """The result of recording an outcome; `news` if the message is sent, or has failed for a recipient."""

    state: str | None  # the delivery's new state; None if nothing changed
    news: NewEvent | None = None

    @property
    def is_new(self) -> bool:
        return self.state is not None


async def deliver_mail(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    """Deliver an email. If the process dies anywhere in here, the claim comes due again."""
    job = await resources.db.read(look_up, delivery, resources.config.domain)
    if job is None:
        await resources.db.write(deliveries.cancel, delivery.message_id, resources.now())
        return
    if not job.outgoing.is_claimed:
        return
    if not job.outgoing.send_check.is_free:
        await stop_before(resources, job)
        return
    found = await find_admission(resources, outbound, job)
    if found is None:
        return
    started_at = resources.now()
    answer = await try_to_hand_over(resources, outbound, job)
    outcome = structs.replace(
        to_outcome(answer, started_at, resources.now()), provider=found.receiver.provider
    )
    if resources.tracing is not None:
        spans.record_attempt(resources.tracing, job, outcome, started_at)
    answers = answer.answers if isinstance(answer, Receipt) else ()
    pacing = PaceRules.of(resources.config)
    tried = TriedMail(job, outcome, resources.config.base_url, answers, found, pacing)
    has_left = not (job.is_local or job.is_simulated)
    await outbound.recorder.record(tried.delivery, lambda: write(resources, tried), has_left)
    record_outcome(job.message.id, job.domain, job.delivery.attempts, outcome)


async def find_admission(resources: Resources, outbound: Outbound, job: MailJob) -> Admission | None:
    """Return None if the mail was put off: its provider should get nothing now."""
    if outbound.receivers is None or job.is_local or job.is_simulated:
        return Admission()
    receiver = await outbound.receivers.find(job.domain, job.outgoing.way)
    return await admission.ask(resources, job, receiver) if receiver.provider else Admission()


async def write(resources: Resources, tried: TriedMail) -> list[str]:
    """Write an outcome, together with others that wait."""
    if tried.answers:
        return (await resources.db.write(record_tried, [tried]))[0]
    return await resources.db.write_together(record_tried, tried)


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    """Writes an outcome that an earlier run left."""
    job = await resources.db.read(look_up, tried.delivery, resources.config.domain)
    if job is None:
        return []
    return await write(resources, TriedMail(job, tried.outcome, resources.config.base_url))


async def stop_before(resources: Resources, job: MailJob) -> None:
    """Stop a delivery that may not leave now. Evidence for people is read outside the transaction."""
    seen, hold = None, job.outgoing.hold
    if job.outgoing.send_check.needs_a_person and (hold is None or not hold.content_hash):
        raw = await read_raw(resources, job.outgoing)
        recipients = await resources.db.read(deliveries.list_of_message, job.message.id)
        seen = await pools.COMPOSING.run(stop.see_content, raw, [each.target for each in recipients])
    base_url, now = resources.config.base_url, resources.now()
    bells = await resources.db.write(stop.stop_attempt, job.delivery, seen, base_url, now)
    resources.db.ring(*bells)


async def try_to_hand_over(resources: Resources, outbound: Outbound, job: MailJob) -> Receipt | DeliveryError:
    """Hand over. Any exception counts as an attempt, so that nothing is retried without a pause."""
    try:
        raw = await read_raw(resources, job.outgoing)
        await require_unchanged(job, raw)
        if job.is_simulated:
            sender = job.outgoing.sender
            return await simulate(resources, outbound.reader, job.message, job.delivery, sender, raw)
        if job.is_local:
            return await deliver_inside(resources, outbound, job, raw)
        mail = await address_and_sign(resources, outbound, job, raw)
        receipt = await with_hash(await outbound.courier.deliver(mail), mail.raw, mail.mail_from)
        if outbound.through is not None and job.outgoing.way.connection_id and job.delivery.position == 0:
            await outbound.through.keep_copy(job.outgoing.way.connection_id, raw)
        return receipt
    except DeliveryError as error:
        return error
    except DamagedBlob:  # logged already; it may be restored from a backup
        return DeliveryError("4.3.0 The email is damaged on this server.", permanent=False, enhanced="4.3.0")
    except Unavailable as error:
        log.get().seldom("an email was put off", message=job.message.id, reason=error.message)
        return DeliveryError("4.3.0 This server is not ready.", permanent=False, enhanced="4.3.0")
    except Exception:
        log.get().exception("an email could not be handed over", message=job.message.id)
        return DeliveryError("4.3.0 An error on this server.", permanent=False, enhanced="4.3.0")


async def with_hash(receipt: Receipt, raw: bytes, mail_from: str) -> Receipt:
    """Add what was taken over, for the receipt of the message."""
    is_short = len(raw) <= parsing_cost.MOST_BYTES
    content_hash = digest(raw) if is_short else await pools.COMPOSING.run(digest, raw)
    return replace(receipt, content_hash=content_hash, mail_from=mail_from)


async def require_unchanged(job: MailJob, raw: bytes) -> None:
    """Raises unless the mail is the one that was approved."""
    hold = job.outgoing.hold
    if hold is None or not hold.content_hash:
        return
    if await pools.COMPOSING.run(content_hash, raw, hold.bcc) != hold.content_hash:
        reason = "5.7.0 The email was changed after it was approved."
        raise DeliveryError(reason, permanent=True, enhanced="5.7.0")


async def read_raw(resources: Resources, outgoing: Outgoing) -> bytes:
    if outgoing.content is not None:
        return outgoing.content
    assert outgoing.blob is not None
    return await raw_mails.read_blob(resources, outgoing.blob)


async def address_and_sign(
    resources: Resources, outbound: Outbound, job: MailJob, raw: bytes
) -> OutgoingMail:
    if job.is_alias_gone:
        reason = "5.7.1 The alias that this email names as its sender was deleted."
        raise DeliveryError(reason, permanent=True, code=550, enhanced="5.7.1")
    today = resources.now() // DAY
    path = return_path.encode(outbound.return_path_secret, job.message.id, job.delivery.position, today)
    own_fields = unsubscribe_fields(resources, outbound, job)
    raw, signature = own_fields + raw, b""
    if job.keys:
        name = f"{job.message.id} {job.delivery.position}" if own_fields else job.message.id
        unsigned = Unsigned(name, raw, job.sender_domain, job.keys, resources.now(), job.seen)
        signature = await outbound.signers.sign(unsigned)
    return OutgoingMail(
        mail_from=job.outgoing.sender if job.outgoing.way.connection_id else f"{path}@{job.sender_domain}",
        recipient=job.delivery.target,
        raw=signature + raw,
        domain=job.domain,
        signature_bytes=len(signature) + len(own_fields),
        outbound=await find_relay(outbound.through, job.outgoing.way),
    )


def unsubscribe_fields(resources: Resources, outbound: Outbound, job: MailJob) -> bytes:
    """Return header fields of the copy for this recipient, if the sender asked for them."""
    if not job.delivery.has_unsubscribe:
        return b""
    secret, base_url = outbound.return_path_secret, resources.config.base_url
    wish = Unsubscription(job.delivery.account_id, job.message.id, job.delivery.target)
    return unsubscribe_link.header_fields(secret, base_url, wish, job.message.inbox_id)


async def deliver_inside(resources: Resources, outbound: Outbound, job: MailJob, raw: bytes) -> Receipt:
    """Uses the same receive path as any mail, without the network.

    That proves only the inbox's own address in From. Another one, of its external mailbox or of a redirected
    email, is judged as if it came from an unknown server.
    """
    senders = await read_senders(raw)
    is_own = len(senders) == 1 and senders[0] in job.outgoing.own_addresses
    if not is_own:
        await require_not_of_others(resources, job, set(senders))
    secret, now, own_domain = outbound.return_path_secret, resources.now(), resources.config.domain
    found = await resources.db.read(destinations.find, job.delivery.target, secret, own_domain, now)
    if found is None:
        raise DeliveryError("5.1.1 No such inbox here.", permanent=True, code=550, enhanced="5.1.1")
    if found.is_full:
        raise DeliveryError("4.2.2 The mailbox is full.", permanent=False, code=452, enhanced="4.2.2")
    arrival = Arrival(
        origin=Origin(
            destinations=(found.destination,),
            trace=trace_inside(resources.config.domain, f"id {job.delivery.id}", now),
            peer_ip="" if is_own else UNKNOWN_PEER,
            helo="",
            mail_from=job.outgoing.sender,
        ),
        raw=unsubscribe_fields(resources, outbound, job) + raw,
    )
    try:
        await receive_mail(resources, outbound.reader, arrival)
    except TooManyHops:
        reason = "5.4.6 Mail has passed too many servers."
        raise DeliveryError(reason, permanent=True, code=554, enhanced="5.4.6") from None
    return await with_hash(Receipt(250, "2.1.5 Stored in the inbox."), arrival.raw, job.outgoing.sender)


async def read_senders(raw: bytes) -> list[str]:
    """Return all that From names. That of a redirected email is a stranger's, and may take long to read."""
    is_short = len(raw) <= parsing_cost.MOST_BYTES
    return senders_of(raw) if is_short else await pools.READING.run(senders_of, raw)


def senders_of(raw: bytes) -> list[str]:
    """Return each mailbox once, and an empty text for each further From field: no inbox writes these."""
    fields = headers.split(raw, 0).headers
    named = [mailbox_of(each.address) for each in parse_list(fields.joined("from"))]
    return [*dict.fromkeys(named), *[""] * (fields.count("from") - 1)]


async def require_not_of_others(resources: Resources, job: MailJob, senders: set[str]) -> None:
    """Refuse the address of another inbox here as sender; redirected email keeps its From."""
    if mail_job.is_redirected(job.message):
        return
    for sender in senders:
        if await resources.db.read(domains.is_served, domain_of(sender), resources.config.domain):
            reason = "5.7.1 From must be the address of the sending inbox."
            raise DeliveryError(reason, permanent=True, code=550, enhanced="5.7.1")


def record_tried(tx: Tx, tried: list[TriedMail]) -> list[list[str]]:
    """Records attempt, state, status, suppression and event of each in one transaction. Returns the bells."""
    for each in tried:
        if each.answers:
            inboxes.lock(tx, each.job.message.inbox_id)  # first, as everywhere, since mail is received below
    in_order = sorted(tried, key=lambda each: each.job.message.id)  # on all nodes, against deadlocks
    recorded = {each.job.delivery.id: record_one(tx, each) for each in in_order}
    news = {key: found.news for key, found in recorded.items() if found.news is not None}
    announced = [each.job.delivery.id for each in tried if each.job.delivery.id in news]
    bells = announce_all(tx, [news[key] for key in announced], tried[0].base_url)
    rung = dict(zip(announced, bells, strict=True))
    for each in tried:
        if each.answers and recorded[each.job.delivery.id].is_new:
            rung.setdefault(each.job.delivery.id, []).extend(put_answers(tx, each))
    states = [(each, recorded[each.job.delivery.id].state) for each in tried]
    aftermath.record_all(tx, [(each, state) for each, state in states if state is not None])
    return [rung.get(each.job.delivery.id, []) for each in tried]


def put_answers(tx: Tx, tried: TriedMail) -> list[str]:
    return [bell for bells in deposit(tx, list(tried.answers)) for bell in bells]


def record_one(tx: Tx, tried: TriedMail) -> Recorded:
    if tried.outcome.is_success and tried.job.outgoing.recipients == 1:
        return record_only(tx, tried)
    messages.lock(tx, tried.job.message.id)
    state = outcomes.record(tx, tried.delivery)
    if state is None or state == PENDING:
        return Recorded(state)
    if state == FAILED:
        return Recorded(state, record_failure(tx, tried))
    record_capture(tx, tried, state)
    is_sent = deliveries.settle(tx, tried.job.message.id) == SENT
    return Recorded(state, to_new_event(tx, tried, kinds.MESSAGE_SENT) if is_sent else None)


def record_only(tx: Tx, tried: TriedMail) -> Recorded:
    """Record an accepted email with one recipient. The status is set first, which also locks the message."""
    is_sent = messages.set_status(tx, tried.job.message.id, SENT)
    state = outcomes.record(tx, tried.delivery)
    if state is None:
        deliveries.settle(tx, tried.job.message.id)  # it had ended before
        return Recorded(None)
    record_capture(tx, tried, state)
    return Recorded(state, to_new_event(tx, tried, kinds.MESSAGE_SENT) if is_sent else None)


def record_capture(tx: Tx, tried: TriedMail, state: str) -> None:
    if state == CAPTURED:
        messages.mark_captured(tx, tried.job.message.id)
        raw_mails.keep_dkim_signature(tx, tried.job.message.id, tried.outcome.captured or b"")


def record_failure(tx: Tx, tried: TriedMail) -> NewEvent:
    delivery, outcome = tried.job.delivery, tried.outcome
    if outcome.is_permanent:
        fault = reasons.fault_of(outcome.code, outcome.enhanced or None, outcome.text)
        suppressions.add_after_failure(tx, delivery, fault, outcome.text, outcome.ended_at)
    deliveries.settle(tx, tried.job.message.id)
    return to_new_event(tx, tried, kinds.MESSAGE_FAILED, DeliveryFailure(delivery.target, outcome.text))


def to_new_event(tx: Tx, tried: TriedMail, kind: str, failure: DeliveryFailure | None = None) -> NewEvent:
    job, message = tried.job, tried.job.message
    found = attachments.list_of_messages(tx, [message.id] if message.has_attachments else [])
    document, files = documents.decode(message.document), found.get(message.id, [])
    account_id, pod_id = job.delivery.account_id, job.outgoing.pod_id
    return NewEvent(
        account_id,
        pod_id,
        kind,
        document,
        files,
        tried.outcome.ended_at,
        failure,
        own_addresses=job.outgoing.own_addresses,
    )
