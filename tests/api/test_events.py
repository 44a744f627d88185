"""The log of events over REST, and the bytes of its payloads."""

import asyncio
import json
import subprocess
from typing import Any

import pytest

from postroom.accounts.scope import Scope
from postroom.events.event_log import Event, EventChoice, list_after
from postroom.upkeep.expiry import EVENT_LIFETIME
from postroom.upkeep.upkeep_loop import one_round
from tests.api.test_messages import stranger
from tests.conftest import Server, until_somebody_listens
from tests.mail import files
from tests.programs import path_of
from tests.raw_mails import assert_is_payload, html_mail, raw_mail, raw_mail_with_files

pytestmark = pytest.mark.sqlite_alone

ROUND_TRIP = (
    "const lines = require('fs').readFileSync(0, 'utf8').split('\\n').filter(line => line);"
    "process.stdout.write(lines.map(line => JSON.stringify(JSON.parse(line))).join('\\n'));"
)
PAYLOAD_KEYS = ["event", "event_id", "inbox_id", "thread_id", "message", "occurred_at"]
MESSAGE_KEYS = [
    *("id", "from", "to", "subject", "body_text", "attachments", "received_at"),
    *("cc", "rfc_message_id", "reply_text", "automated", "auth"),
    *("category", "auto_replyable", "verdict", "signals", "codes", "calendar", "junk"),
]
FILE_KEYS = ["filename", "contentType", "sizeBytes", "url", "parsedText", "extractionMethod"]


async def read(server: Server, query: str = "") -> dict[str, Any]:
    answer = await server.api.get(f"/v1/events{query}", timeout=120)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def stored_payloads(server: Server) -> list[bytes]:
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    events = (await server.resources.db.read(list_after, EventChoice(Scope(account_id)), 0, 100)).events
    return [event.payload for event in events]


async def receive_kinds_of_mail(server: Server) -> int:
    """A mail for each thing that JSON could get wrong."""
    mails = [
        raw_mail('Quotes " and \\ and / and </script>', subject="tab\tand \x08 \x0c \x1f \x7f"),
        raw_mail("\u2028 \u2029 \ufeff \ufffd \U0001f4ee \u00e9 e\u0301", subject="=?utf-8?Q?=F0=9F=93=AE?="),
        html_mail("<p>a &lt; b</p>"),
        raw_mail_with_files(
            ("a.pdf", "application/pdf", files.pdf("Text")), ("\u00e9 \U0001f4ee.bin", "a/b", b"")
        ),
        b"",
        raw_mail(
            "\x01\x02\x03\x0b\x0e",
            **{"from": '"A \\"B\\" C" <a@b.example>', "cc": "x@y.example, z@w.example"},
        ),
    ]
    for mail in mails:
        await server.deliver(mail, "hello")
    while len((await read(server))["data"]) < len(mails):
        await asyncio.sleep(0.05)
    return len(mails)


async def test_the_payload_is_the_one_of_the_specification_in_its_order(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    raw = raw_mail_with_files(("a.pdf", "application/pdf", files.pdf("Text")), ("b.bin", "a/b", b"\0"))
    await server.deliver(raw, "hello")
    event = await server.next_event()
    message = event["message"]
    assert list(event) == PAYLOAD_KEYS
    assert list(message) == MESSAGE_KEYS
    assert [list(file) for file in message["attachments"]] == [
        FILE_KEYS,
        [key for key in FILE_KEYS if key != "parsedText"],
    ]
    assert event["event"] == "message.received"
    assert event["event_id"].startswith("evt_")
    assert event["inbox_id"] == inbox_id
    assert message["to"] == "hello@postroom.localhost"
    assert message["received_at"] == event["occurred_at"] == "2026-11-14T10:00:00.000Z"
    assert message["auth"] == {"spf": "none", "dkim": "none", "dmarc": "none", "domain": "example.com"}


async def test_the_payload_says_what_the_message_says(server: Server) -> None:
    await server.new_inbox("hello")
    await receive_kinds_of_mail(server)
    for event in (await read(server))["data"]:
        shown = (await server.api.get(f"/v1/messages/{event['message']['id']}")).json()
        said = event["message"]
        assert event["thread_id"] == shown["threadId"]
        assert [said[key] for key in ("from", "subject", "body_text", "received_at", "cc")] == [
            shown[key] for key in ("fromAddr", "subject", "bodyText", "createdAt", "cc")
        ]
        assert [said[key] for key in ("rfc_message_id", "reply_text", "automated", "auth")] == [
            shown[key] for key in ("rfcMessageId", "replyText", "automated", "auth")
        ]


async def test_payloads_are_strict_compact_and_served_byte_for_byte(server: Server) -> None:
    await server.new_inbox("hello")
    await receive_kinds_of_mail(server)
    payloads = await stored_payloads(server)
    served = (await server.api.get("/v1/events")).content
    assert served.startswith(b'{"data":[' + b",".join(payloads) + b'],"next":')
    for payload in payloads:
        assert_is_payload(payload)
        compact = json.dumps(json.loads(payload), separators=(",", ":"), ensure_ascii=False)
        assert compact.encode() == payload


@pytest.mark.needs("node")
async def test_javascript_reads_and_writes_a_payload_without_changing_a_byte(server: Server) -> None:
    await server.new_inbox("hello")
    count = await receive_kinds_of_mail(server)
    payloads = await stored_payloads(server)
    assert len(payloads) == count
    node = await asyncio.to_thread(
        subprocess.run,
        [path_of("node"), "-e", ROUND_TRIP],
        input=b"\n".join(payloads),
        capture_output=True,
        check=True,
    )
    assert node.stdout == b"\n".join(payloads)


async def test_the_log_is_read_oldest_first_and_from_any_place(server: Server) -> None:
    await server.new_inbox("hello")
    assert await read(server) == {"data": [], "next": None}
    for number in range(5):
        await server.deliver(raw_mail(subject=str(number)), "hello")
    everything = await read(server)
    ids = [event["event_id"] for event in everything["data"]]
    assert [event["message"]["subject"] for event in everything["data"]] == ["0", "1", "2", "3", "4"]
    assert everything["next"] == ids[-1]
    assert (await read(server, "?limit=2"))["next"] == ids[1]
    page = await read(server, f"?limit=2&after={ids[1]}")
    assert [event["event_id"] for event in page["data"]] == ids[2:4]
    assert await read(server, f"?after={ids[-1]}") == {"data": [], "next": ids[-1]}


async def test_an_unknown_place_is_not_found(server: Server) -> None:
    hello = await server.new_inbox("hello")
    await server.new_inbox("other")
    await server.deliver(raw_mail(), "other")
    foreign = (await server.next_event())["event_id"]
    for after in (f"evt_{'0' * 32}", "evt_", "nothing", "", "%00"):
        answer = await server.api.get(f"/v1/events?after={after}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), after
    token = (await server.api.post(f"/v1/inboxes/{hello}/api-keys", json={"name": "k"})).json()["token"]
    async with server.client(token) as scoped, await stranger(server) as other_account:
        assert (await other_account.get(f"/v1/events?after={foreign}")).status_code == 404
        assert (await scoped.get(f"/v1/events?after={foreign}")).json() == {"data": [], "next": foreign}


async def test_waiting_ends_with_the_event_or_with_the_time(server: Server) -> None:
    await server.new_inbox("hello")
    assert (await read(server, "?wait=0.05"))["data"] == []
    waiting = asyncio.create_task(read(server, "?wait=60"))
    await until_somebody_listens(server)
    assert not waiting.done()
    await server.deliver(raw_mail(), "hello")
    page = await waiting
    assert len(page["data"]) == 1
    after = asyncio.create_task(read(server, f"?wait=60&after={page['next']}"))
    await server.deliver(raw_mail("second"), "hello")
    assert [event["message"]["body_text"] for event in (await after)["data"]] == ["second\n"]
    for wrong in ("61", "-1", "soon"):
        answer = await server.api.get(f"/v1/events?wait={wrong}")
        assert (answer.status_code, answer.json()["field"]) == (400, "wait")


async def test_filters_choose_inboxes_and_kinds(server: Server) -> None:
    hello, other = await server.new_inbox("hello"), await server.new_inbox("other")
    for name in ("hello", "other", "hello"):
        server.clock.turn(1)
        await server.deliver(raw_mail(str(server.clock.now())), name)
    for query, expected in (
        (f"?inbox_ids={hello}", [hello, hello]),
        (f"?inbox_ids={hello},{other}", [hello, other, hello]),
        (f"?inbox_ids=inb_{'0' * 32}", []),
        ("?event_types=message.received", [hello, other, hello]),
        ("?event_types=message.sent", []),
        (f"?event_types=message.sent,message.received&inbox_ids={other}", [other]),
    ):
        assert [event["inbox_id"] for event in (await read(server, query))["data"]] == expected, query


async def test_a_key_of_one_inbox_reads_its_events_only(server: Server) -> None:
    hello, other = await server.new_inbox("hello"), await server.new_inbox("other")
    await server.deliver(raw_mail(), "hello", "other")
    token = (await server.api.post(f"/v1/inboxes/{hello}/api-keys", json={"name": "k"})).json()["token"]
    async with server.client(token) as scoped, await stranger(server) as foreign:
        for query, seen in (
            ("", [hello]),
            (f"?inbox_ids={other}", []),
            (f"?inbox_ids={hello},{other}", [hello]),
        ):
            page = (await scoped.get(f"/v1/events{query}")).json()
            assert [event["inbox_id"] for event in page["data"]] == seen, query
        assert (await foreign.get("/v1/events")).json() == {"data": [], "next": None}


async def test_events_are_kept_thirty_days(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(raw_mail("old"), "hello")
    old = (await server.next_event())["event_id"]
    server.clock.turn(EVENT_LIFETIME)
    await one_round(server.resources)
    assert len((await read(server))["data"]) == 1
    await server.deliver(raw_mail("new"), "hello")
    server.clock.turn(1)
    await one_round(server.resources)
    assert [event["message"]["body_text"] for event in (await read(server))["data"]] == ["new\n"]
    assert (await server.api.get(f"/v1/events?after={old}")).status_code == 404


@pytest.mark.both_databases
async def test_many_at_once_are_numbered_without_a_gap(server: Server) -> None:
    names = [f"box-{number}" for number in range(4)]
    for name in names:
        await server.new_inbox(name)
    await asyncio.gather(
        *(
            server.deliver(raw_mail(str(number)), names[number % 4], names[(number + 1) % 4])
            for number in range(20)
        )
    )
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    found: list[Event] = []
    async with asyncio.timeout(120):  # what the journal took is stored behind the answer
        while len(found) < 40:
            await asyncio.sleep(0.05)
            choice = EventChoice(Scope(account_id))
            found = (await server.resources.db.read(list_after, choice, 0, 100)).events
    assert [event.position for event in found] == list(range(1, 41))
    assert len({event.id for event in found}) == 40
