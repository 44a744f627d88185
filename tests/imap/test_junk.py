"""Junk in a mail client: moves and keywords say what is junk."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.events import event_log
from postroom.storage.database import Tx
from postroom.web.agentmail import events as agentmail_events
from tests.adversary.hostile import hostile
from tests.api.test_dashboard import signed_in
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


def counted(tx: Tx) -> list[tuple[int, ...]]:
    return tx.tuples("select inbound_count, junk_count, thread_count, unread_count from inboxes")


async def seen(server: Server, inbox_id: str) -> dict[str, Any]:
    """What every way of reading shows of an inbox, without times and numbers of IMAP."""

    def look() -> list[tuple[str, int]]:
        client = log_in(server, "agent")
        found = [(folder, int(ok(client.select(folder))[0])) for folder in ("INBOX", "Junk")]
        client.logout()
        return found

    found = (await server.api.get("/v1/search", params={"q": "parser"})).json()["data"]
    older = (await server.api.get(f"/v0/inboxes/{inbox_id}/messages", params={"include_spam": "true"})).json()
    (counts,) = await server.resources.db.read(counted)
    shown = await messages_of(server, inbox_id, include="junk")
    threads = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
    return {
        "messages": sorted(
            (each["id"], each["threadId"], each["folder"], each["junk"]["isJunk"]) for each in shown
        ),
        "threads": [(each["id"], each["messageCount"], each["isRead"]) for each in threads],
        "v0": sorted((each["message_id"], sorted(each["labels"])) for each in older["messages"]),
        "search": sorted(each["message"]["id"] for each in found),
        "counts": counts,
        "imap": await aside(look),
    }


async def told_in_v0(server: Server) -> list[str]:
    """The names of the newest event in /v0."""
    newest = (await server.api.get("/v1/events")).json()["data"][-1]
    stored = await server.resources.db.read(event_log.find, newest["event_id"])
    assert stored is not None
    return [each.kind for each in await server.resources.db.read(agentmail_events.render, stored)]


async def test_a_wrong_decision_is_undone_for_threads_events_v0_search_counts_and_mail_clients(
    server: Server,
) -> None:
    inbox_id = await an_inbox(server, "agent", action="folder")
    await server.deliver(note(1), "agent")
    await came(server, 1)
    await server.deliver(note(2, in_reply_to="<note1@work.example>"), "agent")
    await came(server, 2)

    async def are_found() -> dict[str, Any] | None:
        everything = await seen(server, inbox_id)
        return everything if len(everything["search"]) == 2 else None

    before = await until(are_found)
    assert [count for _, count, _ in before["threads"]] == [2]
    newest = (await messages_of(server, inbox_id))[0]["id"]
    await server.api.post(f"/v1/messages/{newest}/junk")
    assert await told_in_v0(server) == ["message.received.spam"]

    async def is_gone() -> dict[str, Any] | None:
        everything = await seen(server, inbox_id)
        return everything if len(everything["search"]) == 1 else None

    apart = await until(is_gone)
    assert [count for _, count, _ in apart["threads"]] == [1]
    assert [labels for _, labels in apart["v0"] if "spam" in labels] != []
    assert apart["counts"][:2] == (1, 1)
    assert apart["imap"] == [("INBOX", 1), ("Junk", 1)]

    await server.api.post(f"/v1/messages/{newest}/not-junk")
    assert await told_in_v0(server) == ["message.received"]
    assert await until(are_found) == before
    assert await kinds(server) == [*["message.received"] * 2, "message.junk", "message.received"]


async def test_hostile_emails_are_moved_to_junk_and_back_by_a_mail_client_and_the_pages(
    server: Server,
) -> None:
    inbox_id = await an_inbox(server, "agent")
    count = 12
    for seed in range(700, 700 + count):
        await server.deliver(hostile(seed).raw, "agent")
    await came(server, count)

    def move(source: str, target: str) -> None:
        client = log_in(server, "agent")
        assert ok(client.select(source)) == [b"%d" % count]
        ok(client.uid("MOVE", "1:*", target))
        client.logout()

    await aside(lambda: move("INBOX", "Junk"))
    assert await messages_of(server, inbox_id) == []
    apart = await messages_of(server, inbox_id, include="junk")
    async with signed_in(server) as browser:
        for each in apart[: count // 2]:
            await browser.post(f"/app/messages/{each['id']}/not-junk")
            await browser.post(f"/app/messages/{each['id']}/junk")
    await aside(lambda: move("Junk", "INBOX"))
    assert len(await messages_of(server, inbox_id)) == count

    async def is_learned() -> bool:
        told = (await server.api.get("/v1/junk")).json()
        return bool(told == {"junk": 0, "wanted": count, "waiting": 0})

    await until(is_learned)
    assert not server.resources.loops.failing()
