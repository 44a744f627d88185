"""Workers: they take mail in, are replaced when they die or hang, and keep every count together."""

import asyncio
import os
import signal
import smtplib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from postroom import log
from postroom.config import ConfigError, Endpoint
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import MAX_HOPS, TooManyHops
from postroom.processes.child_processes import RestartPauses
from postroom.smtp.backend import RecipientDirectory, RecipientVerdict
from postroom.smtp.recipient_directory import DatabaseDirectory
from postroom.smtp.tls import own_files
from postroom.workers.supervisor import WorkerSupervisor, WorkerTimeouts, listen
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.end_to_end.process import workers_of
from tests.outbound import send
from tests.raw_mails import raw_mail
from tests.waiting import until

PATIENCE_SECONDS = 120
CONNECTIONS_PER_ADDRESS = 50
SHORT = WorkerTimeouts(look=0.1, silent_looks=80, starting_looks=1_000, restart=RestartPauses(first=0.01))


async def in_thread(port: int, talk: Callable[[smtplib.SMTP], object]) -> object:
    def work() -> object:
        with smtplib.SMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as smtp:
            smtp.ehlo()
            return talk(smtp)

    return await asyncio.to_thread(work)


async def reply_to_rcpt(server: Server, name: str) -> object:
    def talk(smtp: smtplib.SMTP) -> int:
        smtp.mail("alice@example.com")
        return smtp.rcpt(f"{name}@postroom.localhost")[0]

    return await in_thread(server.smtp_port, talk)


@pytest.fixture
async def one_engine(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, WORKERS="1"), clock) as server:
        yield server


@asynccontextmanager
async def own_supervisor(
    server: Server, workers: int = 1, directory: RecipientDirectory | None = None
) -> AsyncIterator[WorkerSupervisor]:
    """Beside a server that works without workers: with short timeouts."""
    directory = directory or DatabaseDirectory(server.resources, b"secret")
    files = own_files(server.resources.config.data_dir / "tls", "postroom.localhost")
    supervisor = WorkerSupervisor(
        server.resources, directory, listen(Endpoint("127.0.0.1", 0), workers), files, SHORT
    )
    supervisor.start()
    try:
        await until(lambda: server.resources.workers.running == workers)
        yield supervisor
    finally:
        await supervisor.stop()


@pytest.mark.sqlite_alone
async def test_who_was_not_found_is_asked_for_again_and_who_is_gone_is_forgotten_at_once(
    server: Server,
) -> None:
    for _ in range(2):
        assert await reply_to_rcpt(server, "hello") == 550
        inbox_id = await server.new_inbox("hello")
        assert [await reply_to_rcpt(server, "hello") for _ in range(4)] == [250] * 4
        assert (await server.api.delete(f"/v1/inboxes/{inbox_id}")).status_code == 204
        assert [await reply_to_rcpt(server, "hello") for _ in range(4)] == [550] * 4


def send_over_tls(smtp: smtplib.SMTP) -> object:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    smtp.starttls(context=trusting)
    return smtp.sendmail("alice@example.com", ["hello@postroom.localhost"], raw_mail("After that"))


async def test_a_worker_that_dies_is_replaced_and_shown_and_the_next_reads_mail_over_tls(
    one_engine: Server,
) -> None:
    await one_engine.new_inbox("hello")
    await until(lambda: one_engine.resources.workers.running == 1)
    assert (await one_engine.api.get("/ready")).json()["workers"] == {
        "expected": 1,
        "running": 1,
        "restarts": 0,
    }
    [worker] = workers_of(os.getpid())
    os.kill(worker, signal.SIGKILL)
    await until(lambda: one_engine.resources.workers.restarts == 1)
    await in_thread(one_engine.smtp_port, send_over_tls)
    event = await one_engine.next_event()
    assert event["message"]["body_text"] == "After that\n"
    raw = (await one_engine.api.get(f"/v1/messages/{event['message']['id']}/raw")).content
    assert b" with ESMTPS id " in raw
    await until(lambda: one_engine.resources.workers.running == 1)
    assert worker not in workers_of(os.getpid())
    ready = (await one_engine.api.get("/ready")).json()
    assert ready["workers"] == {"expected": 1, "running": 1, "restarts": 1}
    metrics = (await one_engine.api.get("/metrics")).text
    assert "postroom_worker_restarts 1.0" in metrics
    assert 'postroom_workers{state="running"} 1.0' in metrics


async def test_a_mail_whose_reader_is_killed_is_read_by_the_next_one(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path), clock) as server, own_supervisor(server) as supervisor:
        [worker] = workers_of(os.getpid())
        os.kill(worker, signal.SIGSTOP)  # it has the mail, and says nothing
        arrival = Arrival(
            Origin((Destination("inb_1"),), b"", "", "", "alice@example.com"), raw_mail("Read me")
        )
        reading = asyncio.create_task(supervisor.read(arrival))
        await asyncio.sleep(0)
        os.kill(worker, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await reading).mail.body_text == "Read me\n"


async def test_a_server_without_a_worker_is_not_ready(tmp_path: Path, clock: FakeClock) -> None:
    async with running_server(settings(tmp_path), clock) as server:
        server.resources.workers.expected = 1
        answer = await server.api.get("/ready")
        assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")


async def test_a_worker_that_hangs_is_ended_and_replaced(tmp_path: Path, clock: FakeClock) -> None:
    async with running_server(settings(tmp_path), clock) as server, own_supervisor(server) as supervisor:
        await server.new_inbox("hello")
        [worker] = workers_of(os.getpid())
        os.kill(worker, signal.SIGSTOP)
        await until(lambda: worker not in workers_of(os.getpid()))
        await until(lambda: server.resources.workers.running == 1)
        assert server.resources.workers.restarts == 1
        sent = await in_thread(
            supervisor.port,
            lambda smtp: smtp.sendmail("a@example.com", ["hello@postroom.localhost"], raw_mail()),
        )
        assert sent == {}


async def test_the_cap_per_address_holds_over_all_workers_and_counts_only_who_is_there(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path), clock) as server, own_supervisor(server, 2) as supervisor:
        clients = [await connect(supervisor.port) for _ in range(CONNECTIONS_PER_ADDRESS)]
        assert {line[:3] for _, _, line in clients} == {b"220"}
        _, writer, line = await connect(supervisor.port)
        assert line.startswith(b"421")
        writer.close()
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)  # takes its clients with it
        await until(lambda: server.resources.workers.restarts == 1)
        await until(lambda: server.resources.workers.running == 2)
        for _, writer, _ in clients[:5]:
            writer.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not line.startswith(b"220"):
                _, writer, line = await connect(supervisor.port)
                writer.close()
        for _, writer, _ in clients:
            writer.close()


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE_SECONDS):
        return reader, writer, await reader.readline()


@pytest.mark.sqlite_alone
async def test_mail_that_stays_inside_is_read_by_a_worker(server: Server) -> None:
    alice = await server.new_inbox("alice")
    await server.new_inbox("bob")
    await send(server, alice, to="bob@postroom.localhost", body="Between us")
    event = await server.next_event()
    assert (event["event"], event["message"]["body_text"]) == ("message.received", "Between us\n")


async def test_a_mail_in_circles_is_refused_by_a_worker(tmp_path: Path, clock: FakeClock) -> None:
    looping = b"Received: from a by b; now\r\n" * (MAX_HOPS + 1) + raw_mail()
    async with running_server(settings(tmp_path), clock) as server, own_supervisor(server) as supervisor:
        inbox_id = await server.new_inbox("hello")
        arrival = Arrival(Origin((Destination(inbox_id),), b"", "", "", "a@example.com"), looping)
        with pytest.raises(TooManyHops):
            await supervisor.read(arrival)
        with pytest.raises(smtplib.SMTPDataError, match=r"5\.4\.6"):
            await in_thread(
                supervisor.port,
                lambda smtp: smtp.sendmail("a@example.com", ["hello@postroom.localhost"], looping),
            )


class FailingDirectory:
    """Raises at once for one name, and later for another."""

    def check_recipient(self, address: str) -> Awaitable[RecipientVerdict]:
        if address.startswith("now@"):
            raise RuntimeError("the table is gone")
        return self._fail_later()

    async def _fail_later(self) -> RecipientVerdict:
        await asyncio.sleep(0)
        raise RuntimeError("the index is gone")


@pytest.mark.parametrize(("name", "reason"), [("now", "the table is gone"), ("later", "the index is gone")])
async def test_a_look_up_that_fails_is_logged_with_its_reason_and_once_only(
    name: str,
    reason: str,
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = log.Logger()  # one that has not written the line a moment ago, for another test
    monkeypatch.setattr(log, "get", lambda: logger)

    def talk(smtp: smtplib.SMTP) -> list[int]:
        smtp.mail("alice@example.com")
        return [smtp.rcpt(f"{name}@postroom.localhost")[0] for _ in range(3)]

    async with (
        running_server(settings(tmp_path), clock) as server,
        own_supervisor(server, directory=FailingDirectory()) as supervisor,
    ):
        assert await in_thread(supervisor.port, talk) == [451] * 3
    lines = [line for line in capsys.readouterr().err.splitlines() if "recipient look-up failed" in line]
    assert len(lines) == 1
    assert f'reason="{reason}"' in lines[0]
    assert "RuntimeError" in lines[0]


def test_a_port_that_another_server_has_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        taken = Endpoint("127.0.0.1", other.getsockname()[1])
        with pytest.raises(ConfigError, match="POSTROOM_SMTP: cannot listen"):
            listen(taken, 2)


def test_every_worker_has_a_socket_of_its_own_on_the_same_port() -> None:
    shares = listen(Endpoint("127.0.0.1", 0), 3)
    assert len({sockets[0].getsockname() for sockets in shares}) == 1
    for sockets in shares:
        for each in sockets:
            each.close()


@pytest.mark.parametrize("value", ["-1", "65", "two", "1.5", "²"])
def test_a_wrong_number_of_workers_is_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="POSTROOM_WORKERS"):
        settings(tmp_path, WORKERS=value)
