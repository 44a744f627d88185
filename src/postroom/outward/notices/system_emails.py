"""Emails of the server to its users, not subject to limits, policy or pause."""

import secrets

from msgspec import Struct

from postroom import ids
from postroom.accounts import domains
from postroom.accounts.dkim_keys import DkimKey
from postroom.accounts.people import mail_links, own_emails
from postroom.config import CAPTURE, Config
from postroom.inward.addressing import NOBODYS_NAME
from postroom.outward.courier import OutgoingMail, Receipt, attempt, domain_of
from postroom.outward.deliver_mail import Outbound
from postroom.outward.sign_mail import Unsigned
from postroom.processes import pools
from postroom.queue import deliveries, outcomes
from postroom.queue.deliveries import Delivery, NewDelivery
from postroom.queue.outcomes import TriedDelivery
from postroom.resources import Resources
from postroom.storage.database import Row, Tx, insert_item, item_from_row
from postroom_mail.writing import compose
from postroom_mail.writing.compose import Draft

PENDING = "pending"
LIFETIME = mail_links.INVITATION_LIFETIME  # then every link in it has expired
CAPTURED = "captured"
SHOWN = 20
MOST_CAPTURED = 500  # of all accounts; older ones go
REMOVED_AT_ONCE = 100


class SystemEmail(Struct, frozen=True):
    id: str
    account_id: str
    user_id: str | None
    recipient: str
    subject: str
    content: str
    state: str
    created_at: int
    is_personal: bool = True  # for this person only: it is marked, and never stored in an inbox

    @classmethod
    def from_row(cls, row: Row) -> "SystemEmail":
        return item_from_row(cls, row, is_personal=bool(row["is_personal"]))


def add(
    tx: Tx,
    account_id: str,
    user_id: str | None,
    recipient: str,
    subject: str,
    content: str,
    now: int,
    is_personal: bool = True,
) -> SystemEmail:
    email = SystemEmail(
        ids.new(ids.SYSTEM_EMAIL, now),
        account_id,
        user_id,
        recipient,
        subject,
        content,
        PENDING,
        now,
        is_personal,
    )
    insert_item(tx, "letters", email, is_personal=int(is_personal))
    enqueue(tx, account_id, email.id, recipient, domain_of(recipient), now)
    return email


def enqueue(tx: Tx, account_id: str, email_id: str, target: str, lane: str, now: int) -> None:
    new = NewDelivery(
        id=ids.new(ids.NOTICE_DELIVERY, now),
        account_id=account_id,
        inbox_id="",
        kind=deliveries.NOTICE,
        message_id=email_id,
        target=target,
        lane=lane,
        due_at=now,
        created_at=now,
    )
    deliveries.add_all(tx, [new])
    tx.ring(deliveries.NOTICE_BELL)


def find(tx: Tx, email_id: str) -> SystemEmail | None:
    row = tx.one("select * from letters where id = :id", id=email_id)
    return None if row is None else SystemEmail.from_row(row)


def list_captured(tx: Tx, account_id: str) -> list[SystemEmail]:
    """List the emails kept here instead of sent, newest first."""
    rows = tx.all(
        "select * from letters where account_id = :id and state = 'captured'"
        " order by created_at desc, id desc limit :limit",
        id=account_id,
        limit=SHOWN,
    )
    return [SystemEmail.from_row(row) for row in rows]


def list_all_captured(tx: Tx, limit: int) -> list[SystemEmail]:
    """List the emails of all accounts, newest first: only for the operator."""
    rows = tx.all(
        "select * from letters where state = 'captured' order by created_at desc, id desc limit :limit",
        limit=limit,
    )
    return [SystemEmail.from_row(row) for row in rows]


def keep_captured(tx: Tx, account_id: str, recipient: str, subject: str, content: str, now: int) -> None:
    """Keeps a notice that this server would have sent."""
    email_id = ids.new(ids.SYSTEM_EMAIL, now)
    email = SystemEmail(email_id, account_id, None, recipient, subject, content, CAPTURED, now)
    insert_item(tx, "letters", email, is_personal=int(email.is_personal))
    remove_oldest_captured(tx)


def remove_oldest_captured(tx: Tx) -> None:
    tx.run(
        "delete from letters where id in (select id from letters where state = 'captured'"
        " order by created_at desc, id desc limit :at_once offset :most)",
        at_once=REMOVED_AT_ONCE,
        most=MOST_CAPTURED,
    )


def is_captured(config: Config) -> bool:
    return config.outbound == CAPTURE


# --- delivering


class SystemEmailJob(Struct, frozen=True):
    email: SystemEmail
    mark: str  # "" for an email that any inbox may get
    keys: tuple[DkimKey, ...]


async def deliver_system_email(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    job = await resources.db.read(look_up, delivery.message_id, resources.config.domain)
    if job is None or job.email.created_at + LIFETIME <= resources.now():
        await resources.db.write(give_up, delivery, resources.now())
        return
    handing_over = hand_over(resources, outbound, job, resources.now())
    outcome = await attempt(resources, handing_over, "notice could not be sent", email=job.email.id)
    tried = TriedDelivery(delivery, outcome)
    await outbound.recorder.record(tried, lambda: write_tried(resources, tried))


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    await resources.db.write(record_tried, tried)
    return []


def record_tried(tx: Tx, tried: TriedDelivery) -> None:
    """Deletes an email that has left or failed: its link is no longer needed here."""
    state = outcomes.record(tx, tried)
    if state == deliveries.CAPTURED:
        tx.run("update letters set state = 'captured' where id = :id", id=tried.delivery.message_id)
        remove_oldest_captured(tx)
    elif state in (deliveries.DONE, deliveries.FAILED):
        tx.run("delete from letters where id = :id", id=tried.delivery.message_id)


def look_up(tx: Tx, email_id: str, service_domain: str) -> SystemEmailJob | None:
    email = find(tx, email_id)
    if email is None:
        return None
    return SystemEmailJob(
        email,
        own_emails.new_mark(tx) if email.is_personal else "",
        domains.signing_keys(tx, service_domain, service_domain),
    )


def give_up(tx: Tx, delivery: Delivery, now: int) -> None:
    deliveries.record_answer(tx, delivery, None, "", 0)
    deliveries.finish(tx, delivery, deliveries.CANCELLED, None, "", now)


async def hand_over(resources: Resources, outbound: Outbound, job: SystemEmailJob, now: int) -> Receipt:
    email, domain = job.email, resources.config.domain
    raw = await pools.READING.run(write_system_email, email, domain, now, job.mark)
    if job.keys:
        unsigned = Unsigned(f"email {email.id}", raw, domain, job.keys, now)
        raw = await outbound.signers.sign(unsigned) + raw
    mail = OutgoingMail("", email.recipient, raw, domain_of(email.recipient))
    return await outbound.courier.deliver(mail)


def write_system_email(email: SystemEmail, domain: str, now: int, mark: str) -> bytes:
    return compose.compose(
        Draft(
            from_name="Postroom",
            from_address=f"{NOBODYS_NAME}@{domain}",
            to=(email.recipient,),
            subject=email.subject,
            text=email.content,
            message_id=own_emails.message_id(mark, domain)
            if mark
            else compose.new_message_id(domain, secrets.token_bytes(16)),
            date_at=now,
            automated=True,
            headers={own_emails.FIELD: mark} if mark else {},
        )
    )
