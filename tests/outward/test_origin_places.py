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
from tests.outward.test_origin_guard import IBAN, lured, post

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
    async with running_server(settings(tmp_path, PLAN="developer", SUBMISSION="127.0.0.1:0"), clock) as one:
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

    def submit(sender: str, message_id: str) -> None:
        fields = f"From: {sender}\nTo: dan@example.org\nSubject: Hi\nMessage-ID: <{message_id}>\n\nHello\n"
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port) as client:
            client.login("bob@postroom.localhost", server.token)
            client.sendmail("bob@postroom.localhost", "dan@example.org", fields)

    own = "bob@postroom.localhost"
    for sender, message_id in ((f"{KEY} <{own}>", "1@a.example"), (own, f"{KEY}@a.example")):
        server.clock.turn(2 * MINUTE)
        await asyncio.to_thread(submit, sender, message_id)
        sent = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=outbound")).json()["data"]
        assert sent[0]["hold"]["reasons"] == ["origin"], (sender, message_id)
    assert len(sent) == 2
