"""Mail fetched from an inbox by the interface of /v0, here from our own, and put into another one."""

import asyncio
from pathlib import Path

import pytest

from postroom.clock import DAY, HOUR
from postroom.errors import Unavailable
from postroom.inward.extraction_pool import ExtractionPool
from postroom.mailbox import inboxes
from postroom.transfer.fetch_agentmail import fetch_mails
from tests.conftest import Server
from tests.transfer.test_export_and_import import bring_in, listed, question


async def test_an_inbox_is_fetched_and_brought_in_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    one, two = await server.new_inbox("one"), await server.new_inbox("two")
    await server.deliver(question(), "one")
    event = await server.next_event()
    server.clock.turn(HOUR)
    body = {"to": "ann@example.com", "threadId": event["thread_id"], "body": "an answer"}
    await server.api.post(f"/v1/inboxes/{one}/send", json=body, headers={"Idempotency-Key": "a"})
    server.clock.turn(DAY)
    told: list[int] = []
    there = (server.base_url, server.token, "one@postroom.localhost")
    mails = await asyncio.to_thread(fetch_mails, *there, tmp_path / "mail", server.clock.now(), told.append)
    assert len(mails) == len(told) == 2

    inbox = await server.resources.db.read(inboxes.find, two)
    assert inbox is not None
    extractor = ExtractionPool()
    try:
        for expected in (2, 0):
            assert await bring_in(server, extractor, inbox, mails) == expected
    finally:
        await extractor.close()
    (thread,) = await listed(server, f"/v1/inboxes/{two}/threads")
    assert (thread["messageCount"], thread["isRead"]) == (2, True)
    answer, asked = await listed(server, f"/v1/inboxes/{two}/messages")
    assert [answer["subject"], asked["subject"]] == ["Re: a question", "a question"]
    assert asked["attachments"][0]["filename"] == "numbers.csv"


@pytest.mark.sqlite_alone
async def test_what_the_other_side_refuses_is_told(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    await server.new_inbox("one")
    for number, (key, address) in enumerate(
        (("pr_wrong", "one@postroom.localhost"), (server.token, "nobody@postroom.localhost"))
    ):
        with pytest.raises(Unavailable, match=r"answered 40[14]"):
            await asyncio.to_thread(
                fetch_mails, server.base_url, key, address, tmp_path / str(number), 0, lambda by: None
            )
    with pytest.raises(Unavailable, match="could not be fetched"):
        await asyncio.to_thread(
            fetch_mails, "http://127.0.0.1:9", "k", "a@b.example", tmp_path / "c", 0, lambda by: None
        )
