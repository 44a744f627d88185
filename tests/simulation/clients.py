"""Who uses the cluster: each tries until it has its answer, as senders of mail and agents do."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.errors import RateLimitExceeded, Unavailable
from postroom.events import kinds
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import receive_mail
from postroom.mailbox import inbox_calendars
from postroom.mailbox.inboxes import Inbox
from postroom.outward.event_changes import EventChange
from postroom.outward.send import send_mail
from postroom.outward.send_stages import Nudge, Order, SendReceipt
from postroom.queue import idempotency
from postroom.storage.database import StorageError, Tx
from postroom_mail.mime.address import Address
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import EventPart, Series
from postroom_mail.writing.series_file import EventMail
from tests.raw_mails import raw_mail
from tests.simulation.cluster import Cluster, Node

PATIENCE_SECONDS = 60.0
LARGE = 270_000
FOLLOWED = 1_000  # numbers of sends with a nudge begin here
INVITED = 2_000  # and of invitations here


@dataclass
class Clients:
    """What was answered: mails with 250, and sends with 200, by their keys."""

    cluster: Cluster
    caller: Caller
    inboxes: list[Inbox]
    mails: dict[str, str] = field(default_factory=dict)  # Message-ID to inbox
    sends: dict[str, str] = field(default_factory=dict)  # key to message
    recipients: dict[str, list[str]] = field(default_factory=dict)  # outside, by key
    invitations: list[str] = field(default_factory=list)  # the UIDs of events whose invitation was accepted

    async def _until_answered(self, attempt: Callable[[Node], Awaitable[None]]) -> None:
        """Against any node, with pauses."""
        random = self.cluster.faults.random
        while True:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await attempt(self.cluster.any_node())
                return
            except (TimeoutError, Unavailable, RateLimitExceeded, StorageError, OSError):
                await asyncio.sleep(random.uniform(1.0, 30.0))

    async def hand_in(self, number: int, after_seconds: float) -> None:
        """Another mail server, which hands the same mail over until it hears 250."""
        await asyncio.sleep(after_seconds)
        inbox = self.cluster.faults.random.choice(self.inboxes)
        text = "x" * LARGE if number % 17 == 0 else f"Mail {number}"
        name = f"<in-{number}@there.example>"
        raw = raw_mail(text, message_id=name, subject=f"Number {number}")
        arrival = Arrival(Origin((Destination(inbox.id),), b"", "", "", "alice@there.example"), raw)

        async def attempt(node: Node) -> None:
            await receive_mail(node.resources, node.reader, arrival)

        await self._until_answered(attempt)
        self.mails[name] = inbox.id

    async def send(self, number: int, after_seconds: float) -> None:
        """An agent, which repeats its request with the same key until it hears 200."""
        await asyncio.sleep(after_seconds)
        order = self._order(number)

        async def attempt(node: Node) -> None:
            answer = await send_mail(node.resources, self.caller, order)
            receipt = msgspec.json.decode(answer.content, type=SendReceipt)
            known = self.sends.setdefault(order.idempotency_key, receipt.id)
            assert known == receipt.id, "a key gave two answers"

        self.recipients[order.idempotency_key] = [
            str(each) for each in order.to if str(each).endswith("@there.example")
        ]
        await self._until_answered(attempt)

    async def follow_up(self, number: int, after_seconds: float) -> None:
        """An agent that prepared a nudge, and a person who answers about when it is due."""
        await asyncio.sleep(after_seconds)
        order = replace(
            self._order(FOLLOWED + number),
            to=(Address("", f"f{number}@there.example"),),
            body="Will you?",
            nudges=(Nudge(1, "Did you see this?"),),
        )
        await self._until_answered(partial(self._ask, order))
        message_id, patience = self.sends[order.idempotency_key], self.cluster.faults.random.uniform(30, 200)

        async def hurry(node: Node) -> None:
            due_at = node.resources.now() + int(patience * 1000)
            await node.resources.db.write(_hurry, message_id, due_at)

        await self._until_answered(hurry)
        await asyncio.sleep(patience + self.cluster.faults.random.uniform(-1, 1))
        row = self.cluster.shared.read_tx.one("select * from messages where id = :id", id=message_id)
        assert row is not None
        name = f"<answer-{number}@there.example>"
        raw = raw_mail(
            "Yes.", message_id=name, in_reply_to=row["rfc_message_id"], subject=f"Re: Send {number}"
        )
        origin = Origin((Destination(row["inbox_id"]),), b"", "", "", f"f{number}@there.example")

        async def answer(node: Node) -> None:
            await receive_mail(node.resources, node.reader, Arrival(origin, raw))

        await self._until_answered(answer)
        self.mails[name] = row["inbox_id"]

    async def invite(self, number: int, after_seconds: float) -> None:
        """An agent that makes an event with attendees, and repeats its request until it hears 200."""
        await asyncio.sleep(after_seconds)
        order = replace(self._order(INVITED + number), body="Come", subject=f"Invitation: {number}")
        attendees = tuple(Attendee(each.address, "", "needs-action") for each in order.to)
        inbox = next(each for each in self.inboxes if each.id == order.inbox_id)
        part = EventPart("2026-11-20T15:00:00", 3600, "UTC", f"{number}", attendees=attendees)
        series = Series(f"uid-{number}", replace(part, organizer=inbox.address))
        mail = EventMail("REQUEST", series)
        calendar_id = inbox_calendars.default_id(inbox.id)
        change = EventChange(calendar_id, series, kinds.CALENDAR_CREATED, mail=mail)
        await self._until_answered(partial(self._ask, replace(order, calendar=change)))
        self.invitations.append(series.uid)

    async def _ask(self, order: Order, node: Node) -> None:
        answer = await send_mail(node.resources, self.caller, order)
        receipt = msgspec.json.decode(answer.content, type=SendReceipt)
        self.sends[order.idempotency_key] = receipt.id
        self.recipients[order.idempotency_key] = [str(each) for each in order.to if "there." in str(each)]

    def _order(self, number: int) -> Order:
        random = self.cluster.faults.random
        to = [Address("", f"r{number}@there.example")]
        if number % 5 == 0:
            to.append(Address("", f"s{number}@elsewhere.there.example".replace("elsewhere.", "")))
        if number % 3 == 0:
            to.append(Address("", random.choice(self.inboxes).address))
        body = "y" * LARGE if number % 13 == 0 else f"Send {number}"
        return Order(
            inbox_id=self.inboxes[number % len(self.inboxes)].id,
            idempotency_key=f"key-{number}",
            request_hash=idempotency.hash_request(b"%d" % number),
            to=tuple(to),
            cc=(),
            bcc=(),
            subject=f"Send {number}",
            body=body,
            body_html=None,
            thread_id=None,
            include_quote=False,
            reply_to=None,
            is_automated=False,
            files=(),
            undo_seconds=random.choice([0, 0, 0, 30]),
        )


def _hurry(tx: Tx, message_id: str, due_at: int) -> None:
    """A day is too long for a run."""
    tx.run(
        "update follow_ups set due_at = :due_at where message_id = :id and state = 'scheduled'",
        due_at=due_at,
        id=message_id,
    )
