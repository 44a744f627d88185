"""A small DNS zone and couriers of little patience that ask it."""

import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from postroom.couriers.mail import MailLimits, SmtpCourier
from postroom.couriers.relay import Relay
from postroom.couriers.session import Timeouts
from postroom.net.dns import Resolver
from postroom.outward.courier import DeliveryError, OutgoingMail
from tests.doubles_dns import DnsServer

RAW = b"Subject: hello\r\n\r\n.leading dot\r\n..two\r\nend\r\n"
_QUICK = Timeouts(
    connect=5,
    tls=0.2,
    greeting=0.2,
    command=0.2,
    mail=0.2,
    rcpt=0.2,
    data=0.2,
    block=0.2,
    final_dot=0.2,
    quit=0.2,
)
_TRUSTING_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

MakeCourier = Callable[..., SmtpCourier]


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
    resolver = Resolver([dns.address], deadline_seconds=0.5)
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
        timeouts: Timeouts = _QUICK,
        limits: MailLimits | None = None,
        trusted: ssl.SSLContext = _TRUSTING_NOBODY,
        shuffle: Callable[[list[str]], None] = random.shuffle,
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
        )
        made.append(courier)
        return courier

    yield make
    for courier in made:
        await courier.close()
