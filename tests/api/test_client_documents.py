"""Programs known by the URL of a document: the official client, hostile documents, forbidden targets."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.clock import HOUR, MINUTE
from postroom.errors import BadRequest, RateLimitExceeded
from postroom.net.certificate import trusted_authorities
from postroom.operations.people import client_documents
from postroom.operations.people.client_documents import read_document, require_document_url
from postroom.upkeep import expiry
from tests.api.test_oauth import (
    REDIRECT,
    Memory,
    answer_of,
    ask_mcp,
    asked,
    consent,
    exchange,
    list_tools,
    person,
    provider,
    told,
)
from tests.conftest import Server, running_server, settings
from tests.couriers.certificates import make_certificate, server_context
from tests.couriers.http_peer import HttpPeer, repeat, say
from tests.doubles import FakeClock

URL = "https://agent.example/oauth/client.json"
GOOD: dict[str, Any] = {"client_id": URL, "client_name": "Inspector", "redirect_uris": [REDIRECT]}


def answering(document: object, status: str = "200 OK", **more: str) -> Any:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = "".join(f"{name}: {value}\r\n" for name, value in more.items())
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
    )
    return say(head.encode() + body)


@pytest.fixture
async def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpPeer]:
    """A site with a certificate that the server trusts."""
    pem = make_certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    trusted_authorities.cache_clear()
    async with HttpPeer(tls=server_context(pem)) as opened:
        yield opened
    trusted_authorities.cache_clear()


async def look(page: httpx2.AsyncClient, client_id: str, **changed: str) -> httpx2.Response:
    return await page.get("/app/authorize", params=asked(client_id, **changed))


async def test_the_official_client_connects_by_its_document_without_registering(
    server: Server, peer: HttpPeer
) -> None:
    url = peer.url("/client.json")
    peer.answer = answering({**GOOD, "client_id": url})
    memory = Memory()
    async with person(server) as page:
        auth = provider(server, "/mcp", page, memory)
        auth.context.client_metadata_url = url
        assert "read_thread" in await list_tools(server, "/mcp", auth)
        shown = (await look(page, url)).text
        assert f"127.0.0.1:{peer.port}" in shown
        assert "The host is verified, the name is not." in shown
    assert memory.client is not None
    assert memory.client.client_id == url
    assert len(peer.requests) == 1  # and is known for ten minutes
    assert peer.requests[0].header("Authorization") is None


@pytest.mark.sqlite_alone
async def test_a_document_is_read_again_after_ten_minutes_and_forgotten_when_unused(
    server: Server, peer: HttpPeer
) -> None:
    url, other = peer.url("/client.json"), "https://agent.example/elsewhere"
    peer.answer = answering({**GOOD, "client_id": url})
    async with person(server) as page:
        assert (
            await consent(page, asked(url))
        ).status_code == 400  # not before somebody was shown what it is
        assert (await look(page, url)).status_code == 200
        code = answer_of(await consent(page, asked(url)))["code"]
        peer.answer = answering({**GOOD, "client_id": url, "redirect_uris": [other], "client_name": ""})
        server.clock.turn(10 * MINUTE)
        assert (await look(page, url)).status_code == 400
        shown = await look(page, url, redirect_uri=other)
        assert f"Allow “127.0.0.1:{peer.port}”?" in shown.text
        assert told(await exchange(server, url, code)) == (400, "invalid_grant")
        code = answer_of(await consent(page, asked(url, redirect_uri=other)))["code"]
        given = await exchange(server, url, code, redirect_uri=other)
        assert (await ask_mcp(server, given.json()["access_token"])).status_code == 200
        server.clock.turn(10 * MINUTE)
        peer.answer = answering({**GOOD, "client_id": url}, "404 Not Found")
        assert "answered with 404" in (await look(page, url)).text
    assert len(peer.requests) == 3


@pytest.mark.sqlite_alone
async def test_hostile_answers_are_refused_and_nothing_follows_a_redirect(
    server: Server, peer: HttpPeer
) -> None:
    url = peer.url("/client.json")
    good = {**GOOD, "client_id": url}
    flood = repeat(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 4096)
    async with person(server) as page:
        for answer, reason in (
            (answering(b"", "302 Found", Location=peer.url("/other.json")), "answered with 302"),
            (answering(good, "500 Oh"), "answered with 500"),
            (answering(json.dumps(good).encode() + b" " * 11_000), "larger than 10240 bytes"),
            (flood, "larger than 10240 bytes"),
            (answering(good | {"client_id": URL}), "its own URL"),
            (say(b"nonsense"), "could not be read"),
        ):
            peer.answer = answer
            refused = await look(page, url)
            assert refused.status_code == 400, reason
            assert reason in refused.text
            assert "location" not in refused.headers
        assert {request.head.split()[1] for request in peer.requests} == {b"/client.json"}
        assert told(await exchange(server, url, "x")) == (401, "invalid_client")
    async with server.client("") as stranger:  # who is not signed in makes the server ask nobody
        before = len(peer.requests)
        assert (await stranger.get("/app/authorize", params=asked(url))).status_code == 303
        assert len(peer.requests) == before


@pytest.mark.sqlite_alone
async def test_a_document_on_a_private_address_is_never_asked_for(
    peer: HttpPeer, tmp_path: Path, clock: FakeClock
) -> None:
    config = settings(tmp_path / "public", ALLOW_PRIVATE_WEBHOOKS="no")
    async with running_server(config, clock) as server, person(server) as page:
        for url in (
            peer.url("/client.json"),
            f"https://localhost:{peer.port}/client.json",
            f"https://[::ffff:127.0.0.1]:{peer.port}/client.json",
            f"https://2130706433:{peer.port}/client.json",
            "https://169.254.169.254/latest/meta-data",
            "https://10.0.0.1/x",
        ):
            refused = await look(page, url)
            assert refused.status_code == 400, url
            assert "could not be read" in refused.text
    assert peer.connections == 0


@pytest.mark.sqlite_alone
async def test_documents_that_nobody_allowed_are_limited_and_removed(server: Server) -> None:
    def fill(tx: Any) -> None:
        for number in range(200):
            url = f"https://agent.example/{number}"
            raw = json.dumps({**GOOD, "client_id": url}).encode()
            client_documents.keep(tx, url, raw, "acc_1", server.resources.config, server.clock.now())

    def keep(tx: Any, account_id: str, url: str) -> None:
        raw = json.dumps({**GOOD, "client_id": url}).encode()
        client_documents.keep(tx, url, raw, account_id, server.resources.config, server.clock.now())

    write = server.resources.db.write
    await write(fill)
    with pytest.raises(RateLimitExceeded, match="200 programs"):
        await write(keep, "acc_1", "https://agent.example/more")
    await write(keep, "acc_1", "https://agent.example/1")  # known
    await write(keep, "acc_2", "https://agent.example/more")
    server.clock.turn(25 * HOUR)
    assert await write(expiry.expire_rows, server.clock.now(), 1000) >= 201
    assert await server.resources.db.read(lambda tx: tx.all("select id from oauth_clients")) == []


def test_what_a_client_id_may_be() -> None:
    assert require_document_url(URL) == "agent.example"
    assert require_document_url("https://agent.example:8443/a/b") == "agent.example:8443"
    for wrong in (
        "https://agent.example",
        "https://agent.example/",
        "https://agent.example/a?b",
        "https://agent.example/a?",
        "https://agent.example/a#b",
        "https://agent.example/../a",
        "https://agent.example/a/./b",
        "https://agent.example/%2e%2e/a",
        "https://user:word@agent.example/a",
        "https://agent.example\\@evil.example/a",
        "https://[::1].evil.example/a",
        "https://agent.example/a b",
        "https://agent.example/\n",
        "https:///a",
        "https://agent.example:99999/a",
        "https://agent.example/" + "a" * 2000,
        "http://agent.example/a",
        "HTTPS://agent.example/\u202e",
    ):
        with pytest.raises(BadRequest):
            require_document_url(wrong)


def test_what_a_document_may_say() -> None:
    assert read_document(json.dumps(GOOD).encode(), URL) == ("Inspector", [REDIRECT])
    jwt = {**GOOD, "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://agent.example/keys"}
    assert read_document(json.dumps(jwt).encode(), URL)[0] == "Inspector"
    for nameless in ({}, {"client_name": "  "}, {"client_name": 3}, {"client_name": "a\u202eb"}):
        document = {**GOOD, "client_name": None, **nameless}
        assert read_document(json.dumps(document).encode(), URL)[0] == "agent.example"
    wrong: tuple[dict[str, Any], ...] = (
        {"client_id": URL + "/"},
        {"client_id": URL.upper()},
        {"client_id": None},
        {"client_id": [URL]},
        {"client_secret": "x"},
        {"client_secret_expires_at": 0},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": []},
        {"redirect_uris": REDIRECT},
        {"redirect_uris": [REDIRECT] * 11},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": [{}]},
    )
    for changed in wrong:
        with pytest.raises(BadRequest):
            read_document(json.dumps({**GOOD, **changed}).encode(), URL)
    for raw in (b"", b"[]", b"null", b"\xff", b"[" * 10_000, b'{"client_id": 1e999}', b'"x"'):
        with pytest.raises(BadRequest):
            read_document(raw, URL)
