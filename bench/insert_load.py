"""Durable inserts of inbox rows by many callers: group commit and one commit a call, in turns."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import uvloop

from bench.peers import one_commit_a_call
from bench.peers.one_commit_a_call import OneCommitACall
from bench.results import Aim, Result
from bench.rounds import alternate, compare
from postroom import ids
from postroom.accounts import accounts
from postroom.clock import SystemClock
from postroom.storage.database import Database, Tx
from postroom.storage.write_jobs import WriteSession


class Write(Protocol):
    def __call__(self, fn: Callable[..., Any], *args: Any) -> Awaitable[Any]: ...


@dataclass(frozen=True, slots=True)
class Engine:
    db: Database
    connect: Callable[[], WriteSession]
    writers: int


OpenEngine = Callable[[], contextlib.AbstractAsyncContextManager[Engine]]


@dataclass(frozen=True, slots=True)
class InsertLoad:
    callers: int
    seconds: float
    rounds: int


def compare_inserts(name: str, engine: OpenEngine, load: InsertLoad, aim: Aim | None) -> Result:
    pairs = alternate(
        load.rounds,
        lambda: uvloop.run(_grouped(engine, load)),
        lambda: uvloop.run(_one_commit_each(engine, load)),
    )
    rates = compare(pairs, float)
    return Result(name, rates.value, "inserts/s", aim, rates.peer(one_commit_a_call.NAME))


async def _grouped(open_engine: OpenEngine, load: InsertLoad) -> float:
    async with open_engine() as engine:
        return await _inserts_per_second(engine.db.write, load)


async def _one_commit_each(open_engine: OpenEngine, load: InsertLoad) -> float:
    async with open_engine() as engine:
        peer = OneCommitACall(engine.connect, engine.writers)
        try:
            return await _inserts_per_second(peer.write, load)
        finally:
            await peer.close()


async def _inserts_per_second(write: Write, load: InsertLoad) -> float:
    account = await write(accounts.add, f"bench {ids.trace()}", "free", SystemClock().now())
    started = time.perf_counter()
    callers = (_insert_until(started + load.seconds, write, account.id) for _ in range(load.callers))
    inserted = sum(await asyncio.gather(*callers))
    return inserted / (time.perf_counter() - started)


async def _insert_until(end: float, write: Write, account_id: str) -> int:
    inserted = 0
    while time.perf_counter() < end:
        now = SystemClock().now()
        await write(insert_inbox, ids.new(ids.INBOX, now), account_id, now)
        inserted += 1
    return inserted


def insert_inbox(tx: Tx, inbox_id: str, account_id: str, now: int) -> None:
    tx.run(
        "insert into inboxes (id, account_id, pod_id, address, domain, display_name, created_at)"
        " values (:id, :account_id, 'pod_bench', :address, 'postroom.localhost', :display_name, :now)",
        id=inbox_id,
        account_id=account_id,
        address=f"{inbox_id}@postroom.localhost",
        display_name="Bench",
        now=now,
    )
