"""The origin guard finds a value in every place of a send that leaves: also in names, tags and types."""

import asyncio
import base64
import smtplib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import MINUTE
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in
from tests.outward.test_origin_guard import IBAN, lured, post
from tests.raw_mails import raw_mail

KEY = "sk-live-9fQ2xV7bLw83KdTz51PnRa"
FILE = {"filename": "a.txt", "contentType": "text/plain", "data": base64.b64encode(b"x").decode()}
WRITTEN = IBAN.replace(" ", "")
INVITATION = {"summary": "Talk", "start": "2026-11-20T15:00:00Z", "end": "2026-11-20T16:00:00Z"}
PLACES: dict[str, dict[str, Any]] = {
    "subject": {"subject": KEY},
    "text": {"body": KEY},
    "HTML": {"bodyHtml": f"<p>x</p><!-- {KEY} -->"},
    "attribute of HTML": {"bodyHtml": f"<p data-x='{KEY}'>x</p>"},
    "name of a recipient": {"to": f"{KEY} <dan@example.org>"},
    "local part of a recipient": {"to": f"{WRITTEN}@example.org"},
    "tag of a recipient": {"to": f"dan+{KEY}@example.org"},
    "subdomain of a recipient": {"to": f"dan@{WRITTEN}.example.org"},
    "tag of a copy": {"bcc": [f"dan+{KEY}@example.org"]},
    "Reply-To": {"replyTo": f"dan+{KEY}@example.org"},
    "name of Reply-To": {"replyTo": f"{KEY} <dan@example.org>"},
    "header field": {"headers": {"X-Note": KEY}},
    "name of a header field": {"headers": {f"X-{KEY}": "1"}},
    "name of a file": {"attachments": [{**FILE, "filename": f"{KEY}.txt"}]},
    "type of a file": {"attachments": [{**FILE, "contentType": f"text/{KEY}"}]},
    "parameter of a type": {"attachments": [{**FILE, "contentType": f"text/plain; x={KEY}"}]},
    "summary of an invitation": {"calendar": {**INVITATION, "summary": KEY}},
    "place of an invitation": {"calendar": {**INVITATION, "location": KEY}},
    "address of an attendee": {"calendar": {**INVITATION, "attendees": [f"dan+{KEY}@example.org"]}},
    "attendee of an invitation": {"calendar": {**INVITATION, "attendees": [f"{KEY} <dan@example.org>"]}},
    "identifier of an invitation": {"calendar": {**INVITATION, "uid": f"{KEY}@x", "sequence": 1}},
}


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(
        settings(tmp_path, PLAN="developer", IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0"), clock
    ) as one:
        yield one


@pytest.mark.sqlite_alone
async def test_a_value_is_found_wherever_it_would_leave(server: Server) -> None:
    bob = await lured(server, "hold", text=f"Our key is {KEY}, our account {IBAN}.")
    through, refused = [], {}
    for place, fields in PLACES.items():
        server.clock.turn(2 * MINUTE)
        answer = await post(server, bob, **fields)
        if answer.status_code == 200 and "hold" not in answer.json():
            through.append(place)
        elif answer.status_code != 200:
            refused[place] = answer.text
    assert " ".join(through) == ""
    assert refused == {}


@pytest.mark.sqlite_alone
async def test_an_email_of_a_mail_client_carries_nothing_in_its_header(server: Server) -> None:
    bob = await lured(server, "hold", text=f"Our key is {KEY}.")

    own, known = "bob@postroom.localhost", "1@a.example"
    encoded = base64.urlsafe_b64encode(f"our key {KEY}".encode()).decode().rstrip("=")

    def submit(sender: str, message_id: str, more: str) -> None:
        fields = f"From: {sender}\nTo: dan@example.org\nSubject: Hi\nMessage-ID: <{message_id}>\n{more}"
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port) as client:
            client.login(own, server.token)
            client.sendmail(own, "dan@example.org", f"{fields}\nHello\n")

    for sender, message_id, more in (
        (f"{KEY} <{own}>", known, ""),
        (own, f"{KEY}@a.example", ""),
        (own, "2@a.example", f"References: <{KEY}@a.example> <{known}>\n"),
        (own, "3@a.example", f"References: <{known}>\n <x@{encoded}.example>\n"),
        (own, "4@a.example", f"In-Reply-To: <{KEY}@a.example>\n"),
    ):
        server.clock.turn(2 * MINUTE)
        await asyncio.to_thread(submit, sender, message_id, more)
        sent = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=outbound")).json()["data"]
        assert sent[0]["hold"]["reasons"] == ["origin"], (sender, message_id, more)
    assert len(sent) == 5


@pytest.mark.sqlite_alone
async def test_a_reply_names_no_id_that_somebody_here_has_put_into_its_thread(server: Server) -> None:
    """Anybody with a key can append an email of any Message-ID; a reply in its thread would name that."""
    bob = await lured(server, "hold", text=f"Our key is {KEY}.")
    for message_id, is_held in ((f"{KEY}@a.example", True), ("6@a.example", False)):
        raw = raw_mail("Hello", message_id=f"<{message_id}>", **{"from": "dan@example.org"})

        def append(raw: bytes = raw) -> None:
            client = log_in(server, "bob")
            client.append("INBOX", "", "", raw)
            client.logout()

        await aside(append)
        listed = (await server.api.get(f"/v1/inboxes/{bob}/messages?limit=1")).json()["data"][0]
        server.clock.turn(2 * MINUTE)
        answer = (await post(server, bob, threadId=listed["threadId"])).json()
        assert ("hold" in answer) == is_held, (message_id, answer)
