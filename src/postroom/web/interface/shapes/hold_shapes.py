"""What answers about holds, pauses and budgets carry."""

from msgspec import Struct

from postroom.accounts.actors import Actor
from postroom.accounts.rules.limits import Use
from postroom.accounts.rules.pauses import Pause
from postroom.clock import to_iso
from postroom.fields import Timestamp
from postroom.mailbox.holds import ShownHold
from postroom.web.interface.shapes.shapes import RawMessage


class HeldMessage(Struct, rename="camel", frozen=True):
    message: RawMessage
    hold: ShownHold


class ApprovalPage(Struct, rename="camel", frozen=True):
    data: list[HeldMessage]
    total: int


class Paused(Struct, rename="camel", frozen=True):
    paused: bool
    since: Timestamp | None
    by: Actor | None

    @classmethod
    def of(cls, pause: Pause | None) -> "Paused":
        if pause is None:
            return cls(False, None, None)
        return cls(True, to_iso(pause.since), pause.actor)


class Meter(Struct, rename="camel", frozen=True):
    limit: int
    used: int
    resets_at: Timestamp | None

    @classmethod
    def of(cls, use: Use) -> "Meter":
        return cls(use.limit, use.used, None if use.resets_at is None else to_iso(use.resets_at))


class InboxLimits(Struct, rename="camel", frozen=True):
    per_minute: Meter
    per_day: Meter
    cold_per_day: Meter

    @classmethod
    def of(cls, uses: dict[str, Use]) -> "InboxLimits":
        return cls(Meter.of(uses["per_minute"]), Meter.of(uses["per_day"]), Meter.of(uses["cold_per_day"]))
