"""A page of a large inbox is read from an index: never counted, never sorted, never scanned."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.events import event_log
from postroom.events.event_log import EventChoice
from postroom.inward import into_thread
from postroom.mailbox import message_lists, messages, threads
from postroom.storage.database import Database, Row, Tx, Values, WordIndex
from tests.conftest import Server
from tests.doubles import START
from tests.filled_inbox import fill, write_at_leisure

pytestmark = pytest.mark.share(2)

MESSAGES = 5_000


class ExplainingTx:
    """Runs every query, and keeps how the database goes about it."""

    def __init__(self, tx: Tx, is_postgres: bool) -> None:
        self._tx = tx
        self._is_postgres = is_postgres
        self.steps: list[str] = []

    def one(self, sql: str, **params: object) -> Row | None:
        self._explain(sql, params)
        return self._tx.one(sql, **params)

    def all(self, sql: str, **params: object) -> list[Row]:
        self._explain(sql, params)
        return self._tx.all(sql, **params)

    def ring(self, *bells: str) -> None:
        self._tx.ring(*bells)

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        self._explain(sql, params)
        return self._tx.tuples(sql, **params)

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        return self._tx.many(sql, rows)

    def run(self, sql: str, **params: object) -> int:
        return self._tx.run(sql, **params)

    @property
    def fulltext(self) -> WordIndex:
        return self._tx.fulltext

    def _explain(self, sql: str, params: dict[str, object]) -> None:
        if self._is_postgres:
            row = self._tx.one(f"explain (format json) {sql}", **params)
            assert row is not None
            plan = row["QUERY PLAN"]
            self.steps += nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
        else:
            self.steps += [row["detail"] for row in self._tx.all(f"explain query plan {sql}", **params)]


def nodes(plan: dict[str, Any]) -> list[str]:
    """`Index Scan messages_by_inbox`, or the bare name of a step that uses no index."""
    step = " ".join(filter(None, (plan["Node Type"], plan.get("Index Name"))))
    return [step, *(name for child in plan.get("Plans", []) for name in nodes(child))]


# SQLite sorts the keys of the parts of this index, of each no more than a page has.
MERGED = "threads_by_work_of_inbox"

# What is asked, and the index that must answer.
QUERIES: dict[str, tuple[str, Callable[[Tx, str], object]]] = {
    "inbox messages": (
        "messages_by_inbox",
        lambda tx, inbox: message_lists.list_of_inbox(tx, inbox, None, 50, 0),
    ),
    "inbound messages": (
        "messages_by_",
        lambda tx, inbox: message_lists.list_of_inbox(tx, inbox, "inbound", 50, 100),
    ),
    "outbound messages": (
        "messages_by_direction",
        lambda tx, inbox: message_lists.list_of_inbox(tx, inbox, "outbound", 50, 0),
    ),
    "threads": ("threads_by_inbox", lambda tx, inbox: threads.list_of_inbox(tx, inbox, None, 50, 0)),
    "unread threads": (
        "threads_by_work_of_inbox",
        lambda tx, inbox: threads.list_of_inbox(tx, inbox, False, 50, 100),
    ),
    "newest messages of threads": (
        "messages_by_thread",
        lambda tx, inbox: messages.list_last(tx, [f"thr_{inbox}{100000000 + n}" for n in range(1, 51)]),
    ),
    "thread messages": (
        "messages_by_thread",
        lambda tx, inbox: messages.list_of_thread(tx, f"thr_{inbox}100000001", 50, 0),
    ),
    "a reply": (
        "messages_by_rfc_id",
        lambda tx, inbox: into_thread.resolve(tx, inbox, ["<1@x>"], ["<2@x>", "<none@x>"]),
    ),
    "events": (
        "events_by_position",
        lambda tx, inbox: event_log.list_after(tx, EventChoice(Scope(inbox)), 7, 50),
    ),
    "events of an inbox": (
        "events_by_inbox",
        lambda tx, inbox: event_log.list_after(tx, EventChoice(Scope(inbox), frozenset({inbox})), 7, 50),
    ),
}


def make_large_inboxes(tx: Tx, is_postgres: bool) -> str:
    account = accounts.add(tx, "large", "free", START)
    fill(tx, account.id, "other", "postroom.localhost", MESSAGES, START)
    inbox_id = fill(tx, account.id, "large", "postroom.localhost", MESSAGES, START)
    if is_postgres:
        tx.run("analyze")
    return inbox_id


@pytest.fixture
async def large_inbox(db: Database, database_url: str) -> str:
    return await write_at_leisure(db.write, database_url, make_large_inboxes, bool(database_url))


async def test_every_page_comes_from_an_index_in_its_order(
    db: Database, database_url: str, large_inbox: str
) -> None:
    def explain(tx: Tx, ask: Callable[[Tx, str], object]) -> list[str]:
        explaining = ExplainingTx(tx, bool(database_url))
        ask(explaining, large_inbox)
        return explaining.steps

    for name, (index, ask) in QUERIES.items():
        steps = " / ".join(await db.read(explain, ask))
        assert index in steps, f"{name}: {steps}"
        assert "TEMP B-TREE" not in steps or MERGED in steps, f"{name}: {steps}"
        assert "Sort" not in steps, f"{name}: {steps}"


async def test_totals_of_a_large_inbox_come_from_counters(server: Server, database_url: str) -> None:
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    given = (account_id, "large", "postroom.localhost", MESSAGES, server.clock.now())
    inbox_id = await write_at_leisure(server.resources.db.write, database_url, fill, *given)
    path = f"/v1/inboxes/{inbox_id}/messages?limit=3&offset={MESSAGES - 1}"
    page = (await server.api.get(path)).json()
    assert (len(page["data"]), page["total"]) == (1, MESSAGES)
    unread = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads?is_read=false&limit=2")).json()
    assert (len(unread["data"]), unread["total"]) == (2, MESSAGES // 2)
