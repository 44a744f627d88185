"""The SMTP courier: delivers one recipient's copy to the servers of its domain, or to the relay."""

import functools
import random
import ssl
from collections.abc import Callable

from msgspec import Struct

from postroom.couriers.connections import Dialer, RestingSessions
from postroom.couriers.envelope import require_sendable
from postroom.couriers.lanes import Lanes
from postroom.couriers.routing import Hop, find_hops
from postroom.couriers.session import RELAY_TIMEOUTS, SmtpSession, Timeouts, TlsFailed
from postroom.couriers.tls.dane import DaneNeed, find_need
from postroom.couriers.tls.destination import NONE, PolicedDestination
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.net.certificate import trusted_authorities
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.relay import Relay
from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt
from postroom.queue.tls_sessions import TlsSession

NOT_BY_TLS = "not by TLS"  # the session failed, and not because of TLS
# Replies that ask for a login or refuse ours (RFC 4954 section 6): the operator must act, the recipient
# cannot.
_SIGN_IN_CODES = {530, 534, 535, 538}


class MailLimits(Struct, frozen=True):
    connections_per_domain: int = 5
    connections_to_relay: int = 20
    connections: int = 50
    mails_per_connection: int = 100
    idle_seconds: float = 10


class RelayAway(DeliveryError):
    """The relay accepted no connection or not ours: it has not seen the email, and another may take it."""


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
        notes_sessions: bool = True,
    ) -> None:
        limits = limits or MailLimits()
        self._resolver = resolver
        self._relay = relay
        self._allow_private = allow_private
        self._port = port
        self._shuffle = shuffle
        self._policies = policies
        self._notes_sessions = notes_sessions
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
        """Raises DeliveryError. It may be cancelled at any time; an attempt under way is dropped."""
        require_sendable(mail)
        host = self._destination(mail.domain)
        async with self._lanes.enter(host):
            destination = await self._find_policy(host, mail)
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
        """Closes idle sessions; call it after the last delivery."""
        await self._resting.close()

    def _destination(self, domain: str) -> str:
        return self._relay.host if self._relay else domain.lower()

    async def _find_policy(self, domain: str, mail: OutgoingMail) -> PolicedDestination:
        """Return the TLS policy.

        None for a relay, which has its own, or a TLS report, which goes even if TLS fails.
        """
        if self._relay is not None or mail.is_tls_report:
            return PolicedDestination(domain, None, is_free=True)
        policy = None if self._policies is None else await self._policies.find(domain)
        fault = "" if self._policies is None else self._policies.fault_of(domain)
        return PolicedDestination(domain, policy, fault)

    async def _deliver_afresh(self, destination: PolicedDestination, mail: OutgoingMail) -> Receipt:
        if self._relay is not None:
            return await self._deliver_to_relay(destination, self._relay, mail)
        hops = await find_hops(
            self._resolver, mail.domain, allow_private=self._allow_private, shuffle=self._shuffle
        )
        failures: list[DeliveryError] = []
        seen: list[TlsSession] = []
        for hop in hops:
            try:
                session = await self._open(destination, hop, seen)
            except DeliveryError as error:
                error.host = hop.host
                failures.append(error)  # even a 5xx here is about this host, not about the email
                continue
            try:
                return await self._hand_over(destination, session, mail, tuple(seen))
            except DeliveryError as error:
                error.sessions = tuple(seen)
                if error.permanent or session.has_sent_whole_mail:
                    raise
                failures.append(error)
        failure = min(failures, key=lambda each: each.permanent)
        failure.sessions = tuple(seen)
        raise failure

    async def _open(self, destination: PolicedDestination, hop: Hop, seen: list[TlsSession]) -> SmtpSession:
        """Records how the session began, as far as TLS decided it."""
        need: DaneNeed | None = None
        fault, reason, own_ip = "", "", ""
        try:
            need = None if destination.is_free else await self._find_need(destination.host, hop.host)
            session = await self._open_as_asked(destination, hop, need)
            fault, own_ip = session.fault, session.own_ip
            return session
        except TlsFailed as error:
            fault, reason, own_ip = error.result, error.reason, error.own_ip
            raise
        except DeliveryError:
            fault = NOT_BY_TLS
            raise
        finally:
            if fault != NOT_BY_TLS and self._notes_sessions and not destination.is_free:
                seen.append(destination.to_session(hop, need, fault, reason, own_ip))

    async def _open_as_asked(
        self, destination: PolicedDestination, hop: Hop, need: DaneNeed | None
    ) -> SmtpSession:
        """Connect as the policy asks.

        DANE comes first: MTA-STS must not override its failure (RFC 8461, 2).
        """
        policy = destination.policy
        if need is not None and (need.usable or not destination.is_enforced):
            session = await self._dialer.open_dane_mx(hop, self._port, need)
            session.fault = "" if need.usable else "tlsa-invalid"
            return session
        if policy is None or policy.mode == NONE:
            return await self._dialer.open_mx(hop, self._port)
        if destination.is_enforced:
            destination.require_allowed(hop)
            return await self._dialer.open_verified_mx(hop, self._port)
        session = await self._dialer.open_tested_mx(hop, self._port)
        if not policy.allows(hop.host):
            session.fault = "validation-failure"
        return session

    async def _find_need(self, domain: str, host: str) -> DaneNeed | None:
        """Return the DANE records. Without a valid answer one may be withheld: then the host is not used."""
        try:
            return await find_need(self._resolver, domain, host, self._port)
        except DnsTemporary as error:
            reason = f"the DNS gave no valid answer for the TLSA records (DANE) of {host}"
            raise TlsFailed(reason, "dnssec-invalid") from error

    async def _deliver_to_relay(
        self, destination: PolicedDestination, relay: Relay, mail: OutgoingMail
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
        self,
        destination: PolicedDestination,
        session: SmtpSession,
        mail: OutgoingMail,
        seen: tuple[TlsSession, ...] = (),
    ) -> Receipt:
        has_tls, tls = session.has_tls, session.tls
        try:
            reply = await session.send(mail)
        except DeliveryError as error:
            error.host = session.host
            raise
        finally:
            self._resting.put(destination.key, session)
        return Receipt(reply.code, reply.text, session.host, has_tls, tls=tls, sessions=seen)


def _worth_a_retry(error: DeliveryError) -> DeliveryError:
    """Return the same failure as a temporary one: the relay has not yet decided on the email."""
    return DeliveryError(error.reason, permanent=False, code=error.code, enhanced=error.enhanced)


@functools.cache
def _opportunistic_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
