"""A copied child finds what one finds that was started as a whole, and ends like it."""

import asyncio
import json
import os
import resource
import socket
from pathlib import Path

import pytest

from postroom.processes import child_processes
from postroom.processes.child_processes import Child, ChildSupervisor
from tests import warm_children
from tests.processes import state_of_child

WAYS = (warm_children.start_whole, warm_children.start_python)
pytestmark = pytest.mark.needs("/proc")


async def start(supervisor: ChildSupervisor, file: int) -> Child:
    return await supervisor.start(
        ["-m", state_of_child.__name__, "one", "two"],
        pass_fds=[file],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def test_both_ways_to_start_a_child_give_it_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(warm_children.ROOT))
    monkeypatch.setenv("POSTROOM_API_KEY", "secret")
    monkeypatch.chdir(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (900, before[1]))
    found, commands, codes = [], [], []
    supervisor = ChildSupervisor("test")
    ours, theirs = socket.socketpair()
    passed = [0, 1, 2, theirs.fileno()]
    try:
        for way in WAYS:
            monkeypatch.setattr(child_processes, "start_python", way)
            child = await start(supervisor, theirs.fileno())
            assert child.process.stdout is not None
            assert child.process.stdin is not None
            found.append(json.loads(await child.process.stdout.readline()))
            commands.append(Path(f"/proc/{child.process.pid}/cmdline").read_bytes().split(b"\0")[1:6])
            child.process.stdin.write(b"7")
            child.process.stdin.close()
            codes.append(await child.process.wait())
    finally:
        await supervisor.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        ours.close()
        theirs.close()
    whole, copied = found
    assert {*whole.pop("files")} >= {*passed}  # uvloop's own are among them, which a child closes
    assert copied.pop("files") == passed
    for child_saw in found:
        child_saw["environment"].pop("LC_CTYPE", None)  # Python sets it by itself where no language is set
    assert copied == whole
    assert whole["parent"] == os.getpid()
    assert commands[0] == commands[1]
    assert codes == [7, 7]


def left_open() -> tuple[int, str]:
    """Files and children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return len(os.listdir("/proc/self/fd")), children


async def test_nothing_is_left_of_a_copied_child_that_is_killed_or_given_up_while_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(warm_children.ROOT))
    monkeypatch.setattr(child_processes, "start_python", warm_children.start_python)
    supervisor = ChildSupervisor("test")
    with open(os.devnull) as file:
        first = await start(supervisor, file.fileno())
        supervisor.kill(first)
        assert await first.process.wait() == -9
        files, children = left_open()
        starting = asyncio.ensure_future(start(supervisor, file.fileno()))
        asyncio.get_running_loop().call_soon(starting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await starting
        await supervisor.close()
        files_left, children_left = left_open()
    assert children_left == children
    assert files_left <= files  # a pipe of the first may still have been open before
