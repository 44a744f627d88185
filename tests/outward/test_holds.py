"""Holds: a person decides what leaves, and nobody else gets it out."""

import hashlib
import json
import uuid
from typing import Any

import httpx2
import pytest

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.accounts.rules import approval
from postroom.accounts.rules.approval import Approval, OverPerDay
from postroom.clock import HOUR, to_iso
from postroom.mailbox import raw_mails
from postroom.storage.database import Tx
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.outbound import events_of, message_of, message_when, send, settled, turn
from tests.raw_mails import raw_mail

EVERYTHING = ["read", "draft", "send", "approve", "manage"]
FILE = {"filename": "a.txt", "contentType": "text/plain", "data": "YQ=="}


def set_rule(tx: Tx, table: str, row_id: str, *when: str | OverPerDay) -> None:
    stored = approval.encode(approval.require_valid(Approval(list(when))))
    tx.run(f"update {table} set approval = :stored where id = :id", stored=stored, id=row_id)


def add_key(tx: Tx, server: Server, inbox_id: str | None, asked: list[str], maker: str | None = None) -> str:
    token = keys.new_token()
    caller: Caller | None = None if maker is None else keys.find_caller(tx, maker, server.clock.now())
    row = tx.one("select account_id from inboxes")
    assert row is not None
    keys.add(tx, row["account_id"], inbox_id, "k", token, server.clock.now(), asked=asked, creator=caller)
    return token


async def held(server: Server, inbox_id: str, *to: str, **fields: Any) -> dict[str, Any]:
    message = await message_of(server, await send(server, inbox_id, *to, **fields))
    assert (message["status"], message["hold"]["state"]) == ("pending", "held"), message
    return message


async def decide(server: Server, message: dict[str, Any], token: str = "", **body: Any) -> Any:
    person = token or await server.resources.db.write(add_key, server, None, EVERYTHING)
    async with server.client(person) as api:
        given = {"contentHash": message["hold"]["contentHash"], **body}
        return await api.post(f"/v1/messages/{message['id']}/approve", json=given)


@pytest.fixture
async def agent(sender: Server) -> tuple[str, str]:
    """An inbox, and the key of the agent that sends from it, whose every send waits for a person."""
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_rule, "inboxes", inbox_id, "always")
    token = await sender.resources.db.write(add_key, sender, inbox_id, ["read", "draft", "send"])
    return inbox_id, token


async def send_as(server: Server, token: str, inbox_id: str, to: str, **fields: Any) -> dict[str, Any]:
    async with server.client(token) as api:
        answer = await api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": to, "subject": "Hello", "body": "Hi there", **fields},
            headers={"Idempotency-Key": hashlib.sha256(repr((to, fields)).encode()).hexdigest()},
        )
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


@pytest.mark.sqlite_alone
async def test_a_held_mail_leaves_when_it_is_approved_and_not_before(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    inbox_id, token = agent
    receipt = await send_as(sender, token, inbox_id, "carol@there.example")
    assert receipt["hold"] | {"contentHash": "", "expiresAt": ""} == {
        "state": "held",
        "reasons": ["always"],
        "contentHash": "",
        "expiresAt": "",
        "sendAt": None,
        "decidedAt": None,
        "decidedBy": None,
        "note": None,
        "approvalsNeeded": 1,
        "approvedBy": [],
        "origins": [],
    }
    message = await message_of(sender, receipt["id"])
    page = (await sender.api.get("/v1/approvals")).json()
    assert [each["message"]["id"] for each in page["data"]] == [receipt["id"]]
    turn(sender, HOUR)
    assert peer.mails == []
    answer = await decide(sender, message, note="fine")
    assert (answer.status_code, answer.json()["hold"]["state"]) == (200, "approved")
    done = await settled(sender, receipt["id"])
    assert (done["status"], done["hold"]["note"]) == ("sent", "fine")
    assert len(peer.mails) == 1
    [told] = await events_of(sender, "message.approved")
    assert told["actor"]["type"] == "key"
    written = (await sender.api.get("/v1/audit?action=message.approved")).json()["data"]
    assert [entry["target"] for entry in written] == [receipt["id"]]
    assert told["hold"] == {
        "state": "approved",
        "reasons": ["always"],
        "content_hash": message["hold"]["contentHash"],
        "expires_at": None,
    }


@pytest.mark.sqlite_alone
async def test_the_hash_is_that_of_the_contract(sender: Server, agent: tuple[str, str]) -> None:
    inbox_id, _ = agent
    message = await held(
        sender, inbox_id, "Carol <carol@there.example>", body="Grüße", cc=["dan@there.example"]
    )
    content: dict[str, Any] = {
        "attachments": [],
        "bcc": [],
        "bodyHtml": "",
        "bodyText": "Grüße",
        "cc": ["dan@there.example"],
        "from": "bob@postroom.localhost",
        "headers": {},
        "inReplyTo": None,
        "references": [],
        "replyTo": None,
        "subject": "Hello",
        "to": ["Carol <carol@there.example>"],
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert message["hold"]["contentHash"] == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.sqlite_alone
async def test_neither_another_hash_nor_a_note_with_a_nul_approves(
    sender: Server, agent: tuple[str, str]
) -> None:
    message = await held(sender, agent[0], "carol@there.example")
    answer = await decide(sender, message, contentHash="0" * 64)
    assert (answer.status_code, answer.json()["error"]) == (409, "content_changed")
    answer = await decide(sender, message, note="a\0b")
    assert (answer.status_code, answer.json().get("field")) == (400, "note")
    assert (await message_of(sender, message["id"]))["hold"]["state"] == "held"


@pytest.mark.sqlite_alone
async def test_what_was_changed_since_it_was_approved_does_not_leave(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    message = await held(sender, agent[0], "carol@there.example")

    def tamper(tx: Tx) -> None:
        content = raw_mails.get(tx, message["id"]).content
        assert content is not None
        changed, _ = raw_mails.to_written(content.replace(b"Hi there", b"Bye all!"))
        tx.run("update raw_mails set content = :c where message_id = :id", c=changed, id=message["id"])

    await sender.resources.db.write(tamper)
    assert (await decide(sender, message)).status_code == 200
    assert (await settled(sender, message["id"]))["status"] == "failed"
    assert peer.mails == []
    [told] = await events_of(sender, "message.failed")
    assert "was changed after it was approved" in told["reason"]


@pytest.mark.sqlite_alone
async def test_a_rejected_mail_never_leaves_and_nothing_revives_it(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    message = await held(sender, agent[0], "carol@there.example")
    person = await sender.resources.db.write(add_key, sender, None, EVERYTHING)
    async with sender.client(person) as api:
        answer = await api.post(f"/v1/messages/{message['id']}/reject", json={"note": "no"})
    assert (answer.json()["status"], answer.json()["hold"]["state"]) == ("failed", "rejected")
    for path, body in (("retry", None), ("cancel", None)):
        again = await sender.api.post(f"/v1/messages/{message['id']}/{path}", json=body)
        assert (again.status_code, again.json()["error"]) == (409, "nothing_to_do")
    again = await decide(sender, message)
    assert (again.status_code, again.json()["error"]) == (409, "not_held")
    turn(sender, HOUR)
    assert peer.mails == []


@pytest.mark.sqlite_alone
async def test_it_expires_after_its_hours(sender: Server, agent: tuple[str, str], peer: SmtpPeer) -> None:
    message = await held(sender, agent[0], "carol@there.example")
    turn(sender, 72 * HOUR)
    ended = await message_when(sender, message["id"], lambda found: found["hold"]["state"] == "expired")
    assert ended["status"] == "failed"
    assert [each["actor"]["type"] for each in await events_of(sender, "message.expired")] == ["system"]
    assert (await decide(sender, message)).status_code == 409
    assert peer.mails == []


@pytest.mark.sqlite_alone
async def test_a_cancelled_mail_is_not_revived_by_the_agent(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    inbox_id, token = agent
    message = await held(sender, inbox_id, "carol@there.example")
    assert (await sender.api.post(f"/v1/messages/{message['id']}/cancel")).json()["hold"][
        "state"
    ] == "cancelled"
    async with sender.client(token) as api:
        assert (await api.post(f"/v1/messages/{message['id']}/retry")).status_code == 409
    turn(sender, HOUR)
    assert peer.mails == []


@pytest.mark.sqlite_alone
async def test_neither_the_key_that_sent_it_nor_one_it_made_approves(
    sender: Server, agent: tuple[str, str]
) -> None:
    inbox_id, agents_key = agent
    sending = await sender.resources.db.write(add_key, sender, None, EVERYTHING)
    child = await sender.resources.db.write(add_key, sender, None, EVERYTHING, sending)
    grandchild = await sender.resources.db.write(add_key, sender, None, EVERYTHING, child)
    receipt = await send_as(sender, sending, inbox_id, "carol@there.example")
    message = await message_of(sender, receipt["id"])
    await sender.resources.db.write(
        lambda tx: tx.run("delete from keys where lineage <> '' and lineage not like '% %'")
    )
    for token in (sending, grandchild, agents_key):
        answer = await decide(sender, message, token)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), token
    assert (await decide(sender, message)).status_code == 200


@pytest.mark.sqlite_alone
async def test_a_key_that_may_only_draft_has_its_sends_held(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    token = await sender.resources.db.write(add_key, sender, inbox_id, ["read", "draft"])
    receipt = await send_as(sender, token, inbox_id, "carol@there.example")
    assert receipt["hold"]["reasons"] == ["key"]


RULES: list[tuple[str, dict[str, Any], bool]] = [
    ("links", {"body": "see example.org"}, True),
    ("links", {"body": "see the page", "bodyHtml": '<a href="/x">here</a>'}, True),
    ("links", {"body": "nothing to click on"}, False),
    ("attachments", {"attachments": [FILE]}, True),
    ("attachments", {}, False),
    ("strangers", {}, True),
]


@pytest.mark.sqlite_alone
async def test_a_rule_holds_what_it_names(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    for number, (rule, fields, is_held) in enumerate(RULES):
        await sender.resources.db.write(set_rule, "accounts", await account_of(sender), rule)
        sent = await send(sender, inbox_id, f"carol{number}@there.example", **fields)
        message = await message_of(sender, sent)
        assert message.get("hold", {}).get("reasons", []) == ([rule] if is_held else []), (rule, fields)


async def account_of(server: Server) -> str:
    account_id: str = (await server.api.get("/v1/me")).json()["accountId"]
    return account_id


@pytest.mark.sqlite_alone
async def test_who_wrote_before_is_no_stranger(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_rule, "inboxes", inbox_id, "strangers")
    await sender.deliver(raw_mail(**{"from": "carol@there.example"}), "bob")
    await sender.next_event()
    message = await message_of(sender, await send(sender, inbox_id, "Carol <CAROL@there.example>"))
    assert "hold" not in message


async def test_more_than_so_many_a_day_are_held(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_rule, "inboxes", inbox_id, OverPerDay(2))
    states = [
        (await message_of(sender, await send(sender, inbox_id, "carol@there.example"))).get("hold")
        for _ in range(3)
    ]
    assert states[:2] == [None, None]
    assert states[2] is not None
    assert states[2]["reasons"] == ["overPerDay"]


@pytest.mark.sqlite_alone
async def test_a_rule_that_is_not_known_any_more_holds_everything(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    stored = '{"when":["full-moon"],"expiresHours":72,"reviewers":[]}'
    await sender.resources.db.write(
        lambda tx: tx.run("update inboxes set approval = :it where id = :id", it=stored, id=inbox_id)
    )
    assert (await held(sender, inbox_id, "carol@there.example"))["hold"]["reasons"] == ["always"]


@pytest.mark.sqlite_alone
async def test_a_pause_holds_new_and_waiting_sends_and_they_go_when_it_ends(
    sender: Server, peer: SmtpPeer
) -> None:
    inbox_id = await sender.new_inbox("bob")
    paused = (await sender.api.put(f"/v1/pause?inboxId={inbox_id}")).json()
    assert (paused["paused"], paused["by"]["type"]) == (True, "key")
    message = await held(sender, inbox_id, "carol@there.example")
    assert message["hold"]["reasons"] == ["paused"]
    assert (await decide(sender, message)).json()["error"] == "not_held"
    assert peer.mails == []
    assert (await sender.api.delete(f"/v1/pause?inboxId={inbox_id}")).json()["paused"] is False
    done = await settled(sender, message["id"])
    assert (done["status"], done["hold"]["state"]) == ("sent", "released")
    assert len(await events_of(sender, "message.released")) == 1


async def test_an_approved_mail_waits_for_the_end_of_a_pause_and_tells_so(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    message = await held(sender, agent[0], "carol@there.example")
    await sender.api.put("/v1/pause")
    await decide(sender, message)
    waiting = await message_of(sender, message["id"])
    assert (waiting["hold"]["state"], waiting["hold"]["reasons"]) == ("held", ["paused"])
    told = [event["hold"]["reasons"] for event in await events_of(sender, "message.held")]
    assert told == [["always"], ["paused"]]
    await sender.api.delete("/v1/pause")
    assert (await settled(sender, message["id"]))["status"] == "sent"
    assert len(peer.mails) == 1


@pytest.mark.sqlite_alone
async def test_a_suppressed_recipient_gets_nothing_when_it_is_let_go(
    sender: Server, agent: tuple[str, str], peer: SmtpPeer
) -> None:
    message = await held(sender, agent[0], "carol@there.example", "dan@there.example")
    await sender.api.post("/v1/suppressions", json={"address": "carol@there.example"})
    await decide(sender, message)
    done = await message_when(
        sender, message["id"], lambda found: "delivered" in [each["state"] for each in found["recipients"]]
    )
    assert (done["status"], len(peer.mails)) == ("failed", 1)
    assert {each["address"]: each["state"] for each in done["recipients"]} == {
        "carol@there.example": "failed",
        "dan@there.example": "delivered",
    }


@pytest.mark.sqlite_alone
async def test_the_meters_of_an_inbox(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    await send(sender, inbox_id, "carol@there.example")
    meters = (await sender.api.get(f"/v1/inboxes/{inbox_id}/limits")).json()
    assert {name: (meter["limit"], meter["used"]) for name, meter in meters.items()} == {
        "perMinute": (10, 1),
        "perDay": (200, 1),
        "coldPerDay": (20, 1),
    }


@pytest.mark.sqlite_alone
async def test_a_pause_holds_what_waits_for_its_moment_and_tells_so(sender: Server, peer: SmtpPeer) -> None:
    inbox_id = await sender.new_inbox("bob")
    planned = await send(sender, inbox_id, "carol@there.example", sendAt=to_iso(sender.clock.now() + HOUR))
    await sender.api.put(f"/v1/pause?inboxId={inbox_id}")
    message = await message_of(sender, planned)
    assert (message["hold"]["state"], message["hold"]["reasons"]) == ("held", ["paused"])
    assert [event["hold"]["reasons"] for event in await events_of(sender, "message.held")] == [["paused"]]
    await sender.api.delete(f"/v1/pause?inboxId={inbox_id}")
    back = await message_when(sender, planned, lambda found: found["hold"]["state"] == "scheduled")
    assert back["hold"]["sendAt"] == message["hold"]["sendAt"]
    assert back["hold"]["reasons"] == []
    told = await events_of(sender, "message.scheduled", "message.held", "message.released")
    kinds = [event["event"] for event in told]
    assert kinds == ["message.scheduled", "message.held", "message.released", "message.scheduled"]
    assert peer.mails == []


async def test_keys_that_a_limited_key_makes_share_its_budget(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    maker = (await sender.api.post("/v1/api-keys", json={"name": "maker"})).json()
    changed = await sender.api.patch(f"/v1/api-keys/{maker['id']}", json={"limits": {"perDay": 2}})
    assert changed.status_code == 200
    async with sender.client(maker["token"]) as limited:
        made = (await limited.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()
        assert made["limits"]["perDay"] == 2
        for loosened in ({"limits": None}, {"limits": {"perDay": 9}}, {"approval": None}):
            for key in (maker, made):
                assert (await limited.patch(f"/v1/api-keys/{key['id']}", json=loosened)).status_code == 403
    assert (await post_as(sender, maker["token"], inbox_id)).status_code == 200
    assert (await post_as(sender, made["token"], inbox_id)).status_code == 200
    for key in (maker, made):
        assert (await post_as(sender, key["token"], inbox_id)).status_code == 429
    await sender.api.patch(f"/v1/api-keys/{maker['id']}", json={"limits": {"perDay": 3}})
    assert (await post_as(sender, made["token"], inbox_id)).status_code == 200
    await sender.api.patch(f"/v1/api-keys/{made['id']}", json={"limits": {"perDay": 1}})
    assert (await post_as(sender, made["token"], inbox_id)).status_code == 200
    assert (await post_as(sender, made["token"], inbox_id)).status_code == 429


async def post_as(server: Server, token: str, inbox_id: str) -> httpx2.Response:
    async with server.client(token) as api:
        return await api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": "carol@there.example", "subject": "Hello", "body": "Hi"},
            headers={"Idempotency-Key": uuid.uuid4().hex},
        )


@pytest.mark.sqlite_alone
async def test_the_rule_of_an_account_is_asked_about_every_send_the_first_and_the_next(
    sender: Server, peer: SmtpPeer
) -> None:
    inbox_id = await sender.new_inbox("bob")
    changed = await sender.api.patch("/v1/account", json={"approval": {"when": ["links"]}})
    assert changed.status_code == 200
    words = "<p>Some words.</p>"
    large = words * 20_000
    for number, html in enumerate((words, f"{large}<p>http:evil</p>", f"<p>evil.example {words}</p>")):
        message_id = await send(sender, inbox_id, f"c{number}@there.example", bodyHtml=html)
        hold = (await message_of(sender, message_id)).get("hold")
        assert (hold and hold["reasons"]) == (["links"] if number else None)


@pytest.mark.sqlite_alone
async def test_mail_to_trusted_recipients_alone_is_not_held_but_for_what_moved_the_agent(
    sender: Server, agent: tuple[str, str]
) -> None:
    inbox_id, _ = agent
    path, rule = f"/v1/policy/rules?inboxId={inbox_id}", {"direction": "outbound", "type": "trust"}
    wrong = await sender.api.post(path, json={**rule, "direction": "inbound", "value": "ann@there.example"})
    assert wrong.status_code == 400
    assert (await sender.api.post(path, json={**rule, "value": "ann@there.example"})).status_code == 201
    whole = {**rule, "value": "*.partner.example"}
    assert (await sender.api.post("/v1/policy/rules", json=whole)).status_code == 201
    both = ("ann@there.example", "bea@eu.partner.example")
    free = await message_of(sender, await send(sender, inbox_id, *both))
    assert free.get("hold") is None
    await held(sender, inbox_id, "ann@there.example", "eve@there.example")
    await sender.resources.db.write(set_rule, "inboxes", inbox_id, "always", OverPerDay(0))
    waits = await held(sender, inbox_id, *both)
    assert waits["hold"]["reasons"] == ["overPerDay"]


@pytest.mark.sqlite_alone
async def test_only_who_may_change_every_rule_trusts_a_recipient(
    sender: Server, agent: tuple[str, str]
) -> None:
    inbox_id, _ = agent
    rule = {"direction": "outbound", "type": "trust", "value": "ann@there.example"}
    pod_id = (await sender.api.get(f"/v1/inboxes/{inbox_id}")).json()["podId"]
    of_pod = (await sender.api.post(f"/v1/pods/{pod_id}/api-keys", json={})).json()["token"]
    bound = (await sender.api.post("/v1/api-keys", json={"approval": {"when": ["links"]}})).json()["token"]
    for token in (of_pod, bound):
        async with sender.client(token) as api:
            refused = await api.post(f"/v1/policy/rules?inboxId={inbox_id}", json=rule)
            assert refused.status_code == 403
            whole = {"outbound": {"rules": [{"type": "trust", "value": "ann@there.example"}]}}
            assert (await api.put(f"/v1/policy?inboxId={inbox_id}", json=whole)).status_code == 403
    assert (await sender.api.get(f"/v1/policy?inboxId={inbox_id}")).json()["outbound"]["rules"] == []
