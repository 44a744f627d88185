"""Parts that die, stall or fill up: the rest goes on, and all of it is back when the fault is over."""

import asyncio
import json
import re
import resource
import smtplib
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from websockets.asyncio.client import connect

from postroom.inward import sender_checks
from postroom.inward.journal.mail_journal import FEW
from postroom.net.dns import Resolver
from postroom.processes import loop_supervisor
from tests.api.endpoint import running_endpoint
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.end_to_end.process import TOKEN, Running, log_path, serving_process
from tests.raw_mails import raw_mail
from tests.waiting import until

PATIENCE_SECONDS = 120
MAILS = 6  # to a disk that is full


def loop_tasks() -> list["asyncio.Task[Any]"]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith(f"{loop_supervisor.TASK} ")]


async def test_every_loop_that_is_killed_comes_back_and_works(server: Server) -> None:
    hello = await server.new_inbox("hello")
    url = f"ws{server.base_url.removeprefix('http')}/v1/ws?token={server.token}"
    async with (
        running_endpoint() as endpoint,
        connect(url, open_timeout=PATIENCE_SECONDS, ping_interval=None) as stream,
    ):
        await server.api.put("/v1/webhook", json={"url": endpoint.url})
        await stream.send(json.dumps({"type": "subscribe"}))
        await stream.recv()
        killed = {task.get_name() for task in loop_tasks()}
        assert len(killed) >= 7
        for task in loop_tasks():
            task.cancel("killed by the test")
        loops = server.resources.loops
        await until(lambda: len(loops.failures) >= len(killed))
        await until(lambda: {task.get_name() for task in loop_tasks()} == killed)

        mail = {"to": "hello@postroom.localhost", "subject": "Hi", "body": "Are all of you there?"}
        key = {"Idempotency-Key": "once"}
        assert (await server.api.post(f"/v1/inboxes/{hello}/send", json=mail, headers=key)).status_code == 200
        kinds: set[str] = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while kinds != {"message.received", "message.sent"}:
                kinds.add(json.loads(await stream.recv())["event"])
            await endpoint.wait_for(1)


async def test_large_mail_flows_while_no_name_is_resolved(
    database_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sender_checks, "JUDGE_SECONDS", PATIENCE_SECONDS
    )  # no name is given up while mail comes
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    resolver = Resolver([f"127.0.0.1:{silent.getsockname()[1]}"], deadline_seconds=PATIENCE_SECONDS)
    config = settings(tmp_path, DATABASE_URL=database_url)
    async with running_server(config, clock, resolver) as server:
        await server.new_inbox("hello")
        signed = "v=1; a=rsa-sha256; d=there.example; s=x; h=from; bh=AAAA; b=AAAA"
        for number in range(24):
            await server.deliver(raw_mail(str(number), dkim_signature=signed), "hello")
        large = raw_mail("A line of text, again and again.\r\n" * 5_000, subject="Large")
        await server.deliver(large, "hello")
        event = await server.next_event()
        assert event["message"]["subject"] == "Large"
        waiting = await server.resources.db.read(lambda tx: tx.one("select count(*) as n from examinations"))
        assert waiting is not None
        assert waiting["n"] == 24
    silent.close()


def ask(running: Running, path: str) -> int:
    try:
        url = f"http://127.0.0.1:{running.http_port}{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code


def new_inbox(running: Running) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{running.http_port}/v1/inboxes",
        b'{"mailboxName": "hello"}',
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=PATIENCE_SECONDS).close()


def hand_over(running: Running, raw: bytes) -> int:
    """The answer to the mail; 0 when the connection broke."""
    try:
        with smtplib.SMTP("127.0.0.1", running.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
            smtp.sendmail("a@x.example", ["hello@postroom.localhost"], raw)
            return 250
    except smtplib.SMTPRecipientsRefused as error:
        return next(iter(error.recipients.values()))[0]
    except smtplib.SMTPResponseException as error:
        return error.smtp_code


def until_taken(running: Running, raw: bytes) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while hand_over(running, raw) != 250 or ask(running, "/ready") != 200:
        assert time.monotonic() < ends, "it did not come back"
        time.sleep(0.02)


@pytest.mark.share(2)
def test_a_disk_that_is_full_refuses_for_a_while_and_takes_mail_when_there_is_room(
    tmp_path: Path, database_url: str
) -> None:
    large = raw_mail("A line of text, again and again.\r\n" * 20_000)
    with serving_process(tmp_path / "data", database_url) as running:
        new_inbox(running)
        pid, (soft, hard) = running.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (128 * 1024, hard))
        before = log_path(tmp_path / "data").stat().st_size
        for _ in range(MAILS):
            assert hand_over(running, large) == 452
        assert (ask(running, "/health"), ask(running, "/ready")) == (200, 503)
        assert log_path(tmp_path / "data").stat().st_size - before < MAILS * 500
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
        until_taken(running, large)


def test_a_postgres_that_is_gone_is_a_clear_answer_and_is_used_again_when_it_is_back(
    tmp_path: Path, postgres_url: str
) -> None:
    found = re.search(r"/(test_\w+)\?", postgres_url)
    assert found is not None
    admin = postgres_url.replace(f"/{found[1]}?", "/postgres?")
    with (
        serving_process(tmp_path / "data", postgres_url) as running,
        psycopg.connect(admin, autocommit=True) as connection,
    ):
        new_inbox(running)
        assert hand_over(running, raw_mail()) == 250
        connection.execute(f"alter database {found[1]} allow_connections false")
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [found[1]]
        )
        assert 400 <= hand_over(running, raw_mail()) < 500
        assert (ask(running, "/health"), ask(running, "/ready")) == (200, 503)
        connection.execute(f"alter database {found[1]} allow_connections true")
        until_taken(running, raw_mail())


async def test_a_sqlite_that_another_holds_costs_no_mail_no_250_and_no_answer_of_health(
    tmp_path: Path,
) -> None:
    """All but the first few get their 250 from the journal; those few wait a while for their inbox."""
    with serving_process(tmp_path / "data") as running, ThreadPoolExecutor(3 * FEW) as senders:
        new_inbox(running)
        other = sqlite3.connect(tmp_path / "data" / "postroom.db", isolation_level=None)
        other.execute("begin immediate")
        mails = [
            senders.submit(hand_over, running, raw_mail(message_id=f"<{number}@x>"))
            for number in range(3 * FEW)
        ]
        await until(lambda: sum(mail.done() for mail in mails) >= FEW)
        assert await asyncio.to_thread(ask, running, "/health") == 200
        other.execute("rollback")
        assert [mail.result() for mail in mails] == [250] * len(mails)
        await until(lambda: count_messages(other) == len(mails))
        other.close()


def count_messages(database: sqlite3.Connection) -> int:
    count: int = database.execute("select count(*) from messages").fetchone()[0]
    return count
