"""A server without sockets and loops: it does what is due when a test says so. What leaves is in a sink."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx2

from postroom.accounts import keys, secret_values
from postroom.first_start import make_first_account
from postroom.inward import examine
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.net.dns import Resolver
from postroom.outward import deliver_mail
from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt, WebhookAnswer
from postroom.outward.deliver_mail import Outbound
from postroom.outward.holding.watch_holds import look_at_due
from postroom.outward.notices.deliver_notice import deliver_notice
from postroom.outward.sign_mail import Signers
from postroom.queue.claims import Claims
from postroom.queue.deliveries import MAIL, NOTICE, Delivery
from postroom.queue.recording import JOURNAL_NAME, Recorder
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom.storage.journal import Journal
from postroom.storage.opening import open_blobs, open_database
from postroom.web.app import App
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from postroom_mail.files.extraction import Extraction
from tests.conftest import settings
from tests.doubles import FakeClock, post_intake
from tests.doubles_dns import ZoneLookup

Mood = Literal["takes", "defers", "refuses"]
BASE_URL = "http://inside.example"


@dataclass
class Sink:
    """The world outside, as a courier meets it. `watch` sees each mail at the moment it would leave."""

    mood: Mood = "takes"
    host: str = "sink.example"  # the mail server that answers
    mails: list[OutgoingMail] = field(default_factory=list)
    watch: Callable[[OutgoingMail], None] = lambda mail: None

    async def deliver(self, mail: OutgoingMail) -> Receipt:
        self.watch(mail)
        if self.mood == "defers":
            later = DeliveryError("451 4.2.1 later", permanent=False, code=451, enhanced="4.2.1")
            later.host = self.host
            raise later
        if self.mood == "refuses":
            raise DeliveryError("554 5.6.0 not this", permanent=True, code=554, enhanced="5.6.0")
        self.mails.append(mail)
        return Receipt(250, "2.0.0 taken", host=self.host)

    async def close(self) -> None:
        return None

    @property
    def recipients(self) -> list[str]:
        return [mail.recipient for mail in self.mails]


class NoWebhooks:
    async def post(self, url: str, body: bytes, headers: object) -> WebhookAnswer:
        raise DeliveryError("nobody is there", permanent=False)


class UnreadFiles:
    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        return Extraction("unsupported", None)


@dataclass
class House:
    resources: Resources
    api: httpx2.AsyncClient  # with the account's first key
    clock: FakeClock
    sink: Sink
    outbound: Outbound
    lookup: ZoneLookup = field(default_factory=ZoneLookup)  # what the DNS says of senders

    def client(self, token: str) -> httpx2.AsyncClient:
        transport = self.api._transport
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(transport=transport, base_url=self.api.base_url, headers=headers)

    async def step(self, milliseconds: int = 0) -> None:
        """Turns the clock, then does all that is due, until nothing is."""
        self.clock.turn(milliseconds)
        tell = partial(deliver_notice, self.resources, self.outbound, NoWebhooks())
        leave = partial(deliver_mail.deliver_mail, self.resources, self.outbound)
        while True:
            looked_at = await look_at_due(self.resources)
            notices, mails = await self.claim(NOTICE), await self.claim(MAIL)
            for notice in notices:
                await tell(notice)
            for mail in mails:
                await leave(mail)
            examined = await self.examine()
            if not looked_at and not notices and not mails and not examined:
                return

    async def claim(self, kind: str) -> list[Delivery]:
        """What is due, for the length of a lease, as the loop does."""
        return await self.resources.db.write(Claims(kind).claim, [], 64, self.clock.now())

    async def hand_over(self, delivery: Delivery) -> None:
        await deliver_mail.deliver_mail(self.resources, self.outbound, delivery)

    async def examine(self) -> bool:
        """Judges senders of emails that came in. Whether there was one."""
        due = await self.resources.db.write(examine.claim_due, [], 64, self.clock.now())
        for examination in due:
            await examine.examine_message(self.resources, UnreadFiles(), self.lookup, examination)
        return bool(due)

    async def inbox(self, name: str) -> str:
        found: str = (await self.api.post("/v1/inboxes", json={"mailboxName": name})).json()["id"]
        return found

    async def key(self, inbox_id: str | None, *asked: str) -> tuple[str, str]:
        """The id of a new key that nobody made, and the key."""

        def add(tx: Tx) -> tuple[str, str]:
            row = tx.one("select id from accounts")
            assert row is not None
            token = keys.new_token()
            made = keys.add(tx, row["id"], inbox_id, "agent", token, self.clock.now(), asked=asked)
            return made.id, token

        return await self.resources.db.write(add)

    async def send(self, inbox_id: str, *to: str, token: str = "", **fields: Any) -> dict[str, Any]:
        api = self.client(token) if token else self.api
        answer = await api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": list(to), "subject": "Hello", "body": "Hi there", **fields},
            headers={"Idempotency-Key": str(uuid.uuid4())},
        )
        assert answer.status_code == 200, answer.text
        receipt: dict[str, Any] = answer.json()
        return receipt

    async def message(self, message_id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"/v1/messages/{message_id}")).json()
        return found

    async def approve(self, message_id: str, token: str = "") -> httpx2.Response:
        """By a key of its own, with the hash that is shown."""
        person = token or (await self.key(None, "read", "approve"))[1]
        seen = (await self.message(message_id))["hold"]["contentHash"]
        return await self.client(person).post(
            f"/v1/messages/{message_id}/approve", json={"contentHash": seen}
        )

    async def events(self, kind: str) -> list[dict[str, Any]]:
        page = (await self.api.get("/v1/events", params={"limit": 100})).json()["data"]
        return [event for event in page if event["event"] == kind]


@contextlib.asynccontextmanager
async def stepped(
    folder: Path, database_url: str = "", clock: FakeClock | None = None, token: str = "", **values: str
) -> AsyncIterator[House]:
    """With a token it is another node, or another life of one: the account is there."""
    clock = clock or FakeClock()
    config = settings(folder, DATABASE_URL=database_url, **{"BASE_URL": BASE_URL, **values})
    db = await open_database(config, clock.now())
    resources = Resources(config, db, open_blobs(config), clock, Resolver(), asyncio.Event())
    if not token:
        first = await db.write(make_first_account, config, clock.now())
        assert first is not None
        token = first.token
    secret = await db.read(secret_values.get, secret_values.RETURN_PATH)
    sink, signers = Sink(), Signers(threads=1)
    recorder = Recorder(resources, Journal(folder / JOURNAL_NAME))
    outbound = Outbound(sink, signers, secret, OwnReader(AT_ONCE_BYTES), recorder)
    streams = Streams(resources, Hubs(resources))
    door = httpx2.ASGITransport(App(resources, NoWebhooks(), streams, post_intake(resources)))
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with httpx2.AsyncClient(transport=door, base_url=config.base_url, headers=headers) as api:
            yield House(resources, api, clock, sink, outbound)
    finally:
        signers.close()
        await resources.resolver.close()
        await db.close()
