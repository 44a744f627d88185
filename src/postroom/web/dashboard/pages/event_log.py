"""The log of events: newest first, by inbox and kind, each with its payload."""

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.reach import Reach
from postroom.events import events, kinds
from postroom.events.events import EventChoice
from postroom.web.api.boundaries import narrowed
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk

SHOWN = 50


class EventFilter(Struct, rename="camel", frozen=True):
    kind: str = ""
    inbox_id: str = ""
    before: int = 0


async def show_events(desk: Desk, query: EventFilter) -> Response:
    found = await desk.call.resources.db.read(read_events, desk, query)
    shown = [(event, msgspec.json.format(event.payload, indent=2).decode()) for event in found]
    return await desk.show(
        "event_log.html", "events", title="Events", events=shown, query=query, kinds=kinds.KINDS, limit=SHOWN
    )


def read_events(tx: Tx, desk: Desk, query: EventFilter) -> list[events.Event]:
    reach: Reach | None = narrowed(tx, desk.call.reach, query.inbox_id or None, None)
    if reach is None:
        return []
    wanted = EventChoice(reach, frozenset(), frozenset({query.kind} & set(kinds.KINDS)))
    return events.list_before(tx, wanted, query.before or None, SHOWN).events
