"""Threads for work that would block the event loop."""

import asyncio
import threading
import weakref

import pytest

from postroom.processes import pools
from postroom.processes.pools import Pool
from tests.waiting import until


async def test_what_waits_in_one_pool_delays_nobody_in_another() -> None:
    let_go = threading.Event()
    blocked = [asyncio.create_task(pools.KEYS.run(let_go.wait)) for _ in range(5)]
    assert await pools.FILES.run(lambda: "done") == "done"
    let_go.set()
    await asyncio.gather(*blocked)


async def test_threads_are_started_up_to_the_size_of_the_pool() -> None:
    pool, both = Pool("two", 2), threading.Barrier(2)
    await asyncio.gather(*(pool.run(both.wait) for _ in range(2)))
    names = await asyncio.gather(*(pool.run(lambda: threading.current_thread().name) for _ in range(20)))
    assert set(names) <= {"two_0", "two_1"}
    pool.close()
    assert pool.jobs == 0


async def test_work_that_follows_other_work_needs_one_thread() -> None:
    pool = Pool("many", 8)
    names = {await pool.run(lambda: threading.current_thread().name) for _ in range(200)}
    assert names == {"many_0"}
    pool.close()


async def test_whoever_waits_hears_of_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        await pools.FILES.run(lambda: 1 // 0)
    assert await pools.FILES.run(lambda: "still there") == "still there"


class Mail:
    """What is handed to a thread."""


async def test_what_failed_work_was_given_is_freed_at_once(no_collector: None) -> None:
    """An error holds the frames that it came through: none of them may hold the error.

    The thread and the loop let go of it once they have gone on, a moment after the caller has heard of it.
    """
    pool, mail = Pool("one", 1), Mail()
    kept = weakref.ref(mail)
    with pytest.raises(AttributeError):
        await pool.run(getattr, mail, "subject")
    del mail
    await until(lambda: kept() is None)
    pool.close()


async def test_work_that_nobody_waits_for_any_more_does_not_begin() -> None:
    pool, let_go = Pool("one", 1), threading.Event()
    done: list[object] = []
    first = asyncio.create_task(pool.run(let_go.wait))
    second = asyncio.create_task(pool.run(done.append, "second"))
    third = asyncio.create_task(pool.run(done.append, "third"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait({second})
    let_go.set()
    await asyncio.gather(first, third)
    assert done == ["third"]
    pool.close()


async def test_a_pool_that_closes_finishes_what_was_handed_in_and_takes_no_more() -> None:
    pool, let_go = Pool("one", 1), threading.Event()
    done: list[object] = []
    waiting = [asyncio.create_task(pool.run(let_go.wait)), asyncio.create_task(pool.run(done.append, 1))]
    await asyncio.sleep(0)
    let_go.set()
    pool.close()
    assert done == [1]
    await asyncio.gather(*waiting)
    with pytest.raises(RuntimeError):
        await pool.run(done.append, 2)
