"""Writing mail on the pages: what leaves, what waits, and what is kept when it was refused."""

import re
from typing import Any

import pytest

from postroom.accounts import accounts, keys
from postroom.storage.database import Tx
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.outbound import message_of
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone

NEW = {"once": "once-1", "subject": "Hello", "body": "Hello Carol", "to": "Carol <carol@there.example>"}


async def other_key(server: Server) -> str:
    """Of another account, with its token."""
    token = keys.new_token()

    def work(tx: Tx) -> None:
        now = server.clock.now()
        keys.add(tx, accounts.add(tx, "other", "free", now).id, None, "key", token, now)

    await server.resources.db.write(work)
    return token


async def first_mail(server: Server, name: str) -> dict[str, Any]:
    await server.deliver(raw_mail(subject="Question"), name)
    event = await server.next_event()
    return await message_of(server, event["message"]["id"])


def part(name: str, content: bytes = b"a,b\n1,2\n") -> list[tuple[str, tuple[str, bytes, str]]]:
    return [("attachments", (name, content, "text/csv"))]


async def test_a_new_mail_leaves_with_copies_and_files_and_only_once(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    mail = {**NEW, "inboxId": inbox_id, "cc": "dan@there.example", "bcc": "eve@there.example"}
    async with signed_in(server) as page:
        assert "bob@" in (await page.get(f"/app/compose?inboxId={inbox_id}")).text
        for _ in range(2):
            sent = await page.post("/app/compose", data=mail, files=part("list.csv"))
            assert sent.status_code == 303, sent.text
            assert sent.headers["location"].startswith("/app/mail/thr_")
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
    assert listed["total"] == 1
    message = await message_of(server, listed["data"][0]["id"])
    assert (message["subject"], message["cc"]) == ("Hello", ["dan@there.example"])
    assert [file["filename"] for file in message["attachments"]] == ["list.csv"]
    assert {each["address"] for each in message["recipients"]} == {
        *("carol@there.example", "dan@there.example", "eve@there.example")
    }


async def test_what_was_refused_can_be_mended_without_writing_it_again(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    wrong = {**NEW, "inboxId": inbox_id, "to": "not an address", "body": "Long <thought> out"}
    async with signed_in(server) as page:
        refused = await page.post("/app/compose", data=wrong)
        assert refused.status_code == 400
        assert "Long &lt;thought&gt; out" in refused.text
        assert 'value="not an address"' in refused.text
        empty = await page.post("/app/compose", data={**wrong, "to": "carol@there.example", "body": ""})
        assert (empty.status_code, "1 to 100,000 characters" in empty.text) == (400, True)
        unnamed = await page.post("/app/compose", data={**wrong, "inboxId": ""})
        assert 'data-refused="inboxId">Choose the inbox to send from.' in unnamed.text
        never = await page.post("/app/compose", data={**wrong, "action": "schedule"})
        assert "Choose a time, or send the email now" in never.text
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 0


async def test_a_mail_waits_for_its_time_as_the_reader_chose_it(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    later = {**NEW, "inboxId": inbox_id, "action": "schedule", "sendAt": "2026-11-20T10:00"}
    server.clock.moment = 1_794_700_000_000  # 14 November 2026
    async with signed_in(server) as page:
        utc = {**later, "sendAtUtc": "2026-11-20T09:00:00.000Z"}
        assert (await page.post("/app/compose", data=utc)).status_code == 303
        assert (await page.post("/app/compose", data={**later, "once": "2"})).status_code == 303
        shown = (await page.get("/app/drafts")).text
    assert sorted(re.findall(r'datetime="(2026-11-20T[^"]+)"', shown)) == [
        "2026-11-20T09:00:00.000Z",
        "2026-11-20T10:00:00.000Z",
    ]


async def test_a_draft_is_gone_over_gets_files_and_is_sent(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server) as page:
        kept = await page.post("/app/compose", data={"inboxId": inbox_id, "body": "x", "action": "draft"})
        path = kept.headers["location"]
        assert path.startswith("/app/drafts/drf_")
        change = {"to": "carol@there.example", "subject": "Now", "body": "y"}
        for version, name in (("1", "one.csv"), ("3", "two.csv")):  # the fields, and then the file
            kept = await page.post(path, data={**change, "version": version}, files=part(name))
            assert kept.status_code == 303
        off = {"filename": "one.csv", "version": "5"}
        assert (await page.post(f"{path}/files/remove", data=off)).status_code == 303
        shown = (await page.get(path)).text
        assert re.findall(r'name="filename" value="([^"]+)"', shown) == ["two.csv"]
        assert (await page.post(path, data={**change, "to": "", "version": "6"})).status_code == 303
        shown = (await page.get(path)).text
        assert ("has no recipient" in shown, "contentHash" in shown) == (True, False)
        assert (await page.post(path, data={**change, "version": "7"})).status_code == 303
        seen = dict(re.findall(r'name="(version|contentHash)" value="([^"]+)"', (await page.get(path)).text))
        assert (await page.post(f"{path}/send", data=seen)).status_code == 303
        assert (await page.get(path)).status_code == 404
    [sent] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert (sent["subject"], [file["filename"] for file in sent["attachments"]]) == ("Now", ["two.csv"])


async def test_an_answer_carries_files_or_becomes_a_draft_and_comes_back_when_refused(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    message = await first_mail(server, "bob")
    thread = f"/app/mail/{message['threadId']}"
    reply = {
        "once": "r",
        "how": "reply",
        "to": "alice@example.com",
        "body": "An answer",
        "message": message["id"],
    }
    async with signed_in(server) as page:
        refused = await page.post(f"{thread}/answer", data={**reply, "to": "nobody at all"})
        assert (refused.status_code, "An answer</textarea>" in refused.text) == (400, True)
        assert (await page.post(f"{thread}/answer", data=reply, files=part("a.csv"))).status_code == 303
        kept = await page.post(f"{thread}/answer", data={**reply, "action": "draft", "how": "forward"})
        draft = kept.headers["location"].rpartition("/")[2]
    shown = (await server.api.get(f"/v1/drafts/{draft}")).json()
    assert (shown["forwardOf"], shown["threadId"]) == (message["id"], None)
    found = (await server.api.get(f"/v1/threads/{message['threadId']}/messages")).json()["data"]
    assert [file["filename"] for file in found[-1]["attachments"]] == ["a.csv"]
    assert found[0]["inboxId"] == inbox_id


async def test_nobody_writes_from_an_inbox_or_changes_a_draft_of_another_account(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    draft = (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"body": "mine"})).json()["id"]
    other = await other_key(server)
    async with signed_in(server, key=other) as page:
        assert (await page.post("/app/compose", data={**NEW, "inboxId": inbox_id})).status_code == 404
        assert (await page.get(f"/app/drafts/{draft}")).status_code == 404
        assert (
            await page.post(f"/app/drafts/{draft}", data={"version": "1", "body": "stolen"})
        ).status_code == 404
        assert (await page.get(f"/app/inboxes/{inbox_id}")).status_code == 404
        gone = await page.post(f"/app/inboxes/{inbox_id}/delete", data={"typed": "bob@postroom.localhost"})
        assert gone.status_code == 404


async def test_a_form_that_cannot_be_read_is_a_page_that_says_so(server: Server) -> None:
    async with signed_in(server) as page:
        headers = {"Content-Type": "multipart/form-data"}
        answer = await page.post("/app/compose", content=b"--x\r\nbroken", headers=headers)
        assert answer.status_code == 400
        assert "is not valid" in answer.text
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        assert (await page.post("/app/compose", content=b"--x\r\nbroken", headers=headers)).status_code == 400


async def test_what_was_sent_is_taken_back_within_ten_seconds(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    mail = {**NEW, "inboxId": inbox_id, "bcc": "eve@there.example"}
    async with signed_in(server) as page:
        sent = await page.post("/app/compose", data=mail, files=part("list.csv"))
        [message] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
        path = f"/app/messages/{message['id']}/undo"
        refreshed = await page.get(sent.headers["location"], headers={"HX-Request": "true"})
        assert "data-undo" not in refreshed.text, "a part that is fetched anew leaves the notice to the page"
        shown = (await page.get(sent.headers["location"])).text
        assert f'<form method="post" action="{path}" data-undo>' in shown
        assert "data-undo" not in (await page.get(sent.headers["location"])).text
        back = await page.post(path)
        draft = (await server.api.get(f"/v1/drafts/{back.headers['location'].rpartition('/')[2]}")).json()
        assert (draft["to"], draft["bcc"]) == (["Carol <carol@there.example>"], ["eve@there.example"])
        assert draft["body"] == NEW["body"]
        assert [file["filename"] for file in draft["attachments"]] == ["list.csv"]
        assert (await message_of(server, message["id"]))["hold"]["state"] == "cancelled"
        assert (await page.post(path)).status_code == 409
        page.cookies.set("postroom_notice", "x", path="/app")
        page.cookies.set("postroom_undo", "https%3A//evil.example/", path="/app")
        assert "data-undo" not in (await page.get("/app/mail")).text


async def test_what_is_marked_leaves_as_html_beside_the_text_as_it_was_typed(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    typed = "Hello **Carol**,\n- one\n- two\n\n[here](https://there.example/) <x>"
    mail = {**NEW, "inboxId": inbox_id, "body": typed, "formatted": "true"}
    async with signed_in(server) as page:
        assert 'name="formatted" value="true" checked' in (await page.get("/app/compose")).text
        assert (await page.post("/app/compose", data=mail)).status_code == 303
        plain = {**mail, "once": "2", "body": "Hello Carol"}
        assert (await page.post("/app/compose", data=plain)).status_code == 303
        unmarked = {name: value for name, value in mail.items() if name != "formatted"}
        assert (await page.post("/app/compose", data={**unmarked, "once": "3"})).status_code == 303
    third, second, first = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert first["bodyText"].strip() == typed
    assert "<strong>Carol</strong>" in first["bodyHtml"]
    assert "<ul><li>one</li><li>two</li></ul>" in first["bodyHtml"]
    assert '<a href="https://there.example/">here</a> &lt;x&gt;' in first["bodyHtml"]
    assert (second["bodyHtml"], third["bodyHtml"], third["bodyText"].strip()) == ("", "", typed)


async def test_a_draft_keeps_its_formatting_while_its_text_is_changed(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server) as page:
        mail = {**NEW, "inboxId": inbox_id, "body": "**Hi**", "formatted": "true", "action": "draft"}
        kept = (await page.post("/app/compose", data=mail)).headers["location"]
        api = "/v1" + kept.removeprefix("/app")
        assert (await server.api.get(api)).json()["bodyHtml"] == "<p><strong>Hi</strong></p>"
        assert 'name="formatted" value="true" checked' in (await page.get(kept)).text
        change = {"version": "1", "to": NEW["to"], "subject": "s", "body": "**Bye**", "formatted": "true"}
        assert (await page.post(kept, data=change)).status_code == 303
        assert (await server.api.get(api)).json()["bodyHtml"] == "<p><strong>Bye</strong></p>"
        del change["formatted"]
        assert (await page.post(kept, data={**change, "version": "2"})).status_code == 303
        assert (await server.api.get(api)).json()["bodyHtml"] is None


async def test_a_mail_is_written_from_a_template_on_the_page(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    new = {"inboxId": inbox_id, "name": "shipped", "subject": "Order {{order}}", "body": "Hello {{name}}"}
    async with signed_in(server) as page:
        path = (await page.post("/app/settings/templates", data=new)).headers["location"]
        template_id = path.rpartition("/")[2]
        assert "<strong>{{name}}</strong>" in (await page.get(path)).text
        shown = (await page.get(f"/app/compose?template={template_id}")).text
        assert 'name="fieldName" value="order"' in shown
        mail = {"once": "1", "inboxId": inbox_id, "to": "carol@there.example", "template": template_id}
        missing = await page.post("/app/compose", data=mail)
        assert (missing.status_code, "no value for order, name" in missing.text) == (400, True)
        fields = {"fieldName": ["order", "name"], "fieldValue": ["7", "Carol"]}
        assert (await page.post("/app/compose", data={**mail, **fields})).status_code == 303
        tried = await page.post(f"{path}/draft", data=fields)
        assert "Hello Carol" in (await page.get(tried.headers["location"])).text
        taken = await page.post(path, data={"name": " ", "body": "Kept {{here}}"})
        assert (taken.status_code, "Kept {{here}}" in taken.text) == (400, True)
        long = await page.post(path, data={"name": "sent", "body": "x" * 100_001})
        assert (long.status_code, "at most 100,000 characters" in long.text) == (400, True)
        assert (await page.post(path, data={"name": "sent", "body": "Bye"})).status_code == 303
        assert (await server.api.get(f"/v1/templates/{template_id}")).json()["fields"] == []
        assert (await page.post(f"{path}/delete")).status_code == 303
    [sent] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert (sent["subject"], sent["bodyText"].strip()) == ("Order 7", "Hello Carol")
