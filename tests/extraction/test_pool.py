"""Children extract for the pool, and whatever a file does to them stays with them."""

import asyncio
import functools
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from postroom.inward.extraction_pool import ExtractionPool, Limits
from postroom.processes.child_processes import Child
from postroom_mail.files.extraction import MAX_CONTENT_BYTES, Extraction
from tests.extraction import pdf_files
from tests.mail import files
from tests.waiting import until

HELLO = Extraction("text", "hello")

needs_proc = pytest.mark.needs("/proc")
needs_tesseract = pytest.mark.needs("tesseract")

PARENT = """
import asyncio, sys
from postroom.inward.extraction_pool import ExtractionPool
content = sys.stdin.buffer.read()
async def main():
    async with asyncio.timeout(120):
        await ExtractionPool().extract("", "", content, 100.0)
asyncio.run(main())
"""


@functools.cache
def slow_file() -> bytes:
    """Nothing but empty elements: long work, and not a word."""
    return files.docx("<w:x/>" * 3_000_000)


@pytest.fixture
async def start_pool() -> AsyncIterator[Callable[..., ExtractionPool]]:
    pools: list[ExtractionPool] = []

    def start(**limits: int) -> ExtractionPool:
        pools.append(ExtractionPool(Limits(**limits)))
        return pools[-1]

    yield start
    for pool in pools:
        await pool.close()


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def processor_seconds(pid: int) -> float:
    """What a process has used; one that was replaced is not there any more."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def hello(pool: ExtractionPool) -> Extraction:
    return await pool.extract("text/plain", "a.txt", b"hello", 60.0)


async def test_a_child_answers_job_after_job(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool()
    assert await hello(pool) == HELLO
    assert await pool.extract("", "a.pdf", files.pdf("words"), 60.0) == Extraction("pdf", "words")
    assert await pool.extract("", "a.xls", files.xls("a", 1), 60.0) == Extraction("office", "Data\na\t1")


async def test_many_jobs_share_few_children(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(children=2, jobs_per_child=3)
    before = set(children_of(os.getpid()))
    jobs: list[Awaitable[Extraction]] = [hello(pool) for _ in range(12)]
    assert await asyncio.gather(*jobs) == [HELLO] * 12
    await until(lambda: len(set(children_of(os.getpid())) - before) <= 2)


async def test_names_with_lone_surrogates_pass(start_pool: Callable[..., ExtractionPool]) -> None:
    assert await start_pool().extract("text/\udcff", "\ud800" * 5_000 + ".txt", b"hello", 60.0) == HELLO


async def test_a_file_over_the_limit_needs_no_child(start_pool: Callable[..., ExtractionPool]) -> None:
    found = await start_pool().extract("text/plain", "a.txt", bytes(MAX_CONTENT_BYTES + 1), 60.0)
    assert found == Extraction("skipped_too_large", None)


async def test_a_slow_file_is_given_up_at_the_deadline_and_the_wait_for_a_child_counts(
    start_pool: Callable[..., ExtractionPool],
) -> None:
    pool = start_pool(children=1)
    slow = asyncio.create_task(pool.extract("", "", slow_file(), 0.5))
    await asyncio.sleep(0)
    assert await pool.extract("text/plain", "a.txt", b"hello", 0.1) == Extraction("timed_out", None)
    assert await slow == Extraction("timed_out", None)
    assert await hello(pool) == HELLO


@needs_proc
async def test_a_child_has_no_file_of_ours(start_pool: Callable[..., ExtractionPool], tmp_path: Path) -> None:
    """Not even one that any program we start is meant to have."""
    pool = start_pool(children=1)
    before = set(children_of(os.getpid()))
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        assert await hello(pool) == HELLO
    (child,) = set(children_of(os.getpid())) - before
    files_of = Path(f"/proc/{child}/fd")
    assert {*map(int, os.listdir(files_of))} == {0, 1, 2, 3}  # 3 takes the answers
    assert os.readlink(files_of / "1") == os.readlink(files_of / "2") == os.devnull


async def test_a_file_that_eats_the_processor_is_given_up(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(cpu_seconds=0)  # what is left of the second that it is in
    assert await pool.extract("", "", slow_file(), 60.0) == Extraction("timed_out", None)
    assert await hello(pool) == HELLO


@needs_proc
async def test_a_child_is_kept_however_large_the_server_is(start_pool: Callable[..., ExtractionPool]) -> None:
    megabyte = 1024 * 1024
    large = b"x" * 150 * megabyte
    pool = start_pool(children=1, memory_bytes=2 * len(large))
    before = set(children_of(os.getpid()))
    assert await hello(pool) == HELLO
    first = set(children_of(os.getpid())) - before
    assert await hello(pool) == HELLO
    assert set(children_of(os.getpid())) - before == first


@needs_proc
async def test_the_processor_limit_counts_each_job_anew(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(children=1, cpu_seconds=1)
    before = set(children_of(os.getpid()))
    assert await hello(pool) == HELLO
    (child,) = set(children_of(os.getpid())) - before
    first_end, _ = resource.prlimit(child, resource.RLIMIT_CPU)
    busy = files.docx("<w:x/>" * 15_000)  # far below the limit, also on a busy machine
    while processor_seconds(child) < 1:
        assert (await pool.extract("", "", busy, 60.0)).method == "office"
    assert await hello(pool) == HELLO
    assert resource.prlimit(child, resource.RLIMIT_CPU)[0] > first_end


async def test_a_file_that_eats_memory_fails_alone(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(children=1, memory_bytes=100 * 1024 * 1024)
    assert await hello(pool) == HELLO
    unpacked_as_a_whole = pdf_files.document(b"(a)" + b" " * 110_000_000, is_packed=True)
    assert await pool.extract("", "", unpacked_as_a_whole, 60.0) == Extraction("failed", None)
    assert await hello(pool) == HELLO


@needs_proc
async def test_a_child_that_died_while_idle_is_replaced(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(children=1)
    before = set(children_of(os.getpid()))
    assert await hello(pool) == HELLO
    (child,) = set(children_of(os.getpid())) - before
    os.kill(child, signal.SIGKILL)
    assert await hello(pool) == HELLO


@needs_proc
async def test_a_child_that_crashes_at_work_costs_its_job_only(
    start_pool: Callable[..., ExtractionPool],
) -> None:
    pool = start_pool(children=1)
    before = set(children_of(os.getpid()))
    job = asyncio.create_task(pool.extract("", "", slow_file(), 60.0))
    await until(lambda: set(children_of(os.getpid())) - before)
    (child,) = set(children_of(os.getpid())) - before
    os.kill(child, signal.SIGSEGV)
    assert await job == Extraction("failed", None)
    assert await hello(pool) == HELLO


async def test_a_child_that_ends_before_its_first_job_costs_that_job_only(
    start_pool: Callable[..., ExtractionPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start_pool()
    start = pool._supervisor.start

    async def start_and_end(*arguments: Any, **more: Any) -> Child:
        child = await start(*arguments, **more)
        child.kill()
        await child.process.wait()
        return child

    with monkeypatch.context() as patch:
        patch.setattr(pool._supervisor, "start", start_and_end)
        assert await hello(pool) == Extraction("failed", None)
    assert await hello(pool) == HELLO


@needs_proc
async def test_closing_ends_every_child_and_fails_what_is_under_way(
    start_pool: Callable[..., ExtractionPool],
) -> None:
    pool = start_pool()
    before = set(children_of(os.getpid()))
    job = asyncio.create_task(pool.extract("", "", slow_file(), 60.0))
    await until(lambda: set(children_of(os.getpid())) - before)
    await pool.close()
    assert await job == Extraction("failed", None)
    assert set(children_of(os.getpid())) <= before
    assert await hello(pool) == Extraction("failed", None)


@needs_proc
async def test_no_child_outlives_a_killed_parent() -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT), stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert parent.stdin is not None
    parent.stdin.write(slow_file())
    parent.stdin.close()
    await until(lambda: children_of(parent.pid))
    (child,) = children_of(parent.pid)
    parent.kill()
    await parent.wait()
    await until(lambda: not is_running(child))


@needs_tesseract
async def test_letters_in_a_picture_are_read(start_pool: Callable[..., ExtractionPool]) -> None:
    found = await start_pool(cpu_seconds=60).extract("image/png", "a.png", files.png("HELP"), 60.0)
    assert found == Extraction("ocr", "HELP")


@needs_tesseract
async def test_pictures_too_large_or_too_small_are_not_tried(
    start_pool: Callable[..., ExtractionPool],
) -> None:
    pool = start_pool()
    huge = files.blank_png(100_000, 100_000)
    assert await pool.extract("image/png", "a.png", huge, 60.0) == Extraction("failed", None)
    assert await pool.extract("image/png", "a.png", files.blank_png(1, 1), 60.0) == Extraction("ocr", "")


@needs_proc
@needs_tesseract
async def test_tesseract_ends_with_its_child(start_pool: Callable[..., ExtractionPool]) -> None:
    pool = start_pool(children=1)
    before = set(children_of(os.getpid()))
    job = asyncio.create_task(pool.extract("image/png", "a.png", files.png("HELP" * 40, 20), 60.0))

    def programs() -> list[int]:
        started = set(children_of(os.getpid())) - before
        return [program for child in started for program in children_of(child)]

    await until(programs)
    (program,) = programs()
    job.cancel()
    await until(lambda: not is_running(program))
