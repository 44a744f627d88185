"""Which jobs share a batch: those that are there, and those that come while patient ones wait."""

import asyncio
import queue
from collections.abc import Iterable, Iterator

import pytest

from postroom.storage.group_commit import ENOUGH, SPARSE_BATCH, Batches
from postroom.storage.write_jobs import WriteJob

LONG = 3600.0


class Pauses:
    """Each pause brings the next jobs."""

    def __init__(self, jobs: "queue.SimpleQueue[WriteJob | None]") -> None:
        self._jobs = jobs
        self._brought: list[Iterable[WriteJob | None]] = []
        self.count = 0

    def bring(self, *each: Iterable[WriteJob | None]) -> None:
        self._brought = list(each)

    def __call__(self, _seconds: float) -> None:
        self.count += 1
        for job in self._brought.pop(0) if self._brought else ():
            self._jobs.put(job)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Desk:
    """A queue and its batches, after one that many shared."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self.pauses = Pauses(self.jobs)
        self.batches = Batches(self.jobs, self.pauses)
        self.hand_in(*[self.job(0) for _ in range(SPARSE_BATCH + 1)])
        self.batches.next()

    def job(self, patience_seconds: float) -> WriteJob:
        return WriteJob(
            lambda tx, items: items, None, self._loop, self._loop.create_future(), print, patience_seconds
        )

    def hand_in(self, *jobs: WriteJob | None) -> None:
        for job in jobs:
            self.jobs.put(job)


@pytest.fixture
def desk(loop: asyncio.AbstractEventLoop) -> Desk:
    return Desk(loop)


def test_a_patient_job_waits_for_others_as_long_as_they_come(desk: Desk) -> None:
    first, second, third, late = (desk.job(LONG) for _ in range(4))
    desk.hand_in(first)
    desk.pauses.bring([second], [third], [], [late])

    assert desk.batches.next() == [first, second, third]
    assert desk.pauses.count == 3


def test_enough_jobs_wait_for_no_more(desk: Desk) -> None:
    first, *others = (desk.job(LONG) for _ in range(ENOUGH + 1))
    desk.hand_in(first)
    desk.pauses.bring(others[:1], others[1:], [desk.job(LONG)])

    assert desk.batches.next() == [first, *others]
    assert desk.pauses.count == 2


def test_a_job_without_patience_begins_at_once_and_takes_along_who_waits(desk: Desk) -> None:
    patient, hasty, late = desk.job(LONG), desk.job(0), desk.job(LONG)
    desk.hand_in(patient)
    desk.pauses.bring([hasty], [late])

    assert desk.batches.next() == [patient, hasty]
    assert desk.pauses.count == 1


def test_who_came_alone_last_time_is_not_waited_with(desk: Desk) -> None:
    alone, next_one = desk.job(0), desk.job(LONG)
    desk.hand_in(alone)
    assert desk.batches.next() == [alone]
    desk.hand_in(next_one)

    assert desk.batches.next() == [next_one]
    assert desk.pauses.count == 0


def test_the_end_of_the_queue_is_waited_for_by_nobody(desk: Desk) -> None:
    job = desk.job(LONG)
    desk.hand_in(job)
    desk.pauses.bring([None])

    assert desk.batches.next() == [job]
    assert desk.batches.next() == []
