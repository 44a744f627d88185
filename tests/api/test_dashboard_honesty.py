"""Pages say what is so: nothing is green that did not happen, and a refusal is told where one asked."""

import re

import pytest

from postroom.clock import HOUR, to_iso
from postroom.errors import Unavailable
from postroom.storage.database import Tx
from postroom.web.dashboard.pages import mail
from tests.api.test_dashboard import browser, do_it_now, signed_in
from tests.conftest import Server
from tests.outbound import send
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone
PATH = re.compile(r'href="([^"]+)"')
ROW = r'<tr data-row="evt_.*?</tr>'
SECRET = "db.internal:5432 refused the connection"


async def test_a_refused_form_stays_on_its_page_and_says_why(server: Server) -> None:
    async with signed_in(server) as page:
        referer = {"Referer": f"{server.base_url}/app/settings/domains"}
        refused = await page.post("/app/settings/domains", data={"domain": "not a domain"}, headers=referer)
        elsewhere = await page.post("/app/settings/domains", data={"domain": "not a domain"})
        lost = await page.post(
            "/app/settings/domains",
            data={"domain": "not a domain"},
            headers={"Referer": f"{server.base_url}/app/settings/pods/pod_gone"},
        )
    assert refused.status_code == elsewhere.status_code == lost.status_code == 400
    assert 'role="alert" data-refused="domain">' in refused.text
    assert "<h1>Domains</h1>" in refused.text
    assert "<h1>That did not work</h1>" in elsewhere.text
    assert "<h1>That did not work</h1>" in lost.text


async def test_an_event_tells_who_what_and_where_to_the_second(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.deliver(raw_mail(subject="Minutes of Monday"), "bob")
    await send(server, inbox_id, "carol@there.example", subject="Answer", undoSeconds=60)
    async with signed_in(server) as page:
        shown = (await page.get("/app/events")).text
    rows = [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in re.findall(ROW, shown, re.DOTALL)]
    assert any("Minutes of Monday From Alice &lt;alice@example.com&gt; bob@" in row for row in rows)
    assert any(row.endswith("scheduled Details of message.scheduled") for row in rows)
    assert any("Answer To carol@there.example" in row for row in rows)
    assert '<time class="exact"' in shown


async def test_first_steps_are_done_when_they_happened(server: Server) -> None:
    await server.new_inbox("bob")
    await server.api.put("/v1/webhook", json={"url": "http://127.0.0.1:9/"})
    await server.api.post("/v1/domains", json={"domain": "mail.example.com"})
    async with signed_in(server) as page:
        shown = (await page.get("/app/start")).text
        assert "has not received an event yet" in shown
        assert "Your domain is not verified yet." in shown
        assert "enabled, no deliveries yet" in (await page.get("/app/webhooks")).text
        await server.deliver(raw_mail(), "bob")
        await server.resources.db.write(fail_webhooks)
        assert ">failing</span>" in (await page.get("/app/webhooks")).text


def fail_webhooks(tx: Tx) -> None:
    tx.run("update deliveries set state = 'failed' where kind = 'webhook'")


async def pod_key(server: Server) -> str:
    pod = (await server.api.post("/v1/pods", json={"name": "Harbour"})).json()["id"]
    made = await server.api.post("/v1/api-keys", json={"podId": pod, "permissions": ["read"]})
    token: str = made.json()["token"]
    return token


async def test_settings_are_one_list_in_groups_and_a_phone_has_five_entries(server: Server) -> None:
    key = await pod_key(server)
    async with signed_in(server) as page:
        sessions = (await page.get("/app/sessions")).text
        assert 'aria-label="Settings"' not in (await page.get("/app/mail")).text
    groups = ["You", "Team", "Agents and inboxes", "Rules", "Delivery", "Server"]
    assert re.findall(r'<ul aria-label="([^"]+)">', sessions) == 2 * groups
    assert "<summary>Sessions</summary>" in sessions
    assert sessions.count('<a href="/app/sessions" aria-current="page">Sessions</a>') == 2
    bar = sessions.partition('<nav aria-label="Pages">')[2].partition('<li class="more-pages">')[0]
    assert bar.count("<li>") == 5
    assert bar.count('<li class="rest">') == 5
    async with signed_in(server, key) as page:
        limited = (await page.get("/app/inboxes")).text
    assert not {"/app/settings/keys", "/app/settings/audit", "/app/webhooks"} & set(PATH.findall(limited))


async def test_errors_are_pages_in_words_for_people_with_a_way_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await pod_key(server)
    async with signed_in(server) as page, signed_in(server, key) as limited, browser(server) as stranger:
        shown = {
            404: await page.get("/app/nothing"),
            403: await limited.get("/app/settings/keys"),
        }
        for status, answer in shown.items():
            assert answer.status_code == status
            assert 'id="rail"' in answer.text
            assert '<a class="button" href="/app/mail">Open mail</a>' in answer.text
        assert "<h1>This page does not exist</h1>" in shown[404].text
        assert "You are signed in to one pod." in shown[403].text
        assert (await page.get("/app/mail/thr_gone")).text.count("<h1>This page does not exist</h1>") == 1
        unknown = await stranger.get("/app/sign-in/nothing")
        assert (unknown.status_code, 'id="rail"' in unknown.text) == (404, False)
        monkeypatch.setattr(mail, "read_rows", broken)
        fault = await page.get("/app/mail")
        assert (fault.status_code, 'id="rail"' in fault.text, SECRET in fault.text) == (500, True, False)
        assert fault.headers["x-request-id"] in fault.text
        monkeypatch.setattr(type(server.resources.db), "read", away)
        part = await page.get("/app/rail", headers={"HX-Request": "true"})
        assert (part.status_code, part.headers["hx-reswap"], part.text) == (503, "none", "")
        for answer in [await each.get("/app/mail") for each in (page, limited)]:
            assert (answer.status_code, SECRET in answer.text) == (503, False)
            assert "<h1>Postroom is not available right now</h1>" in answer.text
            assert '<a class="button" href="/app">Try again</a>' in answer.text


def broken(*_: object) -> None:
    raise ValueError(SECRET)


async def away(*_: object, **__: object) -> None:
    raise Unavailable(SECRET)


async def test_what_a_pause_holds_is_with_the_drafts_and_asks_for_no_approval(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    moment = to_iso(server.clock.now() + HOUR)
    planned = await send(server, inbox_id, "carol@there.example", subject="At its hour", sendAt=moment)
    await server.api.put("/v1/pause")
    await send(server, inbox_id, "carol@there.example", subject="While it lasts")
    async with signed_in(server) as page:
        drafts = (await page.get("/app/drafts")).text
        assert "At its hour" in drafts
        assert "While it lasts" in drafts
        assert drafts.count(">paused</span>") == 2
        assert 'data-held="0"' in drafts
        assert "Nothing is waiting" in (await page.get("/app/approvals")).text
        assert (await page.post(f"/app/scheduled/{planned}/cancel")).status_code == 303
        await do_it_now(page)
        assert "At its hour" not in (await page.get("/app/drafts")).text


async def test_the_audit_log_names_what_was_changed(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "night agent"})).json()
    gone = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "day agent"})).json()
    await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{gone['id']}")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"displayName": "Bob"})
    await server.api.post("/v1/suppressions", json={"address": "former@there.example"})
    async with signed_in(server) as page:
        shown = (await page.get("/app/settings/audit")).text
    assert f'<a class="clip" href="/app/settings/keys/{key["id"]}">night agent</a>' in shown
    assert f'<a class="clip" href="/app/inboxes/{inbox_id}">bob@' in shown
    assert "day agent" in shown
    assert "former@there.example" in shown
    listed = re.sub('<tr class="unfolded">.*?</tr>', "", shown, flags=re.DOTALL)
    assert f"<code>{inbox_id}</code>" not in listed
    assert '<option value="inbox.changed">Inbox changed</option>' in shown
    narrowed = (await server.api.get("/v1/audit", params={"inboxId": inbox_id})).json()["data"]
    assert {each["action"] for each in narrowed} >= {"key.created", "key.revoked"}
    assert "suppression.added" not in {each["action"] for each in narrowed}
    assert (await server.api.get("/v1/audit", params={"inboxId": "inb_unknown"})).status_code == 404


async def test_a_line_of_swaks_names_the_port_that_is_open(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server) as page:
        for path in (f"/app/mail?inboxId={inbox_id}", "/app/start"):
            assert f"swaks --server 127.0.0.1:{server.smtp_port} " in (await page.get(path)).text
