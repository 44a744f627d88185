"""What was accepted is judged again at every attempt: by a block, a suppression, its key, a pause."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx2
import pytest

from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR, MINUTE
from postroom.outward.delivering import mail_job
from postroom.outward.holding import stop
from postroom.outward.holding.checks import SendCheckInput, judge_all
from postroom.storage.database import Database, Tx
from tests.doubles import FakeClock
from tests.outward.test_reviewers import REVIEWER, set_reviewers
from tests.stepped import House, stepped

CAROL, DAN, EVE = "carol@there.example", "dan@elsewhere.example", "eve@third.example"
BLOCK = {"type": "block", "value": "there.example", "direction": "outbound"}
AGENT = ("read", "draft", "send")


@pytest.fixture
async def house(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[House]:
    async with stepped(tmp_path, database_url, clock) as house:
        yield house


@pytest.fixture
async def inbox_id(house: House) -> str:
    return await house.inbox("bob")


async def deferred(house: House, inbox_id: str, *to: str, token: str = "", **fields: object) -> str:
    """A mail that waits for its second attempt, which the world would take."""
    house.sink.mood = "defers"
    receipt = await house.send(inbox_id, *to, token=token, **fields)
    await house.step()
    house.sink.mood = "takes"
    message_id: str = receipt["id"]
    assert (await house.message(message_id))["recipients"][0]["attempts"] == 1
    return message_id


async def revoke(house: House, key_id: str) -> httpx2.Response:
    return await house.api.delete(f"/v1/api-keys/{key_id}")


async def require_held(house: House, message_id: str, *reasons: str) -> None:
    message = await house.message(message_id)
    assert (message["status"], message["hold"]["state"]) == ("pending", "held"), message
    assert message["hold"]["reasons"] == list(reasons)


@pytest.mark.sqlite_alone
async def test_a_block_or_a_suppression_ends_what_waits_for_its_next_attempt(
    house: House, inbox_id: str
) -> None:
    blocked = await deferred(house, inbox_id, CAROL)
    partly = await deferred(house, inbox_id, EVE, DAN)
    assert (await house.api.post("/v1/policy/rules", json=BLOCK)).status_code == 201
    assert (await house.api.post("/v1/suppressions", json={"address": DAN})).status_code == 201
    await house.step(2 * MINUTE)
    assert house.sink.recipients == [EVE]
    [recipient] = (await house.message(blocked))["recipients"]
    assert recipient["state"] == "failed"
    assert recipient["lastReply"].startswith("5.7.1 recipient_not_allowed: ")
    to_eve, to_dan = (await house.message(partly))["recipients"]
    assert (to_eve["state"], to_dan["state"]) == ("delivered", "failed")
    assert to_dan["lastReply"].startswith("5.7.1 recipient_suppressed: ")
    told = await house.events("message.failed")
    assert {event["recipient"] for event in told} == {CAROL, DAN}
    assert all("hold" not in event for event in told)
    audit = (await house.api.get("/v1/policy/audit")).json()["data"]
    assert [(each["action"], each["address"], each["messageId"]) for each in audit] == [
        ("refused", CAROL, blocked)
    ]
    suppressed = (await house.api.get("/v1/suppressions")).json()["data"]
    assert [each["address"] for each in suppressed] == [DAN]  # what we stop ourselves is no bounce


@pytest.mark.sqlite_alone
async def test_what_a_revoked_key_left_waiting_is_held_until_a_person_decides(
    house: House, inbox_id: str
) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    waiting = await deferred(house, inbox_id, CAROL, token=token, bcc=[EVE])
    later = {"token": token, "sendAt": "2026-11-14T20:00:00Z"}
    scheduled, refused = [(await house.send(inbox_id, DAN, **later))["id"] for _ in range(2)]
    assert (await revoke(house, key_id)).status_code == 204
    await house.step()  # at once, and not when its moment comes
    for message_id in (waiting, scheduled, refused):
        await require_held(house, message_id, "key_revoked")
    assert (await house.message(waiting))["hold"]["expiresAt"] is None
    assert (await house.api.post(f"/v1/messages/{waiting}/retry")).status_code == 409
    await house.step(DAY)
    assert house.sink.mails == []
    assert (await house.approve(waiting)).json()["hold"]["state"] == "approved"
    assert (await house.approve(scheduled)).status_code == 200
    rejected = await house.api.post(f"/v1/messages/{refused}/reject", json={})
    assert rejected.json()["status"] == "failed"
    await house.step()
    assert sorted(house.sink.recipients) == sorted([CAROL, DAN, EVE])
    told = await house.events("message.held")
    assert [event["hold"]["reasons"] for event in told] == [["key_revoked"]] * 3


@pytest.mark.sqlite_alone
async def test_an_approval_counts_for_what_the_person_knew_of_the_key(house: House, inbox_id: str) -> None:
    key_id, token = await house.key(inbox_id, "read", "draft")
    message_id = (await house.send(inbox_id, CAROL, token=token))["id"]
    await require_held(house, message_id, "key")
    house.sink.mood = "defers"
    assert (await house.approve(message_id)).status_code == 200
    await house.step()
    await house.step(2 * MINUTE)  # a key without `send` is no reason any more
    assert (await house.message(message_id))["recipients"][0]["attempts"] == 2
    await revoke(house, key_id)
    await house.step()
    await require_held(house, message_id, "key_revoked")
    assert (await house.message(message_id))["hold"]["decidedBy"] is None
    assert (await house.approve(message_id)).status_code == 200
    await house.step()
    house.sink.mood = "takes"
    await house.step(HOUR)
    assert house.sink.recipients == [CAROL]


@pytest.mark.sqlite_alone
async def test_a_key_that_may_send_no_more_sends_nothing_that_waits(house: House, inbox_id: str) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    waiting = await deferred(house, inbox_id, CAROL, token=token)
    fewer = {"permissions": ["read", "draft"]}
    assert (await house.api.patch(f"/v1/api-keys/{key_id}", json=fewer)).status_code == 200
    await house.step(HOUR)
    await require_held(house, waiting, "key")
    assert house.sink.mails == []


@pytest.mark.sqlite_alone
async def test_the_end_of_a_pause_lets_nothing_of_a_revoked_key_go(house: House, inbox_id: str) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    waiting = await deferred(house, inbox_id, CAROL, token=token)
    await house.api.put("/v1/pause")
    await require_held(house, waiting, "paused")
    await revoke(house, key_id)
    await house.api.delete("/v1/pause")
    await house.step(HOUR)
    await require_held(house, waiting, "key_revoked")
    assert house.sink.mails == []
    assert (await house.approve(waiting)).status_code == 200
    await house.step()
    assert house.sink.recipients == [CAROL]


@pytest.mark.sqlite_alone
async def test_what_failed_by_a_revoked_key_is_not_sent_by_trying_again(house: House, inbox_id: str) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    house.sink.mood = "refuses"
    message_id = (await house.send(inbox_id, CAROL, token=token))["id"]
    await house.step()
    house.sink.mood = "takes"
    await revoke(house, key_id)
    assert (await house.api.post(f"/v1/messages/{message_id}/retry")).status_code == 200
    await house.step()
    await require_held(house, message_id, "key_revoked")
    assert house.sink.mails == []


@pytest.mark.sqlite_alone
async def test_reviewers_are_asked_about_what_a_revoked_key_left(house: House, inbox_id: str) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    await deferred(house, inbox_id, CAROL, token=token)
    await house.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    await revoke(house, key_id)
    await house.step()
    assert house.sink.recipients == [REVIEWER]
    assert b"key_revoked" in house.sink.mails[0].raw


Change = Callable[[House, str], Awaitable[httpx2.Response]]


async def block(house: House, key_id: str) -> httpx2.Response:
    return await house.api.post("/v1/policy/rules", json=BLOCK)


async def suppress(house: House, key_id: str) -> httpx2.Response:
    return await house.api.post("/v1/suppressions", json={"address": CAROL})


async def pause(house: House, key_id: str) -> httpx2.Response:
    return await house.api.put("/v1/pause")


async def cancel(house: House, key_id: str) -> httpx2.Response:
    inbox = (await house.api.get("/v1/inboxes")).json()["data"][0]["id"]
    [message] = (await house.api.get(f"/v1/inboxes/{inbox}/messages")).json()["data"]
    return await house.api.post(f"/v1/messages/{message['id']}/cancel")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (cancel, "cancelled"),
        (revoke, "key_revoked"),
        (pause, "paused"),
        (suppress, "recipient_suppressed"),
        (block, "recipient_not_allowed"),
    ],
)
async def test_what_changes_between_claim_and_delivery_counts(
    house: House, inbox_id: str, change: Change, wanted: str
) -> None:
    key_id, token = await house.key(inbox_id, *AGENT)
    message_id = (await house.send(inbox_id, CAROL, token=token))["id"]
    [delivery] = await house.claim("mail")
    assert (await change(house, key_id)).status_code < 300
    await house.hand_over(delivery)
    assert wanted in str(await house.message(message_id))
    await house.step(HOUR)
    assert house.sink.mails == []


@pytest.mark.sqlite_alone
async def test_what_is_put_right_before_it_is_stopped_leaves(house: House, inbox_id: str) -> None:
    message_id = (await house.send(inbox_id, CAROL))["id"]
    [delivery] = await house.claim("mail")
    await suppress(house, "")
    job = await house.resources.db.read(mail_job.look_up, delivery, "postroom.localhost")
    assert job is not None
    assert [refusal.address for refusal in job.outgoing.send_check.refusals] == [CAROL]
    await house.api.delete(f"/v1/suppressions/{CAROL}")
    await house.resources.db.write(stop.stop_attempt, delivery, None, "", house.clock.now())
    assert house.sink.mails == []
    await house.step()
    assert (await house.message(message_id))["status"] == "sent"
    assert house.sink.recipients == [CAROL]


async def test_the_policy_is_asked_before_the_suppressions_and_the_key_before_the_pause(
    db: Database,
) -> None:
    def look(tx: Tx) -> tuple[list[str], tuple[str, ...]]:
        tx.run(
            "insert into policies (scope_id, direction, account_id, mode, rule_count)"
            " values ('inb_1', 'outbound', 'acc_1', 'allowlist', 0)"
        )
        check_input = SendCheckInput(
            within=Scope("acc_1", "pod_1", "inb_1"),
            addresses=[CAROL, DAN],
            has_policy=True,
            suppressed={CAROL: "manual"},
            key="key_revoked",
            is_paused=True,
            is_needless=False,
        )
        [send_check] = judge_all(tx, [check_input])
        return [refusal.error.code for refusal in send_check.refusals], send_check.waits

    codes, waits = await db.write(look)
    assert codes == ["recipient_not_allowed", "recipient_not_allowed", "recipient_suppressed"]
    assert waits == ("key_revoked", "paused")
