"""Search, labels, usage and lists of many pages, through both clients, the command and the tools."""

import json
import time
from collections.abc import Callable

import pytest

from postroom.mailbox import message_json
from postroom_client import AsyncClient
from postroom_client.results import Inbox, SearchResult
from tests.api.test_search import letter, settled
from tests.client.live import LiveServer, Shell
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def test_a_search_goes_on_over_its_pages(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("agent")
        for number in range(5):
            await server.deliver(letter(f"Report {number}", "weekly numbers"), "agent")
        await settled(server)
        found = [result async for result in client.search("weekly", inbox_id=inbox.id)]
        assert [result.message.subject for result in found] == [f"Report {n}" for n in range(4, -1, -1)]
        assert found[0].matched == ["text"]
        assert found[0].snippet == "weekly numbers"
        pages = await client.search_page("weekly", limit=2)
        assert (len(pages.data), pages.next is not None) == (2, True)


async def test_lists_are_gone_through_to_their_end(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("agent")
        for number in range(3):
            await server.deliver(letter(f"Report {number}", "numbers"), "agent")
        await settled(server)
        threads = [thread async for thread in client.iter_threads(inbox.id, limit=2)]
        assert [thread.subject for thread in threads] == ["Report 2", "Report 1", "Report 0"]
        assert [item.id async for item in client.iter_all_threads()] == [item.id for item in threads]
        assert len([message async for message in client.iter_messages(inbox.id, limit=1)]) == 3
        assert len([event async for event in client.iter_events()]) == 3
        assert len([message async for message in client.iter_thread_messages(threads[0].id)]) == 1
        assert [item.id async for item in client.iter_inboxes()] == [inbox.id]


async def test_pages_that_are_cut_short_or_asked_for_too_large_are_not_the_last(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("agent")
        for number in range(3):
            await server.deliver(letter(f"Report {number}", "numbers"), "agent")
        monkeypatch.setattr(message_json, "PAGE_BYTES", 1)  # every page ends behind its first message
        assert len((await client.list_messages(inbox.id)).data) == 1
        found = [message.subject async for message in client.iter_messages(inbox.id)]
        assert found == ["Report 2", "Report 1", "Report 0"]
        for number in range(105):
            await client.add_suppression(f"someone{number}@example.com")
        assert len([each async for each in client.iter_suppressions(limit=500)]) == 105


async def test_threads_are_labelled_and_usage_is_told(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("agent")
        await server.deliver(letter("Report", "numbers"), "agent")
        await settled(server)
        (thread,) = (await client.list_all_threads()).data
        assert (await client.label_thread(thread.id, add=["Work", "Later"])).labels == ["Later", "Work"]
        assert (await client.label_thread(thread.id, remove=["later"])).labels == ["Work"]
        assert (await client.list_threads(inbox.id, label="WORK")).total == 1
        usage = await client.get_usage(group_by="inbox")
        assert [(group.group, group.received) for group in usage.data] == [(inbox.id, 1)]


def wait_until_found(live: LiveServer, q: str, count: int) -> list[SearchResult]:
    with live.client() as client:
        while len(found := list(client.search(q))) < count:
            time.sleep(0.05)
        return found


def test_the_command_searches_labels_and_tells_usage(
    live: LiveServer, shell: Shell, new_inbox: Callable[[], Inbox]
) -> None:
    ann, bob = new_inbox(), new_inbox()
    with live.client() as client:
        client.send(ann.id, to=bob.address, subject="Zebra crossing", body="Where the zebra walks.")
    found = wait_until_found(live, "zebra", 2)
    answer = json.loads(shell.run("search", "zebra", "is:sent", "--json").stdout)
    assert [result["message"]["subject"] for result in answer["data"]] == ["Zebra crossing"]
    shown = shell.run("search", "zebra", "--no-json").stdout
    assert "Zebra crossing" in shown
    assert "Where the zebra walks." in shell.run("search", "zebra", "--open", "--no-json").stdout
    assert shell.run("search", "unicornology", "--open", "--json").exit_code == 1
    thread_id = found[0].message.thread_id
    assert json.loads(shell.run("threads", "label", thread_id, "--add", "Zoo", "--json").stdout)[
        "labels"
    ] == ["Zoo"]
    listed = json.loads(shell.run("threads", "list", "--all", "--label", "zoo", "--json").stdout)
    assert [thread["id"] for thread in listed["data"]] == [thread_id]
    assert json.loads(shell.run("usage", "--json").stdout)["data"][-1]["received"] >= 1
    assert "RECEIVED" in shell.run("usage", "--group-by", "inbox", "--no-json").stdout
