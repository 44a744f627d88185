"""Children are started, replaced after a growing pause, and killed with whatever they started."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.processes import child_processes
from postroom.processes.child_processes import Child, ChildNotStarted, ChildSupervisor, RestartPauses
from tests.waiting import until

PATIENCE_SECONDS = 120
SLEEPS = ["-c", "import time; time.sleep(1000)"]
ENDS = ["-c", ""]
# Starts a child of its own and says its number.
HAS_A_CHILD = [
    "-c",
    "import subprocess, sys, time\n"
    "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)']).pid, flush=True)\n"
    "time.sleep(1000)",
]
FOR_EVER = RestartPauses(first=1_000_000.0, longest=1_000_000.0)


@pytest.fixture
async def supervisor() -> AsyncIterator[ChildSupervisor]:
    children = ChildSupervisor("test")
    yield children
    await children.close()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def own_children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


async def until_gone(pid: int) -> None:
    await until(lambda: not is_running(pid))


async def fail(children: ChildSupervisor) -> None:
    await children.replace(await children.start(ENDS))


async def test_a_child_gets_no_secret_of_our_environment(
    supervisor: ChildSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    child = await supervisor.start(
        ["-c", "import os; print(sorted(os.environ))"], stdout=asyncio.subprocess.PIPE
    )
    assert child.process.stdout is not None
    names = (await child.process.stdout.read()).decode()
    assert "LANG" in names
    assert "POSTROOM" not in names


@pytest.mark.needs("/proc")
async def test_a_child_that_is_killed_takes_its_own_children_with_it(supervisor: ChildSupervisor) -> None:
    child = await supervisor.start(HAS_A_CHILD, stdout=asyncio.subprocess.PIPE)
    assert child.process.stdout is not None
    grandchild = int(await child.process.stdout.readline())
    assert is_running(grandchild)
    supervisor.kill(child)
    await until_gone(grandchild)
    await child.process.wait()
    assert not child.is_running


async def test_the_end_of_the_server_kills_every_child(supervisor: ChildSupervisor) -> None:
    children = [await supervisor.start(SLEEPS) for _ in range(3)]
    await supervisor.close()
    assert [child.is_running for child in children] == [False] * 3
    with pytest.raises(ChildNotStarted):
        await supervisor.start(SLEEPS)


async def test_the_end_of_the_server_waits_for_a_child_that_is_being_started(
    supervisor: ChildSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[asyncio.subprocess.Process] = []
    is_there, may_go_on = asyncio.Event(), asyncio.Event()
    start_python = child_processes.start_python

    async def start_slowly(*arguments: Any, **more: Any) -> asyncio.subprocess.Process:
        processes.append(await start_python(*arguments, **more))
        is_there.set()
        await may_go_on.wait()
        return processes[0]

    monkeypatch.setattr(child_processes, "start_python", start_slowly)
    starting = asyncio.create_task(supervisor.start(SLEEPS))
    await is_there.wait()
    asyncio.get_running_loop().call_soon(may_go_on.set)
    await supervisor.close()
    assert processes[0].returncode == -signal.SIGKILL
    with pytest.raises(ChildNotStarted):
        await starting


@pytest.mark.needs("/proc")
@pytest.mark.parametrize("turns", [1, 2, 3, 5])
async def test_the_end_of_the_server_waits_for_a_child_whose_start_was_cancelled(
    supervisor: ChildSupervisor, turns: int
) -> None:
    """However far its start has come: a child is not left, nor left unreaped."""
    before = own_children()
    starting = asyncio.create_task(supervisor.start(SLEEPS))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await supervisor.close()
    assert own_children() <= before


async def test_the_pause_grows_with_each_failure_up_to_its_limit_and_starts_anew_after_a_good_time() -> None:
    children = ChildSupervisor("test", RestartPauses(first=0.001, longest=0.003, reset=1_000_000.0))
    pauses = []
    for _ in range(4):
        await fail(children)
        pauses.append(children._pause_seconds)
    assert pauses == [0.001, 0.002, 0.003, 0.003]
    children._pauses = RestartPauses(first=0.001, reset=0.0)
    await fail(children)
    assert children._pause_seconds == 0.001
    await children.close()


async def test_a_child_that_ended_without_a_failure_makes_nobody_wait() -> None:
    children = ChildSupervisor("test", FOR_EVER)
    for _ in range(3):
        children.kill(await children.start(SLEEPS))
    await children.close()


async def test_a_pause_ends_when_the_server_stops() -> None:
    children = ChildSupervisor("test", FOR_EVER)
    await fail(children)
    start = asyncio.create_task(children.start(SLEEPS))
    await asyncio.sleep(0)
    assert not start.done()
    children.stop_starting()
    with pytest.raises(ChildNotStarted):
        await start
    await children.close()


async def test_who_may_finish_is_not_killed_by_the_first_step_of_a_stop(supervisor: ChildSupervisor) -> None:
    child = await supervisor.start(["-c", "input()"], stdin=asyncio.subprocess.PIPE)
    supervisor.stop_starting()
    assert child.process.stdin is not None
    child.process.stdin.write(b"go\n")
    assert await child.process.wait() == 0


async def test_a_system_that_refuses_a_process_is_an_error_of_its_own(
    supervisor: ChildSupervisor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(ChildNotStarted, match="No such file"):
        await supervisor.start(ENDS)
    assert supervisor._pause_seconds > 0


async def test_a_child_has_a_group_of_its_own(supervisor: ChildSupervisor) -> None:
    child: Child = await supervisor.start(SLEEPS)
    assert os.getpgid(child.process.pid) == child.process.pid != os.getpgid(0)
