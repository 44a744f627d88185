"""clamd on every way in: what it finds is withheld, and what it could not see says so, whatever it does."""

import asyncio
import contextlib
import smtplib
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from postroom.inward import examine
from postroom.net import clamd
from postroom.queue import leases
from postroom.storage.database import Tx
from tests.adversary.hostile import Hostile
from tests.adversary.test_ways_in import IN_ORDER, NOT_RECEIVED, listed
from tests.adversary.ways_in import WayIn, by_connection, by_redirect_inside, by_send_inside, by_smtp
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok
from tests.inward.clamav import EICAR, Talk, odd_clamd
from tests.inward.test_clamd import finds, flood, hang, leave, says
from tests.raw_mails import raw_mail_with_files
from tests.waiting import PAUSE_SECONDS, until

pytestmark = pytest.mark.sqlite_alone
BAD, NAME = "bad.com", "Eicar"
FILES = (("clean.txt", "text/plain", b"All is well."), (BAD, "application/octet-stream", EICAR))
WRITER = "writer@postroom.localhost"


def infected_mail(number: int) -> Hostile:
    fields = {
        "sender": "eve@outside.example",
        "to": "agent@postroom.localhost",
        "message_id": f"<{number}@x>",
    }
    raw = b"X-Adversary: %d\r\n" % number + raw_mail_with_files(*FILES, **fields)
    return Hostile(number, raw, ())


def encoded() -> list[dict[str, str]]:
    return [
        {"filename": name, "contentType": kind, "data": b64encode(content).decode()}
        for name, kind, content in FILES
    ]


async def by_rest(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As another inbox of the server writes them."""
    await server.new_inbox("writer")
    body = {
        "to": f"{name}@postroom.localhost",
        "subject": "Hi",
        "body": "See below",
        "attachments": encoded(),
    }
    for mail in mails:
        key = {"Idempotency-Key": str(mail.number)}
        answer = await server.api.post(f"/v1/inboxes/{WRITER}/send", json=body, headers=key)
        assert answer.status_code == 200, answer.text
    return {mail.number for mail in mails}


async def by_v0(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    await server.new_inbox("writer")
    files = [
        {"filename": filename, "content_type": kind, "content": b64encode(content).decode()}
        for filename, kind, content in FILES
    ]
    body = {"to": f"{name}@postroom.localhost", "subject": "Hi", "text": "See below", "attachments": files}
    for _ in mails:
        answer = await server.api.post(f"/v0/inboxes/{WRITER}/messages/send", json=body)
        assert answer.status_code == 200, answer.text
    return {mail.number for mail in mails}


async def by_submission(server: Server, name: str, mails: Sequence[Hostile]) -> set[int]:
    """As a mail client of another inbox submits them."""
    await server.new_inbox("writer")

    def submit() -> None:
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.login(WRITER, server.token)
            for mail in mails:
                raw = raw_mail_with_files(*FILES, sender=WRITER, message_id=f"<{mail.number}@program>")
                smtp.sendmail(WRITER, [f"{name}@postroom.localhost"], raw)

    await asyncio.to_thread(submit)
    return {mail.number for mail in mails}


WAYS = [
    *(way for way in IN_ORDER if way is not by_send_inside),
    by_rest,
    by_v0,
    by_submission,
    pytest.param(by_connection, marks=pytest.mark.needs("dovecot")),
]


class Moods:
    """How clamd behaves now."""

    def __init__(self) -> None:
        self.now: Talk = finds

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.now(reader, writer)


@pytest.fixture
def moods(monkeypatch: pytest.MonkeyPatch) -> Moods:
    monkeypatch.setattr(clamd, "SCAN_SECONDS", 600.0)  # the tests themselves may be slow
    monkeypatch.setattr(leases, "LEASE", 100)
    return Moods()


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, moods: Moods, request: pytest.FixtureRequest
) -> AsyncIterator[Server]:
    """Its parameter is for how many seconds an email waits for clamd."""
    async with odd_clamd(moods.talk) as address:
        opened = {"IMAP": "127.0.0.1:0", "SUBMISSION": "127.0.0.1:0", "PLAN": "developer"}
        asked = {"CLAMD": address, "CLAMD_WAIT": str(request.param)}
        config = settings(tmp_path, DATABASE_URL=database_url, **opened, **asked)
        async with running_server(config, clock) as running:
            yield running


@contextlib.asynccontextmanager
async def trying_again(server: Server) -> AsyncIterator[None]:
    """Time goes on, so the claim of an email that waits for clamd ends, and it is tried again."""

    async def turn() -> None:
        while True:
            server.clock.turn(200)
            server.resources.db.ring(examine.BELL)
            await asyncio.sleep(PAUSE_SECONDS)

    turning = asyncio.ensure_future(turn())
    try:
        yield
    finally:
        turning.cancel()


def is_any_waiting(tx: Tx) -> bool:
    return tx.one("select 1 as found from examinations") is not None


async def until_examined(server: Server, inbox_id: str, count: int) -> list[dict[str, Any]]:
    """What is listed waits from then on, so that is asked first."""
    async with asyncio.timeout(120):
        while len(await listed(server, inbox_id)) < count or await server.resources.db.read(is_any_waiting):
            await asyncio.sleep(PAUSE_SECONDS)
    return await listed(server, inbox_id)


async def events_of(server: Server, inbox_id: str) -> int:
    query = {"inboxId": inbox_id, "event_types": "message.received", "limit": "100"}
    return len((await server.api.get("/v1/events", params=query)).json()["data"])


@pytest.mark.share
@pytest.mark.parametrize("server", [3600], indirect=True)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_what_clamd_finds_is_withheld(server: Server, way: WayIn) -> None:
    inbox_id = await server.new_inbox("agent")
    async with trying_again(server):
        taken = await way(server, "agent", [infected_mail(1)])
        if way is by_redirect_inside:
            assert taken == set(), "an infected email is not passed on"
            return
        (message,) = await until_examined(server, inbox_id, 1)
    assert await events_of(server, inbox_id) == (way not in NOT_RECEIVED)
    await require_withheld(server, message)


async def require_withheld(server: Server, message: dict[str, Any]) -> None:
    said = [(file["filename"], file.get("infected"), file["scanned"]) for file in message["attachments"]]
    assert said == [("clean.txt", None, True), (BAD, NAME, True)]
    assert message["verdict"] == "malicious"
    for path in (f"/v1/attachments/{message['id']}/{BAD}", f"/v1/messages/{message['id']}/raw"):
        refused = await server.api.get(path)
        assert (refused.status_code, refused.json()["error"]) == (403, "infected"), path

    content = await aside(lambda: read_by_imap(server))
    assert EICAR not in content
    assert b64encode(EICAR)[:20] not in content


def read_by_imap(server: Server) -> bytes:
    client = log_in(server, "agent")
    (count,) = ok(client.select("INBOX", readonly=True))
    found = ok(client.fetch("1:*", "(BODY.PEEK[])")) if int(count) else []
    client.logout()
    return b"".join(each[1] for each in found if isinstance(each, tuple))


@pytest.mark.share
@pytest.mark.parametrize("server", [0], indirect=True)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_while_clamd_is_away_email_passes_and_says_so(server: Server, way: WayIn, moods: Moods) -> None:
    inbox_id = await server.new_inbox("agent")
    moods.now = leave
    async with trying_again(server):
        assert await way(server, "agent", [infected_mail(1)]) == {1}
        (message,) = await until_examined(server, inbox_id, 1)
        said = [(file["filename"], file.get("infected"), file["scanned"]) for file in message["attachments"]]
        assert said == [("clean.txt", None, False), (BAD, None, False)]
        assert (await server.api.get(f"/v1/attachments/{message['id']}/{BAD}")).content == EICAR
        assert "malware scanner" in str((await server.api.get("/ready")).json()["warnings"])
        moods.now = finds
        await by_smtp(server, "agent", [infected_mail(2)])
        both = await until_examined(server, inbox_id, 2)
    newer = next(each for each in both if each["id"] != message["id"])
    assert (newer["verdict"], newer["attachments"][1]["infected"]) == ("malicious", NAME)
    assert (await server.api.get("/ready")).json()["warnings"] == []


@pytest.mark.parametrize("server", [3600], indirect=True)
async def test_nobody_sees_email_that_waits_for_clamd(
    server: Server, moods: Moods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs, streams for ever, talks nonsense and restarts in the middle; then it is back."""
    inbox_id = await server.new_inbox("agent")
    moods.now = leave
    await by_smtp(server, "agent", [infected_mail(1)])
    await until(lambda: server.resources.services.found)
    for path in ("messages", "threads"):
        assert (await server.api.get(f"/v1/inboxes/{inbox_id}/{path}")).json()["data"] == []
    assert (await server.api.get(f"/v0/inboxes/{inbox_id}/messages")).json()["messages"] == []
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?include=blocked")).json()["data"] == []
    assert await aside(lambda: read_by_imap(server)) == b""
    assert await events_of(server, inbox_id) == 0
    async with trying_again(server):
        with monkeypatch.context() as hurried:
            hurried.setattr(clamd, "SCAN_SECONDS", 0.2)
            for mood in (hang, flood, says(b"stream: OK but\0")):
                asked = asyncio.Event()
                moods.now = watched(mood, asked)
                await asked.wait()
        moods.now = finds
        (message,) = await until_examined(server, inbox_id, 1)
    await require_withheld(server, message)
    assert await events_of(server, inbox_id) == 1


def watched(mood: Talk, asked: asyncio.Event) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await mood(reader, writer)

    return talk


@pytest.mark.parametrize("server", [0], indirect=True)
async def test_what_a_rule_copies_is_as_it_was_found(server: Server) -> None:
    inbox_id, other_id = await server.new_inbox("agent"), await server.new_inbox("other")
    rule = {"name": "copy", "query": "subject:files", "actions": [{"type": "copyTo", "inboxId": other_id}]}
    made = await server.api.post("/v1/rules", params={"inboxId": inbox_id}, json=rule)
    assert made.status_code == 201, made.text
    await by_smtp(server, "agent", [infected_mail(1)])
    (original,) = await until_examined(server, inbox_id, 1)
    (copy,) = await until_examined(server, other_id, 1)
    for name in ("auth", "verdict", "signals", "junk"):
        assert copy[name] == original[name], name
    said = [(file.get("infected"), file["scanned"]) for file in copy["attachments"]]
    assert said == [(None, True), (NAME, True)]
    assert (await server.api.get(f"/v1/messages/{copy['id']}/raw")).status_code == 403
