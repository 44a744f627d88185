"""Counts by provider and hour: written with each outcome, so that a page sums few rows."""

from collections.abc import Iterable

from msgspec import Struct, structs

from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR
from postroom.storage.database import Row, Tx

LIFETIME = 32 * DAY
LISTED = 200
NUMBERS = ("accepted", "deferred", "bounced", "complained", "encrypted", "milliseconds")


class CountedHour(Struct, frozen=True, order=True):
    """Whose mail it was, where it went and when."""

    account_id: str
    pod_id: str
    provider: str
    hour_at: int

    @classmethod
    def of(cls, account_id: str, pod_id: str, provider: str, now: int) -> "CountedHour":
        return cls(account_id, pod_id, provider, now // HOUR * HOUR)


class ProviderCount(Struct, frozen=True):
    """`milliseconds` is the total time from first attempt to acceptance of all accepted emails."""

    accepted: int = 0
    deferred: int = 0
    bounced: int = 0
    complained: int = 0
    encrypted: int = 0
    milliseconds: int = 0

    def plus(self, other: "ProviderCount") -> "ProviderCount":
        return ProviderCount(
            *(mine + theirs for mine, theirs in zip(_numbers(self), _numbers(other), strict=True))
        )


class ProviderFigures(Struct, frozen=True):
    provider: str
    counted: ProviderCount

    @classmethod
    def from_row(cls, row: Row) -> "ProviderFigures":
        return cls(row["provider"], ProviderCount(*(int(row[name]) for name in NUMBERS)))

    @property
    def seconds_to_accept(self) -> float | None:
        accepted = self.counted.accepted
        return self.counted.milliseconds / accepted / 1000 if accepted else None


def _numbers(counted: ProviderCount) -> tuple[int, ...]:
    return structs.astuple(counted)


def add_all(tx: Tx, found: Iterable[tuple[CountedHour, ProviderCount]]) -> None:
    """Adds each row once, in the same order on all nodes."""
    summed: dict[CountedHour, ProviderCount] = {}
    for place, counted in found:
        summed[place] = summed.get(place, ProviderCount()).plus(counted)
    if not summed:
        return
    added = ", ".join(f"{name} = provider_hours.{name} + excluded.{name}" for name in NUMBERS)
    tx.many(
        f"insert into provider_hours (account_id, pod_id, provider, hour_at, {', '.join(NUMBERS)})"
        f" values :rows on conflict (account_id, pod_id, provider, hour_at) do update set {added}",
        [(*structs.astuple(place), *_numbers(summed[place])) for place in sorted(summed)],
    )


def list_within(tx: Tx, scope: Scope, since: int) -> list[ProviderFigures]:
    """List the busiest providers first, for whole hours since a moment."""
    return _list(tx, *_of_scope(scope), since)


def _of_scope(scope: Scope) -> tuple[str, dict[str, str]]:
    wanted, params = "account_id = :account_id", {"account_id": scope.account_id}
    if scope.pod_id is not None:
        wanted, params = f"{wanted} and pod_id = :pod_id", {**params, "pod_id": scope.pod_id}
    return wanted, params


def milliseconds_to_accept(tx: Tx, scope: Scope, since: int, each: int) -> dict[int, int]:
    """Averages by period: its number since 1970, for periods of length `each` with accepted mail."""
    wanted, params = _of_scope(scope)
    rows = tx.all(
        f"select hour_at / {each} as number, sum(milliseconds) / sum(accepted) as average from provider_hours"
        f" where {wanted} and hour_at >= :since and accepted > 0 group by hour_at / {each}",
        since=since,
        **params,
    )
    return {int(row["number"]): int(row["average"]) for row in rows}


def list_of_server(tx: Tx, since: int) -> list[ProviderFigures]:
    return _list(tx, "hour_at >= 0", {}, since)


def _list(tx: Tx, wanted: str, params: dict[str, str], since: int) -> list[ProviderFigures]:
    sums = ", ".join(f"sum({name}) as {name}" for name in NUMBERS)
    rows = tx.all(
        f"select provider, {sums} from provider_hours where {wanted} and hour_at >= :since"
        " group by provider order by sum(accepted) + sum(deferred) + sum(bounced) desc, provider"
        " limit :limit",
        since=since // HOUR * HOUR,
        limit=LISTED,
        **params,
    )
    return [ProviderFigures.from_row(row) for row in rows]
