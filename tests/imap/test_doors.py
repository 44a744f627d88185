"""The doors of mail programs: TLS from the first byte, a proxy in front, a renewed certificate, a stop."""

import asyncio
import contextlib
import imaplib
import re
import smtplib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import segno

from postroom.config import Config, Endpoint
from postroom.deliverability import mail_programs
from postroom.imap.server import ImapServer
from postroom.mail.extraction import Extraction
from postroom.net.certificate import Certificate
from postroom.smtp.submission.server import SubmissionServer
from postroom.smtp.tls import make_certificate, own_files
from tests.api.test_front_office import signed_in
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, ok
from tests.letters import letter

OWN = "agent@postroom.localhost"
ANYWHERE = Endpoint("127.0.0.1", 0)
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
    server: Server, certificate: Certificate, is_tls: bool
) -> AsyncIterator[tuple[ImapServer, SubmissionServer]]:
    """Beside the server, on ports of their own: 993 and 465 are not everybody's."""
    imap = ImapServer(server.resources, NoExtractor(), certificate.context, is_tls_from_the_start=is_tls)
    submission = SubmissionServer(server.resources, certificate.context, is_tls_from_the_start=is_tls)
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
    await server.deliver(letter("Over TLS"), "agent")
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
            smtp.sendmail(OWN, ["bob@example.com"], letter("Sent", **{"from": OWN}))

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
    names = [each.service for each in mail_programs.doors(_with_ports(config, 993, 465))]
    assert names == ["_imaps._tcp", "_submissions._tcp"]
    lines = mail_programs.zone_lines("x.example", _with_ports(config, 143, 587))
    assert lines[0].endswith("IN SRV 0 1 143 postroom.localhost.")
    assert lines[1].startswith("_submission._tcp.x.example. ")


async def test_the_page_of_an_inbox_has_the_values_for_a_mail_program_and_its_code_says_the_same(
    tmp_path: Path, clock: FakeClock, database_url: str
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as server, signed_in(server) as page:
        inbox_id = await server.new_inbox("agent")
        shown = (await page.get(f"/app/inboxes/{inbox_id}")).text
        doors = mail_programs.doors(server.resources.config)
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


def _with_ports(config: Config, imap: int, submission: int) -> Config:
    return replace(config, imap=Endpoint("0.0.0.0", imap), submission=Endpoint("0.0.0.0", submission))


async def test_without_imap_there_is_nothing_to_configure(server: Server) -> None:
    answer = await server.api.get("/.well-known/autoconfig/mail/config-v1.1.xml")
    assert answer.status_code == 404
