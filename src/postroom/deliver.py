"""A claimed delivery of mail: hand it to a courier, then record the outcome with all that follows from it."""

import asyncio
import random
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from postroom import attachments, deliveries, domains, events, inboxes, messages, suppressions
from postroom.check import read_raw
from postroom.clock import DAY, SECOND
from postroom.deliveries import DONE, Delivery, DeliveryError, OutgoingMail
from postroom.domains import DkimKey
from postroom.events import Fate
from postroom.mail import bounce, dkim, return_path
from postroom.mail.address import mailbox_of
from postroom.messages import PENDING, SENT, Message
from postroom.receive import Arrival, Destination, receive_mail
from postroom.resources import Resources
from postroom.storage.database import Tx

SPREAD = 0.2  # waits differ by this part, so that what failed together does not come back together
REPLY_MAX_CHARACTERS = 500


class Receipt(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def text(self) -> str: ...


class MailCourier(Protocol):
    async def deliver(self, mail: OutgoingMail) -> Receipt: ...


@dataclass(frozen=True, slots=True)
class Accepted:
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Outbound:
    """What it takes to send mail: the way out, and the secret that signs return paths."""

    courier: MailCourier
    return_path_secret: bytes


async def deliver_mail(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    """A process that dies anywhere in here leaves a claim that comes due again."""
    message = await resources.db.read(messages.find, delivery.message_id)
    if message is None:
        await resources.db.write(deliveries.cancel, delivery.message_id, resources.now())
        return
    started_at = resources.now()
    outcome = await try_to_hand_over(resources, outbound, delivery, message)
    base_url = resources.config.base_url
    bells = await resources.db.write(
        record_outcome, delivery, message, outcome, base_url, started_at, resources.now()
    )
    resources.db.ring(*bells)


async def try_to_hand_over(
    resources: Resources, outbound: Outbound, delivery: Delivery, message: Message
) -> Receipt | DeliveryError:
    try:
        return await hand_over(resources, outbound, delivery, message)
    except DeliveryError as error:
        return error


async def hand_over(
    resources: Resources, outbound: Outbound, delivery: Delivery, message: Message
) -> Receipt:
    raw = await read_raw(resources, message.id)
    sender = messages.read_document(message).to_addr
    domain = delivery.target.rpartition("@")[2]
    if await resources.db.read(domains.is_served, domain, resources.config.domain):
        return await deliver_inside(resources, delivery, sender, raw)
    sender_domain = sender.rpartition("@")[2]
    path = return_path.encode(
        outbound.return_path_secret, message.id, delivery.position, resources.now() // DAY
    )
    signed = await sign(resources, sender_domain, raw)
    mail = OutgoingMail(f"{path}@{sender_domain}", delivery.target, signed, domain)
    return await outbound.courier.deliver(mail)


async def deliver_inside(resources: Resources, delivery: Delivery, sender: str, raw: bytes) -> Receipt:
    """Through the same receive path as any mail; nothing crosses the network."""
    inbox = await resources.db.read(inboxes.find_by_address, mailbox_of(delivery.target))
    if inbox is None:
        raise DeliveryError("5.1.1 No such inbox here.", permanent=True, code=550, enhanced="5.1.1")
    date = formatdate(resources.now() / SECOND, usegmt=True).replace("GMT", "+0000")
    trace = f"Received: by {resources.config.domain} id {delivery.id};\r\n\t{date}\r\n"
    await receive_mail(
        resources,
        Arrival(
            destinations=(Destination(inbox.id),),
            raw=raw,
            trace=trace.encode(),
            peer_ip="",
            helo="",
            mail_from=sender,
        ),
    )
    return Accepted(250, "2.1.5 Stored in the inbox.")


async def sign(resources: Resources, domain: str, raw: bytes) -> bytes:
    key = await resources.db.read(domains.signing_key, domain, resources.config.domain)
    if key is None:
        return raw
    return await asyncio.to_thread(_signed, key, domain, raw, resources.now())


def _signed(key: DkimKey, domain: str, raw: bytes, now: int) -> bytes:
    private_key = _load_key(key.private_key)
    return dkim.sign(raw, domain=domain, selector=key.selector, key=private_key, signed_at=now) + raw


@lru_cache(maxsize=1000)
def _load_key(pem: bytes) -> RSAPrivateKey:
    return dkim.load_key(pem)


def record_outcome(
    tx: Tx,
    delivery: Delivery,
    message: Message,
    outcome: Receipt | DeliveryError,
    base_url: str,
    started_at: int,
    now: int,
) -> list[str]:
    """Attempt, state, status, suppression and event in one transaction. Gives the bells to ring."""
    reply = (outcome.reason if isinstance(outcome, DeliveryError) else outcome.text)[:REPLY_MAX_CHARACTERS]
    deliveries.note_answer(tx, delivery, outcome.code, reply, now - started_at)
    if not isinstance(outcome, DeliveryError):
        return record_success(tx, delivery, message, outcome.code, reply, base_url, now)
    wait = None if outcome.permanent else deliveries.wait_after(delivery)
    if wait is None:
        return record_failure(tx, delivery, message, outcome, reply, base_url, now)
    due_at = now + int(wait * random.uniform(1 - SPREAD, 1 + SPREAD))  # noqa: S311
    deliveries.try_again_at(tx, delivery, due_at, outcome.code, reply)
    return []


def record_success(
    tx: Tx, delivery: Delivery, message: Message, code: int | None, reply: str, base_url: str, now: int
) -> list[str]:
    if not deliveries.finish(tx, delivery, DONE, code, reply, now):
        return []
    states = {other.state for other in deliveries.list_of_message(tx, message.id)}
    if states != {DONE} or not messages.set_status(tx, message.id, SENT, only_from=(PENDING,)):
        return []
    return [tell(tx, delivery, message, events.MESSAGE_SENT, None, base_url, now)]


def record_failure(
    tx: Tx,
    delivery: Delivery,
    message: Message,
    error: DeliveryError,
    reply: str,
    base_url: str,
    now: int,
) -> list[str]:
    if not deliveries.finish(tx, delivery, deliveries.FAILED, error.code, reply, now):
        return []
    if error.permanent and bounce.is_about_address(error.code, error.enhanced or None, error.reason):
        suppressions.add(tx, delivery.account_id, delivery.target, suppressions.BOUNCE, now)
    messages.set_status(tx, message.id, messages.FAILED, only_from=(PENDING,))
    fate = Fate(delivery.target, reply)
    return [tell(tx, delivery, message, events.MESSAGE_FAILED, fate, base_url, now)]


def tell(
    tx: Tx, delivery: Delivery, message: Message, kind: str, fate: Fate | None, base_url: str, now: int
) -> str:
    """Records the event. Gives the bell to ring."""
    files = attachments.list_of_messages(tx, [message.id]).get(message.id, [])
    document = messages.read_document(message)
    events.record(tx, delivery.account_id, kind, document, files, base_url, now, fate)
    return events.bell(delivery.account_id)
