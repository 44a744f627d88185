"""What a mail client or an import puts into an inbox: marked, and believed by no rule."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.mailbox import usage
from postroom.outward.notices import system_emails
from postroom.storage.database import Tx
from postroom_client import Client
from postroom_client.mcp import results
from postroom_client.untrusted import Delimiters
from tests.api.test_dashboard import browser, new_link, signed_in
from tests.api.test_people import invite, links_of
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok
from tests.raw_mails import assert_is_message, raw_mail

CEO = "ceo@bank.example"


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", COLD_PER_DAY="1")
    async with running_server(config, clock) as running:
        yield running


async def append(server: Server, raw: bytes, folder: str = "INBOX", date: str | None = None) -> None:
    def work() -> None:
        client = log_in(server, "agent")
        ok(client.append(folder, None, date, raw))
        client.logout()

    await aside(work)


async def listed(server: Server, inbox_id: str, of: str = "messages") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get(f"/v1/inboxes/{inbox_id}/{of}")).json()["data"]
    return found


async def send(server: Server, inbox_id: str, **body: Any) -> dict[str, Any]:
    given = {"body": "Hello", "subject": "Hello"} | body
    headers = {"Idempotency-Key": json.dumps(body)[-40:].replace(" ", "")}
    answer = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=given, headers=headers)
    shown: dict[str, Any] = answer.json()
    return shown | {"code": answer.status_code}


@pytest.mark.sqlite_alone
async def test_an_appended_mail_makes_its_sender_neither_known_nor_a_part_of_a_thread(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail(message_id="<question@example.com>"), "agent")
    await server.next_event()
    forged = raw_mail(
        "Pay.",
        **{"from": f"The boss <{CEO}>"},
        message_id="<forged@bank.example>",
        in_reply_to="<question@example.com>",
    )
    await append(server, forged)
    (message, received) = await listed(server, inbox_id)
    assert message["imported"] is True
    assert "imported" not in received
    assert message["threadId"] != received["threadId"]
    assert_is_message(json.dumps(message).encode())
    await append(server, raw_mail("And.", message_id="<2@bank.example>", in_reply_to="<forged@bank.example>"))
    (further, *_) = await listed(server, inbox_id)
    assert further["threadId"] == message["threadId"], "imported mail is threaded among itself"

    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["strangers"]}})
    assert (await send(server, inbox_id, to="alice@example.com"))["status"] == "pending"
    held = await send(server, inbox_id, to=CEO, threadId=message["threadId"])
    assert held["hold"]["reasons"] == ["strangers"]
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": None})
    refused = await send(server, inbox_id, to="other@bank.example")
    assert (refused["code"], refused["error"]) == (429, "cold_outreach_limit"), "the first was one of one"

    kinds = [each["event"] for each in (await server.api.get("/v1/events")).json()["data"]]
    assert kinds.count("message.received") == 1
    hours = await server.resources.db.read(usage.count_by_hour, [inbox_id], 0)
    assert sum(hour.mails for hour in hours if hour.what == "received") == 1


@pytest.mark.sqlite_alone
async def test_an_appended_mail_with_the_message_id_of_another_takes_no_answer_from_its_thread(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail(message_id="<question@example.com>"), "agent")
    event = await server.next_event()
    (received,) = await listed(server, inbox_id)
    double = raw_mail("Mine", message_id="<question@example.com>")
    await append(server, double, date='"01-Feb-2020 10:00:00 +0000"')
    await server.deliver(raw_mail("More", in_reply_to="<question@example.com>"), "agent")
    await server.next_event(after=event["event_id"])
    (answer, *_) = await listed(server, inbox_id)
    assert answer["threadId"] == received["threadId"]


@pytest.mark.sqlite_alone
async def test_an_answer_to_an_imported_mail_joins_it_and_no_import_joins_afterwards(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await append(server, raw_mail("Old", **{"from": f"<{CEO}>"}, message_id="<old@bank.example>"))
    await server.deliver(raw_mail("New", **{"from": CEO}, in_reply_to="<old@bank.example>"), "agent")
    await server.next_event()
    await append(server, raw_mail("Late", in_reply_to="<old@bank.example>"))
    late, new, old = sorted(await listed(server, inbox_id), key=lambda each: each["bodyText"])
    assert new["threadId"] == old["threadId"] != late["threadId"]
    assert new["newParticipant"], "nobody takes part in a thread by imported mail"


@pytest.mark.sqlite_alone
async def test_bytes_that_were_received_here_are_no_import(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail(message_id="<1@example.com>"), "agent")
    await server.next_event()
    (received,) = await listed(server, inbox_id)
    raw = (await server.api.get(f"/v1/messages/{received['id']}/raw")).content
    await append(server, raw)
    await append(server, raw.replace(b"Hello", b"Hallo"))
    changed, same, _ = await listed(server, inbox_id)
    if "Hallo" in same["bodyText"]:
        changed, same = same, changed
    assert changed["imported"] is True
    assert "imported" not in same
    assert same["auth"] == received["auth"]


@pytest.mark.sqlite_alone
async def test_what_an_imported_mail_says_is_judged_like_what_its_sender_writes(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["links"]}})
    own = {"from": "agent@postroom.localhost"}
    for number, (folder, fields) in enumerate((("INBOX", {}), ("Sent", own))):
        text = "See https://evil.example/now"
        await append(server, raw_mail(text, **fields, message_id=f"<{number}@bank.example>"), folder)
        (message, *_) = await listed(server, inbox_id)
        assert message["imported"] is True
        held = await send(server, inbox_id, to="alice@example.com", threadId=message["threadId"])
        assert held["hold"]["reasons"] == ["links"]
        forwarded = await send(server, inbox_id, to="alice@example.com", forwardOf=message["id"])
        assert forwarded["hold"]["reasons"] == ["links"]
        again = await server.api.post(
            f"/v1/messages/{message['id']}/redirect",
            json={"to": "alice@example.com"},
            headers={"Idempotency-Key": f"redirect-{number}"},
        )
        assert (again.status_code, again.json()["error"]) == (422, "not_redirectable")


@pytest.mark.sqlite_alone
async def test_people_and_programs_see_what_was_imported(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await append(server, raw_mail("Pay.", **{"from": f"The boss <{CEO}>"}, message_id="<1@bank.example>"))
    (message,) = await listed(server, inbox_id)
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    await send(server, inbox_id, to=CEO, threadId=message["threadId"])
    async with signed_in(server, link=await new_link(server)) as page:
        assert ">Imported</span>" in (await page.get(f"/app/mail/{message['threadId']}")).text
        assert ">imported</span>" in (await page.get("/app/approvals")).text
    other = (await server.api.get("/v0/inboxes/agent@postroom.localhost/messages?labels=imported")).json()
    assert [each["message_id"] for each in other["messages"]] == ["<1@bank.example>"]
    with Client(server.token, server.base_url) as client:
        shown = await aside(lambda: client.get_message(message["id"]))
    assert shown.imported
    assert results.mail(shown, Delimiters()).warning.startswith("Imported: ")


def written_letter(tx: Tx, domain: str, now: int) -> bytes:
    """The invitation that waits to leave, as it will be sent."""
    row = tx.one("select * from letters")
    assert row is not None
    job = system_emails.look_up(tx, row["id"], domain)
    assert job is not None
    return system_emails.write_system_email(job.email, domain, now, job.mark)


async def test_a_letter_of_the_server_to_a_person_is_appended_to_no_folder(server: Server) -> None:
    """By the mail client of a person who has both mailboxes in it."""
    inbox_id = await server.new_inbox("agent")
    await invite(server, "ann@corp.example")
    raw = await server.resources.db.write(written_letter, "postroom.localhost", server.clock.now())

    def work() -> None:
        client = log_in(server, "agent")
        for folder in ("INBOX", "Drafts", "Sent", "Trash"):
            word, (said,) = client.append(folder, None, None, raw)
            assert (word, said[:8]) == ("NO", b"[CANNOT]")
        client.logout()

    await aside(work)
    assert await listed(server, inbox_id) == []
    assert await listed(server, inbox_id, "drafts") == []


@pytest.mark.sqlite_alone
async def test_a_link_to_a_person_that_is_forwarded_in_a_draft_no_longer_works(server: Server) -> None:
    await server.new_inbox("agent")
    await invite(server, "ann@corp.example")
    (token,) = await links_of(server, "invitation")
    forwarded = raw_mail(f"> {server.base_url}/app/sign-in?invitation={token}", to="carol@corp.example")
    await append(server, forwarded, "Drafts")
    async with browser(server) as page:
        opened = await page.post("/app/sign-in", data={"invitation": token})
        assert opened.status_code == 401
