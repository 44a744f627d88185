"""Three nodes: one that freezes, a database and a store that go away, kills and restarts, races.

POSTROOM_TEST_NODE_KILLS, POSTROOM_TEST_NODE_MAILS and POSTROOM_TEST_NODE_LARGE set the size of the kills.
Half as many restarts of PostgreSQL come with them.
"""

import asyncio
import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

import httpx2
import psycopg
import pytest

from tests.nodes.cluster import NODES, PATIENCE_SECONDS, Cluster, Node, hand_over, running_cluster
from tests.postgres_engine import Engine
from tests.raw_mails import raw_mail
from tests.waiting import until

KILLS = int(os.environ.get("POSTROOM_TEST_NODE_KILLS", "3"))
MAILS = int(os.environ.get("POSTROOM_TEST_NODE_MAILS", "24"))
LARGE = int(os.environ.get("POSTROOM_TEST_NODE_LARGE", "2"))
SENDERS = 4
SENDS_PER_MINUTE = 10
SHORT_TURNS = 2  # in which a write waits for a row, before those that last
LARGE_TEXT = "x" * 300_000

pytestmark = pytest.mark.needs("haproxy")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("nodes")) as running:
        yield running


async def status_of(node: Node, path: str = "/v1/me") -> int:
    async with node.client() as api:
        return (await api.get(path)).status_code


async def all_work(cluster: Cluster) -> None:
    for node in cluster.nodes:

        async def works(node: Node = node) -> bool:
            return await status_of(node) == 200 and await status_of(node, "/ready") == 200

        await until(works)


# A node that stands still


def began(watcher: "psycopg.Connection[Any]", state: str) -> set[Any]:
    """When the statements were begun of those who are in this state."""
    rows = watcher.execute(
        f"select query_start from pg_stat_activity where {state}"
        " and datname = current_database() and pid <> pg_backend_pid()"
    )
    return {row[0] for row in rows}


async def freeze_in_mid_transaction(
    cluster: Cluster, watcher: "psycopg.Connection[Any]", node: Node, inbox_id: str
) -> "asyncio.Task[int]":
    """A write of the node waits for a row; the row is free the moment the node stands still."""
    with psycopg.connect(cluster.database_url) as other:
        other.execute("select 1 from inboxes where id = %s for update", (inbox_id,))
        stuck = asyncio.create_task(rename(node, inbox_id, "by the frozen node"))
        turns: set[Any] = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(turns) < SHORT_TURNS + 1:
                await asyncio.sleep(0.005)
                turns |= began(watcher, "wait_event_type = 'Lock'")
        node.freeze()
        other.rollback()
    return stuck


async def rename(node: Node, inbox_id: str, name: str) -> int:
    async with node.client() as api:
        answer = await api.patch(f"/v1/inboxes/{inbox_id}", json={"displayName": name})
    return answer.status_code


async def is_renamed(node: Node, inbox_id: str) -> bool:
    return await rename(node, inbox_id, "by another") == 200


@pytest.mark.share(2, turn=1)
async def test_a_node_frozen_in_mid_transaction_stops_nobody_else(cluster: Cluster) -> None:
    frozen, second, third = cluster.nodes
    held = await cluster.new_inbox("held")
    free = {node.number: await cluster.new_inbox(f"free-{node.number}") for node in (second, third)}
    with psycopg.connect(cluster.database_url, autocommit=True) as watcher:
        while True:
            stuck = await freeze_in_mid_transaction(cluster, watcher, frozen, held)
            if began(watcher, "state = 'idle in transaction'"):
                break
            frozen.thaw()
            await stuck
    try:
        own = asyncio.create_task(until(lambda: is_renamed(second, held)))
        others = [
            rename(node, free[node.number], f"{number}") for number in range(20) for node in (second, third)
        ]
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert set(await asyncio.gather(*others)) == {200}
            await own
    finally:
        frozen.thaw()
    assert await stuck in (200, 503)
    await all_work(cluster)


# A database and a store that go away


async def assert_away_and_back(cluster: Cluster, name: str) -> None:
    answers = [
        *(status_of(node) for node in cluster.nodes),
        *(asyncio.to_thread(hand_over, node.ports["smtp"], name, raw_mail()) for node in cluster.nodes),
    ]
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await asyncio.gather(*answers) == [503] * NODES + [451] * NODES
    cluster.database.carry()
    await all_work(cluster)
    for node in cluster.nodes:
        await until(partial(takes_mail, node.ports["smtp"], name))


async def takes_mail(port: int, name: str) -> bool:
    """Each worker, reader and writer of a node finds its own way back to the database."""
    return await asyncio.to_thread(hand_over_or_fail, port, name, raw_mail()) == 250


async def test_a_database_that_says_nothing_is_503_and_451_and_all_goes_on_when_it_speaks(
    cluster: Cluster,
) -> None:
    await cluster.new_inbox("silent")
    cluster.database.swallow()
    await assert_away_and_back(cluster, "silent")


async def test_a_database_that_is_gone_is_503_and_451_and_all_goes_on_when_it_is_back(
    cluster: Cluster,
) -> None:
    await cluster.new_inbox("gone")
    cluster.database.go_away()
    await assert_away_and_back(cluster, "gone")


async def test_a_store_that_is_gone_keeps_only_large_mail_waiting(cluster: Cluster) -> None:
    inbox_id = await cluster.new_inbox("large")
    first, second, _ = cluster.nodes
    cluster.store.go_away()
    large = raw_mail(LARGE_TEXT, subject="large")
    assert await asyncio.to_thread(hand_over, first.ports["smtp"], "large", large) == 452
    assert await asyncio.to_thread(hand_over, second.ports["smtp"], "large", raw_mail(subject="small")) == 250
    cluster.store.carry()
    assert await asyncio.to_thread(hand_over, first.ports["smtp"], "large", large) == 250
    found = {message["subject"]: message["id"] for message in await cluster.messages_of(inbox_id)}
    assert set(found) == {"small", "large"}
    async with second.client() as api:  # what one node has put there another reads
        raw = await api.get(f"/v1/messages/{found['large']}/raw")
    assert LARGE_TEXT.encode() in raw.content
    await all_work(cluster)


# Kills and restarts


@dataclass
class Post:
    """What the senders know. A mail without an answer is handed over again, as mail servers do."""

    waiting: list[int]
    accepted: set[str] = field(default_factory=set)

    async def send_all(self, port: int, name: str) -> None:
        while self.waiting:
            number = self.waiting.pop(0)
            subject = f"mail {number}"
            raw = raw_mail(
                LARGE_TEXT if number < LARGE else "Hello", subject=subject, message_id=f"<{number}@x>"
            )
            if await asyncio.to_thread(hand_over_or_fail, port, name, raw) == 250:
                self.accepted.add(subject)
            else:
                self.waiting.append(number)
                await asyncio.sleep(0.05)


def hand_over_or_fail(port: int, name: str, raw: bytes) -> int:
    try:
        return hand_over(port, name, raw)
    except OSError:
        return 0


def kill_and_start(node: Node) -> None:
    node.kill()
    node.start()


def crash_and_start(engine: Engine) -> None:
    engine.crash()
    engine.start()


def stop_and_start(engine: Engine) -> None:
    engine.stop()
    engine.start()


def blows(cluster: Cluster, chance: random.Random) -> Iterator[Callable[[], None]]:
    """Kills of nodes, and after every other one a restart of PostgreSQL, by turns as a crash or in order."""
    restarts = cycle([crash_and_start, stop_and_start])
    for number in range(KILLS):
        yield partial(kill_and_start, chance.choice(cluster.nodes))
        if number % 2 == 0:
            yield partial(next(restarts), cluster.engine)


async def strike(cluster: Cluster, post: Post) -> None:
    """Spread over the mails, so that all go on between one blow and the next."""
    chosen = list(blows(cluster, random.Random(20261115)))

    def has_come(part: int) -> bool:
        return len(post.accepted) >= MAILS * part // (len(chosen) + 1)

    for number, blow in enumerate(chosen):
        await until(partial(has_come, number + 1))
        await asyncio.to_thread(blow)


async def events_behind(cluster: Cluster, after: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = await cluster.page(
            "/v1/events", {"limit": "100"} | ({} if after is None else {"after": after})
        )
        if not page["data"]:
            return found
        found += page["data"]
        after = page["next"]


async def last_event(cluster: Cluster) -> str | None:
    events = await events_behind(cluster, None)
    return events[-1]["event_id"] if events else None


async def test_kills_of_nodes_and_restarts_of_the_database_lose_double_and_disorder_nothing(
    cluster: Cluster,
) -> None:
    inbox_id = await cluster.new_inbox("kills")
    before = await last_event(cluster)
    numbers = list(range(MAILS))
    random.Random(20261115).shuffle(numbers)
    post = Post(numbers)
    senders = [post.send_all(cluster.ports["mail"], "kills") for _ in range(SENDERS)]
    async with asyncio.timeout(PATIENCE_SECONDS + MAILS):
        await asyncio.gather(*senders, strike(cluster, post))
    await all_work(cluster)
    found = Counter(message["subject"] for message in await cluster.messages_of(inbox_id))
    assert found == {f"mail {number}": 1 for number in range(MAILS)}

    async def all_told() -> bool:
        return len(await events_behind(cluster, before)) >= MAILS

    await until(all_told)
    told = await events_behind(cluster, before)
    assert Counter(event["message"]["subject"] for event in told) == found
    for node in cluster.nodes:  # every node tells them in the same order
        async with node.client() as api:
            query = {"limit": "100"} | ({} if before is None else {"after": before})
            page = (await api.get("/v1/events", params=query)).json()["data"]
        assert [event["event_id"] for event in page] == [event["event_id"] for event in told][: len(page)]


# A rolling restart


async def ask_all_the_time(cluster: Cluster, done: asyncio.Event) -> Counter[int | str]:
    answers: Counter[int | str] = Counter()
    async with cluster.client() as api:
        while not done.is_set():
            try:
                answers[(await api.get("/v1/inboxes")).status_code] += 1
            except httpx2.HTTPError as error:
                answers[repr(error)] += 1
            await asyncio.sleep(0.05)
    return answers


async def write_all_the_time(cluster: Cluster, inbox_id: str, done: asyncio.Event) -> Counter[int | str]:
    answers: Counter[int | str] = Counter()
    async with cluster.client() as api:
        while not done.is_set():
            name = {"displayName": secrets.token_hex(4)}
            try:
                answers[(await api.patch(f"/v1/inboxes/{inbox_id}", json=name)).status_code] += 1
            except httpx2.HTTPError as error:
                answers[repr(error)] += 1
            await asyncio.sleep(0.05)
    return answers


async def hear(cluster: Cluster, after: str | None, count: int) -> list[str]:
    """By long requests, each behind the last event: as a stream that resumes. Ends behind what is due."""
    heard: list[str] = []
    async with cluster.client() as api:
        while True:
            wait = "1" if len(heard) < count else "0"
            query = {"wait": wait, "limit": "10"} | ({} if after is None else {"after": after})
            page = (await api.get("/v1/events", params=query)).json()
            heard += [event["message"]["subject"] for event in page["data"]]
            after = page["next"] or after
            if wait == "0":
                return heard


@pytest.mark.share(2, turn=0)
async def test_a_rolling_restart_fails_no_request_and_misses_no_event(cluster: Cluster) -> None:
    inbox_id = await cluster.new_inbox("rolling")
    await until(cluster.is_all_seen)
    before, done = await last_event(cluster), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask_all_the_time(cluster, done))
        writing = group.create_task(write_all_the_time(cluster, inbox_id, done))
        hearing = group.create_task(hear(cluster, before, 3 * NODES))
        for number, node in enumerate(cluster.nodes):
            post = Post([100_000 + number * 10 + at for at in range(3)])
            sending = group.create_task(post.send_all(cluster.ports["mail"], "rolling"))
            await asyncio.to_thread(node.stop)
            await sending
            await asyncio.to_thread(node.start)
            await all_work(cluster)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await hearing
        done.set()
    assert set(asking.result()) == set(writing.result()) == {200}
    sent = [f"mail {100_000 + number * 10 + at}" for number in range(NODES) for at in range(3)]
    assert sorted(hearing.result()) == sent


# Races


async def send(node: Node, inbox_id: str, key: str, to: str) -> httpx2.Response:
    """Again with the same key while the node says that it is too busy, as clients do."""
    async with node.client() as api:
        while True:
            answer = await api.post(
                f"/v1/inboxes/{inbox_id}/send",
                json={"to": to, "subject": "once", "body": "Hello"},
                headers={"Idempotency-Key": key},
            )
            if answer.status_code != 503:
                return answer


async def test_the_same_key_on_all_nodes_at_once_sends_one_mail(cluster: Cluster) -> None:
    inbox_id = await cluster.new_inbox("idempotent")
    for key in ("one", "two"):
        answers = await asyncio.gather(
            *(
                send(node, inbox_id, key, "idempotent@postroom.localhost")
                for _ in range(3)
                for node in cluster.nodes
            )
        )
        assert {answer.status_code for answer in answers} <= {200, 409}
        sent = {answer.json()["messageId"] for answer in answers if answer.status_code == 200}
        assert len(sent) == 1
    async with cluster.client() as api:
        outgoing = await api.get(f"/v1/inboxes/{inbox_id}/messages", params={"direction": "outbound"})
    assert outgoing.json()["total"] == 2


async def test_a_limit_raced_on_all_nodes_holds(cluster: Cluster) -> None:
    inbox_id = await cluster.new_inbox("limited")
    answers = await asyncio.gather(
        *(
            send(node, inbox_id, f"{number}-{node.number}", "limited@postroom.localhost")
            for number in range(6)
            for node in cluster.nodes
        )
    )
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {200: SENDS_PER_MINUTE, 429: 6 * NODES - SENDS_PER_MINUTE}


ASKED = 4


async def ask(cluster: Cluster, inbox_id: str, number: int) -> dict[str, str]:
    async with cluster.nodes[number % NODES].client() as api:
        answer = await api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={
                "to": "friend@postroom.localhost",
                "subject": f"Question {number}",
                "body": "Will you?",
                "followUps": [{"afterDays": 1, "body": "Did you see this?"}],
            },
            headers={"Idempotency-Key": f"asked-{number}"},
        )
        assert answer.status_code == 200, answer.text
        sent: dict[str, str] = answer.json()
        return sent


def answer_to(node: Node, rfc_message_id: str, number: int) -> int:
    raw = raw_mail("Yes.", message_id=f"<yes-{number}@x>", in_reply_to=rfc_message_id)
    return hand_over(node.ports["smtp"], "asking", raw)


async def test_nudges_that_all_nodes_see_at_once_leave_once_over_a_kill_and_none_after_an_answer(
    cluster: Cluster,
) -> None:
    inbox_id = await cluster.new_inbox("asking")
    await cluster.new_inbox("friend")
    sent = [await ask(cluster, inbox_id, number) for number in range(ASKED)]

    async def asked() -> list[dict[str, Any]]:
        found = {each["id"]: each for each in await cluster.messages_of(inbox_id)}
        return [found[each["id"]] for each in sent]

    async def have_left() -> bool:
        return all(each["status"] == "sent" for each in await asked())

    await until(have_left)
    names = [each["rfcMessageId"] for each in await asked()]
    with psycopg.connect(cluster.database_url, autocommit=True) as database:

        def states() -> dict[str, tuple[str, bool]]:
            rows = database.execute(
                "select thread_id, state, sent_id is not null from follow_ups where inbox_id = %s", [inbox_id]
            )
            return {thread_id: (state, is_sent) for thread_id, state, is_sent in rows}

        async def are_decided() -> bool:
            return "scheduled" not in {state for state, _ in states().values()}

        database.execute("update follow_ups set due_at = 0 where inbox_id = %s", [inbox_id])
        answers = [asyncio.to_thread(answer_to, cluster.nodes[1], names[n], n) for n in (0, 1)]
        first, second, _ = await asyncio.gather(*answers, asyncio.to_thread(kill_and_start, cluster.nodes[0]))
        assert (first, second) == (250, 250)
        await until(are_decided)
        found = states()
    outbound = Counter(
        each["threadId"] for each in await cluster.messages_of(inbox_id) if each["direction"] == "outbound"
    )
    for number, each in enumerate(sent):
        state, is_sent = found[each["threadId"]]
        assert outbound[each["threadId"]] == 1 + is_sent
        assert number in (0, 1) or (state, is_sent) == ("sent", True)
