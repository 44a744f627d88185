"""Keys, pods, domains, the queue and the machine on the pages, by the functions of the interface."""

import asyncio
import re
import socket

import pytest

from postroom.accounts import keys
from postroom.limits import KEYS_OF_AN_INBOX
from postroom.mailbox import inboxes
from postroom.net.smtp_probe import probe
from postroom.queue import deliveries, leader_leases, outcomes, statistics
from postroom.queue.leader_leases import LeaderLease
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.storage.database import Tx
from postroom.upkeep.upkeep_loop import where
from tests.api.test_dashboard import signed_in
from tests.api.test_dashboard_lists import put_off
from tests.conftest import Server
from tests.outbound import PATIENCE_SECONDS, answered, message_of, send

RULES = {"when": ["links"], "overPerDay": "7", "expiresHours": "12", "reviewers": "a@b.example"}
SHOWN = {
    "when": ["links", {"overPerDay": 7}],
    "expiresHours": 12,
    "reviewers": ["a@b.example"],
    "approvals": 1,
}


@pytest.mark.sqlite_alone
async def test_a_key_is_renamed_weakened_limited_ended_and_held_to_rules_on_its_page(server: Server) -> None:
    made = (await server.api.post("/v1/api-keys", json={"name": "agent"})).json()
    path = f"/app/settings/keys/{made['id']}"
    async with signed_in(server) as page:
        assert path in (await page.get("/app/settings/keys")).text
        form = {"name": "writer", "permissions": ["read", "send"], "days": "3", "perDay": "5"}
        assert (await page.post(path, data=form)).status_code == 303
        assert (await page.post(f"{path}/approval", data=RULES)).status_code == 303
        shown = (await page.get(path)).text
        more = await page.post(path, data={**form, "permissions": ["read", "send", "approve"]})
        later = await page.post(path, data={**form, "days": "30"})
    key = (await server.api.get(f"/v1/api-keys/{made['id']}")).json()
    assert (key["name"], key["permissions"], key["limits"]["perDay"]) == ("writer", ["read", "send"], 5)
    assert (key["approval"], key["expiresAt"] is not None) == (SHOWN, True)
    assert 'value="writer"' in shown
    assert 'value="manage"' not in shown
    assert (more.status_code, later.status_code) == (400, 400)


@pytest.mark.sqlite_alone
async def test_a_key_ends_sooner_and_never_the_last_that_may_manage(server: Server) -> None:
    [first] = (await server.api.get("/v1/api-keys")).json()["data"]
    soon = {"expiresAt": "2100-01-01T00:00:00Z"}
    assert (await server.api.patch(f"/v1/api-keys/{first['id']}", json=soon)).status_code == 409
    made = (await server.api.post("/v1/api-keys", json=soon)).json()
    path = f"/v1/api-keys/{made['id']}"
    for moment, status in (("2099-01-01", 200), ("2099-06-01", 400), ("2000-01-01", 400)):
        answer = await server.api.patch(path, json={"expiresAt": f"{moment}T00:00:00Z"})
        assert answer.status_code == status, moment
    assert (await server.api.get(path)).json()["expiresAt"].startswith("2099-01-01")


@pytest.mark.sqlite_alone
async def test_a_pod_has_its_name_rules_and_keys_on_its_page(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"name": "Harbour"})).json()
    await server.api.post(f"/v1/pods/{pod['id']}/api-keys", json={"name": "of the pod"})
    path = f"/app/settings/pods/{pod['id']}"
    async with signed_in(server) as page:
        assert "of the pod" in (await page.get(path)).text
        assert (await page.post(f"{path}/name", data={"name": "Quay"})).status_code == 303
        assert (await page.post(f"{path}/approval", data=RULES)).status_code == 303
        assert "Own rules" in (await page.get("/app/settings/pods")).text
    changed = (await server.api.get(f"/v1/pods/{pod['id']}")).json()
    assert (changed["name"], changed["approval"]) == ("Quay", SHOWN)


@pytest.mark.sqlite_alone
async def test_the_first_steps_make_a_key_by_the_rules_of_every_key(server: Server) -> None:
    inbox_id = await server.new_inbox("support")
    maker = (await server.api.post("/v1/api-keys", json={"permissions": ["read", "draft", "manage"]})).json()
    async with signed_in(server, maker["token"]) as page:
        assert (
            f'<input type="hidden" name="inboxId" value="{inbox_id}">' in (await page.get("/app/start")).text
        )
        shown = (await page.post("/app/start/key", data={"inboxId": inbox_id})).text
        [made] = (await server.api.get(f"/v1/inboxes/{inbox_id}/api-keys")).json()["data"]
        await server.resources.db.write(fill_with_keys, inbox_id, server.clock.now())
        refused = await page.post("/app/start/key", data={"inboxId": inbox_id})
    assert re.search(rf"{made['tokenPrefix']}[\w-]+{made['last4']}", shown)
    assert "&#34;type&#34;: &#34;http&#34;" in shown
    assert (made["name"], made["inboxId"], made["permissions"]) == ("agent", inbox_id, ["read", "draft"])
    entry = (await server.api.get("/v1/audit", params={"action": "key.created"})).json()["data"][0]
    assert entry["target"] == made["id"]
    assert (refused.status_code, "at most 20 keys" in refused.text) == (422, True)


def fill_with_keys(tx: Tx, inbox_id: str, now: int) -> None:
    inbox = inboxes.find(tx, inbox_id)
    assert inbox is not None
    for _ in range(keys.count_of(tx, inbox.scope), KEYS_OF_AN_INBOX):
        keys.add(tx, inbox.account_id, inbox_id, "", keys.new_token(), now)


@pytest.mark.sqlite_alone
async def test_pages_of_keys_and_pods_are_closed_to_people_of_one_pod(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"name": "Harbour"})).json()
    token = (await server.api.post(f"/v1/pods/{pod['id']}/api-keys", json={})).json()["token"]
    [key] = (await server.api.get("/v1/api-keys")).json()["data"]
    async with signed_in(server, token) as page:
        for path in (f"/app/settings/keys/{key['id']}", f"/app/settings/pods/{pod['id']}"):
            assert (await page.get(path)).status_code == 403
            assert (await page.post(f"{path}/approval", data=RULES)).status_code == 403


async def test_of_what_waits_only_what_is_ticked_is_hurried_or_cancelled(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    sent = [await send(server, inbox_id, f"{name}@there.example") for name in ("ann", "ben", "cat")]
    for each in sent:
        await answered(server, each)
        await server.resources.db.write(put_off, each, server.clock.now() + 60_000)
    waiting = await server.resources.db.read(statistics.list_deliveries, "there.example", "pending", 0)
    of_message = {each.message_id: each.id for each in waiting}
    async with signed_in(server) as page:
        shown = (await page.get("/app/operator/behind?lane=there.example")).text
        assert all(f'value="{each}"' in shown for each in of_message.values())
        form = {"lane": "there.example", "ids": [of_message[sent[0]]]}
        assert (await page.post("/app/operator/queue/some/cancel", data=form)).status_code == 303
        form = {"lane": "there.example", "ids": [of_message[sent[0]], of_message[sent[1]]]}
        again = await page.post("/app/operator/queue/some/again", data=form)
        assert "1 of the selected" in (await page.get(again.headers["location"])).text
        assert (await page.post("/app/operator/queue/some/again", data={"lane": "x"})).status_code == 400
    states = [(await message_of(server, each))["recipients"][0]["state"] for each in sent]
    assert states[0] == "cancelled"
    assert states[2] == "pending"


async def test_events_are_found_by_the_request_that_caused_them(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    body = {"to": "carol@there.example", "subject": "Hi", "body": "Hello"}
    key = {"Idempotency-Key": "order-17"}
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    sent = (await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=key)).json()["id"]
    pod = (await server.api.post("/v1/pods", json={})).json()["id"]
    other = (await server.api.post(f"/v1/pods/{pod}/api-keys", json={})).json()["token"]
    async with signed_in(server) as page:
        found = (await page.get("/app/events?request=order-17")).text
        assert found.count("data-row=") == 1
        assert sent in found
        assert "No matching events" in (await page.get("/app/events?request=order-18")).text
    async with signed_in(server, other) as page:
        assert "No matching events" in (await page.get("/app/events?request=order-17")).text


async def eventually_present(server: Server, place: str) -> None:
    """Its own upkeep says so, soon after the start."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while place not in [each.holder for each in await held(server)]:
            await asyncio.sleep(0.02)


async def held(server: Server) -> list[LeaderLease]:
    found: list[LeaderLease] = await server.resources.db.read(leader_leases.list_held, server.clock.now(), 50)
    return found


@pytest.mark.sqlite_alone
async def test_the_operator_sees_nodes_delays_and_what_was_counted(server: Server) -> None:
    await server.new_inbox("bob")
    now = server.clock.now()
    place = where(server.resources)
    await eventually_present(server, place)
    await server.resources.db.write(
        leader_leases.show_presence, "n1", "elsewhere at 10.0.0.7:80", now + 1000, now
    )
    await server.resources.db.write(leader_leases.show_presence, "dead", "gone", now, now)
    async with signed_in(server) as page:
        shown = (await page.get("/app/operator")).text
        table = (await page.get("/app/operator.csv")).text
    assert "elsewhere at 10.0.0.7:80" in shown
    assert place in shown
    assert ">gone<" not in shown
    assert table.splitlines()[0] == "hoursAgo,received,sent,failed,eventP95Seconds,queueP95Seconds"


@pytest.mark.sqlite_alone
async def test_a_knock_hears_the_greeting_and_tries_tls(server: Server) -> None:
    heard = await probe("127.0.0.1", server.smtp_port, "stranger.example", PATIENCE_SECONDS)
    assert (heard.fault, heard.offers_tls, heard.has_tls) == ("", True, True)
    assert "postroom" in heard.greeting


async def test_a_knock_at_a_door_that_is_closed_or_answers_nonsense_says_why() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n" + b"y" * 100_000)
        writer.close()

    odd = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with odd:
        port = odd.sockets[0].getsockname()[1]
        heard = await probe("127.0.0.1", port, "stranger.example", PATIENCE_SECONDS)
        assert heard.fault == "SSH-2.0-x"
    with socket.socket() as bound:  # and does not listen
        bound.bind(("127.0.0.1", 0))
        assert (await probe("127.0.0.1", bound.getsockname()[1], "stranger.example")).fault


def end(tx: Tx, message_id: str, has_tls: bool, now: int) -> None:
    """As if a server had taken it, with words of its own about the way."""
    [delivery] = deliveries.list_of_message(tx, message_id)
    tx.run("update attempts set milliseconds = null where delivery_id = :id", id=delivery.id)
    outcome = Outcome(
        code=250,
        text="mx over TLS: 2.0.0 Ok",
        milliseconds=20,
        ended_at=now + 4_000,
        is_success=True,
        host="mx.there.example",
        has_tls=has_tls,
    )
    assert outcomes.record(tx, TriedDelivery(delivery, outcome)) == deliveries.DONE


async def test_deliverability_shows_how_much_went_encrypted_and_how_long_it_took(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    sent = [await send(server, inbox_id, f"{name}@there.example") for name in ("ann", "ben", "cat")]
    for each, has_tls in zip(sent, (True, True, False), strict=True):
        await answered(server, each)
        await server.resources.db.write(end, each, has_tls, server.clock.now())
    async with signed_in(server) as page:
        table = (await page.get("/app/operator/deliverability.csv")).text.splitlines()
        assert "66 %" in (await page.get("/app/operator/deliverability")).text
        hours = (await page.get("/app/operator.csv")).text.splitlines()
    assert table[1] == "there.example,3,0,0,0,0,66,4.0"
    assert hours[-1].endswith(",4.0")
