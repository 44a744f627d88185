"""The briefing: what came, what waits for a decision or an answer, what failed, and what is on today."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import DAY, start_of_day
from postroom.errors import BadRequest
from postroom.fields import AskedMoment, InboxFilter, PodFilter, read_asked
from postroom.mailbox import briefings
from postroom.mailbox.briefings import Briefing
from postroom.storage.database import Tx

MOST_DAYS = 31


class BriefingQuery(Struct, rename="camel", frozen=True):
    since: Annotated[AskedMoment, Meta(description="By default a day ago; at most 31 days.")] | None = None
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None


def get_briefing(tx: Tx, caller: Caller, within: Scope, query: BriefingQuery, now: int) -> Briefing:
    """Get what came, what waits, what is overdue, what failed and what is on today"""
    asked = read_asked(query.since, "since")
    since = now - DAY if asked is None else asked
    if not now - MOST_DAYS * DAY <= since <= now:
        raise BadRequest(f"since is at most {MOST_DAYS} days ago.", field="since")
    return briefings.read(tx, within, since, now, start_of_day(now) + DAY)
