"""One undo for what one click at a page ends: taken back it never happened, and else it is done."""

import asyncio
import re

import pytest

from postroom.clock import to_iso
from postroom.errors import Unavailable
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DELAY
from postroom.storage.database import Tx
from postroom.web import operations
from tests.api.test_dashboard import do_it_now, new_link, signed_in
from tests.api.test_dashboard_writing import first_mail
from tests.conftest import Server
from tests.outbound import message_of, send

UNDO = re.compile(r'action="(/app/delayed/dly_\w+/undo)"')


async def count(server: Server) -> int:
    def of(tx: Tx) -> int:
        row = tx.one("select count(*) as actions from delayed_actions where refused is null")
        assert row is not None
        return int(row["actions"])

    return await server.resources.db.read(of)


async def until_done(server: Server) -> None:
    """Time passes, and the loop notices."""
    server.clock.turn(DELAY)
    server.resources.db.ring(delayed_actions.BELL)
    async with asyncio.timeout(60):
        while await count(server):
            await asyncio.sleep(0.02)


@pytest.mark.sqlite_alone
async def test_what_is_deleted_is_hidden_at_once_and_comes_back_when_taken_back(server: Server) -> None:
    await server.new_inbox("bob")
    message = await first_mail(server, "bob")
    path, thread_id = f"/v1/threads/{message['threadId']}", message["threadId"]
    async with signed_in(server) as page:
        answer = await page.post(f"/app/mail/{thread_id}/delete")
        assert answer.headers["location"] == "/app/mail"
        shown = (await page.get("/app/mail")).text
        assert "The thread is deleted in 10 seconds." in shown
        assert f'data-row="{thread_id}"' not in shown
        [undo] = UNDO.findall(shown)
        assert UNDO.findall((await page.get("/app/drafts")).text) == [undo]
        async with signed_in(server) as other:
            assert UNDO.findall((await other.get("/app/mail")).text) == []
            assert (await other.post(undo, data={"back": "/app"})).status_code == 404
        back = await page.post(undo, data={"back": "/app/mail"})
        assert back.headers["location"] == "/app/mail"
        shown = (await page.get("/app/mail")).text
        assert "Undone." in shown
        assert f'data-row="{thread_id}"' in shown
        assert (await page.post(undo, data={"back": "/app"})).status_code == 404
        assert await count(server) == 0
        await page.post(f"/app/messages/{message['id']}/delete")
        await until_done(server)
    assert (await server.api.get(path)).status_code == 404


@pytest.mark.sqlite_alone
async def test_a_decision_is_announced_only_once_nobody_takes_it_back(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    message = await message_of(server, await send(server, inbox_id, "carol@there.example"))
    form = {"decision": "approve", "contentHash": message["hold"]["contentHash"]}
    async with signed_in(server, name="Ann", link=await new_link(server)) as page:
        await page.post(f"/app/approvals/{message['id']}", data=form)
        shown = (await page.get("/app/approvals")).text
        assert "It is sent in 10 seconds." in shown
        assert f'data-row="{message["id"]}"' not in shown
        assert (await message_of(server, message["id"]))["hold"]["state"] == "held"
        await page.post(UNDO.findall(shown)[0], data={"back": "/app"})
        assert f'data-row="{message["id"]}"' in (await page.get("/app/approvals")).text
        await page.post(f"/app/approvals/{message['id']}", data=form)
        await page.post("/app/sign-out")  # what was asked for is not lost with the session
    hold = (await message_of(server, message["id"]))["hold"]
    assert (hold["state"], hold["decidedBy"]["name"]) == ("approved", "Ann")


@pytest.mark.sqlite_alone
async def test_the_audit_log_says_from_where_and_when_a_person_clicked(server: Server) -> None:
    """Of one decision and of several at once: both are carried out later, by nobody's request."""
    inbox_id = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    one, *others = [await send(server, inbox_id, "carol@there.example", subject=each) for each in "abc"]
    clicked = to_iso(server.clock.now())
    form = {"decision": "approve", "contentHash": (await message_of(server, one))["hold"]["contentHash"]}
    async with signed_in(server, name="Ann", link=await new_link(server)) as page:
        agent = page.headers["User-Agent"]
        await page.post(f"/app/approvals/{one}", data=form)
        await page.post("/app/approvals/several", data={"ids": others, "note": "no"})
        await until_done(server)
    entries = (await server.api.get("/v1/audit")).json()["data"]
    decided = [each for each in entries if each["target"] in (one, *others)]
    assert [each["action"] for each in decided].count("message.rejected") == 2
    assert len(decided) == 3
    for each in decided:
        assert (each["address"], each["userAgent"]) == ("127.0.0.1", agent)
        assert each["requestedAt"] == clicked < each["at"]
    changed = next(each for each in entries if each["action"] == "account.changed")
    assert (changed["address"], changed["requestedAt"]) == ("127.0.0.1", None)


@pytest.mark.sqlite_alone
async def test_a_key_is_revoked_now_or_after_a_while_and_the_last_one_never(server: Server) -> None:
    made = (await server.api.post("/v1/api-keys", json={"permissions": ["read"]})).json()
    own = (await server.api.get("/v1/me")).json()["keyId"]
    async with signed_in(server) as page:
        refused = await page.post(f"/app/settings/keys/{own}/revoke")
        assert refused.status_code == 409
        assert await count(server) == 0
        await page.post(f"/app/settings/keys/{made['id']}/revoke")
        assert (await server.api.get(f"/v1/api-keys/{made['id']}")).status_code == 200
        await do_it_now(page)
        assert (await server.api.get(f"/v1/api-keys/{made['id']}")).status_code == 404
    audit = (await server.api.get("/v1/audit")).json()["data"]
    assert [each["action"] for each in audit].count("key.revoked") == 1


@pytest.mark.sqlite_alone
async def test_a_session_that_was_ended_meanwhile_does_nothing_more(server: Server) -> None:
    await server.new_inbox("bob")
    message = await first_mail(server, "bob")
    async with signed_in(server, name="Ann") as ann, signed_in(server, name="Ben") as ben:
        await ben.post(f"/app/messages/{message['id']}/delete")
        [other] = set(re.findall(r"/app/sessions/(ses_\w+)/end", (await ann.get("/app/sessions")).text))
        await ann.post(f"/app/sessions/{other}/end")
        await do_it_now(ann)
        assert (await ben.get("/app/mail")).status_code == 303
        await until_done(server)
    assert (await server.api.get(f"/v1/messages/{message['id']}")).status_code == 200


@pytest.mark.sqlite_alone
async def test_a_draft_that_changed_meanwhile_stays(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "One"})).json()
    path = f"/v1/drafts/{draft['id']}"
    async with signed_in(server) as page:
        seen = {"version": str(draft["version"])}
        await page.post(f"/app/drafts/{draft['id']}/delete", data=seen)
        await server.api.patch(path, json={"subject": "Two"})
        await do_it_now(page)
        assert (await server.api.get(path)).json()["subject"] == "Two"
        told = (await page.get("/app/mail")).text
        assert "The server refused: " in told
        [dismiss] = re.findall(r"/app/delayed/\w+/dismiss", told)
        await page.post(dismiss, data={"back": "/app/mail"})
        assert "The server refused: " not in (await page.get("/app/mail")).text
        assert (await page.post(f"/app/drafts/{draft['id']}/delete", data=seen)).status_code == 409
        await page.post(f"/app/drafts/{draft['id']}/delete", data={"version": str(draft["version"] + 1)})
        await do_it_now(page)
    assert (await server.api.get(path)).status_code == 404


@pytest.mark.sqlite_alone
async def test_a_recipient_is_always_allowed_from_the_page_of_what_waits(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"approval": {"when": ["strangers"]}})
    first = await send(server, inbox_id, "carol@there.example")
    async with signed_in(server, link=await new_link(server)) as page:
        shown = (await page.get("/app/approvals")).text
        assert "Always allow carol@there.example for this inbox" in shown
        form = {"address": "carol@there.example", "back": "/app/approvals?state=held"}
        answer = await page.post(f"/app/approvals/{first}/trust", data=form)
        assert answer.headers["location"] == f"/app/approvals?state=held&message={first}"
        rules = (await page.get(f"/app/settings/policy?inboxId={inbox_id}")).text
        assert "<code>carol@there.example</code>" in rules
    assert (await message_of(server, first))["hold"]["state"] == "held"
    second = await send(server, inbox_id, "carol@there.example", subject="Again")
    assert (await message_of(server, second)).get("hold") is None


async def test_what_another_version_put_off_stops_no_other(server: Server) -> None:
    await server.new_inbox("bob")
    message = await first_mail(server, "bob")
    async with signed_in(server) as page:
        await page.post(f"/app/messages/{message['id']}/delete")
        await server.resources.db.write(
            lambda tx: tx.run("update delayed_actions set operation = 'POST /gone'")
        )
        await until_done(server)
        assert (await server.api.get(f"/v1/messages/{message['id']}")).status_code == 200
        await page.post(f"/app/messages/{message['id']}/delete")
        await until_done(server)
    assert (await server.api.get(f"/v1/messages/{message['id']}")).status_code == 404


@pytest.mark.sqlite_alone
async def test_what_a_database_that_was_away_kept_undone_is_done_later(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.new_inbox("bob")
    message = await first_mail(server, "bob")
    perform, tried = operations.perform, asyncio.Event()

    async def be_away(*_: object) -> None:
        tried.set()
        raise Unavailable("Nothing can be stored now. Try again.", retry_after=5)

    async with signed_in(server) as page:
        await page.post(f"/app/messages/{message['id']}/delete")
        monkeypatch.setattr(operations, "perform", be_away)
        server.clock.turn(DELAY)
        server.resources.db.ring(delayed_actions.BELL)
        await asyncio.wait_for(tried.wait(), 60)
        monkeypatch.setattr(operations, "perform", perform)
        assert await count(server) == 1
        server.clock.turn(delayed_actions.LEASE)
        await until_done(server)
    assert (await server.api.get(f"/v1/messages/{message['id']}")).status_code == 404
