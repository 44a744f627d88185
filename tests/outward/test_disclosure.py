"""Disclosure: an email that an agent wrote says so, and one that a person wrote does not."""

import re
import uuid
from typing import Any

import pytest

from postroom.errors import BadRequest
from postroom.outward import disclosing
from postroom.outward.send_stages import Closing
from postroom_mail.writing import disclosure
from tests.api.test_dashboard import do_it_now, new_link, signed_in
from tests.api.test_draft_page import seen_on
from tests.api.test_send import first_message, raw_of
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.samples import samples

GERMAN = "Guten Tag, ich habe eine Frage zu der Rechnung und bitte um eine Antwort. Danke."


async def sent(server: Server, inbox_id: str, **body: Any) -> dict[str, Any]:
    given = {"to": "dan@example.org", "subject": "News", "body": "Hello", **body}
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    answer = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=given, headers=headers)
    assert answer.status_code == 200, answer.text
    return dict((await server.api.get(f"/v1/messages/{answer.json()['id']}")).json())


@pytest.mark.sqlite_alone
async def test_the_nearest_setting_counts_in_the_language_of_the_thread(server: Server) -> None:
    bob = await server.new_inbox("bob")
    assert (await sent(server, bob))["bodyText"].strip() == "Hello"
    account = await server.api.patch("/v1/account", json={"disclosure": {"text": "ready", "header": True}})
    assert account.json()["disclosure"] == {"text": "ready", "header": True, "language": None}
    said = await sent(server, bob, bodyHtml="<html><body><p>Hello</p></body></html>")
    assert said["bodyText"].strip() == "Hello\n\nThis email was written by an AI assistant."
    assert "<p>This email was written by an AI assistant.</p></body>" in said["bodyHtml"]
    assert said["headers"] == {"AI-Disclosure": "mode=ai-originated"}
    assert b"\r\nAI-Disclosure: mode=ai-originated\r\n" in await raw_of(server, said["id"])
    await server.deliver(raw_mail(GERMAN), "bob")
    listed = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=inbound")).json()["data"]
    answer = await sent(server, bob, threadId=listed[0]["threadId"], to="alice@example.com")
    assert "Diese E-Mail wurde von einem KI-Assistenten verfasst." in answer["replyText"]
    own = {"disclosure": {"text": "Written by our robot."}}
    assert (await server.api.patch(f"/v1/inboxes/{bob}", json=own)).status_code == 200
    assert (await sent(server, bob))["bodyText"].strip() == "Hello\n\nWritten by our robot."
    await server.api.patch(f"/v1/inboxes/{bob}", json={"disclosure": {}})
    assert (await sent(server, bob))["bodyText"].strip() == "Hello"


async def test_the_line_is_hashed_and_shown_to_whoever_approves(server: Server) -> None:
    rules = {"approval": {"when": ["always"]}, "disclosure": {"text": "By a machine.", "header": True}}
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bob", **rules})
    held = await sent(server, made.json()["id"])
    assert "By a machine." in held["bodyText"]
    await server.api.patch(f"/v1/inboxes/{made.json()['id']}", json={"disclosure": {"text": "By a machine."}})
    assert held["hold"]["contentHash"] != (await sent(server, made.json()["id"]))["hold"]["contentHash"]


@pytest.mark.sqlite_alone
async def test_a_person_who_sends_an_agents_draft_is_named_and_one_who_wrote_it_is_not(
    server: Server,
) -> None:
    bob = await server.new_inbox("bob")
    await server.api.patch("/v1/account", json={"disclosure": {"text": "ready", "header": True}})
    draft = {"to": "dan@example.org", "subject": "News", "body": "We ship your order on Monday."}
    own = (await server.api.post(f"/v1/inboxes/{bob}/drafts", json=draft)).json()["id"]
    theirs = {"to": ["dan@example.org"], "subject": "News", "text": draft["body"]}
    compatible = (await server.api.post("/v0/inboxes/bob@postroom.localhost/drafts", json=theirs)).json()
    async with signed_in(server, link=await new_link(server), name="Ann") as page:
        for draft_id in (own, compatible["draft_id"]):
            seen, text = await seen_on(page, f"/app/drafts/{draft_id}")
            assert "Reviewed by" in text, "the line is on what is sent"
            assert (await page.post(f"/app/drafts/{draft_id}/send", data=seen)).status_code == 303
        written = {**draft, "inboxId": bob, "body": "Sorry, we are out of stock."}
        assert (await page.post("/app/compose", data=written)).status_code == 303
        await do_it_now(page)
    listed = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=outbound")).json()["data"]
    said = sorted(("Reviewed by" in each["bodyText"], bool(each["headers"])) for each in listed)
    assert said == [(False, False), (True, True), (True, True)], listed


@pytest.mark.sqlite_alone
async def test_the_form_keeps_the_language_and_saying_nothing(server: Server) -> None:
    bob = await server.new_inbox("bob")
    async with signed_in(server) as page:
        for wanted in ({"text": "ready", "language": "de"}, {}, None):
            await server.api.patch(f"/v1/inboxes/{bob}", json={"disclosure": wanted})
            before = (await server.api.get(f"/v1/inboxes/{bob}")).json()["disclosure"]
            shown = (await page.get(f"/app/inboxes/{bob}")).text
            form = shown.partition('/approval"')[2].partition("</form>")[0]
            fields = re.findall(r'<input id="disclosure" name="(\w+)"[^>]* value="(\w*)"', form)
            fields += re.findall(
                r'<input type="checkbox" name="(disclosure\w+)" value="(\w+)" checked>', form
            )
            fields += [("disclosureLanguage", code) for code in re.findall(r"<option selected>(\w\w)<", form)]
            saved = await page.post(f"/app/inboxes/{bob}/approval", data=dict(fields))
            assert saved.status_code == 303, saved.text
            assert (await server.api.get(f"/v1/inboxes/{bob}")).json()["disclosure"] == before


@pytest.mark.sqlite_alone
async def test_what_is_no_line_or_language_is_refused(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for wrong in ({"text": " "}, {"text": "a\nb"}, {"language": "xx"}):
        answer = await server.api.patch(f"/v1/inboxes/{bob}", json={"disclosure": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "disclosure"), answer.text
    assert (await first_message_or_none(server, bob)) is None


@samples(
    "html",
    """
    <p>Hi</p><!--
    <p>Hi</p><!-- </body> -->
    <div style="display:none">
    <script>
    <title>
    <template>
    <style>p{display:none}</style>Hi
    <body style="display:none">Hi</body>
    <p title="</body>">Hi
    <a href="
    <div style="color:white;background:white">Hi
    <textarea>
    <svg>
    <p style="font-size:0">Hi<div style="font-size:0">
    """.strip().splitlines(),
)
def test_html_that_would_hide_the_line_is_refused(html: str) -> None:
    """An agent that was talked into it may try."""
    with pytest.raises(BadRequest) as refused:
        disclosing.close("Hi", html.strip(), Closing("By a machine & co.", {}))
    assert refused.value.extras == {"field": "bodyHtml"}


@samples(
    "html",
    [
        "",
        "Hi",
        "<p>Hi</p>",
        "<html><body><ul><li>Hi</body></html>",
        "<style>p{color:#222}</style><table><td>Hi",
    ],
)
def test_other_html_shows_the_line(html: str) -> None:
    _, whole = disclosing.close("Hi", html, Closing("By a machine & co.", {}))
    assert "<p>By a machine &amp; co.</p>" in str(whole)


async def first_message_or_none(server: Server, inbox_id: str) -> dict[str, Any] | None:
    total = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"]
    return await first_message(server, inbox_id) if total else None


def test_every_language_has_both_sentences_and_most_are_told_apart() -> None:
    found = disclosure.languages()
    assert len(found) == 24
    assert all(said and "{name}" in reviewed for said, reviewed in found.values())
    assert disclosure.guess_language(GERMAN) == "de"
    assert disclosure.guess_language("") == "en"
    assert disclosure.line_for(None, "fr", "Ann") == f"{found['fr'][0]} Relu par Ann."


def test_an_edit_is_substantial_once_most_words_are_the_persons() -> None:
    assert disclosure.is_mostly_kept("We ship your order on Monday.", "We ship your order on Tuesday, Ann.")
    assert not disclosure.is_mostly_kept("We ship your order on Monday.", "Sorry, we are out of stock.")
