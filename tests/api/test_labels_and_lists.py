"""Labels on threads and on single messages, lists across inboxes, and lists newest first."""

from typing import Any

import pytest

from tests.api.test_search import letter
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def list_threads(server: Server, **query: str) -> dict[str, Any]:
    answer = await server.api.get("/v1/threads", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def subjects(page: dict[str, Any]) -> list[str]:
    return [thread["subject"] for thread in page["data"]]


@pytest.fixture
async def inboxes(server: Server) -> dict[str, str]:
    """Each with two threads; those of support are newer."""
    made = {}
    for name in ("sales", "support"):
        made[name] = await server.new_inbox(name)
        for number in (1, 2):
            server.clock.turn(1000)
            await server.deliver(letter(f"{name} {number}", f"for {name}"), name)
    return made


async def test_threads_are_listed_across_the_inboxes_of_a_key_and_read_and_unread_ones_apart(
    server: Server, inboxes: dict[str, str]
) -> None:
    page = await list_threads(server)
    assert (subjects(page), page["total"]) == (["support 2", "support 1", "sales 2", "sales 1"], 4)
    page = await list_threads(server, limit="2", offset="1")
    assert (subjects(page), page["total"]) == (["support 1", "sales 2"], 4)
    assert subjects(await list_threads(server, inboxId=inboxes["sales"])) == ["sales 2", "sales 1"]
    for unknown in ({"inboxId": "inb_0"}, {"podId": "pod_0"}, {"inboxId": "\x01"}):
        assert await list_threads(server, **unknown) == {"data": [], "total": 0}
    made = await server.api.post(f"/v1/inboxes/{inboxes['sales']}/api-keys", json={"name": "s"})
    async with server.client(made.json()["token"]) as client:
        assert subjects((await client.get("/v1/threads")).json()) == ["sales 2", "sales 1"]
        other = await client.get("/v1/threads", params={"inboxId": inboxes["support"]})
        assert other.json() == {"data": [], "total": 0}
    first = (await list_threads(server))["data"][0]["id"]
    await server.api.patch(f"/v1/threads/{first}", json={"is_read": True})
    assert subjects(await list_threads(server, is_read="true")) == ["support 2"]
    assert subjects(await list_threads(server, is_read="false")) == ["support 1", "sales 2", "sales 1"]
    assert subjects(await list_threads(server)) == ["support 2", "support 1", "sales 2", "sales 1"]


@pytest.mark.both_databases
async def test_labels_are_added_removed_and_found_without_case(
    server: Server, inboxes: dict[str, str]
) -> None:
    newest, older, *_ = [thread["id"] for thread in (await list_threads(server))["data"]]
    for thread_id in (older, newest):
        changed = await server.api.patch(f"/v1/threads/{thread_id}", json={"addLabels": ["Urgent", "Ärger"]})
        assert changed.json()["labels"] == ["Urgent", "Ärger"]
        assert changed.json()["ok"] is True
    assert subjects(await list_threads(server, label="URGENT")) == ["support 2", "support 1"]
    listed = await server.api.get(f"/v1/inboxes/{inboxes['support']}/threads", params={"label": "ärger"})
    assert subjects(listed.json()) == ["support 2", "support 1"]
    changed = await server.api.patch(f"/v1/threads/{newest}", json={"removeLabels": ["urgent"]})
    assert changed.json()["labels"] == ["Ärger"]
    assert (await server.api.get(f"/v1/threads/{newest}")).json()["labels"] == ["Ärger"]
    page = await list_threads(server, label="urgent")
    assert (subjects(page), page["total"]) == (["support 1"], 1)
    assert subjects(await list_threads(server, label="ärger", is_read="false")) == ["support 2", "support 1"]


async def test_a_new_message_moves_a_labelled_thread_to_the_front(
    server: Server, inboxes: dict[str, str]
) -> None:
    threads = (await list_threads(server))["data"]
    for thread in threads:
        await server.api.patch(f"/v1/threads/{thread['id']}", json={"addLabels": ["work"]})
    oldest = threads[-1]["id"]
    messages = (await server.api.get(f"/v1/threads/{oldest}/messages")).json()["data"]
    answer = letter("sales 1", "an answer").replace(
        b"Subject:", b"In-Reply-To: " + messages[0]["rfcMessageId"].encode() + b"\r\nSubject:"
    )
    server.clock.turn(1000)
    await server.deliver(answer, "sales")
    assert subjects(await list_threads(server, label="work"))[0] == "sales 1"
    newest_first = await server.api.get(f"/v1/threads/{oldest}/messages", params={"order": "desc"})
    assert [message["bodyText"].strip() for message in newest_first.json()["data"]] == [
        "an answer",
        "for sales",
    ]


NOT_LABELS: list[dict[str, Any]] = [
    *({"addLabels": [""]}, {"addLabels": ["x" * 51]}, {"addLabels": ["a\nb"]}, {"removeLabels": [" "]}),
    *({"addLabels": [str(number) for number in range(21)]}, {"addLabels": "a"}, {}),
]


async def test_one_message_has_labels_of_its_own_and_its_thread_has_those_of_all(
    server: Server, inboxes: dict[str, str]
) -> None:
    thread = (await list_threads(server))["data"][0]["id"]
    [first] = (await server.api.get(f"/v1/threads/{thread}/messages")).json()["data"]
    answer = letter("support 2", "an answer").replace(
        b"Subject:", b"In-Reply-To: " + first["rfcMessageId"].encode() + b"\r\nSubject:"
    )
    await server.deliver(answer, "support")
    changed = await server.api.patch(f"/v1/messages/{first['id']}", json={"addLabels": ["Beta", "alpha"]})
    assert (changed.status_code, changed.json()["labels"]) == (200, ["alpha", "Beta"])
    assert (await server.api.get(f"/v1/messages/{first['id']}")).json()["labels"] == ["alpha", "Beta"]
    of_thread = (await server.api.get(f"/v1/threads/{thread}/messages")).json()["data"]
    assert [message["labels"] for message in of_thread] == [["alpha", "Beta"], []]
    of_inbox = await server.api.get(f"/v1/inboxes/{inboxes['support']}/messages")
    assert sum(bool(message["labels"]) for message in of_inbox.json()["data"]) == 1
    assert (await server.api.get(f"/v1/threads/{thread}")).json()["labels"] == ["alpha", "Beta"]
    await server.api.patch(f"/v1/threads/{thread}", json={"addLabels": ["all"]})
    await server.api.patch(f"/v1/messages/{first['id']}", json={"removeLabels": ["ALPHA", "all", "beta"]})
    of_thread = (await server.api.get(f"/v1/threads/{thread}/messages")).json()["data"]
    assert [message["labels"] for message in of_thread] == [[], ["all"]]
    assert (await server.api.get(f"/v1/threads/{thread}")).json()["labels"] == ["all"]


async def test_a_key_that_drafts_labels_a_message_and_gives_no_other_moment(
    server: Server, inboxes: dict[str, str]
) -> None:
    path = f"/v1/inboxes/{inboxes['sales']}"
    message = (await server.api.get(f"{path}/messages")).json()["data"][0]["id"]
    for permission, status in (("draft", 200), ("read", 403)):
        made = await server.api.post(f"{path}/api-keys", json={"name": "a", "permissions": [permission]})
        async with server.client(made.json()["token"]) as client:
            labelled = await client.patch(f"/v1/messages/{message}", json={"addLabels": ["seen by it"]})
            assert labelled.status_code == status
            moved = await client.patch(f"/v1/messages/{message}", json={"sendAt": "2100-01-01T00:00:00Z"})
            assert moved.status_code == 403
    other = (await server.api.get(f"/v1/inboxes/{inboxes['support']}/messages")).json()["data"][0]["id"]
    own = await server.api.post(f"{path}/api-keys", json={"name": "b"})
    async with server.client(own.json()["token"]) as client:
        assert (await client.patch(f"/v1/messages/{other}", json={"addLabels": ["x"]})).status_code == 404


async def test_labels_that_are_not_valid_are_refused_for_threads_and_messages(
    server: Server, inboxes: dict[str, str]
) -> None:
    thread = (await list_threads(server))["data"][0]["id"]
    for body in NOT_LABELS:
        answer = await server.api.patch(f"/v1/threads/{thread}", json=body)
        assert answer.status_code == 400, body
        assert (await server.api.get(f"/v1/threads/{thread}")).json()["labels"] == []
    listed = await server.api.get(f"/v1/inboxes/{inboxes['sales']}/messages")
    message = listed.json()["data"][0]["id"]
    for body in NOT_LABELS:
        assert (await server.api.patch(f"/v1/messages/{message}", json=body)).status_code == 400, body
        assert (await server.api.get(f"/v1/messages/{message}")).json()["labels"] == []


async def test_events_are_listed_newest_first(server: Server, inboxes: dict[str, str]) -> None:
    oldest_first = (await server.api.get("/v1/events")).json()["data"]
    page = (await server.api.get("/v1/events", params={"order": "desc", "limit": "3"})).json()
    assert page["data"] == oldest_first[:0:-1]
    rest = await server.api.get("/v1/events", params={"order": "desc", "after": page["next"]})
    assert rest.json()["data"] == oldest_first[:1]


async def test_usage_counts_by_day_inbox_and_pod(server: Server, inboxes: dict[str, str]) -> None:
    usage = (await server.api.get("/v1/usage")).json()
    assert len(usage["data"]) == 30
    today = usage["data"][-1]
    assert (today["group"], today["received"], today["sent"]) == (usage["to"], 4, 0)
    assert today["storedBytes"] > 0
    assert usage["data"][0]["storedBytes"] == 0
    by_inbox = (await server.api.get("/v1/usage", params={"group_by": "inbox"})).json()["data"]
    assert {group["group"]: group["received"] for group in by_inbox} == {
        inboxes["sales"]: 2,
        inboxes["support"]: 2,
    }
    (pod,) = (await server.api.get("/v1/usage", params={"group_by": "pod"})).json()["data"]
    assert (pod["received"], pod["storedBytes"]) == (4, today["storedBytes"])


NOT_DAYS = [
    {"from": "yesterday"},
    {"to": "2026-02-30"},
    {"from": "2026-02-02", "to": "2026-02-01"},
    {"from": "2020-01-01", "to": "2026-01-01"},
    {"group_by": "x"},
]


async def test_usage_of_a_deleted_inbox_stays_without_its_bytes_and_takes_only_days(
    server: Server, inboxes: dict[str, str]
) -> None:
    for inbox_id in inboxes.values():
        await server.api.delete(f"/v1/inboxes/{inbox_id}")
    today = (await server.api.get("/v1/usage")).json()["data"][-1]
    assert (today["received"], today["storedBytes"]) == (4, 0)
    for query in NOT_DAYS:
        assert (await server.api.get("/v1/usage", params=query)).status_code == 400, query
