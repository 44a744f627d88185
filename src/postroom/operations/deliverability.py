"""Delivery results by receiving provider: counts, slowed providers, and the progress of warm-ups."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroom.accounts.keys import Caller
from postroom.clock import DAY, SECOND, to_iso
from postroom.config import Config
from postroom.fields import Timestamp, show_item
from postroom.queue.providers import counts, paces, warm_ups
from postroom.queue.providers.counts import ProviderFigures
from postroom.queue.providers.paces import ProviderPace
from postroom.queue.providers.warm_ups import WarmUp
from postroom.storage.database import Tx

Days = Annotated[Literal["1", "7", "30"], Meta(description="How many days back, in whole hours.")]


class DeliverabilityQuery(Struct, frozen=True):
    days: Days = "1"


class ShownPace(Struct, rename="camel", frozen=True):
    """The provider asked for less email (421, 451); each email it accepts shortens the wait."""

    seconds_between: Annotated[float, Meta(description="Seconds between two emails of this server.")]
    next_at: Timestamp
    slowed_at: Timestamp


class ShownProvider(Struct, rename="camel", frozen=True):
    """Delivery results at one organization."""

    provider: Annotated[
        str, Meta(description="Domain of its mail servers, or of the relay.", examples=["google.com"])
    ]
    accepted: int
    deferred: Annotated[int, Meta(description="Attempts that it deferred.")]
    bounced: Annotated[int, Meta(description="Permanently refused, at once or later.")]
    complained: int
    tls: Annotated[int, Meta(description="Of the accepted, those sent encrypted.")]
    seconds_to_accept: Annotated[
        float | None, Meta(description="From the first attempt, on average; null without any.")
    ]
    pace: ShownPace | None

    @classmethod
    def of(cls, figures: ProviderFigures, pace: ProviderPace | None) -> "ShownProvider":
        seconds, counted = figures.seconds_to_accept, figures.counted
        return show_item(
            cls,
            counted,
            provider=figures.provider,
            tls=counted.encrypted,
            seconds_to_accept=None if seconds is None else round(seconds, 3),
            pace=None if pace is None else show_pace(pace),
        )


class ShownWarmUp(Struct, rename="camel", frozen=True):
    """How much of today's limit from a domain to a provider is used."""

    domain: str
    provider: str
    day: Annotated[int, Meta(description="Number of this day with email, from 1.")]
    limit: Annotated[int | None, Meta(description="Today's limit; null when the warm-up is over.")]
    used: int

    @classmethod
    def of(cls, found: WarmUp, config: Config) -> "ShownWarmUp":
        limit = warm_ups.limit_at(found.step, config)
        return cls(found.domain, found.provider, found.step + 1, limit, found.taken)


class Deliverability(Struct, rename="camel", frozen=True):
    days: int
    data: list[ShownProvider]
    warm_ups: list[ShownWarmUp]


def show_pace(pace: ProviderPace) -> ShownPace:
    return ShownPace(pace.interval_ms / SECOND, to_iso(pace.next_at), to_iso(pace.slowed_at))


def get_deliverability(
    tx: Tx, caller: Caller, query: DeliverabilityQuery, config: Config, now: int
) -> Deliverability:
    """Get delivery results by receiving provider, which are slowed, and the progress of warm-ups"""
    figures = counts.list_within(tx, caller.scope, now - int(query.days) * DAY)
    warming = warm_ups.list_within(tx, caller.scope, now)
    return Deliverability(
        days=int(query.days),
        data=show_all(tx, figures),
        warm_ups=[ShownWarmUp.of(each, config) for each in warming],
    )


def show_all(tx: Tx, figures: list[ProviderFigures]) -> list[ShownProvider]:
    slowed = paces.list_of(tx, [each.provider for each in figures])
    return [ShownProvider.of(each, slowed.get(each.provider)) for each in figures]
