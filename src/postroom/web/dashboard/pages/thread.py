"""A message in its thread: the text as the agent gets it, and all details in tabs."""

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
from postroom.mailbox import correspondents, labels, message_json, messages, raw_mails, related, threads
from postroom.mailbox.correspondents import KnownSince
from postroom.mailbox.messages import INBOUND, ListedMessage
from postroom.mailbox.threads import Thread
from postroom.operations.messages import get_message
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.web.call import Tx
from postroom.web.dashboard.display import signs
from postroom.web.dashboard.display.people import name_of
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.pages.mail import MailQuery, ThreadRow, read_rows
from postroom_mail.mime.address import normalize, parse_list

MESSAGES = 50
BESIDE = 30  # rows of the list beside a thread
EVENTS = 100
RELATED = 10
RAW_CHARACTERS = 60_000

SHOWN_CHARACTERS = 20_000  # of a text, unless the whole is asked for
WHOLE_CHARACTERS = 2_000_000

# What not every message has.
MISSING: dict[str, Any] = {"hold": None, "verdict": None, "signals": [], "linkDetails": [], "calendar": None}

Tab = Literal["text", "agent", "html", "headers", "raw", "files", "delivery", "events"]


class ThreadPageQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    message: str = ""  # whose tab is open
    tab: Tab = "text"
    how: Literal["reply", "all", "forward"] = "reply"
    pictures: bool = False
    until: int = -1  # show what is before this position in the thread; default: its end
    whole: bool = False


class Behind(Struct, frozen=True):
    """What a tab needs besides the message."""

    deliveries: list[tuple[Delivery, list[Attempt]]]
    events: list[Event]


class ShownSender(Struct, frozen=True):
    """Who wrote a mail, and since when the inbox knows them."""

    address: str
    known: KnownSince
    came_at: int

    @property
    def is_first(self) -> bool:
        return self.known.first_at is not None and self.came_at <= self.known.first_at


class Conversation(Struct, frozen=True):
    thread: Thread
    labels: list[str]
    related: list[Thread]
    messages: list[dict[str, Any]]  # as the interface shows them
    offset: int
    beside: list[ThreadRow]
    behind: Behind
    senders: dict[str, ShownSender]  # by the id of a received mail
    lost: dict[str, list[Delivery]]  # by the id of a mail that did not reach all of its recipients

    @property
    def last_inbound(self) -> dict[str, Any] | None:
        return next((each for each in reversed(self.messages) if each["direction"] == INBOUND), None)


async def show_thread(
    context: PageContext,
    thread_id: str,
    query: ThreadPageQuery,
    form: Any = None,
    error: ApiError | None = None,
) -> Response:
    """`form` is a refused reply, and `error` the reason."""
    found = await context.read(read_conversation, context, thread_id, query)
    chosen = query.message or (found.messages[-1]["id"] if found.messages else "")
    raw = await read_raw(context, chosen) if query.tab in ("headers", "raw") and chosen else ""
    return await context.show(
        "thread.html",
        "mail",
        200 if error is None else error.status,
        title=found.thread.subject or "(no subject)",
        thread=found.thread,
        found=found,
        chosen=chosen,
        query=query,
        rows=found.beside,
        raw=raw.partition("\n\n")[0] if query.tab == "headers" else raw,
        name_of=name_of,
        form=form,
        error=error,
        once=form.once if form else secrets.token_urlsafe(16),
        signs=signs,
        cut=SHOWN_CHARACTERS,
        most=WHOLE_CHARACTERS,
    )


def read_conversation(tx: Tx, context: PageContext, thread_id: str, query: ThreadPageQuery) -> Conversation:
    thread = threads.get(tx, context.call.scope, thread_id)
    found, offset = read_part(tx, thread, query.until)
    shown = [
        MISSING | msgspec.json.decode(raw) for raw in message_json.to_json(tx, found, context.call.links())
    ]
    beside, _, _ = read_rows(tx, context, MailQuery(query.inbox_id), BESIDE)
    chosen = query.message or (found[-1].id if found else "")
    is_here = any(message.id == chosen for message in found)
    return Conversation(
        thread,
        labels.of_threads(tx, [thread.id]).get(thread.id, []),
        read_related(tx, context, thread),
        shown,
        offset,
        beside,
        read_behind(tx, chosen, query.tab if is_here else "text"),
        read_senders(tx, thread, shown),
        {each.id: deliveries.list_lost(tx, each.id) for each in found if each.status == messages.FAILED},
    )


def read_senders(tx: Tx, thread: Thread, shown: list[dict[str, Any]]) -> dict[str, ShownSender]:
    """The sender of each received mail, and what the inbox knows of them."""
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


def read_part(tx: Tx, thread: Thread, until: int) -> tuple[list[ListedMessage], int]:
    """From the end backwards: if a page is full, the oldest are left for the next one."""
    end = thread.message_count if until < 0 else min(until, thread.message_count)
    skipped = thread.message_count - end
    found = messages.list_of_thread(tx, thread.id, MESSAGES, skipped, "desc").messages
    return found[::-1], max(0, end - len(found))


def read_related(tx: Tx, context: PageContext, thread: Thread) -> list[Thread]:
    named = related.list_of_thread(tx, thread.id)
    return [threads.get(tx, context.call.scope, each) for each in named[:RELATED]]


def read_behind(tx: Tx, message_id: str, tab: Tab) -> Behind:
    if tab == "delivery":
        sent = deliveries.list_of_message(tx, message_id)
        return Behind([(each, webhook_log.list_attempts(tx, each.id)) for each in sent], [])
    return Behind([], events.list_of_message(tx, message_id, EVENTS) if tab == "events" else [])


async def read_raw(context: PageContext, message_id: str) -> str:
    await context.read(messages.get, context.call.scope, message_id)
    raw = await raw_mails.read(context.call.resources, message_id, with_trace=True)
    return raw[:RAW_CHARACTERS].decode("utf-8", "replace").replace("\r\n", "\n")


async def show_message(context: PageContext, message_id: str) -> Response:
    """The thread of a message, with the tab of that message. A blocked message has no thread."""
    shown = await context.ask(get_message, message_id=message_id)
    if shown["blocked"]:
        return await context.show("blocked.html", "mail", title=shown["subject"], message=shown)
    return await show_thread(context, shown["threadId"], ThreadPageQuery(message=shown["id"]))
