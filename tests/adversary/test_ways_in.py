"""Whatever a stranger sends, by whichever way: it is in the inbox once, and every reader sees the same."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroom.inward import examine
from postroom.mailbox.thread_digests import preview
from postroom.outward import mcp_event
from postroom_mail.writing.header_words import CONTROL
from tests.adversary import agreement, imap_reading, second_readers
from tests.adversary.agreement import ApiView
from tests.adversary.hostile import Hostile, hostile, mark_of
from tests.adversary.imap_reading import ClientView
from tests.adversary.loop_watch import watched_loop
from tests.adversary.ways_in import (
    WayIn,
    by_alias,
    by_append,
    by_connection,
    by_import,
    by_mailgun,
    by_post,
    by_postmark,
    by_redirect_inside,
    by_resend,
    by_send_inside,
    by_sendgrid,
    by_ses,
    by_smtp,
)
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in

PARTS = 3  # fewer messages than in a third may all be refused
MESSAGES = int(os.environ.get("POSTROOM_TEST_HOSTILE", "30"))  # by each way, a third in each part
A_PART = -(-MESSAGES // PARTS)
LONGEST_TURN_SECONDS = 0.5  # of processor time; 50 ms on a machine of today, and tests run on slower ones
FIRST = int(os.environ.get("POSTROOM_TEST_HOSTILE_FIRST", "0"))
NOT_RECEIVED = (by_append, by_import)  # filed by the owner: no event
WRITTEN_HERE = (by_redirect_inside, by_send_inside)  # other bytes than the hostile message's own
REFUSING = (by_redirect_inside, by_postmark)  # harmful ones; bytes that are no text
FREE = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY"), "0")
IN_ORDER = (
    by_smtp,
    by_post,
    by_mailgun,
    by_sendgrid,
    by_postmark,
    by_ses,
    by_resend,
    by_redirect_inside,
    by_send_inside,
    by_append,
    by_import,
    by_alias,
)
WAYS = [
    *IN_ORDER,
    pytest.param(by_connection, marks=pytest.mark.needs("dovecot")),
]
NUMBERS = {way.__name__: number for number, way in enumerate((*IN_ORDER, by_connection))}
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", PLAN="developer", **FREE)
    async with running_server(config, clock) as running:
        yield running


async def listed(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    """Every message of the inbox, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        query = {"limit": "100", "offset": str(len(found))}
        page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
        found += page["data"]
        if len(found) >= page["total"]:
            return found


async def api_view(server: Server, message_id: str) -> ApiView:
    message = (await server.api.get(f"/v1/messages/{message_id}")).json()
    raw = (await server.api.get(f"/v1/messages/{message_id}/raw")).content
    files = [(await server.api.get(file["url"])).content for file in message["attachments"]]
    return ApiView(message, raw, tuple(files))


def number_of(raw: bytes, mails: dict[int, Hostile]) -> int:
    """Which of the messages these stored bytes are."""
    found = [number for number, mail in mails.items() if mark_of(number) in raw]
    assert len(found) == 1, raw[:500]
    return found[0]


async def views_of(server: Server, inbox_id: str, name: str) -> list[tuple[ApiView, ClientView]]:
    shown = [await api_view(server, message["id"]) for message in await listed(server, inbox_id)]

    def read() -> list[ClientView]:
        client = log_in(server, name)
        try:
            return imap_reading.read_all(client, "INBOX")
        finally:
            client.logout()

    by_bytes = {view.raw: view for view in await aside(read)}
    return [(view, by_bytes[view.raw]) for view in shown]


def require_same_in_mcp(event: dict[str, Any]) -> None:
    """MCP Events tell of the same message, in one line without invisible characters."""
    told = msgspec.json.decode(mcp_event.write(msgspec.json.encode(event)))
    assert (told["eventId"], told["name"]) == (event["event_id"], event["event"])
    data, message = told["data"], event["message"]
    assert (data["messageId"], data["from"]) == (message["id"], message["from"])
    assert data["subject"] == message["subject"]
    assert len(data["preview"]) <= 200
    assert preview(data["preview"]) == data["preview"]
    assert not CONTROL.search(data["preview"])


async def events_of(server: Server, inbox_id: str) -> list[str]:
    found: list[str] = []
    after: dict[str, str] = {}
    while True:
        query = {"limit": "100", "inboxId": inbox_id, **after}
        page = (await server.api.get("/v1/events", params=query)).json()
        found += [each["message"]["id"] for each in page["data"] if each["event"] == "message.received"]
        for each in page["data"]:
            require_same_in_mcp(each)
        if not page["data"]:
            return found
        after = {"after": page["next"]}


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_every_reader_sees_the_same_message(server: Server, way: WayIn, part: int) -> None:
    inbox_id = await server.new_inbox("agent")
    first = FIRST + MESSAGES * NUMBERS[way.__name__] + A_PART * part
    mails = {number: hostile(number) for number in range(first, first + A_PART)}
    async with watched_loop() as watch:
        taken = await way(server, "agent", list(mails.values()))
        await until_examined(server, inbox_id, len(taken))
    assert len(taken) > A_PART * (0.5 if way in REFUSING else 0.7), "most of them are taken"
    assert watch.longest_seconds < LONGEST_TURN_SECONDS

    events = await events_of(server, inbox_id)
    shown = await listed(server, inbox_id)
    assert len(shown) == len(taken), "each is in the inbox once"
    assert sorted(events) == ([] if way in NOT_RECEIVED else sorted(each["id"] for each in shown))
    numbers, disagreements = set(), {}
    for api, client in await views_of(server, inbox_id, "agent"):
        mail = mails[number_of(api.raw, mails)]
        numbers.add(mail.number)
        if found := disagreements_of(way, mail, api, client):
            disagreements[mail.number] = (mail.tricks, found)
    assert numbers == taken
    assert not disagreements, "\n".join(f"{number}: {found}" for number, found in disagreements.items())


def disagreements_of(way: WayIn, mail: Hostile, api: ApiView, client: ClientView) -> list[str]:
    if way in WRITTEN_HERE:
        return agreement.compare(api, client)
    if mail.is_plain and not api.raw.endswith(mail.raw):
        return ["the bytes were changed"]
    seen = second_readers.compare_with_the_standard_library(mail, api, client)
    return [*agreement.compare(api, client), *seen]


@pytest.mark.needs("dovecot")
@pytest.mark.parametrize("way", [by_smtp, by_append], ids=lambda way: way.__name__)
async def test_another_imap_server_shows_the_same_message(server: Server, way: WayIn) -> None:
    """Read from a mailbox of Dovecot, an email has no words that the agent does not read here."""
    inbox_id = await server.new_inbox("agent")
    mails = {number: hostile(number) for number in range(FIRST, FIRST + MESSAGES)}
    plain = [mail for mail in mails.values() if mail.is_plain]
    await way(server, "agent", plain)
    seen = await views_of(server, inbox_id, "agent")
    others = await second_readers.read_by_dovecot([api.raw for api, _ in seen])
    disagreements, compared = {}, 0
    for api, client in seen:
        mail = mails[number_of(api.raw, mails)]
        compared += second_readers.is_clear_inside(mail)
        if found := [*second_readers.compare_with_dovecot(mail, api, client, others[api.raw])]:
            disagreements[mail.number] = (mail.tricks, found)
    assert compared > len(seen) // 3
    assert not disagreements, "\n".join(f"{number}: {found}" for number, found in disagreements.items())


def naming_another() -> list[Hostile]:
    """Emails of Eve that name another sender beside her."""
    tried = map(hostile, range(FIRST, FIRST + 10 * MESSAGES))
    return [mail for mail in tried if b"From: Bank <ceo@bank.example>" in mail.raw][: MESSAGES // 3]


@pytest.mark.share(2)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_nobody_becomes_known_by_a_further_sender_in_the_email_of_another(
    server: Server, way: WayIn
) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["strangers"]}})
    taken = await way(server, "agent", naming_another())
    await until_examined(server, inbox_id, len(taken))
    assert taken
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": "ceo@bank.example", "subject": "Hello", "body": "Hello"},
        headers={"Idempotency-Key": "to-a-stranger"},
    )
    assert "hold" in answer.json(), "the bank never wrote"
    assert answer.json()["hold"]["reasons"] == ["strangers"]


@pytest.mark.parametrize("way", NOT_RECEIVED, ids=lambda way: way.__name__)
async def test_what_was_only_filed_makes_nobody_known(server: Server, way: WayIn) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["strangers"]}})
    await way(server, "agent", naming_another())
    senders = {message["fromAddr"] for message in await listed(server, inbox_id)}
    assert len(senders) > 1
    for address in ("eve@outside.example", "ceo@bank.example"):
        answer = await server.api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": address, "subject": "Hello", "body": "Hello"},
            headers={"Idempotency-Key": address},
        )
        assert answer.json()["hold"]["reasons"] == ["strangers"], address


async def until_examined(server: Server, inbox_id: str, count: int) -> None:
    """Until all are there and none waits for what is found out later, by DNS and from files."""
    async with asyncio.timeout(120):
        while len(await listed(server, inbox_id)) < count or await examinations_waiting(server):
            await asyncio.sleep(0.05)


async def examinations_waiting(server: Server) -> int:
    waiting, _ = await server.resources.db.read(examine.depth, server.clock.now(), 1)
    return waiting
