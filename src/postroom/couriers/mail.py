"""The SMTP courier: one recipient's copy to the servers of its domain, or to the relay."""

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from postroom.couriers.connections import Dialer, RestingSessions
from postroom.couriers.envelope import require_sendable
from postroom.couriers.lanes import Lanes
from postroom.couriers.routing import Hop, find_hops
from postroom.couriers.session import RELAY_TIMEOUTS, SmtpSession, Timeouts
from postroom.couriers.tls.dane import DaneNeed, find_need
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.mail.proof.mta_sts import ENFORCE, StsPolicy
from postroom.net.certificate import trusted_authorities
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.relay import Relay
from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt

# Replies that ask for a sign-in or refuse ours: the operator must act, the recipient cannot.
_SIGN_IN_CODES = {530, 534, 535, 538}


@dataclass(frozen=True, slots=True)
class MailLimits:
    connections_per_domain: int = 5
    connections_to_relay: int = 20
    connections: int = 50
    mails_per_connection: int = 100
    idle_seconds: float = 10


class RelayAway(DeliveryError):
    """The relay took no connection, or not ours: it has not seen the mail, and another may take it."""


class SmtpCourier:
    def __init__(
        self,
        resolver: Resolver,
        *,
        own_name: str,
        relay: Relay | None = None,
        allow_private: bool = False,
        port: int = 25,
        timeouts: Timeouts | None = None,
        limits: MailLimits | None = None,
        trusted: ssl.SSLContext | None = None,
        shuffle: Callable[[list[str]], None] = random.shuffle,
        policies: TlsPolicies | None = None,
    ) -> None:
        limits = limits or MailLimits()
        self._resolver = resolver
        self._relay = relay
        self._allow_private = allow_private
        self._port = port
        self._shuffle = shuffle
        self._policies = policies
        self._dialer = Dialer(
            own_name,
            timeouts or (Timeouts() if relay is None else RELAY_TIMEOUTS),
            trusted_authorities if trusted is None else lambda: trusted,
            _opportunistic_context(),
        )
        per_key = limits.connections_to_relay if relay else limits.connections_per_domain
        self._lanes = Lanes(per_key=per_key, overall=limits.connections)
        self._resting = RestingSessions(
            idle_seconds=limits.idle_seconds,
            max_idle=limits.connections,
            mails_per_session=limits.mails_per_connection,
        )

    async def deliver(self, mail: OutgoingMail) -> Receipt:
        """Raises DeliveryError. It may be cancelled at any time; what was under way is dropped."""
        require_sendable(mail)
        host = self._destination(mail.domain)
        async with self._lanes.enter(host):
            destination = PolicedDestination(host, await self._find_enforced(host))
            session = self._resting.take(destination.key)
            if session is None:
                return await self._deliver_afresh(destination, mail)
            try:
                return await self._hand_over(destination, session, mail)
            except DeliveryError as error:
                if error.permanent or session.is_reusable or session.has_sent_whole_mail:
                    raise
                # The server was about to close this old connection, which says nothing about the mail.
                return await self._deliver_afresh(destination, mail)

    async def close(self) -> None:
        """Say goodbye to the servers; call it after the last delivery."""
        await self._resting.close()

    def _destination(self, domain: str) -> str:
        return self._relay.host if self._relay else domain.lower()

    async def _find_enforced(self, domain: str) -> StsPolicy | None:
        """A policy that is only tested changes nothing; a relay has its own rules."""
        if self._policies is None or self._relay is not None:
            return None
        policy = await self._policies.find(domain)
        return policy if policy is not None and policy.mode == ENFORCE else None

    async def _deliver_afresh(self, destination: "PolicedDestination", mail: OutgoingMail) -> Receipt:
        if self._relay is not None:
            return await self._deliver_to_relay(destination, self._relay, mail)
        hops = await find_hops(
            self._resolver, mail.domain, allow_private=self._allow_private, shuffle=self._shuffle
        )
        failures: list[DeliveryError] = []
        for hop in hops:
            try:
                session = await self._open(destination, hop)
            except DeliveryError as error:
                failures.append(error)  # even a 5xx here is about this host, not about the mail
                continue
            try:
                return await self._hand_over(destination, session, mail)
            except DeliveryError as error:
                if error.permanent or session.has_sent_whole_mail:
                    raise
                failures.append(error)
        raise min(failures, key=lambda failure: failure.permanent)

    async def _open(self, destination: "PolicedDestination", hop: Hop) -> SmtpSession:
        """DANE counts before MTA-STS, which must not make up for it (RFC 8461 section 2)."""
        need = await self._find_need(destination.host, hop.host)
        if need is not None and (need.usable or destination.policy is None):
            return await self._dialer.open_dane_mx(hop, self._port, need)
        if destination.policy is None:
            return await self._dialer.open_mx(hop, self._port)
        destination.require_allowed(hop)
        return await self._dialer.open_verified_mx(hop, self._port)

    async def _find_need(self, domain: str, host: str) -> DaneNeed | None:
        """Where no valid answer comes a record may be kept from us: then the host is left alone."""
        try:
            return await find_need(self._resolver, domain, host, self._port)
        except DnsTemporary as error:
            reason = f"the DNS gave no valid answer for the TLSA records (DANE) of {host}"
            raise DeliveryError(reason, permanent=False, enhanced="4.7.5") from error

    async def _deliver_to_relay(
        self, destination: "PolicedDestination", relay: Relay, mail: OutgoingMail
    ) -> Receipt:
        try:
            session = await self._dialer.open_relay(relay)
        except DeliveryError as error:
            reason, enhanced = error.reason, error.enhanced
            raise RelayAway(reason, permanent=False, code=error.code, enhanced=enhanced) from error
        try:
            return await self._hand_over(destination, session, mail)
        except DeliveryError as error:
            if error.code in _SIGN_IN_CODES:
                raise _worth_a_retry(error) from error
            raise

    async def _hand_over(
        self, destination: "PolicedDestination", session: SmtpSession, mail: OutgoingMail
    ) -> Receipt:
        has_tls, tls = session.has_tls, session.tls
        try:
            reply = await session.send(mail)
        finally:
            self._resting.put(destination.key, session)
        return Receipt(reply.code, reply.text, session.host, has_tls, tls=tls)


@dataclass(frozen=True, slots=True)
class PolicedDestination:
    """Where a mail goes, and the policy that must be kept on the way."""

    host: str  # the recipient's domain, or the relay
    policy: StsPolicy | None

    @property
    def key(self) -> str:
        """A session that proved nothing is never lent to a mail that asks for proof."""
        return self.host if self.policy is None else f"{self.host} by policy"

    def require_allowed(self, hop: Hop) -> None:
        """A mail waits rather than going to a host that the policy does not name."""
        if self.policy is not None and not self.policy.allows(hop.host):
            reason = f"the policy of {self.host} (MTA-STS) does not name its server {hop.host}"
            raise DeliveryError(reason, permanent=False, enhanced="4.7.5")


def _worth_a_retry(error: DeliveryError) -> DeliveryError:
    """The same failure, kept from ending the delivery: the relay has not yet judged the mail."""
    return DeliveryError(error.reason, permanent=False, code=error.code, enhanced=error.enhanced)


def _opportunistic_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
