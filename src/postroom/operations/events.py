"""Reading the log of events, and finding in it the message that somebody waits for."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest
from postroom.events import event_log, kinds
from postroom.events.event_log import Event, EventChoice, EventSlice
from postroom.events.payload import Payload
from postroom.fields import InboxFilter, Limit, PodFilter, Truncated
from postroom.mailbox import inboxes, messages
from postroom.mailbox.search import message_search
from postroom.storage.database import Tx
from postroom_mail.search.query import Query

NOTHING = EventSlice([], has_more=False)
PAGE = 100
WHOLE_LOG = "0"
_LISTED = re.compile(r"[\w.,-]*")
INBOXES_OF_A_FILTER = 50
SOME_INBOXES = rf"^[^,\s]+(,[^,\s]+){{0,{INBOXES_OF_A_FILTER - 1}}}$"
SOME_KINDS = "^(({kinds})(,({kinds}))*)?$".format(kinds="|".join(map(re.escape, kinds.KINDS)))


class WaitQuery(Struct, frozen=True):
    timeout: Annotated[float, Meta(ge=0, le=limits.MESSAGE_WAIT_SECONDS, description="Seconds to wait.")] = 60
    after: (
        Annotated[str, Meta(description="An event or message id to start after; 0: the whole log.")] | None
    ) = None
    sender: Annotated[str, Meta(description="Part of the sender.")] = field(default="", name="from")
    subject: Annotated[str, Meta(description="Part of the subject.")] = ""
    thread_id: Annotated[str, Meta(description="Only in this thread.")] = ""
    q: Annotated[str, Meta(description="Only what matches this search.")] = ""


class EventQuery(Struct, frozen=True):
    after: Annotated[str, Meta(description="The last event that you have.")] | None = None
    limit: Limit = limits.PAGE
    wait: Annotated[
        float, Meta(ge=0, le=limits.EVENTS_WAIT_SECONDS, description="Seconds to wait for an event.")
    ] = 0
    order: Annotated[
        Literal["asc", "desc"],
        Meta(description="desc gives the newest first, before `after`, without waiting."),
    ] = "asc"
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    inbox_ids: (
        Annotated[
            str,
            Meta(
                description="Only of these inboxes, separated by commas.",
                extra_json_schema={"pattern": SOME_INBOXES, "x-separator": ","},
            ),
        ]
        | None
    ) = None
    event_types: Annotated[
        str,
        Meta(
            description="Only of these kinds, separated by commas.",
            extra_json_schema={"pattern": SOME_KINDS, "x-separator": ","},
        ),
    ] = ""

    def wanted(self, scope: Scope) -> EventChoice | None:
        """Return the wanted events, or None if the filters exclude everything."""
        types = frozenset(self.event_types.split(",")) - {""}
        kinds.require_known(types, "event_types")
        named = self._named_inboxes()
        if self.inbox_id is not None:
            named = frozenset({self.inbox_id}) & (named or {self.inbox_id})
            return EventChoice(scope, named, types) if named else None
        return EventChoice(scope, named, types)

    def _named_inboxes(self) -> frozenset[str]:
        """Return the named inboxes. Raise for an empty list, which would mean all inboxes."""
        if self.inbox_ids is None:
            return frozenset()
        named = frozenset(self.inbox_ids.split(",")) - {""}
        if not named or not _LISTED.fullmatch(self.inbox_ids):
            raise BadRequest("inbox_ids must be ids, separated by commas.", field="inbox_ids")
        if len(named) > INBOXES_OF_A_FILTER:
            raise BadRequest(f"inbox_ids can name {INBOXES_OF_A_FILTER} inboxes.", field="inbox_ids")
        return named


class EventPage(Struct, rename="camel", frozen=True):
    data: list[Annotated[Raw, Payload]]
    next: str | None
    truncated: Truncated | UnsetType = UNSET


def show_events(found: EventSlice, otherwise: str | None) -> EventPage:
    given = found.events
    return EventPage(
        [Raw(event.payload) for event in given], given[-1].id if given else otherwise, found.is_cut or UNSET
    )


def newest_first(tx: Tx, scope: Scope, wanted: EventChoice | None, query: EventQuery) -> EventSlice:
    position = None if query.after is None else event_log.position_of(tx, scope, query.after)
    chosen = narrow(tx, wanted, query.pod_id)
    return NOTHING if chosen is None else event_log.list_before(tx, chosen, position, query.limit)


def next_after(tx: Tx, wanted: EventChoice | None, position: int, query: EventQuery) -> EventSlice:
    chosen = narrow(tx, wanted, query.pod_id)
    return NOTHING if chosen is None else event_log.list_after(tx, chosen, position, query.limit)


def narrow(tx: Tx, wanted: EventChoice | None, pod_id: str | None) -> EventChoice | None:
    """Return the narrower filter, or None if nothing can match, as in an unknown pod."""
    if wanted is None or pod_id is None:
        return wanted
    scope = inboxes.narrow(tx, wanted.scope, None, pod_id)
    return None if scope is None else replace(wanted, scope=scope)


def position_after(tx: Tx, scope: Scope, event_id: str | None) -> int:
    return 0 if event_id is None else event_log.position_of(tx, scope, event_id)


def find_start(tx: Tx, caller: Caller, inbox_id: str, after: str | None) -> int:
    inboxes.get(tx, caller.scope, inbox_id)
    if after is None:
        return event_log.last_position(tx, caller.account_id)
    if after == WHOLE_LOG:
        return 0
    if ids.is_meant_as(ids.MESSAGE, after):
        return event_log.position_of_message(tx, caller.account_id, inbox_id, after)
    return event_log.position_of(tx, caller.scope, after)


class LookedThrough(Struct, frozen=True):
    """A part of the log: what matches in it, and where the next part begins."""

    matching: list[Event]
    position: int
    has_more: bool


def list_matching(tx: Tx, wanted: EventChoice, position: int, query: WaitQuery) -> LookedThrough:
    page = event_log.list_after(tx, wanted, position, PAGE)
    found = [event for event in page.events if matches(event, query)]
    return LookedThrough(found, page.last_position if page.events else position, page.has_more)


def matches(event: Event, query: WaitQuery) -> bool:
    payload = msgspec.json.decode(event.payload, type=Payload)
    return (
        query.sender.lower() in payload.message.sender.lower()
        and query.subject.lower() in payload.message.subject.lower()
        and query.thread_id in ("", payload.thread_id)
    )


def answers(tx: Tx, asked: Query, message_id: str) -> bool:
    message = messages.find(tx, message_id)
    return message is not None and message_search.answers(tx, asked, message)
