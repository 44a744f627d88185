"""Server processes that kill themselves at a named step, as a power cut would in that moment."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from postroom.accounts import audit_chain
from postroom.clock import DAY, SystemClock
from postroom.queue import leader_leases
from postroom.upkeep import keep_evidence

WAIT_SECONDS = 0.02


class Step(NamedTuple):
    where: Any
    name: str
    is_behind: bool = False  # it dies when the step is done, before what it did is committed


# Of the upkeep of the audit log, in their order.
OF_THE_AUDIT_LOG = {
    "before heads are signed": Step(audit_chain, "sign_grown"),
    "signed, not committed": Step(audit_chain, "sign_grown", is_behind=True),
    "before the export is written": Step(keep_evidence, "store"),
    "written, not synced": Step(os, "fsync"),
    "in its place, not synced": Step(keep_evidence, "sync_folder"),
    "exported, not noted": Step(keep_evidence, "mark_exported"),
    "noted, not committed": Step(keep_evidence, "mark_exported", is_behind=True),
}


class Life(NamedTuple):
    """What a server process does before it starts: it lives some days later, and dies at a step.

    Its upkeep of the audit log begins when the file `go` is there.
    """

    days: int
    go: Path
    step: str = ""

    def begin(self) -> None:
        time_of, hold = SystemClock.now, leader_leases.hold

        async def hold_later(resources: Any, name: str, length: int) -> bool:
            while name == keep_evidence.LEASE and not self.go.exists():
                await asyncio.sleep(WAIT_SECONDS)
            return await hold(resources, name, length)

        clock: Any = SystemClock
        clock.now = lambda own: time_of(own) + self.days * DAY
        leader_leases.hold = hold_later
        leader_leases.FIRST_SECONDS = WAIT_SECONDS
        if self.step:
            step = OF_THE_AUDIT_LOG[self.step]
            dying = _dying(getattr(step.where, step.name), step.is_behind)
            if step.where is os:
                upkeep: Any = keep_evidence
                upkeep.os = SimpleNamespace(**{step.name: dying})
            else:
                setattr(step.where, step.name, dying)


def _dying(step: Callable[..., Any], is_behind: bool) -> Callable[..., Any]:
    def die(*given: Any) -> None:
        if is_behind:
            step(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    return die
