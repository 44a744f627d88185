"""Classes that several threads decode at once, for the first time."""

import subprocess
import sys
from pathlib import Path

import pytest

from postroom.processes import struct_types
from tests.conftest import running_server, settings
from tests.doubles import FakeClock

DECODED_BY_FOUR_THREADS = """
import functools, sys, threading, msgspec
from postroom.processes import struct_types

sys.setswitchinterval(1e-6)
inner = [(f"f{number}", int) for number in range(20)]
kinds = []
for _ in range(100):
    each = msgspec.defstruct("Inner", inner)
    kinds.append(msgspec.defstruct("Outer", [(f"f{number}", each | None, None) for number in range(60)]))
if sys.argv[1] == "prepared":
    struct_types.prepare()
one = b"{" + b",".join(b'"f%d":1' % number for number in range(20)) + b"}"
text = b"{" + b",".join(b'"f%d":%s' % (number, one) for number in range(60)) + b"}"
for kind in kinds:
    decode = functools.partial(msgspec.json.decode, text, type=kind)
    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def decode_at_once(how: str) -> int:
    command = [sys.executable, "-c", DECODED_BY_FOUR_THREADS, how]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode


def test_classes_that_are_prepared_may_be_decoded_by_several_threads_at_once() -> None:
    assert decode_at_once("prepared") == 0


async def test_a_server_prepares_what_is_loaded_before_it_starts(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = set(struct_types.loaded())
    monkeypatch.setattr(struct_types, "_modules", 0)
    struct_types._prepared.clear()
    async with running_server(settings(tmp_path), clock):
        assert there <= struct_types._prepared
