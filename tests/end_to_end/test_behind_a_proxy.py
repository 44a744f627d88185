"""The server behind a proxy: who comes through it is seen as himself, and nobody else is believed."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.config import Config
from postroom.net import proxy_protocol, tls_proxy_protocol
from postroom.smtp.tls import own_files
from tests import programs
from tests.conftest import Server, api_client, running_server, settings
from tests.doubles import FakeClock
from tests.ports import free_port
from tests.raw_mails import raw_mail

PATIENCE_SECONDS = 120
# The proxy connects from 127.0.0.1, and clients of the tests from here, as strangers do.
CLIENT, STRANGER = "127.0.0.2", "127.0.0.3"


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(http_settings(tmp_path), clock) as running:
        yield running


@pytest.fixture
async def server_with_a_worker(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, WORKERS="1", TRUSTED_PROXIES="127.0.0.1/32, 2001:db8::/32")
    async with running_server(config, clock) as running:
        yield running


def talk(port: int, said: bytes, source: str = "127.0.0.1") -> bytes:
    """Says it all at once and hears until the end; a connection that is cut says nothing."""
    address = ("127.0.0.1", port)
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(address, PATIENCE_SECONDS, (source, 0)) as connection,
    ):
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


def mail_dialogue(port: int, name: str, source: str, announced: bytes = b"") -> list[bytes]:
    """Replies to each step of handing over one mail."""
    steps = [
        b"EHLO client.example\r\n",
        b"MAIL FROM:<ann@client.example>\r\n",
        f"RCPT TO:<{name}@postroom.localhost>\r\n".encode(),
        b"DATA\r\n",
        raw_mail(subject="through the door") + b"\r\n.\r\n",
        b"QUIT\r\n",
    ]
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS, (source, 0)) as connection:
        connection.sendall(announced)
        heard = connection.makefile("rb")
        replies = [read_reply(heard)]
        for step in steps:
            connection.sendall(step)
            replies.append(read_reply(heard))
        return replies


def read_reply(heard: Any) -> bytes:
    lines = b""
    while True:
        line: bytes = heard.readline()
        lines += line
        if line[3:4] != b"-":
            return lines


async def received_from(server: Server) -> str:
    """The address in the trace field of the newest mail."""
    event = await server.next_event()
    raw = (await server.api.get(f"/v1/messages/{event['message']['id']}/raw")).text
    return raw.partition("([")[2].partition("])")[0]


async def audited_addresses(server: Server, base_url: str, headers: dict[str, str], source: str) -> set[str]:
    """Where a refused request seemed to come from."""
    inbox_id = await server.new_inbox(f"box-{source.rpartition('.')[2]}-{len(headers)}")
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()
    transport = httpx2.AsyncHTTPTransport(local_address=source, verify=False)
    bearer = {"Authorization": f"Bearer {key['token']}", **headers}
    async with httpx2.AsyncClient(
        base_url=base_url, transport=transport, headers=bearer, timeout=PATIENCE_SECONDS
    ) as client:
        assert (await client.delete(f"/v1/inboxes/{inbox_id}")).status_code == 403
    audit = await server.api.get("/v1/audit", params={"actor": key["id"], "action": "refused"})
    return {entry["address"] for entry in audit.json()["data"]}


async def test_a_mail_has_the_address_that_the_proxy_announces(server: Server) -> None:
    await server.new_inbox("own")
    announced = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 25\r\n"
    replies = await asyncio.to_thread(mail_dialogue, server.smtp_port, "own", "127.0.0.1", announced)
    assert replies[-2].startswith(b"250 "), replies
    assert await received_from(server) == "192.0.2.7"


async def test_a_proxy_that_announces_nobody_is_cut_off_and_a_stranger_who_announces_is_refused(
    server: Server,
) -> None:
    announced = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 25\r\n"
    heard = await asyncio.to_thread(talk, server.smtp_port, b"EHLO client.example\r\n")
    assert heard == b""
    heard = await asyncio.to_thread(talk, server.smtp_port, announced + b"EHLO a\r\n", STRANGER)
    refused = heard.splitlines()[-1]  # behind the greeting, where that came first
    assert refused.startswith(b"554 5.5.0")


async def test_requests_have_the_address_that_a_listed_proxy_names(server: Server) -> None:
    url, named = server.base_url, {"X-Forwarded-For": "192.0.2.7"}
    assert await audited_addresses(server, url, named, "127.0.0.1") == {"192.0.2.7"}
    assert await audited_addresses(server, url, named, STRANGER) == {STRANGER}
    assert await audited_addresses(server, url, {}, "127.0.0.1") == {"127.0.0.1"}
    port = server.resources.config.http.port
    announced = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 25\r\n"
    request = b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    assert (await asyncio.to_thread(talk, port, announced + request)).startswith(b"HTTP/1.1 200")
    assert (await asyncio.to_thread(talk, port, request)).startswith(b"HTTP/1.1 200")
    heard = await asyncio.to_thread(talk, port, announced + request, STRANGER)
    assert heard.startswith(b"HTTP/1.1 400")


# TLS of the server's own, behind the header


@pytest.fixture
async def https_server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(https_settings(tmp_path), clock) as running:
        yield running


def https_settings(folder: Path) -> Config:
    files = own_files(folder / "tls", "localhost")
    tls = {"TLS_CERT": str(files.certificate), "TLS_KEY": str(files.key)}
    return settings(folder, TRUSTED_PROXIES="127.0.0.1", **tls)


def http_settings(folder: Path) -> Config:
    return settings(folder, TRUSTED_PROXIES="127.0.0.1")


def talk_over_tls(port: int, announced: Sequence[bytes], request: bytes, source: str = "127.0.0.1") -> bytes:
    """The pieces of a header, each as a packet of its own, and then a request inside TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = ("127.0.0.1", port)
    with (
        contextlib.suppress(ConnectionError, ssl.SSLError),
        socket.create_connection(address, PATIENCE_SECONDS, (source, 0)) as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in announced:
            connection.sendall(piece)
        with context.wrap_socket(connection) as secured:
            secured.sendall(request)
            return b"".join(iter(lambda: secured.recv(65536), b""))
    return b""


V2_HEADER = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
    + bytes([192, 0, 2, 8, 10, 0, 0, 1])
    + (40000).to_bytes(2, "big")
    + (443).to_bytes(2, "big")
)


ANNOUNCED = [
    ([b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 443\r\n"], "127.0.0.1", "192.0.2.7"),
    ([b"PROX", b"Y TCP4 192.0.2.7 10.", b"0.0.1 40000 443\r", b"\n"], "127.0.0.1", "192.0.2.7"),
    ([V2_HEADER], "127.0.0.1", "192.0.2.8"),
    ([bytes([byte]) for byte in V2_HEADER], "127.0.0.1", "192.0.2.8"),
    ([], "127.0.0.1", "127.0.0.1"),
    ([], STRANGER, STRANGER),
]


async def test_under_https_a_proxy_announces_before_the_handshake(https_server: Server) -> None:
    inbox_id = await https_server.new_inbox("own")
    port = https_server.resources.config.http.port
    for announced, source, seen in ANNOUNCED:
        key = (await https_server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()
        request = (
            f"DELETE /v1/inboxes/{inbox_id} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            f"Authorization: Bearer {key['token']}\r\n\r\n"
        )
        heard = await asyncio.to_thread(talk_over_tls, port, announced, request.encode(), source)
        assert heard.startswith(b"HTTP/1.1 403"), announced
        audit = await https_server.api.get("/v1/audit", params={"actor": key["id"], "action": "refused"})
        assert {entry["address"] for entry in audit.json()["data"]} == {seen}, announced


async def test_under_https_nobody_else_announces_and_half_a_header_is_no_handshake(
    https_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = https_server.resources.config.http.port
    header = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 443\r\n"
    request = b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    assert await asyncio.to_thread(talk_over_tls, port, [header], request, STRANGER) == b""
    assert await asyncio.to_thread(talk_over_tls, port, [b"PROXY TC"], request) == b""
    assert await asyncio.to_thread(talk, port, b"PROXY TC") == b""
    monkeypatch.setattr(tls_proxy_protocol, "HEADER_SECONDS", 0.05)
    for said in (b"", b"PROXY TC", header):
        assert await asyncio.to_thread(wait_for_the_end, port, said) == b""
    monkeypatch.undo()
    assert (await https_server.api.get("/health")).status_code == 200


def wait_for_the_end(port: int, said: bytes) -> bytes:
    """Says it, and then nothing more."""
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection,
    ):
        connection.sendall(said)
        return connection.recv(65536)
    return b""


@pytest.mark.parametrize("config_in", [http_settings, https_settings])
async def test_a_server_stops_while_a_proxy_has_announced_nobody_yet(
    tmp_path: Path, clock: FakeClock, config_in: Callable[[Path], Config]
) -> None:
    async with running_server(config_in(tmp_path), clock) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.smtp_port)
        other, other_writer = await asyncio.open_connection("127.0.0.1", server.resources.config.http.port)
        await server.api.get("/health")  # both are accepted before this one
    for each in (reader, other):
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(each.read(), PATIENCE_SECONDS) == b""
    writer.close()
    other_writer.close()


async def test_a_proxy_that_says_nothing_is_not_waited_for_for_ever(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_protocol, "HEADER_SECONDS", 0.05)
    for port in (server.smtp_port, server.resources.config.http.port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
        writer.close()


HAPROXY = """
defaults
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend mail
    mode tcp
    bind 127.0.0.1:{mail}
    default_backend mail
backend mail
    mode tcp
    server one 127.0.0.1:{smtp} send-proxy-v2
frontend web
    mode tcp
    bind 127.0.0.1:{web}
    default_backend web
backend web
    mode tcp
    server one 127.0.0.1:{http} send-proxy-v2
"""


@contextlib.contextmanager
def running_haproxy(folder: Path, **ports: int) -> Iterator[None]:
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY.format(**ports))
    process = subprocess.Popen([programs.path_of("haproxy"), "-db", "-q", "-f", str(path)])
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


async def until_open(port: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.02)


@pytest.mark.needs("haproxy")
async def test_behind_haproxy_mail_and_requests_have_the_real_client(
    server_with_a_worker: Server, tmp_path: Path
) -> None:
    server = server_with_a_worker
    mail, web = free_port(), free_port()
    http = server.resources.config.http.port
    await server.new_inbox("own")
    with running_haproxy(tmp_path, mail=mail, web=web, smtp=server.smtp_port, http=http):
        await until_open(mail)
        replies = await asyncio.to_thread(mail_dialogue, mail, "own", CLIENT)
        assert replies[-2].startswith(b"250 "), replies
        assert await received_from(server) == CLIENT
        base_url = f"http://127.0.0.1:{web}"
        forged = {"X-Forwarded-For": "6.6.6.6"}
        assert await audited_addresses(server, base_url, forged, CLIENT) == {CLIENT}
        async with api_client(base_url, server.token) as through:
            assert (await through.get("/v1/me")).status_code == 200
