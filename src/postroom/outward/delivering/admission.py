"""Before an attempt: whether an email may go to its provider now, or waits for its turn or until tomorrow."""

from msgspec import Struct

from postroom.accounts import audit
from postroom.accounts.actors import THE_SERVER
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.config import Config
from postroom.outward.delivering.mail_job import Admission, MailJob, Receiver
from postroom.queue import deliveries
from postroom.queue.providers import paces, warm_ups
from postroom.resources import Resources
from postroom.storage.database import Tx

PACE = "pace"
SLOWED = "4.7.0 {provider} asks for less email at once: this one waits for its turn."
WARMING = (
    "4.7.0 {domain} is warming up: {limit} emails to {provider} were sent today,"
    " so this one waits until tomorrow."
)


class Bars(Struct, frozen=True):
    """What may stop mail of a domain to a provider."""

    is_slowed: bool
    is_warming: bool


async def ask(resources: Resources, job: MailJob, receiver: Receiver) -> Admission | None:
    """Return None if the email was put off. Usually nothing stops it, and one short read is all."""
    config, now = resources.config, resources.now()
    bars = await resources.db.read(find_bars, job.sender_domain, receiver, config, now)
    if not bars.is_slowed and not bars.is_warming:
        return Admission(receiver)
    return await resources.db.write(pass_or_put_off, job, receiver, config, now)


def find_bars(tx: Tx, domain: str, receiver: Receiver, config: Config, now: int) -> Bars:
    is_warming = warm_ups.is_on(tx, domain) and not _is_warm(tx, domain, receiver.provider, config, now)
    return Bars(_is_slowed(tx, receiver), is_warming)


def _is_slowed(tx: Tx, receiver: Receiver) -> bool:
    return not receiver.is_relay and paces.find(tx, receiver.provider) is not None


def _is_warm(tx: Tx, domain: str, provider: str, config: Config, now: int) -> bool:
    """Return whether the warm-up is over and today's mail is recorded, which keeps the row from expiring."""
    found = warm_ups.find(tx, domain, provider)
    is_noted = found is not None and found.day_at == warm_ups.day_of(now)
    return is_noted and found is not None and warm_ups.limit_at(found.step, config) is None


def pass_or_put_off(tx: Tx, job: MailJob, receiver: Receiver, config: Config, now: int) -> Admission | None:
    domain, provider = job.sender_domain, receiver.provider
    is_warming = warm_ups.is_on(tx, domain)
    if is_warming:
        turn = warm_ups.take(tx, domain, provider, config, now)
        if not turn.may_go:
            reason = WARMING.format(domain=domain, limit=turn.limit, provider=provider)
            tomorrow = warm_ups.day_of(now) + DAY
            deliveries.put_off(tx, job.delivery, tomorrow, warm_ups.WAITS_FOR, reason)
            if turn.is_first:
                _record_limit(tx, job, provider, turn.limit, now)
            return None
    is_slowed = _is_slowed(tx, receiver)
    due_at = paces.take_turn(tx, provider, now) if is_slowed else None
    if due_at is not None:
        deliveries.put_off(tx, job.delivery, due_at, PACE, SLOWED.format(provider=provider))
        if is_warming:
            warm_ups.give_back(tx, domain, provider, now)
        return None
    return Admission(receiver, is_slowed, is_warming)


def _record_limit(tx: Tx, job: MailJob, provider: str, limit: int | None, now: int) -> None:
    details = {"domain": job.sender_domain, "provider": provider, "limit": limit}
    audit.record(tx, THE_SERVER, "domain.warm_up_limit", job.sender_domain, scope_of(job), now, after=details)


def mark_slowed(tx: Tx, job: MailJob, provider: str, reason: str, now: int) -> None:
    audit.record(tx, THE_SERVER, "provider.slowed", provider, scope_of(job), now, after={"reason": reason})


def mark_recovered(tx: Tx, job: MailJob, provider: str, now: int) -> None:
    audit.record(tx, THE_SERVER, "provider.recovered", provider, scope_of(job), now)


def scope_of(job: MailJob) -> Scope:
    return Scope(job.delivery.account_id, job.outgoing.pod_id)
