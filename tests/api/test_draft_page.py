"""The page of a draft: its button sends exactly what the page showed, or nothing."""

import html
import re
from typing import Any

import httpx2
import pytest

from tests.api.test_dashboard import do_it_now, signed_in
from tests.api.test_drafts import COMPLETE, file, new_draft
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone


async def seen_on(page: httpx2.AsyncClient, path: str) -> tuple[dict[str, str], str]:
    """What the button of the page would send, and the text of the page."""
    text = html.unescape((await page.get(path)).text)
    form = text.partition('/send" class="decide">')[2].partition("</form>")[0]
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)), text


async def sent_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    return [each for each in listed if each["direction"] == "outbound"]


async def test_a_draft_that_was_changed_behind_the_page_is_shown_anew_and_not_sent(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = await new_draft(server, inbox_id, **COMPLETE)
    path = f"/app/drafts/{draft['id']}"
    async with signed_in(server) as page:
        seen, _ = await seen_on(page, path)
        await server.api.patch(f"/v1/drafts/{draft['id']}", json={"to": "eve@there.example", "body": "Mine"})
        refused = await page.post(f"{path}/send", data=seen)
        assert refused.status_code == 409
        assert "eve@there.example" in refused.text
        assert await sent_of(server, inbox_id) == []
        now, _ = await seen_on(page, path)
        assert (
            await page.post(f"{path}/send", data={**now, "contentHash": seen["contentHash"]})
        ).status_code == 409
        assert (await page.post(f"{path}/send", data=now)).status_code == 303
    [sent] = await sent_of(server, inbox_id)
    assert sent["bodyText"].strip() == "Mine"


async def test_a_mail_that_comes_in_meanwhile_changes_an_answer_that_was_seen(server: Server) -> None:
    """Whom it goes to and what it quotes come from the thread, not from the draft."""
    inbox_id = await server.new_inbox("bob")
    await server.deliver(raw_mail(subject="Question", message_id="<1@x>"), "bob")
    thread_id = (await server.next_event())["thread_id"]
    answer = {"threadId": thread_id, "replyAll": True, "body": "Yes"}
    path = f"/app/drafts/{(await new_draft(server, inbox_id, **answer))['id']}"
    async with signed_in(server) as page:
        seen, text = await seen_on(page, path)
        assert "Alice <alice@example.com>" in text
        known = (await server.next_event())["event_id"]
        other = {"from": "Eve <eve@there.example>", "in_reply_to": "<1@x>", "references": "<1@x>"}
        await server.deliver(raw_mail("Me too", subject="Re: Question", message_id="<2@x>", **other), "bob")
        assert (await server.next_event(known))["thread_id"] == thread_id
        refused = await page.post(f"{path}/send", data=seen)
        assert (refused.status_code, "not what was shown" in refused.text) == (409, True)
        assert "eve@there.example" in refused.text
    assert await sent_of(server, inbox_id) == []


async def test_what_cannot_be_sent_yet_says_why_and_has_no_button(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = await new_draft(server, inbox_id, body="x")
    async with signed_in(server) as page:
        seen, text = await seen_on(page, f"/app/drafts/{draft['id']}")
        assert (seen, "Not ready to send" in text) == ({}, True)
        assert (await page.get(f"/app/drafts/{draft['id']}/html")).status_code == 404


async def test_saving_over_somebody_elses_change_is_refused_and_keeps_what_was_written(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = await new_draft(server, inbox_id, **COMPLETE, bodyHtml="<p>Seven</p>", headers={"X-A": "b"})
    path = f"/app/drafts/{draft['id']}"
    async with signed_in(server) as page:
        await server.api.patch(f"/v1/drafts/{draft['id']}", json={"subject": "Theirs"})
        refused = await page.post(path, data={"version": "1", "body": "My words", "to": "x@there.example"})
        assert refused.status_code == 409
        assert "Your unsaved text" in refused.text
        assert "My words" in refused.text
        assert "Theirs" in refused.text
        same = {"version": "2", "to": "x@there.example", "subject": "Mine", "body": "Seven"}
        assert (
            await page.post(path, data=same, files=[("attachments", ("a", b"", "text/plain"))])
        ).status_code == 303
    kept = (await server.api.get(f"/v1/drafts/{draft['id']}")).json()
    assert (kept["subject"], kept["bodyHtml"], kept["headers"]) == ("Mine", "<p>Seven</p>", {"X-A": "b"})


async def test_deleting_and_taking_a_file_off_name_the_version_that_was_seen(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = await new_draft(server, inbox_id, **COMPLETE, attachments=[file("a.txt", b"a")])
    path = f"/app/drafts/{draft['id']}"
    async with signed_in(server) as page:
        for old in ("7", ""):
            status = 409 if old else 400
            off = {"version": old, "filename": "a.txt"}
            assert (await page.post(f"{path}/files/remove", data=off)).status_code == status
            assert (await page.post(f"{path}/delete", data={"version": old})).status_code == status
        off = {"version": "1", "filename": "a.txt"}
        assert (await page.post(f"{path}/files/remove", data=off)).status_code == 303
        assert (await page.post(f"{path}/delete", data={"version": "2"})).status_code == 303
        await do_it_now(page)
    assert (await server.api.get(f"/v1/drafts/{draft['id']}")).status_code == 404


async def test_a_draft_that_was_sent_can_be_taken_back_for_a_moment(server: Server) -> None:
    bob = await server.new_inbox("bob")
    fields = {
        "to": "carol@there.example",
        "subject": "Offer",
        "body": "**Seven**",
        "bodyHtml": "<b>Seven</b>",
    }
    draft = (await server.api.post(f"/v1/inboxes/{bob}/drafts", json=fields)).json()
    path = f"/app/drafts/{draft['id']}"
    async with signed_in(server) as page:
        seen, _ = await seen_on(page, path)
        assert (await page.post(f"{path}/send", data=seen)).status_code == 303
        [sent] = await sent_of(server, bob)
        undo = f"/app/messages/{sent['id']}/undo"
        assert f'action="{undo}" data-undo' in (await page.get("/app/drafts")).text
        assert (await page.post(undo)).status_code == 303
    [back] = (await server.api.get(f"/v1/inboxes/{bob}/drafts")).json()["data"]
    assert (back["subject"], back["body"].strip(), back["to"]) == ("Offer", "**Seven**", fields["to"].split())
    assert "<b>Seven</b>" in back["bodyHtml"]
    assert (await sent_of(server, bob))[0]["status"] == "failed"
