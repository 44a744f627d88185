"""Loops that must not end: logged, started again, and known to be in trouble meanwhile."""

import asyncio

import pytest

from postroom.clock import SECOND
from postroom.errors import Unavailable
from postroom.processes.loop_supervisor import LoopSupervisor
from tests.doubles import FakeClock


class Stumbling:
    """A loop that fails a number of times before it works."""

    def __init__(self, failures: int) -> None:
        self.failures_left = failures
        self.works = asyncio.Event()

    async def __call__(self) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise ValueError("stumbled")
        self.works.set()
        await asyncio.Event().wait()


async def run_until_it_works(supervisor: LoopSupervisor, loop: Stumbling) -> None:
    supervised = supervisor.supervise("mail", loop)
    async with asyncio.timeout(120):
        await loop.works.wait()
    await supervised.stop()


async def test_a_loop_that_fails_is_started_again_and_its_traceback_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    supervisor = LoopSupervisor(FakeClock())
    await run_until_it_works(supervisor, Stumbling(3))
    logged = capsys.readouterr().err
    assert logged.count("Traceback") == 1
    assert "ValueError: stumbled" in logged
    assert supervisor.failures == {"mail": 3}


async def test_a_database_that_is_away_is_told_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    LoopSupervisor(FakeClock()).failed("mail", Unavailable("The database does not answer."))
    logged = capsys.readouterr().err
    assert "a loop waits" in logged
    assert "The database does not answer." in logged
    assert "Traceback" not in logged


async def test_a_loop_that_merely_ends_is_started_again(capsys: pytest.CaptureFixture[str]) -> None:
    runs = asyncio.Semaphore(0)

    async def end_at_once() -> None:
        runs.release()

    supervised = LoopSupervisor(FakeClock()).supervise("mail", end_at_once)
    async with asyncio.timeout(120):
        await runs.acquire()
        await runs.acquire()
    await supervised.stop()
    assert "the loop mail came to an end" in capsys.readouterr().err


async def test_pauses_grow_up_to_a_limit() -> None:
    supervisor = LoopSupervisor(FakeClock())
    pauses = [supervisor.failed("mail", ValueError()) for _ in range(40)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 1 < pauses[-1] == pauses[-2]


async def test_what_waits_for_the_database_goes_on_soon_after_its_return() -> None:
    clock = FakeClock()
    supervisor = LoopSupervisor(clock)
    pauses = [supervisor.failed("mail", Unavailable("away")) for _ in range(40)]
    assert max(pauses) <= 0.5
    clock.turn(60 * SECOND)
    assert supervisor.stuck() == []  # whether the database is there is asked elsewhere
    assert supervisor.failing() == {"mail": 1}
    supervisor.failed("mail", ValueError())
    assert [reason.partition(" ")[0] for reason in supervisor.stuck()] == ["mail"]


async def test_a_loop_of_one_account_is_shown_without_it() -> None:
    supervisor = LoopSupervisor(FakeClock())
    supervisor.failed("stream:acc_1", ValueError())
    supervisor.failed("stream:acc_2", ValueError())
    assert supervisor.failing() == {"stream": 2}
    supervisor.forget("stream:acc_1")
    assert supervisor.failing() == {"stream": 1}


async def test_a_loop_that_is_stopped_twice_finishes_what_it_does_at_its_end() -> None:
    started, may_finish, has_finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def finish_at_the_end() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            await may_finish.wait()
            has_finished.set()

    supervised = LoopSupervisor(FakeClock()).supervise("mail", finish_at_the_end)
    await started.wait()
    supervised.cancel()
    stopping = asyncio.create_task(supervised.stop())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    may_finish.set()
    await stopping
    assert has_finished.is_set()
