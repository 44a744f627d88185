"""Warm-ups: a domain that begins to send may send each provider a little more every day."""

from msgspec import Struct

from postroom.accounts import domains
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.config import Config
from postroom.storage.database import LOCK_ROWS, Tx, item_from_row

WAITS_FOR = "warm_up"
FORGOTTEN = 90 * DAY  # the warm-up at a provider that got no mail for so long starts over
LISTED = 200


class WarmUp(Struct, frozen=True):
    """Progress of a domain with a provider: days with mail so far, and emails today."""

    domain: str
    provider: str
    step: int
    day_at: int
    taken: int
    told_at: int

    def on(self, day_at: int) -> "WarmUp":
        """Return its state on this day. Only days with mail count."""
        if self.day_at >= day_at:
            return self
        step = self.step + (self.taken > 0)
        return WarmUp(self.domain, self.provider, step, day_at, 0, self.told_at)


class Turn(Struct, frozen=True):
    """Whether one more mail may go today. `is_first`: the first one refused today, which is reported."""

    may_go: bool
    limit: int | None
    is_first: bool = False


def day_of(now: int) -> int:
    return now // DAY * DAY


def limit_at(step: int, config: Config) -> int | None:
    """Return None if the warm-up is over."""
    if step >= config.warm_up_days:
        return None
    limit = config.warm_up_mails
    for _ in range(step):
        limit += max(1, limit * config.warm_up_growth_percent // 100)
    return limit


def is_on(tx: Tx, domain: str, account_id: str | None = None) -> bool:
    """Return whether a warm-up runs. With an account: whether that began it, as two may have the domain."""
    row = tx.one("select account_id from warm_up_domains where domain = :domain", domain=domain)
    return row is not None and account_id in (None, row["account_id"])


def begin(tx: Tx, account_id: str, domain: str, now: int) -> bool:
    """Return False if it has begun already."""
    added = tx.run(
        "insert into warm_up_domains (domain, account_id, since) values (:domain, :account_id, :now)"
        " on conflict (domain) do nothing",
        domain=domain,
        account_id=account_id,
        now=now,
    )
    return added == 1


def end(tx: Tx, account_id: str, domain: str) -> bool:
    """Return False if this account had none."""
    params = {"domain": domain, "account_id": account_id}
    tx.run("delete from warm_ups where domain = :domain and account_id = :account_id", **params)
    is_ended = tx.run(
        "delete from warm_up_domains where domain = :domain and account_id = :account_id", **params
    )
    return is_ended == 1


def let_go(tx: Tx, domain: str, now: int) -> int:
    """Makes mail due now that waits for tomorrow because of it."""
    return tx.run(
        "update deliveries set due_at = :now where kind = 'mail' and state = 'pending'"
        " and waits_for = :waits_for and due_at > :now"
        " and inbox_id in (select id from inboxes where domain = :domain)",
        now=now,
        waits_for=WAITS_FOR,
        domain=domain,
    )


def find(tx: Tx, domain: str, provider: str, lock: str = "") -> WarmUp | None:
    row = tx.one(
        f"select * from warm_ups where domain = :domain and provider = :provider {lock}",
        domain=domain,
        provider=provider,
    )
    return None if row is None else item_from_row(WarmUp, row)


def take(tx: Tx, domain: str, provider: str, config: Config, now: int) -> Turn:
    """Takes one of today's emails from a domain to a provider, if any is left."""
    today = day_of(now)
    tx.run(
        "insert into warm_ups (domain, provider, account_id, step, day_at, taken, told_at)"
        " select domain, :provider, account_id, 0, :today, 0, 0 from warm_up_domains where domain = :domain"
        " on conflict (domain, provider) do nothing",
        domain=domain,
        provider=provider,
        today=today,
    )
    found = find(tx, domain, provider, LOCK_ROWS)
    if found is None:  # it has just ended
        return Turn(may_go=True, limit=None)
    known = found.on(today)
    limit = limit_at(known.step, config)
    may_go = limit is None or known.taken < limit
    is_first = not may_go and known.told_at < today
    tx.run(
        "update warm_ups set step = :step, day_at = :day_at, taken = :taken, told_at = :told_at"
        " where domain = :domain and provider = :provider",
        step=known.step,
        day_at=known.day_at,
        taken=known.taken + may_go,
        told_at=now if is_first else known.told_at,
        domain=domain,
        provider=provider,
    )
    return Turn(may_go, limit, is_first)


def give_back(tx: Tx, domain: str, provider: str, now: int) -> None:
    """Give back an email that the provider did not take: it is retried, and counts then."""
    tx.run(
        "update warm_ups set taken = taken - 1 where domain = :domain and provider = :provider"
        " and day_at = :today and taken > 0",
        domain=domain,
        provider=provider,
        today=day_of(now),
    )


def list_within(tx: Tx, scope: Scope, now: int) -> list[WarmUp]:
    """List the warm-ups of domains in scope, and of the server's own for a whole account, as of today."""
    wanted, params = "warm_ups.account_id in (:account_id, :service)", {"service": domains.SERVICE}
    if scope.pod_id is not None:
        wanted, params = (
            "domains.pod_id = :pod_id and domains.account_id = :account_id",
            {"pod_id": scope.pod_id},
        )
    rows = tx.all(
        "select warm_ups.* from warm_ups left join domains on domains.name = warm_ups.domain"
        f" and domains.account_id = warm_ups.account_id where {wanted}"
        " order by warm_ups.domain, warm_ups.provider limit :limit",
        account_id=scope.account_id,
        limit=LISTED,
        **params,
    )
    return [item_from_row(WarmUp, row).on(day_of(now)) for row in rows]
