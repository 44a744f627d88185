"""The pages of a person's data: export, erasure with a second person, legal holds, and receipts."""

import pytest

from postroom.mailbox import raw_mails
from tests.api.test_contact_erasure import ANN, exchange
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.outbound import send

pytestmark = pytest.mark.sqlite_alone


async def test_a_contact_is_exported_and_erased_on_its_page(server: Server) -> None:
    await exchange(server)
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    contact = {"address": ANN}
    async with signed_in(server) as page:
        shown = await page.get("/app/contact", params=contact)
        assert f"Type {ANN} to erase it" in shown.text
        exported = await page.get("/app/contact/export", params=contact)
        assert (exported.status_code, exported.content[:2]) == (200, b"PK")
        refused = await page.post("/app/contact/erase", data={**contact, "typed": "ben@example.com"})
        assert (refused.status_code, f"Type {ANN}" in refused.text) == (400, True)
        begun = await page.post("/app/contact/erase", data={**contact, "typed": f" {ANN}"})
        job = begun.headers.get("location") or str(begun.url.path)
        waiting = (await page.get(job)).text
        assert "Another person has to confirm" in waiting
        await page.post(f"{job}/confirm")
        assert "Another person has to confirm" in (await page.get(job)).text, "not who asked for it"
        await page.post(f"{job}/cancel")
        assert ">cancelled<" in (await page.get(job)).text


async def test_holds_and_receipts_are_on_the_pages(server: Server) -> None:
    inbox_id = await exchange(server)
    [thread] = [
        each
        for each in (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
        if each["subject"].endswith("file")
    ]
    await server.api.patch(
        f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"], "reviewers": []}}
    )
    held = await send(server, inbox_id, "zoe@example.com")
    async with signed_in(server) as page:
        for path, hold in (
            (f"/app/mail/{thread['id']}", f"/app/mail/{thread['id']}/hold"),
            (f"/app/inboxes/{inbox_id}", f"/app/inboxes/{inbox_id}/hold"),
        ):
            for word, wanted in (("true", "Legal hold: on"), ("false", "Legal hold<")):
                await page.post(hold, data={"isHeld": word})
                assert wanted in (await page.get(path)).text, (path, word)
        link = f"/app/messages/{held}/receipt"
        for path in (f"/app/approvals?message={held}", f"/app/messages/{held}"):
            assert link in (await page.get(path, follow_redirects=True)).text, path
        receipt = await page.get(link)
        assert receipt.json()["message"]["id"] == held
        assert "attachment" in receipt.headers["content-disposition"]


async def test_a_large_email_is_downloaded_whole_from_its_page(server: Server) -> None:
    await server.new_inbox("hello")
    raw = b"From: ann@example.com\r\nSubject: s\r\n\r\n" + b"x" * raw_mails.IN_ROW_BYTES
    await server.deliver(raw, "hello")
    message_id = (await server.next_event())["message"]["id"]
    async with signed_in(server) as page:
        shown = await page.get(f"/app/messages/{message_id}/raw")
    assert (shown.status_code, len(shown.content) > len(raw)) == (200, True)
