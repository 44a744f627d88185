"""Pages say what is so: nothing is green that did not happen, and a refusal is told where one asked."""

import pytest

from postroom.storage.database import Tx
from tests.api.test_front_office import signed_in
from tests.conftest import Server
from tests.letters import letter
from tests.outbound import send

pytestmark = pytest.mark.sqlite_alone


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
    assert 'role="alert" data-refused>' in refused.text
    assert "<h1>Domains</h1>" in refused.text
    assert "<h1>That did not work</h1>" in elsewhere.text
    assert "<h1>That did not work</h1>" in lost.text


async def test_an_event_tells_who_what_and_where_to_the_second(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.deliver(letter(subject="Minutes of Monday"), "bob")
    await send(server, inbox_id, "carol@there.example", subject="Answer", undoSeconds=60)
    async with signed_in(server) as page:
        shown = (await page.get("/app/events")).text
    assert "from Alice &lt;alice@example.com&gt;</span> <b>Minutes of Monday</b>" in shown
    assert "to carol@there.example</span> <b>Answer</b>" in shown
    assert '<time class="exact"' in shown


async def test_first_steps_are_done_when_they_happened(server: Server) -> None:
    await server.new_inbox("bob")
    await server.api.put("/v1/webhook", json={"url": "http://127.0.0.1:9/"})
    await server.api.post("/v1/domains", json={"domain": "mail.example.com"})
    async with signed_in(server) as page:
        shown = (await page.get("/app/start")).text
        assert "no event has been delivered to it yet" in shown
        assert "A domain is added, but not verified yet." in shown
        assert "enabled, nothing delivered yet" in (await page.get("/app/webhooks")).text
        await server.deliver(letter(), "bob")
        await server.resources.db.write(fail_webhooks)
        assert ">failing</span>" in (await page.get("/app/webhooks")).text


def fail_webhooks(tx: Tx) -> None:
    tx.run("update deliveries set state = 'failed' where kind = 'webhook'")


async def test_pages_of_settings_keep_their_tabs_and_begin_with_the_first(server: Server) -> None:
    async with signed_in(server) as page:
        sessions = (await page.get("/app/sessions")).text
    assert '<nav class="tabs" aria-label="Settings">' in sessions
    assert '<a href="/app/inboxes" data-go="s"' in sessions
