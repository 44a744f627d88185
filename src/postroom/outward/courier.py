"""The interface of couriers: each delivers one email or one event to one place, or raises DeliveryError."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from postroom import log
from postroom.external_mailboxes.connections import WayOut
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.external_mailboxes.sending_through import SendingThrough
from postroom.inward.mails import AcceptedMail
from postroom.processes import process_metrics
from postroom.queue.outcomes import Outcome
from postroom.queue.tls_sessions import TlsSession
from postroom.resources import Resources

REPLY_MAX_CHARACTERS = 500
TlsAuthentication = Literal["opportunistic", "mta-sts", "dane"]
TlsState = Literal["none"] | TlsAuthentication


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """One email for one recipient, signed and ready for the wire. `domain` is the recipient's."""

    mail_from: str  # "" for a report that must not be answered
    recipient: str
    raw: bytes = field(repr=False)
    domain: str
    signature_bytes: int = 0  # how many of the first bytes are our signature
    outbound: str = field(default="", repr=False)  # the relays of the sender; "": the server's route
    is_tls_report: bool = False  # goes out even if TLS fails, and is in no report (RFC 8460 section 3)


class DeliveryError(Exception):
    """One attempt failed. `permanent` ends the delivery; anything else is retried later.

    `code` is the other side's SMTP reply code or HTTP status, None if it gave none. `enhanced` is the status
    of RFC 3463, also for reasons found here. `unknown_outcome` is set if the whole mail was handed over and
    the answer was lost: it may have arrived, so it is sent again unchanged.
    """

    def __init__(
        self,
        reason: str,
        *,
        permanent: bool,
        code: int | None = None,
        enhanced: str = "",
        unknown_outcome: bool = False,
        sessions: tuple[TlsSession, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.code = code
        self.enhanced = enhanced
        self.unknown_outcome = unknown_outcome
        self.sessions = sessions  # how the TLS sessions of the attempt began
        self.host = ""  # of the mail server that said it


def domain_of(address: str) -> str:
    return address.rpartition("@")[2]


async def find_relay(through: SendingThrough | None, way: WayOut) -> str:
    try:
        return way.outbound if through is None else await through.relay_of(way)
    except ImapError as error:
        raise DeliveryError(f"4.7.0 {error}", permanent=False, enhanced="4.7.0") from None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to the final dot, and the server that took the mail over; "" is this one.

    `captured` is the signature of an email kept instead of sent, None if it was handed over.
    `answers` are replies of the simulator.
    """

    code: int
    text: str
    host: str = ""
    has_tls: bool = False  # on the way to that server
    tls: TlsState = "none"  # none, opportunistic, mta-sts or dane
    captured: bytes | None = field(default=None, repr=False)
    sessions: tuple[TlsSession, ...] = ()  # how the TLS sessions of the attempt began
    answers: tuple[AcceptedMail, ...] = field(default=(), repr=False)
    content_hash: str = ""  # SHA-256 of the bytes that were taken over
    mail_from: str = ""  # their envelope sender


def to_outcome(answer: Receipt | DeliveryError, started_at: int, ended_at: int) -> Outcome:
    """Return the outcome of an attempt to hand an email over."""
    if isinstance(answer, DeliveryError):
        return Outcome(
            code=answer.code,
            text=answer.reason[:REPLY_MAX_CHARACTERS],
            milliseconds=ended_at - started_at,
            ended_at=ended_at,
            is_permanent=answer.permanent,
            enhanced=answer.enhanced,
            refused_by=answer.host,
            sessions=answer.sessions,
        )
    return Outcome(
        code=answer.code,
        text=answer.text[:REPLY_MAX_CHARACTERS],
        milliseconds=ended_at - started_at,
        ended_at=ended_at,
        is_success=True,
        host=answer.host,
        has_tls=answer.has_tls,
        tls=answer.tls if answer.host else "",
        captured=answer.captured,
        sessions=answer.sessions,
        content_hash=answer.content_hash,
        mail_from=answer.mail_from,
    )


async def attempt(resources: Resources, handing_over: Awaitable[Receipt], what: str, **named: str) -> Outcome:
    """Attempt a delivery. Any exception is a failed attempt, so that nothing is retried for ever.

    For a bug, `what` is logged.
    """
    started_at = resources.now()
    answer: Receipt | DeliveryError
    try:
        answer = await handing_over
    except DeliveryError as error:
        answer = error
    except Exception:
        log.get().exception(what, **named)
        answer = DeliveryError("4.3.0 An error on this server.", permanent=False, enhanced="4.3.0")
    return to_outcome(answer, started_at, resources.now())


def record_outcome(message_id: str, domain: str, attempt: int, outcome: Outcome) -> None:
    """Logs one line per attempt. Only the domain is logged: an agent's recipients are private."""
    process_metrics.MAIL_ATTEMPTS.increment(
        process_metrics.DONE
        if outcome.is_success
        else process_metrics.FAILED
        if outcome.is_permanent
        else process_metrics.AGAIN
    )
    log.get().info(
        "mail delivered" if outcome.is_success else "mail not delivered",
        message=message_id,
        domain=domain,
        attempt=attempt,
        code=outcome.code,
        final=outcome.is_success or outcome.is_permanent,
    )


class MailCourier(Protocol):
    async def deliver(self, mail: OutgoingMail) -> Receipt: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The endpoint's answer. `excerpt` is the beginning of the body, safe to store and show."""

    status: int
    milliseconds: int
    excerpt: str = field(repr=False)
    retry_after_seconds: int | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class WebhookCourier(Protocol):
    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer: ...
