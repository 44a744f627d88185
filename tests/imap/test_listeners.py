"""The doors of mail programs: TLS from the first byte, a proxy in front, a renewed certificate, a stop."""

import asyncio
import base64
import contextlib
import imaplib
import re
import smtplib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import segno
from msgspec.structs import replace

from postroom.config import Config, Endpoint
from postroom.imap import connection as imap_connection
from postroom.imap.dialogue.limits import ImapLimits
from postroom.imap.server import ImapServer
from postroom.net.certificate import Certificate
from postroom.net.failed_logins import FailedLogins
from postroom.net.mail_clients.connection import ClientConnection
from postroom.net.mail_clients.server import MailClientServer
from postroom.smtp.submission.server import SubmissionServer
from postroom.smtp.tls import make_certificate, own_files
from postroom.web import client_configuration
from postroom_mail.files.extraction import Extraction
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, ok
from tests.raw_mails import raw_mail
from tests.waiting import until

OWN = "agent@postroom.localhost"
ANYWHERE = Endpoint("127.0.0.1", 0)
DEFAULTS = ImapLimits()
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock, database_url: str) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, DATABASE_URL=database_url), clock) as running:
        yield running


class NoExtractor:
    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        raise AssertionError("no mail with a file is appended here")


@contextlib.asynccontextmanager
async def doors(
    server: Server, certificate: Certificate, is_tls: bool = False, limits: ImapLimits = DEFAULTS
) -> AsyncIterator[tuple[ImapServer, SubmissionServer]]:
    """Beside the server, on ports of their own: 993 and 465 are not everybody's."""
    imap = ImapServer(server.resources, NoExtractor(), certificate.context, limits, is_tls)
    submission = SubmissionServer(server.resources, certificate.context, limits, is_tls)
    await imap.start(ANYWHERE)
    await submission.start(ANYWHERE)
    try:
        yield imap, submission
    finally:
        await imap.stop()
        await submission.stop()


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_tls_from_the_first_byte_to_read_and_to_send(server: Server, tmp_path: Path) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail("Over TLS"), "agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))

    def read(port: int) -> bytes:
        client = imaplib.IMAP4_SSL("127.0.0.1", port, ssl_context=trusting(), timeout=120)
        assert isinstance(client.sock, ssl.SSLSocket)
        shown = client.sock.getpeercert(True)
        assert "STARTTLS" not in client.capabilities
        client.login(OWN, server.token)
        assert ok(client.select("INBOX")) == [b"1"]
        client.logout()
        assert shown
        return shown

    def send(port: int) -> None:
        with smtplib.SMTP_SSL("127.0.0.1", port, context=trusting(), timeout=120) as smtp:
            smtp.login(OWN, server.token)
            smtp.sendmail(OWN, ["bob@example.com"], raw_mail("Sent", **{"from": OWN}))

    async with doors(server, certificate, is_tls=True) as (imap, submission):
        first = await aside(lambda: read(imap.port))
        await aside(lambda: send(submission.port))
        make_certificate(certificate.files.certificate, certificate.files.key, "two.example")
        assert certificate.refresh()
        assert await aside(lambda: read(imap.port)) != first, "the renewed one, without a restart"
    listed = await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params={"direction": "outbound"})
    assert listed.json()["total"] == 1


@pytest.mark.parametrize("is_tls", [True, False], ids=["tls", "starttls"])
async def test_a_proxy_names_the_client(
    tmp_path: Path, clock: FakeClock, database_url: str, is_tls: bool
) -> None:
    """A client from elsewhere must not log in without TLS, although the proxy is on this machine."""
    config = settings(tmp_path, DATABASE_URL=database_url, TRUSTED_PROXIES="127.0.0.1")
    async with running_server(config, clock) as server:
        await server.new_inbox("agent")
        certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
        async with doors(server, certificate, is_tls) as (imap, submission):
            for port, greeting in ((imap.port, b"* OK"), (submission.port, b"220 ")):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 993\r\n")
                if is_tls:
                    await writer.start_tls(trusting(), server_hostname="one.example")
                async with asyncio.timeout(120):
                    said = await reader.readline()
                assert said.startswith(greeting)
                is_refused = b"LOGINDISABLED" in said
                assert is_refused == (port == imap.port and not is_tls)
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()


async def test_the_handshake_may_come_with_the_header_of_the_proxy(
    tmp_path: Path, clock: FakeClock, database_url: str
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, TRUSTED_PROXIES="127.0.0.1")
    header = b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 993\r\n"
    async with running_server(config, clock) as server:
        certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
        async with doors(server, certificate, is_tls=True) as both:
            for door, greeting in zip(both, (b"* OK", b"220 "), strict=True):
                assert (await aside(lambda door=door: greet(door.port, header))).startswith(greeting)  # type: ignore[misc]


def greet(port: int, header: bytes) -> bytes:
    """What the server says over TLS, whose first bytes come in one packet with the header."""
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting().wrap_bio(coming, going)
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        connection.sendall(header + going.read())
        while True:
            coming.write(connection.recv(65536))
            try:
                tls.do_handshake()
                connection.sendall(going.read())
                return tls.read(100)
            except ssl.SSLWantReadError:
                if going.pending:
                    connection.sendall(going.read())


async def test_a_stop_says_goodbye_and_a_new_connection_is_refused(server: Server, tmp_path: Path) -> None:
    await server.new_inbox("agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    async with doors(server, certificate, is_tls=False) as (imap, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", imap.port)
        writer.write(b"a LOGIN %s %s\r\nb SELECT INBOX\r\nc IDLE\r\n" % (OWN.encode(), server.token.encode()))
        async with asyncio.timeout(120):
            await reader.readuntil(b"+ idling")
            port = imap.port
            await imap.stop()
            assert b"* BYE" in await reader.read()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()


async def test_a_mail_that_is_being_sent_gets_its_answer_before_a_stop(
    server: Server, tmp_path: Path
) -> None:
    await server.new_inbox("agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    async with doors(server, certificate) as (_, submission), asyncio.timeout(120):
        reader, writer = await program(submission)
        writer.write(b"EHLO x\r\nAUTH PLAIN %s\r\n" % plain(server.token))
        await reader.readuntil(b"235 ")
        writer.write(b"MAIL FROM:<%s>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n" % OWN.encode())
        await reader.readuntil(b"354 ")
        text = "A long line of a large mail.\r\n" * 10_000
        turns = submission._shared.large_mails
        for _ in range(DEFAULTS.max_large_mails):
            await turns.acquire()
        writer.write(raw_mail(text, **{"from": OWN}) + b"\r\n.\r\n")
        await until(lambda: not (only(submission).may_end or not submission._shared.tasks))
        stopping = asyncio.create_task(submission.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done(), "a large mail waits for its turn"
        turns.release()
        await stopping
        said = await reader.read()
        assert 0 < said.index(b"250 2.0.0 Accepted") < said.index(b"421 ")
        writer.close()


async def program(
    door: MailClientServer,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    await reader.readline()
    return reader, writer


def plain(token: str) -> bytes:
    return base64.b64encode(f"\0{OWN}\0{token}".encode())


def only(door: MailClientServer) -> ClientConnection[Any]:
    (connection,) = door._shared.admissions.all()
    return connection


async def test_who_does_not_log_in_or_does_not_read_is_closed(server: Server, tmp_path: Path) -> None:
    await server.new_inbox("agent")
    now = asyncio.get_running_loop().time
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    async with doors(server, certificate) as both, asyncio.timeout(120):
        for door, farewell in zip(both, (b"* BYE You took too long", b"421 "), strict=True):
            reader, writer = await program(door)
            ends_at = only(door)._connected_at + DEFAULTS.login_seconds
            door.check_times(ends_at)
            writer.write(b"a NOOP\r\n")
            assert not (await reader.readline()).startswith(farewell), "it had time until now"
            door.check_times(ends_at + 1)
            assert (await reader.read()).startswith(farewell)
            writer.close()
            while door.count():
                await asyncio.sleep(0)
        for door, login, done in zip(
            both, (b"a AUTHENTICATE PLAIN", b"AUTH PLAIN"), (b"OK", b"235"), strict=True
        ):
            reader, writer = await program(door)
            writer.write(b"%s %s\r\n" % (login, plain(server.token)))
            await reader.readuntil(done)
            only(door).pause_writing()
            writer.write(b"b NOOP\r\n")
            only(door).resume_writing()
            await reader.readuntil(b"b OK" if door is both[0] else b"500 ")
            only(door).pause_writing()
            door.check_times(now() + DEFAULTS.write_seconds + 1)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            while door.count():
                await asyncio.sleep(0)
            writer.close()


async def test_connections_of_a_key_and_of_an_address_are_bounded(server: Server, tmp_path: Path) -> None:
    await server.new_inbox("agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    limits = ImapLimits(max_connections_per_key=1, max_connections_per_address=2)
    async with doors(server, certificate, limits=limits) as both, asyncio.timeout(120):
        for door, login, (done, refused), too_many in (
            (both[0], b"a AUTHENTICATE PLAIN", (b"a OK", b"a NO [LIMIT]"), b"* BYE"),
            (both[1], b"AUTH PLAIN", (b"235", b"454"), b"421 "),
        ):
            programs = [await program(door) for _ in range(2)]
            for (reader, writer), answer in zip(programs, (done, refused), strict=True):
                writer.write(b"%s %s\r\n" % (login, plain(server.token)))
                assert (await reader.readline()).startswith(answer)
            third, writer = await asyncio.open_connection("127.0.0.1", door.port)
            assert (await third.read()).startswith(too_many)
            for _, each in [*programs, (third, writer)]:
                each.close()


async def test_too_many_commands_in_a_minute_are_answered_slowly(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap_connection, "TOO_FAST_SECONDS", 3600.0)
    monkeypatch.setattr(ImapServer, "stopping_seconds", 0.01)
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    limits = ImapLimits(max_commands_per_minute=2)
    async with doors(server, certificate, limits=limits) as (imap, _), asyncio.timeout(120):
        reader, writer = await program(imap)
        writer.write(b"a NOOP\r\nb CAPABILITY\r\nc NOOP\r\nd NOOP\r\n")
        said = await reader.readuntil(b"b OK Done.\r\n")
        await imap.stop()
        assert b"c OK" not in said + await reader.read()
        writer.close()


async def test_after_three_wrong_passwords_the_answer_waits(server: Server, tmp_path: Path) -> None:
    waits = []
    failures = FailedLogins()
    for _ in range(10):
        waits.append(failures.wait_seconds("192.0.2.1", "A@x.example"))
        failures.record("192.0.2.1", "a@x.example")
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 30, 30]
    assert failures.wait_seconds("192.0.2.1", "b@x.example") == 0
    assert failures.wait_seconds("198.51.100.1", "a@x.example") == 0
    failures.forget("192.0.2.1", "a@x.example")
    assert failures.wait_seconds("192.0.2.1", "a@x.example") == 0
    await server.new_inbox("agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    async with doors(server, certificate) as both, asyncio.timeout(120):
        for door, login in zip(both, (b"a AUTHENTICATE PLAIN", b"AUTH PLAIN"), strict=True):
            reader, writer = await program(door)
            for _ in range(3):
                writer.write(b"%s %s\r\n" % (login, plain("pr_wrong")))
                await reader.readline()
            assert door._shared.failures.wait_seconds("127.0.0.1", OWN) == 1
            writer.close()


async def test_metrics_count_mail_programs(tmp_path: Path, clock: FakeClock, database_url: str) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as server:
        for port in (server.imap_port, server.submission_port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.readline()
            lines = (await server.api.get("/metrics")).text.splitlines()
            name = "imap" if port == server.imap_port else "submission"
            assert f"postroom_{name}_sessions 1.0" in lines
            writer.close()


async def test_a_loop_of_mail_programs_that_ends_is_one_that_fails(
    tmp_path: Path, clock: FakeClock, database_url: str
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as server, asyncio.timeout(120):
        names = {"imap sessions", "imap changes", "submission sessions"}
        for task in asyncio.all_tasks():
            if task.get_name().removeprefix("loop ") in names:
                task.cancel()
        await until(lambda: names <= server.resources.loops.failing().keys())


async def test_programs_configure_themselves(tmp_path: Path, clock: FakeClock, database_url: str) -> None:
    path = "/.well-known/autoconfig/mail/config-v1.1.xml"
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as server:
        answer = await server.api.get(path, params={"emailaddress": OWN})
        assert answer.headers["content-type"].startswith("application/xml")
        provider = ElementTree.fromstring(answer.text).find("emailProvider")
        assert provider is not None
        kinds = {each.tag: each.get("type") for each in provider if each.tag.endswith("Server")}
        assert kinds == {"incomingServer": "imap", "outgoingServer": "smtp"}
        assert provider.findtext("incomingServer/hostname") == "postroom.localhost"
        assert provider.findtext("incomingServer/socketType") == "STARTTLS"
    names = [each.service for each in client_configuration.endpoints(_with_ports(config, 993, 465, 587))]
    assert names == ["_imaps._tcp", "_submissions._tcp", "_submission._tcp"]
    lines = client_configuration.zone_lines("x.example", _with_ports(config, 143, 587))
    assert lines[0].endswith("IN SRV 0 1 143 postroom.localhost.")
    assert lines[1].startswith("_submission._tcp.x.example. ")


async def test_the_page_of_an_inbox_has_the_values_for_a_mail_program_and_its_code_says_the_same(
    tmp_path: Path, clock: FakeClock, database_url: str
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as server, signed_in(server) as page:
        inbox_id = await server.new_inbox("agent")
        shown = (await page.get(f"/app/inboxes/{inbox_id}")).text
        doors = client_configuration.endpoints(server.resources.config)
        section = shown[shown.index('id="mail-program"') :].partition("</section>")[0]
        assert "Incoming server (IMAP)" in section
        assert "Outgoing server (SMTP)" in section
        assert section.count("STARTTLS") == 2
        assert server.token not in shown
        words = [f"{each.protocol.upper()}: postroom.localhost:{each.port} (STARTTLS)" for each in doors]
        code = segno.make_qr("\n".join([*words, f"User name: {OWN}"]))
        black = {
            (x, y)
            for y, row in enumerate(code.matrix_iter(border=4))
            for x, is_black in enumerate(row)
            if is_black
        }
        drawn = re.findall(r"M(\d+) (\d+)h1v1h-1z", section)
        assert {(int(x), int(y)) for x, y in drawn} == black
        assert f'viewBox="0 0 {code.symbol_size(border=4)[0]} ' in section


async def test_the_page_of_an_inbox_without_doors_has_no_such_values(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    async with signed_in(server) as page:
        shown = await page.get(f"/app/inboxes/{inbox_id}")
    assert shown.status_code == 200
    assert 'id="mail-program"' not in shown.text


def _with_ports(config: Config, imap: int, *submission: int) -> Config:
    endpoints = tuple(Endpoint("0.0.0.0", port) for port in submission)
    return replace(config, imap=Endpoint("0.0.0.0", imap), submission=endpoints)


async def test_without_imap_there_is_nothing_to_configure(server: Server) -> None:
    answer = await server.api.get("/.well-known/autoconfig/mail/config-v1.1.xml")
    assert answer.status_code == 404


async def test_attempts_at_once_wait_as_those_one_after_another_do() -> None:
    failures, seen = FailedLogins(), []

    async def fail() -> None:
        async with failures.turn("192.0.2.1", "a@x.example"):
            seen.append(failures.wait_seconds("192.0.2.1", "a@x.example"))
            await asyncio.sleep(0)  # the password is compared
            failures.record("192.0.2.1", "a@x.example")

    await asyncio.gather(*(fail() for _ in range(6)))
    assert seen == [0, 0, 0, 1, 2, 4]


async def test_logins_on_many_connections_at_once_do_not_escape_the_delay(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.new_inbox("agent")
    certificate = Certificate(own_files(tmp_path / "tls", "one.example"))
    async with doors(server, certificate) as both, asyncio.timeout(120):
        for door, login in zip(both, (b"a AUTHENTICATE PLAIN", b"AUTH PLAIN"), strict=True):
            waits: list[float] = []
            known = door._shared.failures.wait_seconds
            monkeypatch.setattr(
                door._shared.failures, "wait_seconds", lambda *who, k=known, w=waits: w.append(k(*who)) or 0
            )
            opened = [await program(door) for _ in range(6)]
            for _, writer in opened:
                writer.write(b"%s %s\r\n" % (login, plain("pr_wrong")))
            await asyncio.gather(*(reader.readline() for reader, _ in opened))
            assert waits == [0, 0, 0, 1, 2, 4]
            for _, writer in opened:
                writer.close()
