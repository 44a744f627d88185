"""DNS records are read and written at each provider, and an answer that lies does no harm."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from postroom.couriers.webhook import HttpCourier, WebhookLimits
from postroom.dns_providers import asking, choose
from postroom.dns_providers.dynamic_updates import DynamicUpdates
from postroom.dns_providers.route53 import sign
from postroom.dns_providers.zone import DnsProvider, DnsProviderError, Zone
from postroom.net.dns import Resolver
from tests import dns_provider_servers, knot
from tests.dns_provider_servers import DIALECTS, TOKEN, ZONE, Answer, Asked, Records

LONG = f"v=DKIM1; k=rsa; p={'A' * 400}"
CHALLENGE = f"_acme-challenge.mail.{ZONE}"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
async def fetcher() -> AsyncIterator[HttpCourier]:
    limits = WebhookLimits(deadline_seconds=30)
    courier = HttpCourier(Resolver([]), allow_private=True, limits=limits)
    yield courier
    await courier.close()


def opened(name: str, fetcher: HttpCourier, base: str, token: str = TOKEN) -> DnsProvider:
    kind: Callable[..., DnsProvider] = choose.OF_WEB[name]
    return kind(fetcher, f"AKIDEXAMPLE:{token}" if name == "route53" else token, base)


SLOWER = b"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
THROTTLED = b"<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>"
TOO_FAST = {
    **dict.fromkeys(DIALECTS, SLOWER),
    "route53": b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n%s" % (len(THROTTLED), THROTTLED),
}


@pytest.mark.parametrize("name", DIALECTS)
async def test_records_are_found_added_replaced_and_removed(
    name: str, fetcher: HttpCourier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third request comes too fast for the provider."""
    records = Records({(ZONE, "TXT"): ['"hello=world"'], (f"z.{ZONE}", "A"): ["192.0.2.9"]})
    number = itertools.count(1)
    monkeypatch.setattr(asking, "PAUSE_SECONDS", 0.0)

    def answer(asked: Asked) -> Answer | bytes:
        return TOO_FAST[name] if next(number) % 3 == 0 else DIALECTS[name](asked, records)

    with dns_provider_servers.running(answer) as base:
        provider = opened(name, fetcher, base)
        assert await provider.find_zone("mail.example.org") is None
        zone = await provider.find_zone(f"mail.{ZONE}")
        assert zone is not None
        assert zone.name == ZONE
        assert await provider.read(zone, f"mail.{ZONE}", "A") == ()
        await provider.write(zone, f"mail.{ZONE}", "A", ["192.0.2.1"])
        await provider.write(zone, f"mail.{ZONE}", "MX", [f"10 mail.{ZONE}."])
        await provider.write(zone, ZONE, "TXT", [*await provider.read(zone, ZONE, "TXT"), LONG])
        await provider.write(zone, CHALLENGE, "TXT", ["one", "two"])
        assert await provider.read(zone, f"mail.{ZONE}", "MX") == (f"10 mail.{ZONE}.",)
        assert await provider.read(zone, ZONE, "TXT") == ("hello=world", LONG)
        await provider.write(zone, CHALLENGE, "TXT", ["two"])
        await provider.write(zone, f"mail.{ZONE}", "A", ["192.0.2.2"])
        assert await provider.read(zone, CHALLENGE, "TXT") == ("two",)
        assert records.values[f"mail.{ZONE}", "A"] == ["192.0.2.2"]
        await provider.write(zone, CHALLENGE, "TXT", [])
        await provider.write(zone, f"none.{ZONE}", "A", [])
        assert (CHALLENGE, "TXT") not in records.values
        if name != "route53":
            with pytest.raises(DnsProviderError, match="POSTROOM_DNS_TOKEN") as refused:
                await opened(name, fetcher, base, "stolen").find_zone(f"mail.{ZONE}")
            assert "stolen" not in str(refused.value)


LIES: list[tuple[bytes, str]] = [
    (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "answers 302"),
    (HEAD + b"Content-Length: 99999999\r\n\r\n" + b" " * 2_000_000, "too long"),
    (HEAD + b"Connection: close\r\n\r\n" + b"[" * 60_000, "cannot be read"),
    (HEAD + b"Connection: close\r\n\r\n<html>", "cannot be read"),
    (b"HTTP/1.1 429 Slow\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n", "too many requests"),
    (b"HTTP/1.1 500 No\r\nContent-Length: 12\r\n\r\n\x1b[2Jno\r\nfake", "answers 500"),
    (b"220 smtp.example.com\r\n", "gave no answer"),
]


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_provider_that_lies_gets_one_clear_error(name: str, fetcher: HttpCourier) -> None:
    lies = iter(LIES)
    with dns_provider_servers.running(lambda asked: next(lies)[0]) as base:
        for _, reason in LIES:
            with pytest.raises(DnsProviderError, match=reason) as refused:
                await opened(name, fetcher, base).find_zone("example.com")
            assert refused.value.reason.isprintable()


async def test_an_id_from_outside_stays_one_segment_of_the_path(fetcher: HttpCourier) -> None:
    asked: list[str] = []

    def answer(each: Asked) -> Answer:
        asked.append(each.path)
        return 404, {}

    with dns_provider_servers.running(answer) as base:
        for name in DIALECTS:
            assert (
                await opened(name, fetcher, base).read(Zone("../../admin?x=", ZONE), f"a.{ZONE}", "A") == ()
            )
    assert all("/admin" not in path and "..%2F..%2Fadmin%3Fx%3D" in path for path in asked)


SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SIGNED = (  # by Amazon's own library, at the same moment
    (
        ("GET", "/2013-04-01/hostedzone/Z1/rrset?maxitems=1&name=_dmarc.example.com.&type=TXT", b""),
        "4384c7c9ec1c1f3d81cd5b1a2a5957cd3a9c0794c38e901416836276433e4d33",
    ),
    (
        ("POST", "/2013-04-01/hostedzone/..%2Fx/rrset/", b"<a/>"),
        "6cf82a3e5f2a5b07e6c0e012506da8a9c96e4e34d35f0b3e706c232a4291dc5d",
    ),
)


def test_requests_to_route_53_are_signed_as_amazon_signs_them() -> None:
    for (method, path, body), signature in SIGNED:
        signed = sign("AKIDEXAMPLE", SECRET, method, "route53.amazonaws.com", path, body, "20261119T120000Z")
        assert signed["Authorization"].endswith(f"Signature={signature}")


KEY = "hmac-sha256:setup:c2VjcmV0LW9mLXRoZS10ZXN0LW9mLXVwZGF0ZXM="


@pytest.mark.needs("knotd")
async def test_a_server_takes_signed_updates(tmp_path: Path) -> None:
    zones = {ZONE: ['@ 60 IN TXT "hello=world"'], f"sub.{ZONE}": []}
    async with knot.running(tmp_path, zones, KEY) as port, closing_resolver(port) as resolver:
        provider = DynamicUpdates(resolver, "127.0.0.1", port, KEY)
        assert await provider.find_zone("mail.example.org") is None
        assert await provider.find_zone(f"a.b.sub.{ZONE}") == Zone(f"sub.{ZONE}", f"sub.{ZONE}")
        zone = await provider.find_zone(f"mail.{ZONE}")
        assert zone == Zone(ZONE, ZONE)
        await provider.write(zone, ZONE, "TXT", [*await provider.read(zone, ZONE, "TXT"), LONG])
        assert sorted(await provider.read(zone, ZONE, "TXT")) == ["hello=world", LONG]
        await provider.write(zone, f"mail.{ZONE}", "MX", [f"10 mail.{ZONE}."])
        assert await resolver.mx(f"mail.{ZONE}") == ((10, f"mail.{ZONE}"),)
        await provider.write(zone, ZONE, "TXT", [])
        assert await provider.read(zone, ZONE, "TXT") == ()
        for key in ("", KEY.replace("setup", "other")):
            unknown = DynamicUpdates(resolver, "127.0.0.1", port, key)
            with pytest.raises(DnsProviderError):
                await unknown.write(zone, ZONE, "TXT", ["stolen"])
        with pytest.raises(DnsProviderError, match="Base64"):
            DynamicUpdates(resolver, "127.0.0.1", port, "setup:nonsense!")
    with pytest.raises(DnsProviderError, match="cannot be asked"):
        await provider.find_zone(ZONE)


@contextlib.asynccontextmanager
async def closing_resolver(port: int) -> AsyncIterator[Resolver]:
    resolver = Resolver([f"127.0.0.1:{port}"])
    yield resolver
    await resolver.close()
