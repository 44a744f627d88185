"""A server whose mail leaves through a peer that a test holds in its hand, and what tests ask of it."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import dkim

from postroom.accounts import dkim_keys
from postroom.assembly import serving
from postroom.net.dns import Resolver
from postroom.queue import deliveries
from postroom.storage.database import Tx
from postroom_mail.authentication.dkim import public_record
from tests.conftest import Server, api_client, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.waiting import until

PATIENCE_SECONDS = 120.0
REPORT = """\
Subject: Undelivered\r
From: MAILER-DAEMON@there.example\r
To: <bob@postroom.localhost>\r
MIME-Version: 1.0\r
Content-Type: multipart/report; report-type=delivery-status; boundary=b\r
\r
--b\r
Content-Type: text/plain\r
\r
It could not be delivered.\r
--b\r
Content-Type: message/delivery-status\r
\r
Reporting-MTA: dns; mx.there.example\r
\r
Final-Recipient: rfc822; {recipient}\r
Action: {action}\r
Status: {status}\r
Diagnostic-Code: smtp; {diagnostic}\r
\r
--b\r
Content-Type: text/rfc822-headers\r
\r
Message-ID: {message_id}\r
Subject: Hello\r
\r
--b--\r
"""


@contextlib.asynccontextmanager
async def running(
    folder: Path,
    database_url: str,
    clock: FakeClock,
    outbound: str,
    resolver: Resolver | None = None,
    token: str | None = None,
    workers: int = 0,
) -> AsyncIterator[Server]:
    """`token` is that of an earlier start on the same folder."""
    config = settings(folder, DATABASE_URL=database_url, OUTBOUND=outbound, WORKERS=str(workers))
    async with serving(config, clock, resolver, signing_key) as postroom:
        key = postroom.first_token or token
        assert key is not None
        async with api_client(postroom.resources.config.base_url, key) as api:
            yield Server(postroom.resources, api, key, clock, postroom.smtp_port)


async def send(server: Server, inbox_id: str, *to: str, **fields: Any) -> str:
    """Gives the id of the message."""
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": list(to), "subject": "Hello", "body": "Hi there", **fields},
        headers={"Idempotency-Key": str(uuid.uuid4())},
    )
    assert answer.status_code == 200, answer.text
    message_id: str = answer.json()["id"]
    return message_id


async def message_of(server: Server, message_id: str) -> dict[str, Any]:
    message: dict[str, Any] = (await server.api.get(f"/v1/messages/{message_id}")).json()
    return message


async def message_when(
    server: Server, message_id: str, condition: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """The message, once the condition holds."""

    async def found() -> dict[str, Any] | None:
        message = await message_of(server, message_id)
        return message if condition(message) else None

    return await until(found)


async def settled(server: Server, message_id: str) -> dict[str, Any]:
    return await message_when(server, message_id, lambda message: message["status"] != "pending")


async def answered(server: Server, message_id: str, number: int = 1) -> dict[str, Any]:
    """The message once attempt `number` for its only recipient has its answer."""
    await until(lambda: server.resources.db.read(has_answer, message_id, number))
    return await message_of(server, message_id)


def has_answer(tx: Tx, message_id: str, number: int) -> bool:
    found = tx.one(
        "select 1 as found from attempts join deliveries on deliveries.id = attempts.delivery_id"
        " where message_id = :message_id and number = :number and milliseconds is not null",
        message_id=message_id,
        number=number,
    )
    return found is not None


def turn(server: Server, milliseconds: int) -> None:
    """Turns the clock and wakes whoever waits for it."""
    server.clock.turn(milliseconds)
    server.resources.db.ring(deliveries.BELL)


async def events_of(server: Server, *kinds: str) -> list[dict[str, Any]]:
    page = (await server.api.get("/v1/events", params={"limit": 100})).json()["data"]
    return [event for event in page if event["event"] in kinds]


async def suppressed(server: Server) -> dict[str, str]:
    page = (await server.api.get("/v1/suppressions")).json()["data"]
    return {entry["address"]: entry["type"] for entry in page}


def relay_to(peer: SmtpPeer) -> str:
    return f"smtp://127.0.0.1:{peer.port}"


async def is_signed(server: Server, raw: bytes, domain: str, owner: str = "service") -> bool:
    """Whether dkimpy, which shares no code with us, verifies the mail with the key we tell to publish."""
    keys = await server.resources.db.read(dkim_keys.list_active, owner, domain)
    records = {f"{key.name_below(domain)}.".encode(): public_record(key.private_key).encode() for key in keys}

    def find_record(name: bytes, timeout: float = 5) -> bytes | None:
        return records.get(name)

    verified: bool = await asyncio.to_thread(dkim.verify, raw, dnsfunc=find_record)
    return verified
