"""What requests carry: the types of bodies and queries."""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from postroom import limits
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest
from postroom.events import kinds
from postroom.events.event_log import EventChoice
from postroom.fields import InboxFilter, Limit, PodFilter

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
        """None if its filters exclude everything."""
        types = frozenset(self.event_types.split(",")) - {""}
        kinds.require_known(types, "event_types")
        named = self._named_inboxes()
        if self.inbox_id is not None:
            named = frozenset({self.inbox_id}) & (named or {self.inbox_id})
            return EventChoice(scope, named, types) if named else None
        return EventChoice(scope, named, types)

    def _named_inboxes(self) -> frozenset[str]:
        """Refuses an empty list: it would mean all inboxes."""
        if self.inbox_ids is None:
            return frozenset()
        named = frozenset(self.inbox_ids.split(",")) - {""}
        if not named or not _LISTED.fullmatch(self.inbox_ids):
            raise BadRequest("inbox_ids must be ids, separated by commas.", field="inbox_ids")
        if len(named) > INBOXES_OF_A_FILTER:
            raise BadRequest(f"inbox_ids can name {INBOXES_OF_A_FILTER} inboxes.", field="inbox_ids")
        return named


class SearchQuery(Struct, frozen=True):
    q: Annotated[
        str,
        Meta(
            description='Words, "phrases", -not, a OR b, prefixes*, from: to: subject: label: in: has: is:'
            " before: after:",
            examples=["invoice from:billing after:2026-01-01", '"purchase order" -draft has:attachment'],
        ),
    ]
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    limit: Limit = 20
    cursor: Annotated[str, Meta(description="`next` of the previous page.")] | None = None
    include: (
        Annotated[Literal["trash"], Meta(description="Also what a mail program moved to Trash.")] | None
    ) = None
