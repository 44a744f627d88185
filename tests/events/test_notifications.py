"""Notifications: one short message with a link, grouped when many, and a failure that is shown."""

import asyncio
import json
from typing import Any

import pytest

from postroom.clock import DAY, HOUR, SECOND
from postroom.events import notifications
from postroom.events.webhook_signature import sign
from postroom.outward.notices import daily_briefings
from tests.api.endpoint import Endpoint, running_endpoint
from tests.api.test_dashboard import browser
from tests.browser.made_up_dashboard import TRICK
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.waiting import until

EVERYTHING = ["held", "paused", "webhook_disabled", "domain_broken", "suspicious"]


async def set_targets(server: Server, *targets: dict[str, Any]) -> None:
    answer = await server.api.put("/v1/notifications", json={"targets": list(targets)})
    assert answer.status_code == 200, answer.text


async def hold(server: Server, inbox_id: str, subject: str) -> str:
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": "bob@there.example", "subject": subject, "body": "A secret text"},
        headers={"Idempotency-Key": subject.replace(" ", "-")},
    )
    assert answer.json()["hold"]["state"] == "held", answer.text
    message_id: str = answer.json()["id"]
    return message_id


async def held_inbox(server: Server) -> str:
    inbox_id = await server.new_inbox("careful")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    return inbox_id


async def until_told(server: Server, endpoint: Endpoint, count: int) -> None:
    server.clock.turn(6 * SECOND)
    await endpoint.wait_for(count)


async def targets_of(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get("/v1/notifications")).json()["targets"]
    return found


@pytest.mark.sqlite_alone
async def test_each_kind_of_target_is_told_in_its_form_with_a_link_and_no_text(server: Server) -> None:
    inbox_id = await held_inbox(server)
    async with running_endpoint() as slack, running_endpoint() as discord, running_endpoint() as ntfy:
        await set_targets(
            server,
            {"kind": "slack", "target": slack.url, "on": ["held"]},
            {"kind": "discord", "target": discord.url, "on": ["held"]},
            {"kind": "ntfy", "target": ntfy.url, "on": ["held"]},
            {"kind": "email", "target": "Ann@example.org", "on": ["held"]},
        )
        message_id = await hold(server, inbox_id, "Offer 7 @everyone")
        for endpoint in (slack, discord, ntfy):
            await until_told(server, endpoint, 1)
            body = endpoint.requests[0][1].decode()
            assert "Offer 7" in body
            assert message_id in body
            assert "A secret text" not in body
        assert json.loads(discord.requests[0][1])["allowed_mentions"] == {"parse": []}
        assert "An email needs approval" in json.loads(slack.requests[0][1])["text"]
        assert ntfy.requests[0][0]["title"] == "An email needs approval"
        async with asyncio.timeout(120):
            while not (mails := await server.resources.db.read(letters_to, "ann@example.org")):
                await asyncio.sleep(0.02)
        assert message_id in mails[0]["content"]


def letters_to(tx: Any, address: str) -> Any:
    return tx.all("select content from letters where recipient = :address", address=address)


@pytest.mark.sqlite_alone
async def test_many_at_once_are_one_message(server: Server) -> None:
    inbox_id = await held_inbox(server)
    async with running_endpoint() as endpoint:
        await set_targets(server, {"kind": "slack", "target": endpoint.url, "on": EVERYTHING})
        for number in range(4):
            await hold(server, inbox_id, f"Mail {number}")
        await until_told(server, endpoint, 1)
        assert "4 emails need approval" in json.loads(endpoint.requests[0][1])["text"]
        await server.api.put("/v1/pause")
        await until_told(server, endpoint, 2)
        assert "Sending is paused" in json.loads(endpoint.requests[1][1])["text"]
        [shown] = await targets_of(server)
        assert shown["lastError"] is None
        assert shown["toldAt"] is not None


@pytest.mark.sqlite_alone
async def test_a_webhook_target_is_signed_with_the_account_s_secret(server: Server) -> None:
    inbox_id = await held_inbox(server)
    async with running_endpoint() as endpoint:
        url = {"url": "http://127.0.0.1:9/x", "eventTypes": ["message.bounced"]}
        secret = (await server.api.put("/v1/webhook", json=url)).json()["secret"]
        await set_targets(server, {"kind": "webhook", "target": endpoint.url, "on": ["held"]})
        await hold(server, inbox_id, "Signed")
        await until_told(server, endpoint, 1)
        headers, body = endpoint.requests[0]
        assert headers["x-signature"] == sign(secret, int(headers["x-timestamp"]), body)
        assert json.loads(body)["kind"] == "held"


async def test_a_failure_is_shown_tried_again_and_given_up_after_an_hour(server: Server) -> None:
    inbox_id = await held_inbox(server)
    async with running_endpoint() as endpoint:
        endpoint.answers = [b"503 Not Now", b"503 Not Now"]
        await set_targets(server, {"kind": "slack", "target": endpoint.url, "on": ["held"]})
        await hold(server, inbox_id, "Trouble")
        await until_told(server, endpoint, 1)
        async with asyncio.timeout(120):
            while (await targets_of(server))[0]["lastError"] is None:
                await asyncio.sleep(0.02)
        [failed] = await targets_of(server)
        assert failed["lastError"].startswith("503")
        assert failed["failedAt"] is not None
        await set_targets(
            server,
            {"kind": "slack", "target": endpoint.url, "on": ["held", "paused"]},
            {"kind": "email", "target": "ann@example.org", "on": ["paused"]},
        )
        kept, new = await targets_of(server)  # what stays keeps its failure, and is tried again
        assert (kept["lastError"], kept["on"]) == (failed["lastError"], ["held", "paused"])
        assert new["lastError"] is None
        server.clock.turn(2 * 60 * SECOND)
        await endpoint.wait_for(2)
        async with asyncio.timeout(120):
            await until(lambda: server.resources.db.read(second_answers))
            server.clock.turn(HOUR)
            while await server.resources.db.read(pending):
                await asyncio.sleep(0.02)
        assert len(endpoint.requests) == 2


def count_briefings(tx: Any) -> int:
    return len(tx.all("select id from notifications where kind = 'briefing'"))


async def test_a_target_is_briefed_once_a_day_at_its_hour_of_its_time_zone(server: Server) -> None:
    inbox_id = await held_inbox(server)
    await server.deliver(raw_mail("A secret text", subject="A secret subject"), "careful")
    await hold(server, inbox_id, "Offer")
    resources = server.resources
    async with running_endpoint() as slack:
        daily = {"on": ["briefing"], "briefingHour": 12, "timeZone": "Europe/Berlin"}
        await set_targets(
            server,
            {"kind": "slack", "target": slack.url, **daily},
            {"kind": "email", "target": "ann@example.org", **daily},
            {"kind": "slack", "target": f"{slack.url}/other", "on": ["paused"]},
        )
        asked = [(each["briefingHour"], each["timeZone"]) for each in await targets_of(server)]
        assert asked == [(12, "Europe/Berlin")] * 2 + [(8, "UTC")]
        server.clock.turn(HOUR - 2 * SECOND)  # it was 11 there, at 10 in UTC
        await daily_briefings.step(resources)
        assert await resources.db.read(count_briefings) == 0
        server.clock.turn(2 * SECOND)
        seen = await resources.db.read(notifications.list_due_briefings, resources.now())
        await asyncio.gather(daily_briefings.step(resources), daily_briefings.step(resources))
        for late in seen:  # of a node that looked before the others wrote
            facts = await resources.db.read(daily_briefings.read_facts, late, resources.now())
            await resources.db.write(daily_briefings.send, late, facts, "", resources.now())
        assert (len(seen), await resources.db.read(count_briefings)) == (2, 2)
        await until_told(server, slack, 1)
        told = json.loads(slack.requests[0][1])["text"]
        assert told.startswith(
            "Daily briefing: 1 received, 1 held, 0 waiting for an answer, 0 overdue, 0 failed"
        )
        assert "/app" in told
        assert "secret" not in told
        [mail] = await until(lambda: resources.db.read(letters_to, "ann@example.org"))
        assert "1 received, 1 held" in mail["content"]
        server.clock.turn(DAY - 10 * SECOND)
        await daily_briefings.step(resources)
        assert await resources.db.read(count_briefings) == 2
        server.clock.turn(10 * SECOND)
        await daily_briefings.step(resources)
        assert await resources.db.read(count_briefings) == 4


def pending(tx: Any) -> Any:
    return tx.all("select id from deliveries where kind = 'notice' and state = 'pending'")


def second_answers(tx: Any) -> Any:
    return tx.all("select 1 from attempts where number = 2 and milliseconds is not null")


@pytest.mark.sqlite_alone
async def test_what_is_wrong_with_a_target_is_said(server: Server) -> None:
    for target, status in (
        ({"kind": "pigeon", "target": "http://127.0.0.1:9", "on": ["held"]}, 400),
        ({"kind": "slack", "target": "ftp://x", "on": ["held"]}, 422),
        ({"kind": "slack", "target": "http://127.0.0.1:9", "on": ["sung"]}, 400),
        ({"kind": "slack", "target": "http://127.0.0.1:9", "on": []}, 400),
        ({"kind": "email", "target": "no address", "on": ["held"]}, 400),
        ({"kind": "slack", "target": "http://127.0.0.1:9", "on": ["briefing"], "timeZone": "Mars/Base"}, 400),
        ({"kind": "slack", "target": "http://127.0.0.1:9", "on": ["briefing"], "briefingHour": 24}, 400),
        ({"kind": "email", "target": "careful@postroom.localhost", "on": ["held"]}, 400),
    ):
        answer = await server.api.put("/v1/notifications", json={"targets": [target]})
        assert answer.status_code == status, target
    narrow = await server.api.post("/v1/api-keys", json={"permissions": ["read"]})
    async with server.client(narrow.json()["token"]) as reader:
        assert (await reader.get("/v1/notifications")).status_code == 403


HOSTILE = "<!channel> [pay](https://evil.example) @everyone ```"


@pytest.mark.sqlite_alone
async def test_a_target_that_wants_it_gets_the_whole_email_as_text_and_a_link_that_needs_a_sign_in(
    server: Server,
) -> None:
    inbox_id = await held_inbox(server)
    async with (
        running_endpoint() as slack,
        running_endpoint() as teams,
        running_endpoint() as discord,
        running_endpoint() as ntfy,
    ):
        targets = {"slack": slack, "teams": teams, "discord": discord, "ntfy": ntfy}
        wanted = {"on": ["held", "suspicious"], "content": "email"}
        await set_targets(
            server,
            *({"kind": kind, "target": endpoint.url, **wanted} for kind, endpoint in targets.items()),
            {"kind": "email", "target": "ann@example.org", **wanted},
        )
        assert [each["content"] for each in await targets_of(server)] == ["email"] * 5
        answer = await server.api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={
                "to": "bob@there.example",
                "bcc": ["carol@there.example"],
                "subject": HOSTILE,
                "body": f"{HOSTILE}\nhttps://track.example/7",
                "attachments": [{"filename": "offer.txt", "text": "Seven"}],
            },
            headers={"Idempotency-Key": "whole"},
        )
        message_id = answer.json()["id"]
        await server.deliver(raw_mail(TRICK, subject="New bank details"), "careful")
        for kind, endpoint in targets.items():
            await until_told(server, endpoint, 2)
            bodies = [body for _, body in endpoint.requests]
            held, flagged = sorted(bodies, key=lambda body: b"New bank" in body)
            assert max(map(len, bodies)) < 28_000, kind
            said = held.decode()
            for expected in ("bob@there.example", "carol@there.example", "offer.txt", "track.example/7"):
                assert expected in said, (kind, expected)
            assert f"/app/approvals?message={message_id}" in said
            assert "/review/" not in said  # whose button needs no sign-in
            assert b"Judged malicious" in flagged, kind
        for _, body in slack.requests:
            text = json.loads(body)
            assert not {"<", ">"} & set(text["text"])
            assert text["mrkdwn"] is False
        for _, body in teams.requests:
            [card] = json.loads(body)["attachments"]
            assert {block["type"] for block in card["content"]["body"]} == {"RichTextBlock"}
        for _, body in discord.requests:
            told = json.loads(body)
            assert told["allowed_mentions"] == {"parse": []}
            assert told["embeds"][0]["description"].count("```") == 2
            assert "[pay](" not in told["content"]
        async with browser(server) as stranger:
            page = await stranger.get(f"/app/approvals?message={message_id}")
            assert "bob@there.example" not in page.text
            assert page.status_code == 303
        [first, *_] = await until(lambda: server.resources.db.read(letters_to, "ann@example.org"))
        assert "track.example/7" in first["content"]
        wrong = {"kind": "webhook", "target": slack.url, "on": ["held"], "content": "email"}
        refused = await server.api.put("/v1/notifications", json={"targets": [wrong]})
        assert (refused.status_code, refused.json()["field"]) == (400, "content")


async def test_of_many_whole_emails_at_once_some_are_whole_and_the_others_counted(server: Server) -> None:
    inbox_id, other_id = await held_inbox(server), await server.new_inbox("other")
    await server.api.patch(f"/v1/inboxes/{other_id}", json={"approval": {"when": ["always"]}})
    async with running_endpoint() as endpoint:
        target = {"kind": "slack", "target": endpoint.url, "on": ["held"], "content": "email"}
        await set_targets(server, target)
        for number in range(12):
            await hold(server, (inbox_id, other_id)[number % 2], f"Number {number}")
        await until_told(server, endpoint, 10)
        said = [json.loads(body)["text"] for _, body in endpoint.requests]
        assert sum("An email needs approval: " in text for text in said) == 9
        assert sum("3 emails need approval" in text and "The first of them" in text for text in said) == 1
