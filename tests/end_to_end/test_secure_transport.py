"""Real peers on the loopback: DNSSEC by nsd and unbound, Postfix with and without TLS, an MTA-STS host."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509

from postroom.couriers.mail import SmtpCourier
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.couriers.webhook import HttpCourier
from postroom.net.dns import Resolver
from postroom.outward.courier import DeliveryError, OutgoingMail
from postroom_mail.authentication.mta_sts import write_policy
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.http_peer import HttpPeer, say
from tests.couriers.smtp_peer import SmtpPeer
from tests.couriers.test_dane import key_hash
from tests.end_to_end.test_postfix import open_folder, running_postfix
from tests.programs import path_of
from tests.signed_zones import validating_resolver

pytestmark = pytest.mark.needs("postfix", "nsd", "unbound", "root")
RAW = b"From: a@here.example\r\nTo: b@there.example\r\nSubject: hello\r\n\r\nhi\r\n"
MODES = ("enforce", "testing", "none")
HOSTS = ("match", "mismatch", "unusable")
WITH_TLS = "smtpd_tls_security_level = may\nsmtpd_tls_chain_files = {pem}\n"
OTHER = "cc" * 32


@contextlib.asynccontextmanager
async def postfix(with_tls: str = "") -> AsyncIterator[int]:
    """Passes on what it takes."""
    async with SmtpPeer() as behind:
        with open_folder() as folder:
            async with running_postfix(path_of("postfix"), folder, behind.port, with_tls) as port:
                yield port


def signed(port: int, own: str) -> list[str]:
    """Domains of a signed zone, each with a server of its own at the same address."""
    records = {"match": f"3 1 1 {own}", "mismatch": f"3 1 1 {OTHER}", "unusable": f"1 1 1 {own}"}
    lines = []
    for name, record in records.items():
        lines += [
            f"{name} 60 IN MX 10 mx-{name}",
            f"mx-{name} 60 IN A 127.0.0.1",
            f"_{port}._tcp.mx-{name} 60 IN TLSA {record}",
        ]
    return lines


def spoilt(port: int) -> list[str]:
    return ["@ 60 IN MX 10 mx", "mx 60 IN A 127.0.0.1", f"_{port}._tcp.mx 60 IN TLSA 3 1 1 {'aa' * 32}"]


def policed(port: int, address: str) -> list[str]:
    """Not signed: what its TLSA record says counts for nothing."""
    lines = ["mx 60 IN A 127.0.0.1", f"_{port}._tcp.mx 60 IN TLSA 3 1 1 {OTHER}"]
    for mode in MODES:
        lines += [
            f"{mode} 60 IN MX 10 mx",
            f'_mta-sts.{mode} 60 IN TXT "v=STSv1; id=1;"',
            f"mta-sts.{mode} 60 IN A {address}",
        ]
    return lines


class Way:
    """A courier that asks the validating resolver, and the host of the policies."""

    def __init__(self, resolver: Resolver, http: HttpCourier, host: HttpPeer, port: int, pem: Path) -> None:
        policies = TlsPolicies(resolver, http)
        self._host = host
        self.courier = SmtpCourier(
            resolver,
            own_name="here.example",
            allow_private=True,
            port=port,
            trusted=trusting_context(pem),
            policies=policies,
        )

    async def try_to(self, domain: str) -> str:
        """How the mail went; `waits` where it did not."""
        mode = domain.partition(".")[0]
        if mode in MODES:
            policy = write_policy(mode, ["mx.plain.example"]).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(policy)
            self._host.answer = say(head + policy)
        try:
            receipt = await self.courier.deliver(OutgoingMail("a@here.example", f"b@{domain}", RAW, domain))
        except DeliveryError as error:
            return "waits" if (error.permanent, error.enhanced) == (False, "4.7.5") else error.reason
        return receipt.tls


@contextlib.asynccontextmanager
async def way_to(port: int, pem: Path) -> AsyncIterator[Way]:
    own = key_hash(x509.load_pem_x509_certificate(pem.read_bytes()))
    address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
    zones = {
        "signed.example": signed(port, own),
        "bogus.example": spoilt(port),
        "plain.example": policed(port, address),
    }
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(open_folder())
        running = validating_resolver(folder, zones, "bogus.example")
        server = await asyncio.to_thread(stack.enter_context, running)
        resolver = Resolver([server], deadline_seconds=20)
        stack.push_async_callback(resolver.close)
        host = await stack.enter_async_context(HttpPeer(tls=server_context(pem), address=address, port=443))
        http = HttpCourier(resolver, allow_private=True, trusted=trusting_context(pem))
        stack.push_async_callback(http.close)
        way = Way(resolver, http, host, port, pem)
        stack.push_async_callback(way.courier.close)
        yield way


async def outcomes(port: int, pem: Path) -> dict[str, str]:
    domains = [f"{name}.signed.example" for name in HOSTS]
    domains += ["bogus.example", *(f"{mode}.plain.example" for mode in MODES)]
    async with way_to(port, pem) as way:
        return {domain: await way.try_to(domain) for domain in domains}


async def test_each_domain_gets_what_it_asks_for(tmp_path: Path) -> None:
    pem = make_certificate(tmp_path, "mx.plain.example", *(f"mta-sts.{mode}.plain.example" for mode in MODES))
    async with postfix(WITH_TLS.format(pem=pem)) as port:
        found = await outcomes(port, pem)
    assert found == {
        "match.signed.example": "dane",
        "mismatch.signed.example": "waits",
        "unusable.signed.example": "opportunistic",
        "bogus.example": "waits",
        "enforce.plain.example": "mta-sts",
        "testing.plain.example": "opportunistic",
        "none.plain.example": "opportunistic",
    }


async def test_without_certificates_only_who_asks_for_nothing_gets_mail(tmp_path: Path) -> None:
    pem = make_certificate(tmp_path, "mx.plain.example", *(f"mta-sts.{mode}.plain.example" for mode in MODES))
    async with postfix() as port:
        found = await outcomes(port, pem)
    assert found == {
        "match.signed.example": "waits",
        "mismatch.signed.example": "waits",
        "unusable.signed.example": "waits",
        "bogus.example": "waits",
        "enforce.plain.example": "waits",
        "testing.plain.example": "none",
        "none.plain.example": "none",
    }
