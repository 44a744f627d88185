"""A list that is asked for again is answered as before, until anything is written."""

from typing import Any

import pytest

from postroom.clock import SECOND
from postroom.mailbox import threads
from postroom.web.requests import page_cache
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone

PATHS = ("/v1/inboxes/{inbox_id}/messages", "/v1/inboxes/{inbox_id}/threads", "/v1/threads")


async def test_what_was_written_is_in_the_next_answer(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for count in range(3):
        for path in (*PATHS, *PATHS):
            asked = path.format(inbox_id=inbox_id)
            assert (await server.api.get(asked)).json()["total"] == count, path
        await server.deliver(raw_mail(f"mail {count}", subject=f"mail {count}"), "hello")


async def test_it_is_read_again_only_when_something_was_written_or_time_has_passed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox_id, version, reads = await server.new_inbox("hello"), [1], []
    list_within = threads.list_within

    def counted(*args: Any) -> Any:
        reads.append(args)
        return list_within(*args)

    monkeypatch.setattr(threads, "list_within", counted)
    monkeypatch.setattr(server.resources.db, "version", lambda: version[0])
    asked = f"/v1/inboxes/{inbox_id}/threads"

    async def reads_of(path: str) -> int:
        reads.clear()
        assert (await server.api.get(path)).status_code == 200
        return len(reads)

    assert [await reads_of(asked) for _ in range(3)] == [1, 0, 0]
    assert [await reads_of(f"{asked}?limit=2") for _ in range(2)] == [1, 0]
    version[0] = 2
    assert [await reads_of(asked) for _ in range(2)] == [1, 0]
    server.clock.turn(page_cache.LIFETIME - SECOND)
    assert await reads_of(asked) == 0
    server.clock.turn(SECOND)
    assert await reads_of(asked) == 1


async def test_nobody_gets_the_page_of_another(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox_id, other_id = await server.new_inbox("hello"), await server.new_inbox("other")
    await server.deliver(raw_mail(), "hello")
    made = await server.api.post(f"/v1/inboxes/{other_id}/api-keys", json={"name": "narrow"})
    monkeypatch.setattr(server.resources.db, "version", lambda: 1)
    assert (await server.api.get("/v1/threads")).json()["total"] == 1
    async with server.client(made.json()["token"]) as narrow:
        for _ in range(2):
            assert (await narrow.get("/v1/threads")).json()["total"] == 0
            assert (await narrow.get(f"/v1/inboxes/{inbox_id}/messages")).status_code == 404


async def test_few_pages_are_kept_and_no_large_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = page_cache.PageCache()
    monkeypatch.setattr(page_cache, "MOST_PAGES", 2)
    for name in ("one", "two", "three"):
        pages.put(("caller", name, b""), 1, 0, b"page")  # type: ignore[arg-type]
    pages.put(("caller", "large", b""), 1, 0, b"x" * (page_cache.MOST_BYTES + 1))  # type: ignore[arg-type]
    assert [name for _, name, _ in pages._pages] == ["two", "three"]
