"""The server on real sockets: what is accepted, when 250 is said, spooling, and stopping."""

import asyncio
import os
import re
import tracemalloc
from pathlib import Path

import pytest
from msgspec import structs
from msgspec.structs import replace

from postroom.smtp.envelope import Envelope
from tests.smtp.doubles import RecordingIntake
from tests.smtp.live import LIMITS, connect, connected, running, until_gone


async def test_a_mail_is_given_to_the_mailroom_with_all_that_is_known() -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail(to="alice+news@postroom.test")
        await client.send(b"Subject: Hello\r\n\r\nHi\r\n.\r\n")
        reply = await client.reply()
    [(envelope, content)] = intake.mails
    assert reply == f"250 2.0.0 Stored as {envelope.id}"
    assert content == b"Subject: Hello\r\n\r\nHi\r\n"
    assert (envelope.peer, envelope.helo, envelope.mail_from) == (
        "127.0.0.1",
        "client.example",
        "ann@remote.example",
    )
    assert [(to.address, to.destination) for to in envelope.recipients] == [
        ("alice+news@postroom.test", "alice")
    ]
    assert (envelope.tls, envelope.esmtp, envelope.smtputf8) == (False, True, False)
    assert envelope.size_bytes == len(content)


async def test_250_is_said_only_after_the_mailroom_has_returned() -> None:
    intake = RecordingIntake()
    intake.gate.clear()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail()
        await client.send(b"Hi\r\n.\r\n")
        await intake.entered.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.05)
        intake.gate.set()
        assert (await client.reply()).startswith("250")


async def test_a_mail_under_way_is_kept_when_the_client_resets_the_connection() -> None:
    intake = RecordingIntake()
    intake.gate.clear()
    async with running(intake) as server:
        async with connected(server) as client:
            await client.start_mail()
            await client.send(b"Hi\r\n.\r\n")
            await intake.entered.wait()
            client.reset()
        await until_gone(server)
        intake.gate.set()
    assert intake.contents == [b"Hi\r\n"]


async def test_a_mail_under_way_is_kept_when_the_client_closes() -> None:
    intake = RecordingIntake()
    intake.gate.clear()
    async with running(intake) as server:
        async with connected(server) as client:
            await client.start_mail()
            await client.send(b"Hi\r\n.\r\n")
            await intake.entered.wait()
        intake.gate.set()
        await until_gone(server)
    assert intake.contents == [b"Hi\r\n"]


@pytest.mark.parametrize(("sender", "code"), [("full", "452 4.3.1"), ("broken", "451 4.3.0")])
async def test_a_mailroom_that_fails_is_a_temporary_refusal(sender: str, code: str) -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail(mail_from=f"{sender}@remote.example")
        await client.send(b"Hi\r\n.\r\n")
        assert (await client.reply()).startswith(code)
        assert (await client.command("NOOP")).startswith("250")
    assert intake.mails == []


async def test_a_directory_that_fails_is_a_temporary_refusal() -> None:
    async with running() as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.command("MAIL FROM:<ann@remote.example>")
        assert (await client.command("RCPT TO:<crash@postroom.test>")).startswith("451 4.3.0")
        assert (await client.command("RCPT TO:<alice@postroom.test>")).startswith("250")


async def test_a_large_mail_leaves_memory_and_comes_back_whole() -> None:
    intake = SpoolWatcher()
    async with (
        running(intake, replace(LIMITS, spool_over_bytes=1000)) as server,
        connected(server) as client,
    ):
        await client.start_mail()
        await client.send(b"0123456789\r\n" * 500_000 + b".\r\n")
        assert (await client.reply()).startswith("250")
    assert intake.first_bytes == [b"0123456789\r\n", b"0123456789\r\n"]
    assert intake.whole == b"0123456789\r\n" * 500_000
    assert intake.is_closed_after


async def test_a_mail_of_30_megabytes_costs_little_memory() -> None:
    intake = PieceReader()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail()
        piece = b"0123456789abcd\r\n" * 4096
        tracemalloc.start()
        try:
            for _ in range(480):
                await client.send(piece)
            await client.send(b".\r\n")
            assert (await client.reply()).startswith("250")
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert intake.size_bytes == 480 * len(piece)
    assert peak_bytes < 8 * 1024 * 1024


class PieceReader:
    """Reads a mail as a store would that writes it on."""

    def __init__(self) -> None:
        self.size_bytes = 0

    async def accept(self, envelope: Envelope) -> None:
        with envelope.open() as reader:
            while piece := reader.read(65536):
                self.size_bytes += len(piece)


class SpoolWatcher:
    """Reads a spooled mail in two readers at once, and as a whole."""

    def __init__(self) -> None:
        self.first_bytes: list[bytes] = []
        self.whole = b""
        self.envelope: Envelope | None = None

    async def accept(self, envelope: Envelope) -> None:
        self.envelope = envelope
        with envelope.open() as one, envelope.open() as other:
            self.first_bytes = [one.read(12), other.read(12)]
        self.whole = envelope.read()

    @property
    def is_closed_after(self) -> bool:
        assert self.envelope is not None
        try:
            self.envelope.read()
        except ValueError:
            return True
        return False


async def test_a_spool_folder_that_cannot_be_written_is_a_temporary_refusal(tmp_path: Path) -> None:
    intake = RecordingIntake()
    folder = tmp_path / "spool"
    limits = replace(LIMITS, spool_over_bytes=1000)
    async with running(intake, limits, spool_folder=folder) as server, connected(server) as client:
        os.rmdir(folder)
        await client.start_mail()
        await client.send(b"x" * 5000 + b"\r\n.\r\n")
        assert (await client.reply()).startswith("452 4.3.1")
        folder.mkdir()
        await client.start_mail()
        await client.send(b"x" * 5000 + b"\r\n.\r\n")
        assert (await client.reply()).startswith("250")
    assert intake.contents == [b"x" * 5000 + b"\r\n"]


async def test_stop_says_421_to_who_is_idle() -> None:
    async with running() as server, connected(server) as client:
        await client.command("EHLO client.example")
        port = server.port
        stopping = asyncio.create_task(server.stop())
        assert (await client.rest()).startswith("421 4.3.2")
        await client.close()
        await stopping
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_stop_waits_for_the_mail_under_way_and_answers_it() -> None:
    intake = RecordingIntake()
    intake.gate.clear()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail()
        await client.send(b"Hi\r\n.\r\n")
        await intake.entered.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        intake.gate.set()
        assert re.fullmatch(r"250 2\.0\.0 .*\r\n421 4\.3\.2 .*\r\n", await client.rest())
        await client.close()
        await stopping
    assert intake.contents == [b"Hi\r\n"]


async def test_stop_does_not_wait_for_who_never_leaves() -> None:
    async with running() as server:
        clients = [await connect(server) for _ in range(3)]
        await clients[0].reply()
        await asyncio.wait_for(server.stop(), 120)
        for client in clients:
            await client.close()


async def test_the_received_field_names_peer_and_way() -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.command("EHLO odd(name;\\")
        await client.command("MAIL FROM:<ann@remote.example>")
        await client.command("RCPT TO:<alice@postroom.test>")
        await client.command("DATA")
        await client.send(b"Hi\r\n.\r\n")
        await client.reply()
    envelope = intake.mails[0][0]
    assert envelope.received_header("mx.postroom.test", "Sat, 14 Nov 2026 10:05:00 +0000") == (
        b"Received: from odd?name?? ([127.0.0.1])\r\n"
        b"\tby mx.postroom.test with ESMTP id " + envelope.id.encode() + b";\r\n"
        b"\tSat, 14 Nov 2026 10:05:00 +0000\r\n"
    )
    assert b"([IPv6:2001:db8::1])" in structs.replace(envelope, peer="2001:db8::1").received_header(
        "mx", "now"
    )
