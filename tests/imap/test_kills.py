"""A server that dies while mbsync runs: started again, nothing is lost, doubled or altered.

POSTROOM_TEST_SYNC_KILLS makes it as long as you like.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.end_to_end.process import TOKEN, Running, serving_process
from tests.imap.test_mail_clients import Sides, append_all, change_far, change_near, mails, sync_settings
from tests.ports import free_port
from tests.programs import path_of

KILLS = int(os.environ.get("POSTROOM_TEST_SYNC_KILLS", "2"))
MAILS = 16
SECONDS = 300
LONGEST_BEFORE_A_KILL = 0.4


@dataclass(frozen=True, slots=True)
class Program:
    imap_port: int
    token: str = TOKEN


@contextmanager
def server(folder: Path, database_url: str, port: int) -> Iterator[Running]:
    more = {"IMAP": f"127.0.0.1:{port}"}
    with serving_process(folder, database_url, workers=0, more=more) as running:
        yield running


def sync(home: Path) -> "subprocess.Popen[bytes]":
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = [path_of("mbsync"), "-c", str(home / ".mbsyncrc"), "both"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def sync_to_the_end(home: Path) -> None:
    process = sync(home)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said.decode()


@pytest.mark.share(2)
@pytest.mark.needs("mbsync")
def test_kills_while_mbsync_runs_lose_and_double_nothing(tmp_path: Path, database_url: str) -> None:
    folder, port, chance = tmp_path / "data", free_port(), random.Random(11)
    folder.mkdir()
    program = Program(port)
    sides = Sides(program, tmp_path)
    with server(folder, database_url, port) as running:
        made = httpx2.post(
            f"http://127.0.0.1:{running.http_port}/v1/inboxes",
            json={"mailboxName": "agent"},
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=120,
            trust_env=False,
        )
        assert made.status_code == 201, made.text
        append_all(program, mails(0, MAILS))
        sync_settings(program, tmp_path)
        sync_to_the_end(tmp_path)
    for number in range(KILLS):
        with server(folder, database_url, port) as running:
            change_near(tmp_path, chance, 10_000 + 100 * number)
            change_far(program, chance, 20_000 + 100 * number)
            process = sync(tmp_path)
            try:
                process.communicate(timeout=chance.random() * LONGEST_BEFORE_A_KILL)
            except subprocess.TimeoutExpired:
                running.kill()
                process.communicate(timeout=SECONDS)
        with server(folder, database_url, port):
            sync_to_the_end(tmp_path)
            sync_to_the_end(tmp_path)
            near, far = sides.near(), sides.far()
            assert near == far
            for first in (10_000, 20_000):
                new = {f"Subject: Mail {first + 100 * number + each}" for each in range(5)}
                assert new <= set(far)
    with server(folder, database_url, port):
        assert sides.near() == sides.far()
