"""The route of each email: the server's own or the sender's relay; the next one if a relay is unreachable."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from postroom import log
from postroom.couriers.envelope import require_sendable
from postroom.couriers.mail import RelayAway
from postroom.net.allowed_target import ForbiddenTarget, resolve_target
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.relay import Relay, parse_ways
from postroom.outward.courier import DeliveryError, MailCourier, OutgoingMail, Receipt

KEPT_COURIERS = 200  # relays, each with its open connections


class OutboundRouting:
    """`own` are the routes of the server, in the order in which they are tried."""

    def __init__(
        self,
        own: Sequence[MailCourier],
        make: Callable[[Relay | None], MailCourier],
        resolver: Resolver,
        allow_private: bool,
    ) -> None:
        self._own = own
        self._make = make
        self._resolver = resolver
        self._allow_private = allow_private
        self._others: dict[Relay | None, MailCourier] = {}  # in the order of last use

    async def deliver(self, mail: OutgoingMail) -> Receipt:
        ways = await self._named(mail.outbound) if mail.outbound else self._own
        for courier in ways[:-1]:
            try:
                return await courier.deliver(mail)
            except RelayAway as error:
                log.get().seldom("a relay does not answer, trying the next one", reason=error.reason)
        return await ways[-1].deliver(mail)

    async def _named(self, outbound: str) -> list[MailCourier]:
        try:
            relays = parse_ways(outbound)
        except ValueError:
            raise DeliveryError("the relay of this inbox cannot be read", permanent=False) from None
        return [await self._courier(relay) for relay in relays]

    async def _courier(self, relay: Relay | None) -> MailCourier:
        checked = None if relay is None else await self._check(relay)
        courier = self._others.pop(checked, None) or self._make(checked)
        self._others[checked] = courier
        if len(self._others) > KEPT_COURIERS:
            await self._others.pop(next(iter(self._others))).close()
        return courier

    async def _check(self, relay: Relay) -> Relay:
        """Check a relay of a tenant like a webhook, and connect at the checked address."""
        try:
            found = await resolve_target(self._resolver, f"https://{relay.host}/", self._allow_private)
        except ForbiddenTarget as error:
            raise DeliveryError(f"the relay cannot be used: {error.reason}", permanent=False) from None
        except DnsTemporary:
            raise RelayAway(f"the DNS gave no answer for {relay.host}", permanent=False) from None
        return replace(relay, address=sorted(found.ips)[0])

    async def close(self) -> None:
        for courier in (*self._own, *self._others.values()):
            await courier.close()


class CapturingCourier:
    """POSTROOM_OUTBOUND=capture: mail for other servers is signed and kept, and nothing is sent."""

    async def deliver(self, mail: OutgoingMail) -> Receipt:
        """Refuses mail that could be given to no server, as the SMTP courier does."""
        require_sendable(mail)
        return Receipt(250, "2.0.0 Captured, not sent.", captured=mail.raw[: mail.signature_bytes])

    async def close(self) -> None:
        """Do nothing: no connection is open."""
