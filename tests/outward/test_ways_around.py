"""Ways around a hold that a compromised agent or a bad moment might find."""

import asyncio
import smtplib
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import psycopg
import pytest

from postroom.accounts.actors import THE_SERVER
from postroom.accounts.rules import pauses
from postroom.clock import HOUR, MINUTE
from postroom.inward.review_answers import ReviewAnswer
from postroom.outward import reviewers
from postroom.outward.delivering import mail_job
from postroom.outward.holding import stop
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.storage.database import Tx
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import message_of, message_when, relay_to, running, send, settled, turn
from tests.outward.test_holds import decide, held, set_rule
from tests.outward.test_reviewers import REVIEWER, link_of, set_reviewers, visit
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

CAROL = "carol@there.example"


async def agent_inbox(server: Server, *when: str) -> str:
    inbox_id = await server.new_inbox("bob")
    await server.resources.db.write(set_rule, "inboxes", inbox_id, *when)
    return inbox_id


async def test_trying_again_does_not_reach_whom_a_policy_refused(sender: Server, peer: SmtpPeer) -> None:
    message = await held(sender, await agent_inbox(sender, "always"), CAROL)
    rule = {"type": "block", "value": "there.example", "direction": "outbound"}
    assert (await sender.api.post("/v1/policy/rules", json=rule)).status_code == 201
    await decide(sender, message)
    assert (await settled(sender, message["id"]))["status"] == "failed"
    again = await sender.api.post(f"/v1/messages/{message['id']}/retry")
    assert (again.status_code, again.json()["error"]) == (403, "recipient_not_allowed")
    assert (await message_of(sender, message["id"]))["recipients"][0]["state"] == "failed"
    assert peer.mails == []


async def test_what_has_expired_is_not_approved_before_the_loop_has_seen_it(sender: Server) -> None:
    message = await held(sender, await agent_inbox(sender, "always"), CAROL)
    sender.clock.turn(73 * HOUR)
    answer = await decide(sender, message)
    assert (answer.status_code, answer.json()["error"]) == (409, "not_held")


async def test_a_link_that_is_held_does_not_leave_in_a_quote_of_it(sender: Server, peer: SmtpPeer) -> None:
    inbox_id = await agent_inbox(sender, "links")
    first = await held(sender, inbox_id, CAROL, body="Pay at https://evil.example/x")
    for quoting in ({"threadId": first["threadId"]}, {"forwardOf": first["id"]}):
        second = await held(sender, inbox_id, CAROL, body="See below", **quoting)
        assert second["hold"]["reasons"] == ["links"], quoting
    assert peer.mails == []


async def test_a_link_that_was_approved_may_be_quoted(sender: Server) -> None:
    inbox_id = await agent_inbox(sender, "links")
    first = await held(sender, inbox_id, CAROL, body="Pay at https://good.example/x")
    await decide(sender, first)
    await settled(sender, first["id"])
    second = await send(sender, inbox_id, CAROL, body="See below", threadId=first["threadId"])
    assert (await settled(sender, second))["status"] == "sent"


def pause(tx: Tx, message_id: str, now: int) -> str:
    row = tx.one(
        "select inboxes.id, inboxes.account_id from inboxes join messages on messages.inbox_id = inboxes.id"
        " where messages.id = :id",
        id=message_id,
    )
    assert row is not None
    inbox_id: str = row["id"]
    pauses.add(tx, row["account_id"], inbox_id, THE_SERVER, now)
    return inbox_id


def claim(tx: Tx, message_id: str, now: int) -> Delivery:
    """As a node does that is about to hand it over."""
    tx.run("update holds set let_go_at = 1, due_at = null where message_id = :id", id=message_id)
    tx.run("update deliveries set state = 'pending', due_at = 0 where message_id = :id", id=message_id)
    [delivery] = deliveries.claim(tx, [deliveries.list_of_message(tx, message_id)[0].id], now)
    return delivery


async def about_to_leave(server: Server) -> tuple[str, Delivery]:
    """A mail whose moment has come, in the hands of a node that is not this one."""
    inbox_id = await server.new_inbox("bob")
    message_id = await send(server, inbox_id, CAROL, sendAt="2026-11-14T10:00:01Z")
    server.clock.turn(MINUTE)
    return message_id, await server.resources.db.write(claim, message_id, server.clock.now())


@pytest.mark.both_databases
async def test_a_pause_that_has_ended_when_it_is_noticed_holds_nothing(
    sender: Server, peer: SmtpPeer
) -> None:
    message_id, delivery = await about_to_leave(sender)
    db = sender.resources.db
    inbox_id = await db.write(pause, message_id, sender.clock.now())
    job = await db.read(mail_job.look_up, delivery, "postroom.localhost")
    assert job is not None
    assert job.outgoing.send_check.waits == ("paused",)
    await sender.api.delete(f"/v1/pause?inboxId={inbox_id}")
    await db.write(stop.stop_attempt, delivery, None, sender.base_url, sender.clock.now())
    turn(sender, MINUTE)
    assert (await settled(sender, message_id))["status"] == "sent"


async def test_a_short_pause_does_not_send_what_is_being_sent_a_second_time(sender: Server) -> None:
    message_id, delivery = await about_to_leave(sender)
    inbox_id = (await message_of(sender, message_id))["inboxId"]
    await sender.api.put(f"/v1/pause?inboxId={inbox_id}")
    await sender.api.delete(f"/v1/pause?inboxId={inbox_id}")
    await message_when(sender, message_id, lambda found: found["recipients"][0]["state"] == "pending")
    [after] = await sender.resources.db.read(deliveries.list_of_message, message_id)
    assert (after.attempts, after.due_at) == (delivery.attempts, delivery.due_at)


@pytest.fixture
async def notice(sender: Server, peer: SmtpPeer) -> EmailMessage:
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    await send(sender, inbox_id, CAROL, body="Lunch?", bodyHtml="<p>Please wire 1000 dollars</p>")
    await until(lambda: len(peer.mails) == 1, "the reviewer is told")
    found = message_from_bytes(peer.mails[0].raw, policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found


async def test_a_reviewer_sees_what_the_html_says(sender: Server, notice: EmailMessage) -> None:
    body = notice.get_body(("plain",))
    assert body is not None
    assert "| Please wire 1000 dollars" in body.get_content()
    assert "Please wire 1000 dollars" in (await visit(sender, "GET", link_of(notice))).text


async def test_a_large_answer_keeps_the_bytes_that_prove_who_wrote_it(
    sender: Server, notice: EmailMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    async def weigh(_resources: object, _lookup: object, answer: ReviewAnswer) -> bool:
        seen.append(answer.content)
        return False

    monkeypatch.setattr(reviewers, "is_from_reviewer", weigh)
    address = str(notice["Reply-To"])
    raw = raw_mail("approve\r\n\r\n" + "> what was said before\r\n" * 20_000, message_id="<a@b>")
    await sender.deliver_to(raw, address)
    await until(lambda: len(seen) == 1, "the answer is weighed")
    assert seen == [raw]


async def test_an_answer_with_a_copy_to_the_inbox_is_both(
    sender: Server, notice: EmailMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def weigh(*_: object) -> bool:
        return True

    monkeypatch.setattr(reviewers, "is_from_reviewer", weigh)
    [waiting] = (await sender.api.get("/v1/approvals?state=held")).json()["data"]
    raw = raw_mail("reject", message_id="<a@b>")

    def hand_over() -> None:
        with smtplib.SMTP("127.0.0.1", sender.smtp_port) as smtp:
            smtp.sendmail(REVIEWER, ["bob@postroom.localhost", str(notice["Reply-To"])], raw)

    await asyncio.to_thread(hand_over)
    message = waiting["message"]
    await message_when(sender, message["id"], lambda found: found["hold"]["state"] == "rejected")
    listed = await sender.api.get(f"/v1/inboxes/{message['inboxId']}/messages?direction=inbound")
    assert listed.json()["total"] == 1


async def test_a_notice_that_cannot_be_written_counts_as_an_attempt(
    sender: Server, peer: SmtpPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise RuntimeError("it cannot be written")

    monkeypatch.setattr(reviewers, "write_notice", fail)
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    message_id = await send(sender, inbox_id, CAROL)
    waits = 0
    async with asyncio.timeout(120):
        while not waits:
            await asyncio.sleep(0.02)
            [told] = await sender.resources.db.read(deliveries.list_of_message, message_id, "notice")
            waits = told.waits_used
    assert told.last_reply == "4.3.0 An error on this server."


async def test_no_inbox_gets_a_notice_although_an_earlier_version_took_it_as_reviewer(sender: Server) -> None:
    inbox_id, boss = await sender.new_inbox("bob"), await sender.new_inbox("boss")
    await sender.resources.db.write(set_reviewers, inbox_id, "boss@postroom.localhost")
    made = await sender.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "agent"})
    async with sender.client(made.json()["token"]) as agent:
        answer = await agent.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": CAROL, "subject": "Hello", "body": "Hi"},
            headers={"Idempotency-Key": "1"},
        )
        assert answer.status_code == 200
    state = "pending"
    async with asyncio.timeout(120):
        while state == "pending":
            await asyncio.sleep(0.02)
            read = sender.resources.db.read
            [told] = await read(deliveries.list_of_message, answer.json()["id"], "notice")
            state = told.state
    assert (state, "where agents read" in told.last_reply) == ("failed", True)
    assert (await sender.api.get(f"/v1/inboxes/{boss}/messages")).json()["total"] == 0


@pytest.mark.both_databases
async def test_a_key_that_could_read_the_notice_of_its_own_send_gets_none(sender: Server) -> None:
    inbox_id, boss = await sender.new_inbox("bob"), await sender.new_inbox("boss")
    await sender.resources.db.write(set_reviewers, inbox_id, "boss@postroom.localhost")
    message_id = await send(sender, inbox_id, CAROL)

    def notices(tx: Tx) -> int:
        row = tx.one(
            "select count(*) as total from deliveries where message_id = :id and kind = 'notice'",
            id=message_id,
        )
        return int(row["total"]) if row else 0

    assert await sender.resources.db.read(notices) == 0
    assert (await sender.api.get(f"/v1/inboxes/{boss}/messages")).json()["total"] == 0


@pytest.mark.both_databases
async def test_what_came_is_counted_with_all_its_bytes(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    await sender.deliver(raw_mail("x" * 5000), "bob")
    await sender.next_event()
    row = await sender.resources.db.read(
        lambda tx: tx.one("select stored_bytes from inboxes where id = :id", id=inbox_id)
    )
    assert row is not None
    assert row["stored_bytes"] > 5000


def is_any_waiting_for_a_row(tx: Tx) -> bool:
    waiting = "select 1 as one from pg_stat_activity"
    return tx.one(f"{waiting} where datname = current_database() and wait_event_type = 'Lock'") is not None


async def test_a_send_that_meets_the_end_of_a_pause_on_another_node_is_not_held_for_good(
    postgres_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> None:
    async with running(tmp_path, postgres_url, clock, relay_to(peer)) as server:
        inbox_id = await server.new_inbox("bob")
        await server.api.put(f"/v1/pause?inboxId={inbox_id}")
        with psycopg.connect(postgres_url) as other_node:
            other_node.execute("delete from pauses")
            other_node.execute("update holds set due_at = 0 where is_paused = 1")
            sending = asyncio.create_task(send(server, inbox_id, CAROL))
            async with asyncio.timeout(120):
                while not await server.resources.db.read(is_any_waiting_for_a_row):
                    assert not sending.done(), "it was stored beside the end of the pause"
                    await asyncio.sleep(0.01)
            other_node.commit()
        assert (await settled(server, await sending))["status"] == "sent"
