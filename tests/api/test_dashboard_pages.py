"""The pages of the dashboard show and do what the interface does, with the same rights."""

import re

import pytest

from postroom.accounts import accounts, keys
from postroom.limits import PAGE_BYTES
from postroom.mailbox import thread_parts, threads
from postroom.mailbox.message_json import Links
from postroom.storage.database import Database, Tx
from postroom.web.dashboard.pages.thread import ThreadPageQuery, read_part, read_whole
from tests.api.test_dashboard import do_it_now, new_link, signed_in
from tests.api.test_search import settled
from tests.browser.made_up_dashboard import trick
from tests.conftest import Server
from tests.doubles import START
from tests.elements import elements_of
from tests.outbound import message_of, send
from tests.raw_mails import raw_mail
from tests.stored import make_inbox, put_mail

pytestmark = pytest.mark.sqlite_alone

PAGES = (
    *("/app/approvals", "/app/drafts", "/app/events", "/app/webhooks", "/app/operator", "/app/start"),
    *("/app/settings", "/app/settings/keys", "/app/settings/pods", "/app/settings/policy"),
    *(
        "/app/settings/rules",
        "/app/settings/suppressions",
        "/app/settings/domains",
        "/app/settings/audit",
        "/app/sessions",
    ),
    *("/app/mail", "/app/compose", "/app/inboxes", "/app/operator/queue", "/app/operator/accounts"),
    *(
        "/app/operator/deliverability",
        "/app/operator/feedback",
        "/app/operator/captured",
        "/app/settings/connections",
        "/app/settings/connections?way=gmail",
    ),
    "/app/settings/deliverability",
    *("/app/settings/templates", "/app/activity", "/app/activity?span=24h", "/app/activity?span=30d"),
)
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


@pytest.mark.both_databases
async def test_every_page_opens_on_an_empty_and_on_a_full_account(server: Server) -> None:
    async with signed_in(server) as page:
        for path in PAGES:
            assert (await page.get(path)).status_code == 200, path
        inbox_id = await server.new_inbox("bob")
        approval = {"when": ["strangers"], "reviewers": []}
        await server.api.patch("/v1/account", json={"approval": approval})
        await server.api.post("/v1/pods", json={"name": HOSTILE, "clientId": "c<1>"})
        await server.api.post("/v1/domains", json={"domain": "mail.example.com"})
        await server.api.post("/v1/suppressions", json={"address": "gone@example.com"})
        await server.api.put("/v1/webhook", json={"url": "http://127.0.0.1:9/hook"})
        rule = {"type": "block", "value": "evil.example", "direction": "outbound"}
        await server.api.post("/v1/policy/rules", json=rule)
        await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": HOSTILE, "body": HOSTILE})
        template = {"inboxId": inbox_id, "name": HOSTILE, "subject": HOSTILE, "body": "{{name}}" + HOSTILE}
        made = (await server.api.post("/v1/templates", json={**template, "bodyHtml": HOSTILE})).json()["id"]
        await send(server, inbox_id, "carol@there.example", subject=HOSTILE, body=HOSTILE)
        of_template = (f"/app/settings/templates/{made}", f"/app/compose?template={made}")
        for path in (
            *of_template,
            *PAGES,
            f"/app/settings/policy?inboxId={inbox_id}",
            "/app/events?kind=message.held",
        ):
            answer = await page.get(path)
            assert answer.status_code == 200, path
            assert "<script>alert" not in answer.text, path
            assert "<img src=x" not in answer.text, path


async def test_a_person_with_a_link_approves_on_the_page_what_any_key_sent(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    first, second = [await send(server, inbox_id, f"{name}@there.example") for name in ("carol", "dan")]
    async with signed_in(server, name="Ann", link=await new_link(server)) as page:
        shown = (await page.get("/app/approvals")).text
        seen = re.search(r'name="contentHash" value="([0-9a-f]{64})"', shown)
        assert seen is not None
        wrong = await page.post(f"/app/approvals/{first}", data={"decision": "approve", "contentHash": "0"})
        assert wrong.status_code == 409
        done = await page.post(
            f"/app/approvals/{first}", data={"decision": "approve", "contentHash": seen[1], "note": "fine"}
        )
        assert done.status_code == 303
        await do_it_now(page)
        refused = await page.post(
            f"/app/approvals/{second}", data={"decision": "reject", "contentHash": "", "note": "no"}
        )
        assert refused.status_code == 303
        await do_it_now(page)
    hold = (await message_of(server, first))["hold"]
    assert (hold["state"], hold["decidedBy"]["type"], hold["note"]) == ("approved", "session", "fine")
    assert (await message_of(server, second))["hold"]["state"] == "rejected"


@pytest.mark.both_databases
async def test_a_list_of_what_waits_leads_from_one_to_the_next_and_rejects_several(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    sent = [await send(server, inbox_id, f"p{number % 3}@there.example") for number in range(5)]
    async with signed_in(server, link=await new_link(server)) as page:
        shown = (await page.get("/app/approvals")).text
        assert [shown.count(f'data-row="{each}"') for each in sent] == [1] * 5
        assert f'<article class="sheet card" id="{sent[0]}"' in shown
        assert "4 others wait" in shown
        assert "1 other waiting" in shown
        seen = re.search(r'name="contentHash" value="([0-9a-f]{64})"', shown)
        assert seen is not None
        form = {
            "decision": "approve",
            "contentHash": seen[1],
            "next": sent[1],
            "back": "/app/approvals?state=held",
        }
        done = await page.post(f"/app/approvals/{sent[0]}", data=form)
        assert done.headers["location"] == f"/app/approvals?state=held&message={sent[1]}"
        await do_it_now(page)
        alike = (await page.get("/app/approvals?to=P1@there.example")).text
        assert [f'data-row="{each}"' in alike for each in sent] == [False, True, False, False, True]
        both = {"ids": [sent[1], sent[4], sent[0]], "note": "not now"}
        assert (await page.post("/app/approvals/several", data=both)).status_code == 303
        assert "2 rejected in 10 seconds." in (await page.get("/app/approvals")).text
        await do_it_now(page)
    states = [(await message_of(server, each))["hold"]["state"] for each in sent]
    assert states == ["approved", "rejected", "held", "held", "rejected"]
    assert (await message_of(server, sent[4]))["hold"]["note"] == "not now"


async def test_rules_keys_policy_and_webhooks_are_set_on_the_pages(server: Server) -> None:
    async with signed_in(server) as page:
        form = {
            "when": ["links", "risk"],
            "overPerDay": "5",
            "expiresHours": "24",
            "reviewers": "a@b.example",
        }
        assert (await page.post("/app/settings/approval", data=form)).status_code == 303
        shown = (await server.api.get("/v1/account")).json()["approval"]
        assert shown == {
            "when": ["links", "risk", {"overPerDay": 5}],
            "expiresHours": 24,
            "reviewers": ["a@b.example"],
            "approvals": 1,
        }
        wanted = {"name": "agent", "scopeId": "all", "permissions": ["read", "draft"]}
        made = await page.post("/app/settings/keys", data=wanted)
        assert re.search(r"pr_[\w-]{40,}", made.text)
        rule = {"type": "allow", "value": "example.com", "direction": "outbound"}
        assert (await page.post("/app/settings/policy/rules", data=rule)).status_code == 303
        mode = {"mode": "allowlist", "direction": "outbound"}
        assert (await page.post("/app/settings/policy/mode", data=mode)).status_code == 303
        policy = (await server.api.get("/v1/policy")).json()["outbound"]
        assert (policy["mode"], [each["value"] for each in policy["rules"]]) == ("allowlist", ["example.com"])
        hook = await page.post("/app/webhooks", data={"url": "http://127.0.0.1:9/x"})
        assert "whsec_" in hook.text
        written = (await page.get("/app/settings/audit")).text
        assert "webhook.set" in written


async def test_a_new_key_has_the_scope_that_was_chosen_and_none_without_a_choice(server: Server) -> None:
    inbox_id = await server.new_inbox("support")
    async with signed_in(server) as page:
        form = (await page.get("/app/settings/keys")).text
        assert f'<option value="{inbox_id}">' in form
        [name] = re.findall(r'<select id="(\w+)" name="\1">', form)
        made = await page.post("/app/settings/keys", data={"name": "of one", name: inbox_id})
        token = re.search(r"pr_[\w-]{40,}", made.text)
        assert token is not None
        me = await server.api.get("/v1/me", headers={"Authorization": f"Bearer {token[0]}"})
        assert me.json()["inboxId"] == inbox_id
        unchosen = await page.post("/app/settings/keys", data={"name": "of which"})
        assert unchosen.status_code == 400
        assert "pr_" not in unchosen.text


async def test_another_site_changes_nothing(server: Server) -> None:
    async with signed_in(server) as page:
        for path in ("/app/approvals/msg_1", "/app/settings/approval", "/app/operator/accounts"):
            answer = await page.post(path, data={"name": "x"}, headers={"Origin": "https://evil.example"})
            assert answer.status_code == 403, path


async def test_only_the_operator_sees_the_machine(server: Server) -> None:
    second = await server.resources.db.write(add_account, server.clock.now())
    async with signed_in(server, second) as page:
        assert (await page.get("/app/operator")).status_code == 403
        made = await page.post("/app/operator/accounts", data={"name": "mine", "plan": "business"})
        assert made.status_code == 403


def add_account(tx: Tx, now: int) -> str:
    token = keys.new_token()
    keys.add(tx, accounts.add(tx, "second", "free", now).id, None, "k", token, now)
    return token


async def test_a_thread_shows_its_newest_message_however_large_the_others_are(db: Database) -> None:
    inbox = await db.write(make_inbox)
    sizes = (10, *[PAGE_BYTES // 4] * 5)
    stored: list[str] = []
    for number, size in enumerate(sizes):
        reply = {"message_id": f"<{number}@x>", "in_reply_to": "<0@x>"}
        message = await db.write(put_mail, inbox, f"{number}" + "x" * size, START + number, **reply)
        stored.append(message.id)
    thread = await db.read(threads.get, inbox.scope, message.thread_id)
    query = ThreadPageQuery(open="all")
    found, earlier = await db.read(read_part, thread, query)
    assert ([each.id for each in found], earlier) == (stored, 0)
    opened = await db.read(read_whole, Links("", START, b""), found, query)
    assert stored[-1] in opened
    assert len(opened) < len(stored)
    found, earlier = await db.read(read_part, thread, ThreadPageQuery(until=3))
    assert ([each.id for each in found], earlier) == (stored[:3], 0)
    assert await db.read(thread_parts.count_newer, thread.id, stored[1]) == 4
    assert await db.read(threads.list_by_ids, inbox.scope, [thread.id, "thr_other"]) == [thread]


async def test_the_path_of_a_refused_request_stays_text_in_the_audit(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    body = {"name": "agent", "permissions": ["read"]}
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=body)).json()["token"]
    path = "/v1/webhook/deliveries/ hx-post=approval hx-trigger=load /retry"
    async with server.client(token) as agent:
        assert (await agent.post(path)).status_code == 403
    async with signed_in(server) as page:
        shown = (await page.get("/app/settings/audit")).text
    buttons = [each for each in elements_of(shown) if each.name == "button"]
    assert any("hx-trigger=load" in button.get("data-copy") for button in buttons)
    assert not any(name.startswith("hx-") for button in buttons for name, _ in button.attributes)


async def test_places_of_the_mail_are_addresses_and_a_search_is_saved_beside_them(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.deliver(raw_mail(subject="Minutes of Monday"), "bob")
    await send(server, inbox_id, "carol@there.example", subject="Answer", undoSeconds=60)
    await settled(server)
    async with signed_in(server) as page:
        shown = (await page.get(f"/app/mail?inboxId={inbox_id}")).text
        for word in ("sent", "failed", "held", "flagged", "blocked"):
            assert f'href="/app/search?q=is%3A{word}&amp;inboxId={inbox_id}"' in shown
        sent = (await page.get("/app/search?q=is:sent")).text
        assert "<b>Answer</b>" in sent
        assert "Minutes" not in sent
        form = {"name": "Mondays", "q": "minutes"}
        assert (await page.post("/app/search/save", data=form)).status_code == 303
        found = (await page.get("/app/search?q=minutes")).text
        assert "<h1>Mondays</h1>" in found
        assert '<b><mark class="found">Minutes</mark> of Monday</b>' in found
        assert '<small class="to-inbox clip">bob</small>' in found
        row = re.findall(r'<li data-row="msg_.*?</li>', found, re.DOTALL)[0]
        assert 'class="unread">' in row
        assert "Unread. Alice Minutes of Monday" in " ".join(re.sub("<[^>]+>", " ", row).split())
        assert ">subject</span>" not in row
        await server.deliver(trick().as_bytes(), "bob")
        await settled(server)
        doubtful = (await page.get("/app/search?q=bank")).text
        assert '<span class="state red">malicious</span>' in doubtful
        assert ">Mondays</a>" in (await page.get("/app/mail")).text
        wrong = await page.post("/app/search/save", data={"name": "x" * 51, "q": "y"})
        assert wrong.status_code == 400
        assert (await page.post("/app/search/remove", data={"name": "Mondays"})).status_code == 303
        await do_it_now(page)
        assert ">Mondays</a>" not in (await page.get("/app/mail")).text


async def test_a_thread_says_who_its_sender_is_to_the_inbox_and_what_the_agent_gets(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.deliver(raw_mail("Your code is 482913.", subject="One", message_id="<1@x>"), "bob")
    server.clock.turn(1000)
    await server.deliver(raw_mail(subject="Two", message_id="<2@x>"), "bob")
    found = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    paths = {each["subject"]: f"/app/mail/{each['threadId']}?message={each['id']}" for each in found}
    async with signed_in(server) as page:
        first, second = [(await page.get(paths[subject])).text for subject in ("One", "Two")]
        assert "This address never wrote to this inbox before." in first
        assert "Writes to this inbox since" in second
        assert "Never verified." in second
        assert "/app/contact?address=alice%40example.com" in second
        agent = (await page.get(f"{paths['One']}&tab=agent")).text
        assert "What the agent gets" in agent
        assert "482913" in agent.partition("What the agent gets")[2]
