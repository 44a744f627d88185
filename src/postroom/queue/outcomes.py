"""Outcomes of attempts, and what follows for the delivery: done, failed, or due again."""

from msgspec import Struct

from postroom.clock import SECOND
from postroom.queue import deliveries, retries, tls_sessions
from postroom.queue.deliveries import CAPTURED, DONE, FAILED, PENDING, Delivery
from postroom.queue.tls_sessions import TlsSession
from postroom.storage.database import Tx


class Outcome(Struct, frozen=True, kw_only=True):
    """What the other side answered, or why it did not.

    `code` is an SMTP reply code or an HTTP status, None without an answer; `enhanced` the status of
    RFC 3463. `host` took the mail over, "" if it never left this server. `captured` is the signature of a
    mail that was kept instead of sent.
    """

    code: int | None
    text: str
    milliseconds: int
    ended_at: int
    is_success: bool = False
    is_permanent: bool = False
    enhanced: str = ""
    host: str = ""
    refused_by: str = ""  # the mail server that did not take it
    has_tls: bool = False
    tls: str = ""  # none, opportunistic, mta-sts or dane; "" if it never left this server
    captured: bytes | None = None
    sessions: tuple[TlsSession, ...] = ()  # how the attempt's sessions with external servers began
    provider: str = ""  # the organization that was asked to take it; "" if it never left this server
    retry_after_seconds: int | None = None
    content_hash: str = ""  # SHA-256 of the bytes that were handed over
    mail_from: str = ""  # their envelope sender


class TriedDelivery(Struct, frozen=True):
    """A claimed delivery that was tried."""

    delivery: Delivery
    outcome: Outcome


def record(tx: Tx, tried: TriedDelivery) -> str | None:
    """Returns the delivery's new state: `pending` if it is retried.

    None if nothing changes: it was recorded before (a commit may succeed although it seemed to fail),
    the delivery has ended meanwhile, or a later attempt is under way.
    """
    delivery, outcome = tried.delivery, tried.outcome
    if not deliveries.record_answer(
        tx,
        delivery,
        outcome.code,
        outcome.text,
        outcome.milliseconds,
        host=outcome.host,
        has_tls=outcome.has_tls,
        handed_over=(outcome.content_hash, outcome.mail_from),
    ):
        return None
    tls_sessions.add_all(tx, outcome.sessions, outcome.ended_at)
    if outcome.is_success:
        return _finish(tx, tried, DONE if outcome.captured is None else CAPTURED)
    wait = None if outcome.is_permanent else retries.wait_after(delivery.kind, delivery.waits_used)
    if wait is None:
        return _finish(tx, tried, FAILED)
    due_at = outcome.ended_at + max(wait, (outcome.retry_after_seconds or 0) * SECOND)
    is_put_off = deliveries.try_again_at(tx, delivery, due_at, outcome.code, outcome.text)
    return PENDING if is_put_off else None


def _finish(tx: Tx, tried: TriedDelivery, state: str) -> str | None:
    delivery, outcome = tried.delivery, tried.outcome
    is_finished = deliveries.finish(
        tx,
        delivery,
        state,
        outcome.code,
        outcome.text,
        outcome.ended_at,
        outcome.tls,
        outcome.provider,
    )
    return state if is_finished else None
