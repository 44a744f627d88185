"""Rows for tests of the rooms: accounts, inboxes, mails that came in, deliveries."""

from postroom import ids
from postroom.accounts import accounts, pods
from postroom.inward.deposit import deposit
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.mailbox import inboxes, message_lists, messages
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.queue import deliveries
from postroom.queue.deliveries import MAIL, Delivery, NewDelivery
from postroom.storage.database import Tx
from tests.doubles import START
from tests.raw_mails import raw_mail

SERVICE = "postroom.localhost"


def make_inbox(tx: Tx, name: str = "hello", account_id: str | None = None, now: int = START) -> Inbox:
    """Of a new account, unless one is given."""
    owner = account_id or accounts.add(tx, f"owner {ids.new(ids.ACCOUNT, now)}", "developer", now).id
    return inboxes.add(tx, owner, name, None, None, SERVICE, now)


def make_inbox_in_a_pod(tx: Tx, account_id: str) -> Inbox:
    pod = pods.add(tx, account_id, None, "tenant", START)
    return inboxes.add(tx, account_id, "own", None, None, SERVICE, START, pod.id)


def incoming(inbox: Inbox, raw: bytes, now: int = START) -> AcceptedMail:
    arrival = Arrival(Origin((Destination(inbox.id),), b"", "", "", "alice@example.com"), raw)
    return AcceptedMail(read_mail(arrival), "http://x", now)


def put_mail(tx: Tx, /, inbox: Inbox, text: str = "Hello", now: int = START, **fields: str) -> Message:
    """A mail that came in, stored as the SMTP door stores it; gives the newest message."""
    deposit(tx, [incoming(inbox, raw_mail(text, **fields), now)])
    listed, _ = message_lists.list_of_inbox(tx, inbox.id, None, 1, 0)
    found = messages.find(tx, listed.messages[0].id)
    assert found is not None
    return found


def put_delivery(
    tx: Tx,
    message: Message,
    target: str = "bob@there.example",
    *,
    account_id: str = "acc_1",
    kind: str = MAIL,
    lane: str | None = None,
    due_at: int = START,
    position: int = 0,
    created_at: int = START,
    is_cold: int = 0,
) -> str:
    """Gives its id."""
    delivery_id = ids.new(ids.WEBHOOK_DELIVERY, created_at)
    new = NewDelivery(
        id=delivery_id,
        account_id=account_id,
        inbox_id=message.inbox_id,
        kind=kind,
        message_id=message.id,
        target=target,
        lane=lane or target,
        position=position,
        is_cold=is_cold,
        due_at=due_at,
        created_at=created_at,
    )
    deliveries.add_all(tx, [new])
    return delivery_id


def find_delivery(tx: Tx, delivery_id: str) -> Delivery:
    row = tx.one("select * from deliveries where id = :id", id=delivery_id)
    assert row is not None
    return Delivery.from_row(row)
