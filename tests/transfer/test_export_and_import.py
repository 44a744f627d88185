"""An account taken out into files, and brought into another inbox: threads, dates and files stay."""

import json
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from postroom.accounts import accounts
from postroom.clock import DAY, HOUR
from postroom.extraction.pool import ExtractionPool
from postroom.mailbox import inboxes
from postroom.transfer import mbox
from postroom.transfer.export_mail import export_account
from postroom.transfer.import_mail import import_mail
from tests.conftest import Server


def question() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"] = "Ann <ann@example.com>", "one@postroom.localhost"
    mail["Subject"], mail["Message-ID"] = "a question", "<question@example.com>"
    mail.set_content("From here on it is text.\n")
    mail.add_attachment(b"numbers,1\n", maintype="text", subtype="csv", filename="numbers.csv")
    return mail.as_bytes()


async def test_what_was_taken_out_can_be_brought_in(server: Server, tmp_path: Path) -> None:
    one, two = await server.new_inbox("one"), await server.new_inbox("two")
    await server.deliver(question(), "one")
    await server.next_event()
    thread_id = (await listed(server, f"/v1/inboxes/{one}/threads"))[0]["id"]
    server.clock.turn(HOUR)
    body = {"to": "ann@example.com", "threadId": thread_id, "body": "an answer"}
    sent = await server.api.post(f"/v1/inboxes/{one}/send", json=body, headers={"Idempotency-Key": "a"})
    assert sent.status_code == 200, sent.text
    await server.api.patch(f"/v1/threads/{thread_id}", json={"addLabels": ["Kept"]})
    server.clock.turn(30 * DAY)

    folder = tmp_path / "out"
    account = (await server.resources.db.read(accounts.list_all))[0]
    told: list[int] = []
    assert await export_account(server.resources, account, folder, told.append) == len(told) == 2
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
    described = json.loads((folder / "account.json").read_text())
    assert [inbox["id"] for inbox in described["inboxes"]] == [one, two]
    place = folder / "one@postroom.localhost"
    lines = [json.loads(line) for line in (place / "messages.jsonl").read_text().splitlines()]
    assert [(line["subject"], line["direction"], line["labels"]) for line in lines] == [
        ("a question", "inbound", ["Kept"]),
        ("Re: a question", "outbound", ["Kept"]),
    ]
    assert (place / lines[0]["attachments"][0]["url"]).read_bytes().strip() == b"numbers,1"

    before = (await server.api.get("/v1/events?order=desc&limit=1")).json()["data"]
    inbox = await server.resources.db.read(inboxes.find, two)
    assert inbox is not None
    extractor = ExtractionPool()
    filed = mbox.list_mbox(place / "mail.mbox", server.clock.now())
    try:
        assert [await import_mail(server.resources, extractor, inbox, mail) for mail in filed] == [True, True]
        assert [await import_mail(server.resources, extractor, inbox, mail) for mail in filed] == [
            False,
            False,
        ]
    finally:
        await extractor.close()
    (thread,) = await listed(server, f"/v1/inboxes/{two}/threads")
    assert (thread["messageCount"], thread["isRead"]) == (2, True)
    answer, asked = await listed(server, f"/v1/inboxes/{two}/messages")
    assert asked["attachments"][0]["parsedText"].split() == ["numbers", "1"]
    assert asked["bodyText"].strip() == "From here on it is text."
    assert asked["createdAt"] == lines[0]["createdAt"]
    assert answer["createdAt"][:16] == lines[1]["createdAt"][:16]
    assert (await server.api.get("/v1/events?order=desc&limit=1")).json()["data"] == before


async def test_what_the_inbox_wrote_itself_was_sent(server: Server, tmp_path: Path) -> None:
    inbox_id = await server.new_inbox("one")
    inbox = await server.resources.db.read(inboxes.find, inbox_id)
    assert inbox is not None
    own = b"From: one@postroom.localhost\nTo: ann@example.com\nMessage-ID: <own@x>\nSubject: mine\n\nhello\n"
    path = tmp_path / "mbox"
    path.write_bytes(mbox.to_mbox(own, "one@postroom.localhost", server.clock.now() - DAY))
    extractor = ExtractionPool()
    (mail,) = mbox.list_mbox(path, server.clock.now())
    assert await import_mail(server.resources, extractor, inbox, mail)
    await extractor.close()
    (message,) = await listed(server, f"/v1/inboxes/{inbox_id}/messages?direction=outbound")
    assert (message["direction"], message["status"], message["auth"]) == ("outbound", "sent", None)
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()["total"] == 0


async def listed(server: Server, path: str) -> list[dict[str, Any]]:
    page = (await server.api.get(path)).json()
    assert page["total"] == len(page["data"]), page
    found: list[dict[str, Any]] = page["data"]
    return found
