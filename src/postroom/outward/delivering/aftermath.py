"""After an attempt, in the transaction of its outcome: counts, the pace of the provider, the warm-up."""

from collections.abc import Sequence

from postroom.outward.delivering import admission
from postroom.outward.delivering.mail_job import TriedMail
from postroom.queue.deliveries import DONE, FAILED, PENDING
from postroom.queue.providers import counts, paces, warm_ups
from postroom.queue.providers.counts import CountedHour, ProviderCount
from postroom.queue.providers.names import provider_of
from postroom.storage.database import Tx


def record_all(tx: Tx, tried: Sequence[tuple[TriedMail, str]]) -> None:
    """Record counts, paces and warm-ups of emails tried, with their new states.

    Their rows are locked last.
    """
    outside = [(mail, state) for mail, state in tried if mail.outcome.provider]
    counts.add_all(tx, [(_place(mail), _count(tx, mail, state)) for mail, state in outside])
    for mail, state in sorted(outside, key=lambda each: each[0].outcome.provider):
        if state == PENDING and mail.admission.is_counted:
            warm_ups.give_back(tx, mail.job.sender_domain, mail.outcome.provider, mail.outcome.ended_at)
        if mail.admission.receiver.provider and not mail.admission.receiver.is_relay:
            _pace(tx, mail)


def _place(tried: TriedMail) -> CountedHour:
    account_id, pod_id = tried.job.delivery.account_id, tried.job.outgoing.pod_id
    return CountedHour.of(account_id, pod_id, tried.outcome.provider, tried.outcome.ended_at)


def _count(tx: Tx, tried: TriedMail, state: str) -> ProviderCount:
    if state == DONE:
        took = max(0, tried.outcome.ended_at - _first_tried_at(tx, tried))
        return ProviderCount(accepted=1, encrypted=int(tried.outcome.has_tls), milliseconds=took)
    return ProviderCount(bounced=1) if state == FAILED else ProviderCount(deferred=int(state == PENDING))


def _first_tried_at(tx: Tx, tried: TriedMail) -> int:
    delivery, outcome = tried.job.delivery, tried.outcome
    if delivery.attempts > 1:
        row = tx.one(
            "select started_at from attempts where delivery_id = :id order by number limit 1", id=delivery.id
        )
        if row is not None:
            return int(row["started_at"])
    return outcome.ended_at - outcome.milliseconds


def _pace(tx: Tx, tried: TriedMail) -> None:
    """Pace a provider, slowed by its own server alone: a stranger's MX records may name it first."""
    outcome, now = tried.outcome, tried.outcome.ended_at
    if outcome.is_success and tried.admission.is_slowed:
        if paces.speed_up(tx, outcome.provider, tried.pacing, now):
            admission.mark_recovered(tx, tried.job, outcome.provider, now)
    elif outcome.code in paces.SLOW_DOWN_CODES and provider_of(outcome.refused_by) == outcome.provider:
        started_at = now - outcome.milliseconds
        if paces.slow_down(tx, outcome.provider, started_at, tried.pacing, now):
            admission.mark_slowed(tx, tried.job, outcome.provider, outcome.text, now)
