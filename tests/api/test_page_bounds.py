"""A page has a bound in bytes: it is cut short, says so, and the next begins behind what was given."""

from typing import Any

import pytest

from postroom.limits import PAGE_BYTES
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone

LARGE = "All work and no play. " * 60_000  # more than a quarter of a page


async def deliver_large(server: Server, count: int) -> str:
    inbox_id = await server.new_inbox("hello")
    for number in range(count):
        answered = "" if number == 0 else "In-Reply-To: <0@x>\r\n"
        raw = (
            f"From: a@x.example\r\nTo: hello@postroom.localhost\r\nSubject: Large {number}\r\n"
            f"Message-ID: <{number}@x>\r\n{answered}\r\n{LARGE}\r\n"
        )
        await server.deliver(raw.encode(), "hello")
        server.clock.turn(1)
    return inbox_id


async def read_all(server: Server, path: str) -> list[dict[str, Any]]:
    """Page by page, as the field `truncated` says."""
    found: list[dict[str, Any]] = []
    while True:
        answer = await server.api.get(path, params={"limit": "100", "offset": str(len(found))})
        assert len(answer.content) <= PAGE_BYTES * 1.1
        page = answer.json()
        found += page["data"]
        if "truncated" not in page:
            assert len(found) == page["total"]
            return found
        assert page["truncated"] is True
        assert page["data"]


async def test_lists_of_large_messages_are_cut_and_go_on(server: Server) -> None:
    inbox_id = await deliver_large(server, 5)
    listed = await read_all(server, f"/v1/inboxes/{inbox_id}/messages")
    assert [message["subject"] for message in listed] == [f"Large {number}" for number in (4, 3, 2, 1, 0)]
    thread = await read_all(server, f"/v1/threads/{listed[0]['threadId']}/messages")
    assert [message["id"] for message in thread] == [message["id"] for message in reversed(listed)]
    assert all(len(message["bodyText"]) > 1_000_000 * 0.9 for message in thread)


async def test_a_page_of_large_events_is_cut_and_goes_on(server: Server) -> None:
    await deliver_large(server, 5)
    subjects: list[str] = []
    after = await server.next_event()
    subjects.append(after["message"]["subject"])
    query = {"after": after["event_id"], "limit": "100"}
    cuts = 0
    while page := (await server.api.get("/v1/events", params=query)).json():
        if not page["data"]:
            break
        cuts += page.get("truncated", False)
        subjects += [event["message"]["subject"] for event in page["data"]]
        query["after"] = page["next"]
    assert subjects == [f"Large {number}" for number in range(5)]
    assert cuts > 0


async def test_a_page_of_small_messages_says_nothing_of_a_cut(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(raw_mail(), "hello")
    assert set((await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()) == {"data", "total"}


async def test_a_page_far_into_a_list_is_read_aside(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for path in (f"/v1/inboxes/{inbox_id}/messages", f"/v1/inboxes/{inbox_id}/threads", "/v1/inboxes"):
        page = (await server.api.get(path, params={"offset": "100000"})).json()
        assert page["data"] == []
