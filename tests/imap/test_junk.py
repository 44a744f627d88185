"""Junk in a mail client: moves and keywords say what is junk."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_junk import an_inbox, came, kinds, messages_of, note, offer
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


async def test_a_program_moves_to_junk_and_back_and_its_keywords_teach(server: Server) -> None:
    inbox_id = await an_inbox(server, "agent", action="folder")
    await server.deliver(offer(1), "agent")
    await server.deliver(note(2), "agent")
    await server.deliver(note(3), "agent")
    await came(server, 3)

    def work() -> None:
        client = log_in(server, "agent")
        assert ok(client.select("Junk")) == [b"1"]
        ok(client.uid("MOVE", "1:*", "INBOX"))
        assert ok(client.select("INBOX")) == [b"3"]
        (first, second, _) = ok(client.uid("SEARCH", "ALL"))[0].split()
        ok(client.uid("COPY", first.decode(), "Junk"))
        ok(client.uid("STORE", second.decode(), "+FLAGS", "($Junk)"))
        assert ok(client.select("Junk")) == [b"1"]
        client.logout()

    await aside(work)
    inside = await messages_of(server, inbox_id)
    assert sorted(each["subject"] for each in inside) == ["FREE!!! $$$ Make money fast", "Re: parser"]
    assert sorted((each["subject"][:4], each["junk"]["isJunk"]) for each in inside) == [
        ("FREE", False),
        ("Re: ", True),
    ]
    assert (await kinds(server)).count("message.junk") == 2
    told = (await server.api.get("/v1/junk")).json()
    assert (told["junk"], told["wanted"]) == (2, 1)


async def test_a_keyword_alone_teaches_and_moves_nothing(server: Server) -> None:
    inbox_id = await an_inbox(server, "agent", action="folder")
    await server.deliver(offer(1), "agent")
    await came(server, 1)

    def work() -> None:
        client = log_in(server, "agent")
        ok(client.select("Junk"))
        for change in ("+FLAGS", "+FLAGS", "-FLAGS"):
            ok(client.uid("STORE", "1:*", change, "($NotJunk)"))
        assert ok(client.select("Junk")) == [b"1"]
        assert ok(client.select("INBOX")) == [b"0"]
        client.logout()

    await aside(work)
    (shown,) = await messages_of(server, inbox_id, include="junk")
    assert (shown["folder"], await kinds(server)) == ("junk", ["message.junk"])
    told = (await server.api.get("/v1/junk")).json()
    assert (told["junk"], told["wanted"]) == (0, 1)


async def test_what_was_sent_and_what_a_policy_stopped_are_no_junk(server: Server) -> None:
    inbox_id = await an_inbox(server, "agent")
    body = {"to": ["agent@postroom.localhost"], "subject": "Hi", "body": "Hi"}
    key = {"Idempotency-Key": "one"}
    sent = (await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=key)).json()
    answer = await server.api.post(f"/v1/messages/{sent['messageId']}/junk")
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    rule = {"type": "block", "value": "work.example", "direction": "inbound"}
    assert (await server.api.post("/v1/policy/rules", json=rule)).status_code == 201
    await server.deliver(note(5, **{"from": "a@work.example"}), "agent")

    async def stopped_one() -> dict[str, Any] | None:
        found = await messages_of(server, inbox_id, include="blocked")
        return next((each for each in found if each["blocked"]), None)

    stopped = await until(stopped_one)
    for word in ("junk", "not-junk"):
        said = (await server.api.post(f"/v1/messages/{stopped['id']}/{word}")).json()
        assert (said["blocked"], said["folder"], said["threadId"]) == (True, "junk", "")
