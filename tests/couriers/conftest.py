"""A small DNS zone and patient couriers that ask it."""

import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from msgspec.structs import replace

from postroom.couriers.mail import MailLimits, SmtpCourier
from postroom.couriers.session import Timeouts
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.net.dns import Resolver
from postroom.net.relay import Relay
from postroom.outward.courier import DeliveryError, OutgoingMail
from tests.couriers.smtp_peer import Stage
from tests.doubles_dns import DnsServer

RAW = b"Subject: hello\r\n\r\n.leading dot\r\n..two\r\nend\r\n"
_PATIENT = Timeouts(quit=60)
_TIMEOUT_OF: dict[Stage, str] = {
    "greeting": "greeting",
    "EHLO": "command",
    "STARTTLS": "command",
    "AUTH": "command",
    "MAIL": "mail",
    "RCPT": "rcpt",
    "DATA": "data",
    "content": "block",
    "dot": "final_dot",
    "QUIT": "quit",
}
_TRUSTING_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

MakeCourier = Callable[..., SmtpCourier]


def impatient_at(stage: Stage) -> Timeouts:
    """Where a fault is expected alone: elsewhere a busy machine may take its time."""
    return replace(_PATIENT, **{_TIMEOUT_OF[stage]: 0.2})


def mail_to(recipient: str, raw: bytes = RAW, mail_from: str = "agent@here.example") -> OutgoingMail:
    return OutgoingMail(mail_from, recipient, raw, recipient.rpartition("@")[2])


async def failure_of(delivery: Awaitable[object]) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await delivery
    return caught.value


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    records = {
        ("there.example", "MX"): ["10 mx.there.example."],
        ("mx.there.example", "A"): ["127.0.0.1"],
    }
    async with DnsServer(records) as server:
        yield server


@pytest.fixture
async def resolver(dns: DnsServer) -> AsyncIterator[Resolver]:
    resolver = Resolver([dns.address], deadline_seconds=20)
    yield resolver
    await resolver.close()


@pytest.fixture
async def make_courier(resolver: Resolver) -> AsyncIterator[MakeCourier]:
    made: list[SmtpCourier] = []

    def make(
        port: int = 25,
        *,
        relay: Relay | None = None,
        allow_private: bool = True,
        timeouts: Timeouts = _PATIENT,
        limits: MailLimits | None = None,
        trusted: ssl.SSLContext = _TRUSTING_NOBODY,
        shuffle: Callable[[list[str]], None] = random.shuffle,
        policies: TlsPolicies | None = None,
    ) -> SmtpCourier:
        courier = SmtpCourier(
            resolver,
            own_name="here.example",
            relay=relay,
            allow_private=allow_private,
            port=port,
            timeouts=timeouts,
            limits=limits,
            trusted=trusted,
            shuffle=shuffle,
            policies=policies,
        )
        made.append(courier)
        return courier

    yield make
    for courier in made:
        await courier.close()
