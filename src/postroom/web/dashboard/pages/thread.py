"""A thread: the newest message open, older ones a line each until someone opens them.

Only messages that are open are read whole.
"""

import secrets
from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.clock import from_iso
from postroom.errors import ApiError
from postroom.events import event_log as events
from postroom.events import webhook_log
from postroom.events.event_log import Event
from postroom.events.webhook_log import Attempt
from postroom.fields import iso
from postroom.mailbox import (
    correspondents,
    documents,
    holds,
    infected,
    labels,
    message_json,
    messages,
    raw_mails,
    related,
    thread_digests,
    thread_parts,
    threads,
)
from postroom.mailbox.correspondents import KnownSince
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import INBOUND, Message
from postroom.mailbox.thread_digests import Person
from postroom.mailbox.threads import Thread
from postroom.operations.notes import may_note
from postroom.operations.search import SearchQuery
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.web.api import search
from postroom.web.api.decision_waiting import DecisionQuery, get_message
from postroom.web.call import Tx
from postroom.web.dashboard.display import signs
from postroom.web.dashboard.display.people import name_of
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.pages import teamwork
from postroom.web.dashboard.pages.mail import (
    ROWS,
    Glance,
    MailQuery,
    ThreadRow,
    place_before,
    read_rows,
    rows_of_threads,
)
from postroom.web.dashboard.pages.teamwork import Team
from postroom_mail.mime.address import normalize, parse_list

LATEST = 6  # of a thread, shown unless earlier ones are asked for
MESSAGES = 50  # on a page with earlier ones
EVENTS = 100
RELATED = 10
RAW_CHARACTERS = 60_000

SHOWN_CHARACTERS = 20_000  # of a text, unless the whole is asked for
WHOLE_CHARACTERS = 2_000_000

# What not every message has.
MISSING: dict[str, Any] = {"hold": None, "verdict": None, "signals": [], "linkDetails": [], "calendar": None}

Tab = Literal["text", "agent", "html", "headers", "raw", "files", "delivery", "events"]


class ThreadPageQuery(MailQuery, rename="camel", frozen=True):
    """The list next to the thread, and what of the thread is shown."""

    message: str = ""  # whose tab is open
    tab: Tab = "text"
    open: str = ""  # further open messages, with commas; or all
    how: Literal["", "reply", "all", "forward"] = ""
    pictures: bool = False
    earlier: bool = False
    until: int = -1  # show what is before this position in the thread; default: its end
    whole: bool = False


class Behind(Struct, frozen=True):
    """What a tab needs besides the message."""

    deliveries: list[tuple[Delivery, list[Attempt]]]
    events: list[Event]


class ShownSender(Struct, frozen=True):
    """Who wrote an email, and since when the inbox knows them."""

    address: str
    known: KnownSince
    came_at: int

    @property
    def is_first(self) -> bool:
        return self.known.first_at is not None and self.came_at <= self.known.first_at


class Line(Struct, frozen=True):
    """A message of the thread; `whole` is what the interface shows of it, if it is open."""

    id: str
    glance: Glance
    created_at: int
    has_files: bool
    is_imported: bool
    sent: signs.Sign | None  # how far a sent one came
    whole: dict[str, Any] | None

    @property
    def words(self) -> str:
        return thread_digests.preview(self.glance.reply_text)


class Conversation(Struct, frozen=True):
    thread: Thread
    people: list[Person]
    labels: list[str]
    related: list[Thread]
    lines: list[Line]
    offset: int  # how many messages are before the first line
    later: int  # how many are after the last one
    is_risky: bool
    beside: list[ThreadRow]
    behind: Behind
    senders: dict[str, ShownSender]  # by the id of a received mail
    lost: dict[str, list[Delivery]]  # by the id of an email that did not reach all of its recipients
    team: Team

    @property
    def newest_id(self) -> str:
        """The newest message that was on the page; none where later ones are not shown."""
        return self.lines[-1].id if self.lines and not self.later else ""

    @property
    def last_inbound(self) -> Line | None:
        return next((each for each in reversed(self.lines) if each.glance.direction == INBOUND), None)


async def show_thread(
    context: PageContext,
    thread_id: str,
    query: ThreadPageQuery,
    form: Any = None,
    error: ApiError | None = None,
    newer: str = "",
) -> Response:
    """Show a thread.

    `form` is a refused reply, `error` the reason; `newer` is a reply that came before this one.
    """
    listed = await search_beside(context, query) if query.q else None
    found = await context.read(read_conversation, context, thread_id, query, listed)
    chosen = query.message or (found.lines[-1].id if found.lines else "")
    raw = await read_raw(context, chosen) if query.tab in ("headers", "raw") and chosen else ""
    opened = [each.id for each in found.lines if each.whole is not None]
    notes = [teamwork.shown_note(note) for note in await teamwork.read_notes(context, thread_id)]
    return await context.show(
        "thread.html",
        "mail",
        200 if error is None else error.status,
        title=found.thread.subject or "(no subject)",
        thread=found.thread,
        found=found,
        chosen=chosen,
        opened=opened,
        query=query,
        shown_part=part_of(query),
        rows=found.beside,
        raw=raw.partition("\n\n")[0] if query.tab == "headers" else raw,
        name_of=name_of,
        form=form,
        error=error,
        newer=newer,
        team=found.team,
        notes=notes_beside(found, notes),
        snoozes=teamwork.SNOOZES,
        until=iso(found.thread.snoozed_until),
        may_note=may_note(context.call.caller),
        newest=found.newest_id,
        once=form.once if form else secrets.token_urlsafe(16),
        signs=signs,
        cut=SHOWN_CHARACTERS,
        most=WHOLE_CHARACTERS,
    )


def part_of(query: ThreadPageQuery) -> dict[str, object]:
    """Return which messages of the thread are on the page, as the query of an address."""
    until = query.until if query.until >= 0 else ""
    return {**query.place, "earlier": "true" if query.earlier else "", "until": until}


async def search_beside(context: PageContext, query: ThreadPageQuery) -> list[str]:
    """Return the threads of the search results from which this one was opened."""
    asked = SearchQuery(query.q, query.inbox_id or None, query.pod_id or None, cursor=query.cursor or None)
    try:
        found = await search.search_messages(context.call, asked)
    except ApiError:
        return []
    return [msgspec.json.decode(each.message, type=InThread).thread_id for each in found.data]


class InThread(Struct, rename="camel", frozen=True):
    thread_id: str


def read_conversation(
    tx: Tx, context: PageContext, thread_id: str, query: ThreadPageQuery, listed: list[str] | None
) -> Conversation:
    """Return the conversation.

    `listed` are the threads of the search results next to it, if it was opened from some.
    """
    thread = threads.get(tx, context.call.scope, thread_id)
    found, offset = read_part(tx, thread, query)
    whole = read_whole(tx, context.call.links(), found, query)
    shown = list(whole.values())
    chosen = query.message or (found[-1].id if found else "")
    return Conversation(
        thread,
        thread_digests.of_threads(tx, [thread])[thread.id].digest.people,
        labels.of_threads(tx, [thread.id]).get(thread.id, []),
        read_related(tx, context, thread),
        to_lines(tx, found, whole),
        offset,
        max(0, thread.message_count - offset - len(found)),
        threads.is_risky(tx, thread.id),
        read_rows(tx, context, query, ROWS, with_marks=False)[0]
        if listed is None
        else rows_of_threads(tx, context, listed),
        read_behind(tx, chosen, query.tab if chosen in whole else "text"),
        read_senders(tx, thread, shown),
        {
            each["id"]: deliveries.list_lost(tx, each["id"])
            for each in shown
            if each["status"] == messages.FAILED
        },
        teamwork.read_team(tx, context, thread),
    )


def notes_beside(found: Conversation, notes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the notes behind each message, by its id, and under `first` those in front of all.

    Where earlier messages are not shown, neither are their notes.
    """
    beside: dict[str, list[dict[str, Any]]] = {}
    for note in notes:
        before = [line.id for line in found.lines if line.created_at <= from_iso(note["at"])]
        place = before[-1] if before else "" if found.offset else "first"
        beside.setdefault(place, []).append(note)
    return beside


def read_part(tx: Tx, thread: Thread, query: ThreadPageQuery) -> tuple[list[Message], int]:
    """Return the messages from the end backwards: if a page is full, the oldest are left for the next one."""
    end = thread.message_count if query.until < 0 else min(query.until, thread.message_count)
    newer = thread_parts.count_newer(tx, thread.id, query.message) if query.message else 0
    if newer - (thread.message_count - end) >= MESSAGES:
        end = thread.message_count - newer
    is_far = newer - (thread.message_count - end) >= LATEST
    limit = MESSAGES if query.earlier or query.until >= 0 or is_far else LATEST
    skipped = thread.message_count - end
    found = thread_parts.list_outlines(tx, thread.id, min(limit, end), skipped)
    return found[::-1], max(0, end - len(found))


def read_whole(
    tx: Tx, links: Links, found: list[Message], query: ThreadPageQuery
) -> dict[str, dict[str, Any]]:
    """Return the open messages, as many as fit into a page: the newest, and those that were asked for."""
    asked = {query.message, *query.open.split(",")}
    newest = found[-1].id if found and query.until < 0 else ""
    wanted = [each.id for each in found[::-1] if query.open == "all" or each.id in asked or each.id == newest]
    wanted.sort(key=lambda message_id: message_id != query.message)
    wanted = wanted[: documents.count_fitting(tx, wanted)]
    opened = message_json.to_json(tx, messages.list_by_ids(tx, wanted), links)
    return {
        message_id: MISSING | msgspec.json.decode(raw) for message_id, raw in zip(wanted, opened, strict=True)
    }


def to_lines(tx: Tx, found: list[Message], whole: dict[str, dict[str, Any]]) -> list[Line]:
    held = holds.list_of_messages(tx, [message.id for message in found if message.has_hold])
    failed = [message.id for message in found if message.status == messages.FAILED]
    bounced = deliveries.bounced_of(tx, failed)
    return [
        Line(
            message.id,
            glance := msgspec.json.decode(message.document, type=Glance),
            message.created_at,
            message.has_attachments,
            message.is_imported,
            None
            if glance.direction == INBOUND
            else signs.of_outbound(
                {
                    "status": message.status,
                    "hold": {"state": held[message.id].state} if message.id in held else None,
                    "captured": message.is_captured,
                },
                message.id in bounced,
            ),
            whole.get(message.id),
        )
        for message in found
    ]


def query_before(context: PageContext, **shown: str) -> ThreadPageQuery:
    """Return the thread page that this form was sent from, with the list next to it."""
    try:
        return msgspec.convert({**place_before(context), **shown}, ThreadPageQuery, strict=False)
    except msgspec.ValidationError:
        return msgspec.convert(shown, ThreadPageQuery)


def read_senders(tx: Tx, thread: Thread, shown: list[dict[str, Any]]) -> dict[str, ShownSender]:
    """Return the sender of each received email, and what the inbox knows of them."""
    received = [each for each in shown if each["direction"] == INBOUND and not each.get("imported")]
    wrote = {each["id"]: address_of(each) for each in received}
    known = correspondents.list_known(tx, thread.inbox_id, sorted(set(wrote.values())))
    came = {each["id"]: from_iso(each["createdAt"]) for each in shown}
    return {
        message_id: ShownSender(address, known[address], came[message_id])
        for message_id, address in wrote.items()
        if address in known
    }


def address_of(message: dict[str, Any]) -> str:
    found = parse_list(message["fromAddr"])
    return normalize(found[0].address) if found else ""


def read_related(tx: Tx, context: PageContext, thread: Thread) -> list[Thread]:
    named = related.list_of_thread(tx, thread.id)
    return threads.list_by_ids(tx, context.call.scope, named[:RELATED])


def read_behind(tx: Tx, message_id: str, tab: Tab) -> Behind:
    if tab == "delivery":
        sent = deliveries.list_of_message(tx, message_id)
        return Behind([(each, webhook_log.list_attempts(tx, each.id)) for each in sent], [])
    return Behind([], events.list_of_message(tx, message_id, EVENTS) if tab == "events" else [])


async def read_raw(context: PageContext, message_id: str) -> str:
    await context.read(messages.get, context.call.scope, message_id)
    if name := await context.read(infected.find_name, message_id):
        return f"clamd found {name} in this email, so it is not shown as it came."
    raw = await raw_mails.read(context.call.resources, message_id, with_trace=True)
    return raw[:RAW_CHARACTERS].decode("utf-8", "replace").replace("\r\n", "\n")


async def show_message(context: PageContext, message_id: str) -> Response:
    """Show the thread of a message, with the message's tab.

    A message that is blocked or in Junk has no thread.
    """
    shown = await context.ask(get_message, message_id=message_id, query=DecisionQuery())
    if not shown["threadId"]:
        return await context.show("blocked.html", "mail", title=shown["subject"], message=shown)
    return await show_thread(context, shown["threadId"], ThreadPageQuery(message=shown["id"]))
