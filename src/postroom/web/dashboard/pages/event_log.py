"""The event log, newest first, by place, kind and message; each event with its payload, to post again."""

import msgspec
from msgspec import Struct, field
from starlette.responses import Response

from postroom import ids, limits
from postroom.accounts.permissions import MANAGE
from postroom.accounts.scope import Scope
from postroom.errors import NotFound
from postroom.events import event_log as events
from postroom.events import kinds, webhooks
from postroom.events.event_log import Event, EventChoice
from postroom.events.webhooks import Webhook
from postroom.mailbox import inboxes, messages, threads
from postroom.operations.webhooks import replay_event
from postroom.queue import idempotency
from postroom.web.call import Tx
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go

SHOWN = 50
WEBHOOKS_SHOWN = 100
STATES = {  # of events whose name is not the word for it
    kinds.MESSAGE_SENT: "delivered",
    kinds.MESSAGE_COMPLAINED: "complaint",
    kinds.MESSAGE_JUDGED: "objection",
    kinds.DOMAIN_MENDED: "repaired",
}
COLOURS = {
    **dict.fromkeys((kinds.MESSAGE_SENT, kinds.MESSAGE_APPROVED, kinds.MESSAGE_RELEASED), "green"),
    **dict.fromkeys((kinds.DOMAIN_MENDED, kinds.INBOX_REACTIVATED), "green"),
    **dict.fromkeys((kinds.MESSAGE_HELD, kinds.MESSAGE_SCHEDULED, kinds.MESSAGE_UNSUBSCRIBED), "amber"),
    **dict.fromkeys((kinds.MESSAGE_FAILED, kinds.MESSAGE_BOUNCED, kinds.MESSAGE_COMPLAINED), "red"),
    **dict.fromkeys((kinds.MESSAGE_BLOCKED, kinds.MESSAGE_REJECTED, kinds.MESSAGE_EXPIRED), "red"),
    **dict.fromkeys((kinds.MESSAGE_JUDGED, kinds.DOMAIN_BROKEN, kinds.INBOX_SUSPENDED), "red"),
}
LISTED_CHARACTERS = 3_000  # of a payload in the list; the page of an event has all of it


class EventFilter(Struct, rename="camel", frozen=True):
    kind: str = ""
    inbox_id: str = ""
    pod_id: str = ""
    message: str = ""
    request: str = ""  # its Idempotency-Key
    before: int = 0


class SummedUpMessage(Struct, frozen=True):
    sender: str = field(name="from", default="")
    to: str = ""
    subject: str = ""


class SummedUpActor(Struct, frozen=True):
    name: str | None = None


class SummedUp(Struct, frozen=True):
    """The fields of a payload that the list needs."""

    message: SummedUpMessage = SummedUpMessage()
    actor: SummedUpActor = SummedUpActor()
    recipient: str = ""


class EventSummary(Struct, frozen=True):
    who: str
    subject: str
    inbox: str
    state: str
    colour: str


class ReplayForm(Struct, frozen=True):
    owner: str  # of the webhook: the account, or an inbox
    back: str = "/app/events"


async def show_events(context: PageContext, query: EventFilter) -> Response:
    found, targets = await context.read(read_events, context, query)
    return await show_list(context, query, found, targets, LISTED_CHARACTERS)


async def show_event(context: PageContext, event_id: str) -> Response:
    """Show one event with its whole payload."""
    event, targets = await context.read(read_event, context, event_id)
    return await show_list(context, EventFilter(message=event.message_id), [event], targets, None)


async def show_list(
    context: PageContext, query: EventFilter, found: list[Event], targets: list[Webhook], most: int | None
) -> Response:
    places = await context.read(read_subjects, context, found)
    shown = [
        (event, msgspec.json.format(event.payload, indent=2).decode(), sum_up(event, places))
        for event in found
    ]
    return await context.show(
        "event_log.html",
        "events",
        title="Events",
        events=shown,
        most=most,
        webhooks=targets,
        query=query,
        kinds=kinds.KINDS,
        limit=SHOWN,
    )


class EventSubjects(Struct, frozen=True):
    """What an event without a message is about, by id."""

    subjects: dict[str, str]
    addresses: dict[str, str]


def read_subjects(tx: Tx, context: PageContext, found: list[Event]) -> EventSubjects:
    without = [event for event in found if not event.message_id]
    named = sorted({event.thread_id for event in without if event.thread_id})
    listed = threads.list_by_ids(tx, context.call.scope, named)
    addresses = inboxes.addresses_of(tx, sorted({event.inbox_id for event in without if event.inbox_id}))
    return EventSubjects({thread.id: thread.subject or "(no subject)" for thread in listed}, addresses)


def sum_up(event: Event, places: EventSubjects) -> EventSummary:
    payload = msgspec.json.decode(event.payload, type=SummedUp)
    message = payload.message
    is_inbound = event.kind in kinds.INBOUND
    other = message.sender if is_inbound else payload.recipient or message.to
    own = message.to if is_inbound else message.sender
    who = f"{'From' if is_inbound else 'To'} {other}" if other else ""
    if not event.message_id:
        who = f"By {payload.actor.name}" if payload.actor.name else ""
    state = STATES.get(event.kind) or event.kind.rpartition(".")[2].replace("_", " ")
    inbox = own.rpartition("<")[2].rstrip(">") or places.addresses.get(event.inbox_id, "")
    subject = message.subject or places.subjects.get(event.thread_id, "")
    return EventSummary(who, subject, inbox, state, COLOURS.get(event.kind, ""))


def read_events(tx: Tx, context: PageContext, query: EventFilter) -> tuple[list[Event], list[Webhook]]:
    return list_events(tx, context, query), read_targets(tx, context)


def read_event(tx: Tx, context: PageContext, event_id: str) -> tuple[Event, list[Webhook]]:
    return get_event(tx, context, event_id), read_targets(tx, context)


def read_targets(tx: Tx, context: PageContext) -> list[Webhook]:
    """Return the webhooks to which an event can be posted again."""
    may_replay = context.call.scope.is_account and context.may(MANAGE)
    return webhooks.list_of_account(tx, context.call.account_id, WEBHOOKS_SHOWN) if may_replay else []


def get_event(tx: Tx, context: PageContext, event_id: str) -> Event:
    event = events.find(tx, event_id) if ids.is_id(ids.EVENT, event_id) else None
    if event is None or not context.call.scope.covers(event.account_id, event.pod_id, event.inbox_id):
        raise NotFound(f"There is no such event. Events are kept for {limits.EVENTS_DAYS} days.")
    return event


def list_events(tx: Tx, context: PageContext, query: EventFilter) -> list[Event]:
    if query.request:
        return list_of_request(tx, context, query.request)
    if query.message:
        return events.list_of_message(tx, messages.get(tx, context.call.scope, query.message).id, SHOWN)
    scope: Scope | None = inboxes.narrow(tx, context.call.scope, query.inbox_id or None, query.pod_id or None)
    if scope is None:
        return []
    wanted = EventChoice(scope, frozenset(), frozenset({query.kind} & set(kinds.KINDS)))
    return events.list_before(tx, wanted, query.before or None, SHOWN).events


def list_of_request(tx: Tx, context: PageContext, key: str) -> list[Event]:
    """List the events of the email that a request with this key made; none if it is not in scope."""
    answer = idempotency.find_any_answer(tx, context.call.scope, key, context.call.now())
    named = msgspec.json.decode(answer) if answer is not None else {}
    try:
        message = messages.get(tx, context.call.scope, named.get("id", ""))
    except NotFound:
        return []
    return events.list_of_message(tx, message.id, SHOWN)


async def replay(context: PageContext, event_id: str, body: ReplayForm) -> Response:
    """Posts to the chosen webhook, even if it is disabled or does not want this kind."""
    event = await context.read(get_event, context, event_id)
    url = await context.decide(replay_event, event, body.owner)
    return go(own_path(body.back), f"Sent to {url} again.")
