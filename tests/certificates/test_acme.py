"""Certificates from a real authority (Pebble), with its faults and its lies."""

import asyncio
import contextlib
import json
import os
import re
import socket
import stat
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from postroom.accounts import accounts, domains
from postroom.certificates import acme, certificates
from postroom.certificates import obtain as obtaining
from postroom.certificates.acme import AcmeError
from postroom.certificates.keep_certificates import BELL
from postroom.certificates.obtain import check, obtain, renewal_time
from postroom.clock import DAY, HOUR, MINUTE, SECOND
from postroom.couriers.webhook import HttpCourier, WebhookLimits
from postroom.external_mailboxes.fetching import Fetched
from postroom.net.certificate import trusted_authorities
from postroom.net.dns import Resolver
from postroom.resources import Tx
from postroom.smtp.tls import make_certificate
from tests import dns_provider_servers, knot
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.net.test_certificate import trusting
from tests.ports import free_port
from tests.programs import path_of
from tests.waiting import LIMIT_SECONDS, PAUSE_SECONDS, until

CA = "https://ca.example"
HOST, OTHER = "mail.example.com", "example.org"
POLICY_HOST, MAIL_HOST = f"mta-sts.{OTHER}", f"mail.{OTHER}"
DNS_KEY = "hmac-sha256:postroom:c2VjcmV0LW9mLXRoZS10ZXN0LW9mLXVwZGF0ZXM="
NAMES = {
    (HOST, "A"): ["127.0.0.1"],
    ("ca.example", "A"): ["127.0.0.1"],
    (POLICY_HOST, "CNAME"): [f"{HOST}."],
    (MAIL_HOST, "CNAME"): [f"{HOST}."],
    (f"mta-sts.{HOST}", "A"): ["192.0.2.1"],
}


class Authority:
    """Pebble on a free port; it refuses three of ten good nonces."""

    def __init__(self, folder: Path, names: str, http_port: int, tls_port: int) -> None:
        self._folder, self._names = folder, names
        self.port, self.certificate = free_port(), folder / "authority.pem"
        make_certificate(self.certificate, folder / "authority.key", "ca.example")
        pebble = {
            "listenAddress": f"127.0.0.1:{self.port}",
            "managementListenAddress": "",
            "certificate": str(self.certificate),
            "privateKey": str(folder / "authority.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
        }
        (folder / "pebble.json").write_text(json.dumps({"pebble": pebble}))

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with (self._folder / "pebble.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                path_of("pebble"),
                *("-config", str(self._folder / "pebble.json"), "-dnsserver", self._names),
                env={**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "30"},
                stdout=log,
                stderr=log,
            )
        try:
            await until(self._answers)
            yield
        finally:
            process.terminate()
            await process.wait()


async def shown(port: int, name: str, *, starttls: bool = False) -> x509.Certificate:
    """The certificate that a client gets who asks for this name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if starttls:
            await reader.readuntil(b"\n")
            writer.write(b"STARTTLS\r\n")
            await reader.readuntil(b"\n")
        await writer.start_tls(trusting(), server_hostname=name)
        return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(True))
    finally:
        writer.transport.abort()


def issuer(found: x509.Certificate) -> str:
    return found.issuer.rfc4514_string()


def names_of(found: x509.Certificate) -> list[str]:
    return found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
        x509.DNSName
    )


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The authority's own certificate is trusted as an operator would do it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    trusted_authorities.cache_clear()
    yield
    trusted_authorities.cache_clear()


@pytest.mark.share(2)
@pytest.mark.needs("pebble")
async def test_certificates_are_issued_renewed_and_kept_while_the_authority_is_away(
    database_url: str, tmp_path: Path, clock: FakeClock, trusted: None
) -> None:
    clock.moment = int(time.time()) * SECOND
    http_port = free_port()
    async with DnsServer(NAMES) as names:
        authority = Authority(tmp_path, names.address, http_port, free_port())
        config = settings(
            tmp_path / "data",
            DATABASE_URL=database_url,
            DOMAIN=HOST,
            ACME=f"{CA}:{authority.port}/dir",
            ACME_EMAIL="ops@example.net",
            ACME_HTTP=f"127.0.0.1:{http_port}",
        )
        async with running_server(config, clock, Resolver([names.address])) as server:
            port = int(server.resources.config.base_url.rpartition(":")[2])
            await happened(server, ["certificate.failed"])
            assert "Pebble" not in issuer(await shown(port, HOST))
            assert HOST in (await warnings(port))[0]

            async with authority.running():
                await server.resources.db.write(add_verified_domain, clock.now())
                await turn(server, HOUR)
                await happened(server, ["certificate.failed", *["certificate.issued"] * 3])
                assert "Pebble" in issuer(await shown(port, HOST))
                assert "Pebble" in issuer(await shown(server.smtp_port, HOST, starttls=True))
                await until_shown(port, POLICY_HOST)
                await until_shown(port, MAIL_HOST)
                first = await shown(port, HOST)
                assert names_of(first) == [HOST]
                assert names_of(await shown(port, POLICY_HOST)) == [POLICY_HOST]
                assert await warnings(port) == []
                assert await get(http_port, "/app?x=1") == (301, f"{config_url(server)}/app?x=1")
                assert (await get(http_port, "/.well-known/acme-challenge/none"))[0] == 404
                kept = [tmp_path / "data/tls" / name for name in ("acme.pem", f"{POLICY_HOST}.pem")]
                assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}

            stored = await server.resources.db.read(certificates.list_all)
            own = next(each for each in stored if each.name == HOST)
            await turn(server, own.due_at - clock.now())
            await happened(
                server, ["certificate.failed", *["certificate.issued"] * 3, *["certificate.failed"] * 3]
            )
            assert (await shown(port, HOST)).serial_number == first.serial_number

            async with authority.running():  # it has forgotten the account
                await turn(server, HOUR)
                await until_renewed(port, first)
                assert names_of(await shown(port, POLICY_HOST)) == [POLICY_HOST]


@pytest.mark.sqlite_alone
@pytest.mark.needs("pebble")
async def test_without_port_80_the_authority_is_answered_in_the_handshake(
    tmp_path: Path, clock: FakeClock, trusted: None
) -> None:
    clock.moment = int(time.time()) * SECOND
    https_port = free_port()
    async with DnsServer(NAMES) as names:
        authority = Authority(tmp_path, names.address, free_port(), https_port)
        config = settings(
            tmp_path / "data",
            DOMAIN=HOST,
            HTTP=f"127.0.0.1:{https_port}",
            ACME=f"{CA}:{authority.port}/dir",
            ACME_HTTP="off",
        )
        async with authority.running(), running_server(config, clock, Resolver([names.address])) as server:
            await happened(server, ["certificate.issued"])
            await until_shown(https_port, HOST)


@pytest.mark.sqlite_alone
@pytest.mark.needs("pebble", "knotd")
async def test_a_dns_provider_proves_the_names_in_its_zones(
    tmp_path: Path, clock: FakeClock, trusted: None
) -> None:
    clock.moment = int(time.time()) * SECOND
    https_port = free_port()
    zones = {
        "example.com": ["mail 60 IN A 127.0.0.1", "_acme-challenge.mail 60 IN TXT other"],
        "ca.example": ["@ 60 IN A 127.0.0.1"],
    }
    async with knot.running(tmp_path, zones, DNS_KEY) as port:
        resolver, names = Resolver([f"127.0.0.1:{port}"]), f"127.0.0.1:{port}"
        authority = Authority(tmp_path, names, free_port(), free_port())  # neither port leads here
        config = settings(
            tmp_path / "data",
            DOMAIN=HOST,
            HTTP=f"127.0.0.1:{https_port}",
            ACME=f"{CA}:{authority.port}/dir",
            ACME_HTTP="off",
            DNS=f"rfc2136://{names}",
            DNS_TOKEN=DNS_KEY,
        )
        async with authority.running(), running_server(config, clock, resolver) as server:
            await happened(server, ["certificate.issued"])
            await until_shown(https_port, HOST)
            async with asyncio.timeout(LIMIT_SECONDS):
                while await txt_now(names, f"_acme-challenge.{HOST}") != (b"other",):
                    await asyncio.sleep(PAUSE_SECONDS)


class Liar:
    """Answers as an authority would, but for what a test puts in its place."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = {
            "/dir": {"newNonce": f"{CA}/nonce", "newAccount": f"{CA}/account", "newOrder": f"{CA}/orders"},
            "/nonce": {},
            "/account": {"status": "valid"},
            "/orders": {"status": "pending", "authorizations": [f"{CA}/authz"], "finalize": f"{CA}/finalize"},
            "/authz": {"status": "valid", "identifier": {"type": "dns", "value": HOST}},
            "/order/1": {"status": "valid", "certificate": f"{CA}/chain"},
            "/chain": {},
            **answers,
        }
        self.asked: list[str] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        self.asked.append(url)
        found = self._answers[url.removeprefix(CA)]
        location = {"/orders": f"{CA}/order/1", "/account": f"{CA}/account/1"}.get(url.removeprefix(CA), "")
        if isinstance(found, Fetched):
            return found
        content = found if isinstance(found, bytes) else json.dumps(found).encode()
        nonce = {} if method == "GET" else {"replay-nonce": "abc"}
        return Fetched(200, content, {"location": location, **nonce})


LIES: list[tuple[dict[str, object], str]] = [
    ({"/dir": b"<html>"}, "not JSON as RFC 8555 has it"),
    ({"/dir": b"[" * 60_000}, "not JSON as RFC 8555 has it"),
    ({"/dir": {"newNonce": "https://10.0.0.1/", "newAccount": "x", "newOrder": "x"}}, "on another host"),
    ({"/nonce": Fetched(200, b"")}, "gives no nonce"),
    ({"/nonce": Fetched(200, b"", {"replay-nonce": "a\r\nX: y"})}, "gives no nonce"),
    ({"/orders": Fetched(400, json.dumps({"type": acme.BAD_NONCE}).encode())}, "refuses every nonce"),
    ({"/orders": Fetched(429, b"{}", {"retry-after": "9" * 5000})}, "answers 429"),
    ({"/orders": {"status": "pending", "authorizations": [f"{CA}/authz"] * 50}}, "more authorizations"),
    ({"/orders": {"status": "pending", "authorizations": ["https://10.0.0.1/x"]}}, "on another host"),
    ({"/orders": {"status": "pending", "authorizations": ["https://[x"]}}, "on another host"),
    ({"/dir": {"newNonce": "https://[::1", "newAccount": "x", "newOrder": "x"}}, "on another host"),
    ({"/authz": {"status": "pending", "identifier": {"value": "bank.example"}}}, "was not ordered"),
    ({"/authz": {"status": "pending", "identifier": {"value": HOST}}}, "offers no http-01"),
    (
        {
            "/authz": {
                "status": "pending",
                "identifier": {"value": HOST},
                "challenges": [{"type": "http-01", "url": f"{CA}/c", "token": "../x"}],
            }
        },
        "no valid token",
    ),
    ({"/order/1": {"status": "invalid", "error": {"detail": "no\r\nFake: line\u202e"}}}, "no  Fake: line "),
    ({"/order/1": {"status": "valid", "certificate": "file:///etc/passwd"}}, "on another host"),
]


@pytest.mark.parametrize(("answers", "reason"), LIES)
async def test_an_authority_that_lies_gets_nothing_and_leads_nowhere(
    answers: dict[str, object], reason: str
) -> None:
    liar, key = Liar(answers), ec.generate_private_key(ec.SECP256R1())

    async def publish(token: str, name: str, key_authorization: str) -> None:
        raise AssertionError("nothing is to be shown for it")

    async def order() -> None:
        account = acme.AcmeClient(liar, f"{CA}/dir", key)
        await account.register("")
        await account.obtain([HOST], key, certificates.HTTP_01, publish)

    with pytest.raises(AcmeError, match=re.escape(reason)):
        await order()
    assert all(url.startswith(f"{CA}/") for url in liar.asked)


async def test_a_rate_limit_says_when_to_order_again_and_the_certificate_stays(
    database_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause of ten days counts as one: the operator may have mended it."""
    config = settings(tmp_path / "data", DATABASE_URL=database_url, DOMAIN=HOST)

    async def publish(challenge: certificates.OpenChallenge) -> None:
        raise AssertionError("nothing is to be shown for it")

    async with running_server(config, clock) as server:
        resources = replace(server.resources, config=replace(config, acme=f"{CA}/dir"))
        write, read, expires_at = resources.db.write, resources.db.read, clock.now() + 20 * DAY
        await write(certificates.set_wanted, [(HOST,)], clock.now())
        await write(certificates.record_issued, HOST, "chain", "key", expires_at, clock.now(), clock.now())
        for told, pause in (("60", HOUR), ("10800", 3 * HOUR), ("864000", DAY)):
            problem = json.dumps({"type": acme.RATE_LIMITED, "detail": "too many orders"}).encode()
            liar = Liar({"/orders": Fetched(429, problem, {"retry-after": told, "replay-nonce": "n"})})
            due = await read(certificates.find_due, clock.now())
            assert due is not None
            assert not await obtain(resources, liar, due, certificates.HTTP_01, publish)
            (stored,) = await read(certificates.list_all)
            assert (stored.chain, stored.key, stored.expires_at) == ("chain", "key", expires_at)
            assert stored.error == "The authority answers 429: too many orders"
            assert stored.due_at == clock.now() + pause
            clock.turn(pause)
        await happened(server, ["certificate.failed"])
        monkeypatch.setattr(obtaining, "DEADLINE_SECONDS", 0.1)
        endless = Liar({"/order/1": {"status": "processing"}})
        for odd, reason in ((Odd(), "The order broke off"), (endless, "No certificate came within")):
            due = await read(certificates.find_due, clock.now())
            assert due is not None
            assert not await obtain(resources, odd, due, certificates.HTTP_01, publish)
            (stored,) = await read(certificates.list_all)
            assert stored.error is not None
            assert stored.error.startswith(reason)
            assert stored.due_at > clock.now(), "nothing is a reason to ask again at once"
            clock.turn(DAY)


class Odd:
    """Fails as nothing should."""

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        raise LookupError("odd")


BYTES = [
    (b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n", "answers 302"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b" " * 2_000_000, "too long|larger than"),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"a":' * 12_000, "not JSON"),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b" " * 80_000, "too long|larger than"),
    (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000, "gave no answer"),
]


@pytest.mark.parametrize(("content", "reason"), BYTES)
async def test_a_directory_that_redirects_or_never_ends_gets_one_error(content: bytes, reason: str) -> None:
    courier = HttpCourier(Resolver([]), allow_private=True, limits=WebhookLimits(deadline_seconds=30))
    key = ec.generate_private_key(ec.SECP256R1())
    with dns_provider_servers.running(lambda asked: content) as base, pytest.raises(AcmeError, match=reason):
        await acme.AcmeClient(courier, f"{base}/dir", key).register("")
    await courier.close()


def test_a_certificate_that_clients_would_refuse_is_not_taken_into_use(tmp_path: Path) -> None:
    make_certificate(tmp_path / "chain", tmp_path / "key", HOST)
    chain, now = (tmp_path / "chain").read_bytes(), int(time.time()) * SECOND
    key = serialization.load_pem_private_key((tmp_path / "key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    issued = check(chain, (HOST,), key, now)
    assert now < issued.due_at < issued.expires_at
    for content, names, own, moment, reason in (
        (b"nothing", (HOST,), key, now, "cannot be read"),
        (chain, (HOST, "www.example.com"), key, now, "lacks www.example.com"),
        (chain, (HOST,), ec.generate_private_key(ec.SECP256R1()), now, "another key"),
        (chain, (HOST,), key, now - 30 * DAY, "Check this machine's clock"),
        (chain, (HOST,), key, issued.expires_at, "Check this machine's clock"),
        (chain + b"\xff", (HOST,), key, now, "cannot be used"),
    ):
        with pytest.raises(AcmeError, match=reason):
            check(content, names, own, moment)
    late = issued.expires_at - SECOND
    assert check(chain, (HOST,), key, late).due_at == late + 5 * MINUTE, "never again at once"
    days = [(90 * DAY - renewal_time(f"{n}.example", 0, 90 * DAY)) / DAY for n in range(200)]
    assert 30 <= min(days) < max(days) <= 33
    assert len(set(days)) == 200


async def happened(server: Server, expected: list[str]) -> None:
    def certificate_events(tx: Tx) -> list[str]:
        rows = tx.all("select kind from events where kind like 'certificate.%' order by position")
        return [row["kind"] for row in rows]

    async with asyncio.timeout(LIMIT_SECONDS):
        while (found := await server.resources.db.read(certificate_events)) != expected:
            assert found == expected[: len(found)], await server.resources.db.read(certificates.list_all)
            await asyncio.sleep(PAUSE_SECONDS)


async def turn(server: Server, milliseconds: int) -> None:
    assert isinstance(server.resources.clock, FakeClock)
    server.resources.clock.turn(milliseconds)
    server.resources.db.ring(BELL)


async def until_shown(port: int, name: str) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while "Pebble" not in issuer(await shown(port, name)):
            await asyncio.sleep(PAUSE_SECONDS)


async def until_renewed(port: int, first: x509.Certificate) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while (await shown(port, HOST)).serial_number == first.serial_number:
            await asyncio.sleep(PAUSE_SECONDS)


async def get(port: int, path: str) -> tuple[int, str]:
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")
        return answer.status_code, answer.headers.get("location", "")


async def txt_now(names: str, name: str) -> tuple[bytes, ...]:
    resolver = Resolver([names])
    try:
        return await resolver.txt(name)
    finally:
        await resolver.close()


async def warnings(port: int) -> list[str]:
    async with httpx2.AsyncClient(verify=trusting()) as client:
        found: list[str] = (await client.get(f"https://127.0.0.1:{port}/ready")).json()["warnings"]
        return found


def config_url(server: Server) -> str:
    return server.resources.config.base_url


def add_verified_domain(tx: Tx, now: int) -> None:
    first = accounts.find_first(tx)
    assert first is not None
    domains.mark_verified(tx, domains.add(tx, first.id, OTHER, b"-", now), now)
