"""SMTP sessions: opened with TLS and login as needed, and kept for a moment for reuse."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from postroom.couriers.faults import describe
from postroom.couriers.routing import Hop
from postroom.couriers.session import SmtpSession, Timeouts, TlsFailed
from postroom.couriers.tls.dane import DaneNeed
from postroom.couriers.wire import Wire
from postroom.net.relay import Relay
from postroom.outward.courier import DeliveryError


class Dialer(Struct, frozen=True):
    """Opens sessions, with our host name, the timeouts, and the certificates to trust."""

    own_name: str
    timeouts: Timeouts
    trusted: Callable[[], ssl.SSLContext]  # verifies
    opportunistic: ssl.SSLContext  # encrypts to any certificate (RFC 7435)

    async def open_mx(self, hop: Hop, port: int) -> SmtpSession:
        """Connect with TLS if possible, else in the clear: for an unknown server better than no mail."""
        session = await self._greeted(hop.host, hop.ip, port)
        try:
            await self._upgrade(session, self.opportunistic)
            session.fault = "" if session.has_tls else "starttls-not-supported"
        except TlsFailed as error:
            session = await self._greeted(hop.host, hop.ip, port)
            session.fault = error.result
        return session

    async def open_tested_mx(self, hop: Hop, port: int) -> SmtpSession:
        """Opens it without demands, but records what a policy in testing mode would have refused."""
        try:
            session = await self.open_verified_mx(hop, port)
            session.tls_authentication = "opportunistic"
        except TlsFailed as error:
            session = await self.open_mx(hop, port)
            session.fault = error.result
        return session

    async def open_verified_mx(self, hop: Hop, port: int) -> SmtpSession:
        """Requires a certificate that proves the host (RFC 8461 section 4.2)."""
        session = await self._open_encrypted(hop, port, self.trusted())
        session.tls_authentication = "mta-sts"
        return session

    async def open_dane_mx(self, hop: Hop, port: int, need: DaneNeed) -> SmtpSession:
        """Requires a certificate that the usable records name; without such records, any certificate."""
        session = await self._open_encrypted(hop, port, self.opportunistic, need)
        if need.usable:
            session.tls_authentication = "dane"
        return session

    async def _open_encrypted(
        self, hop: Hop, port: int, context: ssl.SSLContext, need: DaneNeed | None = None
    ) -> SmtpSession:
        session = await self._greeted(hop.host, hop.ip, port)
        await self._upgrade(session, context, need)
        with _aborting(session):
            if not session.has_tls:
                reason = f"{hop.host} offers no STARTTLS, which the domain's policy requires"
                raise TlsFailed(reason, "starttls-not-supported")
        return session

    async def open_relay(self, relay: Relay) -> SmtpSession:
        session = await (self._greeted_in_tls(relay) if relay.implicit_tls else self._open_plain_relay(relay))
        if relay.username:
            with _aborting(session):
                if relay.has_token:
                    await session.sign_in_with_token(relay.username, relay.password)
                else:
                    await session.sign_in(relay.username, relay.password)
        return session

    async def _open_plain_relay(self, relay: Relay) -> SmtpSession:
        if not relay.must_be_verified:
            return await self.open_mx(Hop(relay.host, relay.address or relay.host), relay.port)
        session = await self._greeted(relay.host, relay.address or relay.host, relay.port)
        await self._upgrade(session, self.trusted())
        if not session.has_tls:
            session.abort()
            reason = f"the relay {relay.host} offers no STARTTLS, so the password was not sent"
            raise DeliveryError(reason, permanent=False, enhanced="4.7.0")
        return session

    async def _greeted_in_tls(self, relay: Relay) -> SmtpSession:
        context = self.trusted() if relay.must_be_verified else self.opportunistic
        return await self._greeted(relay.host, relay.address or relay.host, relay.port, context)

    async def _greeted(
        self, host: str, address: str, port: int, context: ssl.SSLContext | None = None
    ) -> SmtpSession:
        session = SmtpSession(await self._connect(host, address, port, context), host, self.timeouts)
        with _aborting(session):
            await session.greet(self.own_name)
        return session

    async def _upgrade(
        self, session: SmtpSession, context: ssl.SSLContext, need: DaneNeed | None = None
    ) -> None:
        if session.offers("STARTTLS"):
            with _aborting(session):
                if await session.start_tls(context):
                    _require_met(need, session)
                    await session.introduce(self.own_name)  # what was said before TLS no longer counts

    async def _connect(self, host: str, address: str, port: int, context: ssl.SSLContext | None) -> Wire:
        loop = asyncio.get_running_loop()
        name = host if context is not None else None
        try:
            async with asyncio.timeout(self.timeouts.connect):
                _, wire = await loop.create_connection(Wire, address, port, ssl=context, server_hostname=name)
        except (OSError, UnicodeError) as error:  # ssl.SSLError, gaierror and TimeoutError are OSErrors
            reason = f"no connection to {host}: {describe(error)}"
            raise DeliveryError(reason, permanent=False, enhanced="4.4.1") from error
        return wire


class RestingSessions:
    """Idle sessions by destination. Each is closed when not reused in time."""

    def __init__(self, *, idle_seconds: float, max_idle: int, mails_per_session: int) -> None:
        self._idle_seconds = idle_seconds
        self._max_idle = max_idle
        self._mails_per_session = mails_per_session
        self._resting: dict[SmtpSession, tuple[str, asyncio.TimerHandle]] = {}  # the oldest first
        self._goodbyes: set[asyncio.Task[None]] = set()

    def take(self, key: str) -> SmtpSession | None:
        """Take the session used last, which is the least likely to have been closed by the server."""
        while (session := self._newest(key)) is not None:
            self._resting.pop(session)[1].cancel()
            if session.is_reusable:
                return session
            session.abort()
        return None

    def _newest(self, key: str) -> SmtpSession | None:
        return next(
            (session for session in reversed(self._resting) if self._resting[session][0] == key), None
        )

    def put(self, key: str, session: SmtpSession) -> None:
        """Keeps it if it can take another email, else ends it."""
        if not session.is_reusable:
            session.abort()
        elif session.mails_tried >= self._mails_per_session:
            self._dismiss(session)
        else:
            timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._expire, session)
            self._resting[session] = key, timer
            if len(self._resting) > self._max_idle:
                self._expire(next(iter(self._resting)))

    async def close(self) -> None:
        for session in list(self._resting):
            self._expire(session)
        await asyncio.gather(*self._goodbyes)

    def _expire(self, session: SmtpSession) -> None:
        self._resting.pop(session)[1].cancel()
        self._dismiss(session)

    def _dismiss(self, session: SmtpSession) -> None:
        task = asyncio.create_task(session.quit())
        self._goodbyes.add(task)
        task.add_done_callback(self._goodbyes.discard)


def _require_met(need: DaneNeed | None, session: SmtpSession) -> None:
    """Require TLS as needed, before anything confidential is sent."""
    if need is not None and need.usable and not need.is_met_by(session.certificates()):
        reason = f"the certificate of {session.host} does not match its TLSA records (DANE)"
        raise TlsFailed(reason)


@contextmanager
def _aborting(session: SmtpSession) -> Iterator[None]:
    """Drops the connection of a session that could not be made ready, whatever the cause."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, TlsFailed):
            error.own_ip = session.own_ip
        session.abort()
        raise
