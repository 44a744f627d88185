"""Mail of all inboxes or of one: a row per thread, with its people and its newest text."""

from typing import Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.people import users
from postroom.errors import BadRequest
from postroom.fields import Offset
from postroom.mailbox import holds, inboxes, labels, messages, thread_digests, threads
from postroom.mailbox.documents import Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.thread_digests import ThreadDigest
from postroom.mailbox.thread_work import DONE, OPEN, SNOOZED, Work
from postroom.mailbox.threads import Thread
from postroom.operations import junk
from postroom.operations.threads import Label, ThreadChange, change_thread, get_thread
from postroom.queue import delayed_actions, deliveries
from postroom.web.api.messages import delete_thread
from postroom.web.call import Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.forms import own_page, own_path
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.found import CATEGORIES, CHIPS, saved_searches
from postroom.web.scope_filters import required

ROWS, JUNK_OF_THREAD = 50, 100
PLACE = ("inboxId", "podId", "label", "offset", "q", "cursor", "state", "assignee")
STATES = {"open": OPEN, "snoozed": SNOOZED, "done": DONE}
ME = "me"


class MailQuery(Struct, rename="camel", frozen=True):
    """Which list is shown; next to a thread it may be a page of search results too."""

    inbox_id: str = ""
    pod_id: str = ""
    unread: bool = False
    label: Label | None = None
    offset: Offset = 0
    q: str = ""
    cursor: str = ""
    state: Literal["", "open", "snoozed", "done", "awaiting", "overdue", "all"] = ""
    assignee: str = ""

    @property
    def work_state(self) -> int | None:
        """Which state the list shows: what is open, unless it is a list of a label."""
        return STATES.get(self.state or ("all" if self.label else "open"))

    @property
    def awaiting(self) -> str | None:
        return self.state if self.state in ("awaiting", "overdue") else None

    @property
    def place(self) -> dict[str, object]:
        """The query of an address that leads to this list, or to a thread next to it."""
        given = (
            *(self.inbox_id, self.pod_id, self.label, self.offset, self.q, self.cursor),
            *(self.state, self.assignee),
        )
        return {**dict(zip(PLACE, given, strict=True)), "unread": "true" if self.unread else ""}

    @property
    def list_path(self) -> str:
        return link("/app/search" if self.q else "/app/mail", **self.place)


class Marks(Struct, frozen=True):
    """Selected threads and what to do with them, or one whose dot was clicked."""

    ids: list[str] = []
    action: Literal["", "read", "unread", "label", "done", "open", "delete", "junk"] = ""
    label: str = ""
    toggle: str = ""
    back: str = "/app/mail"


class Glance(Struct, rename="camel", frozen=True):
    """What a row or a line shows of a message."""

    direction: str
    from_addr: str
    header_to: str
    reply_text: str = ""
    codes: list[str] = []
    automated: bool = False
    auth: Verdicts | None = None
    verdict: str | None = "clean"  # None: not judged yet


class Newest(Struct, frozen=True):
    """Marks of the newest message of a thread."""

    glance: Glance
    status: str
    has_bounced: bool
    hold: str
    labels: tuple[str, ...]  # of the thread

    @property
    def failed_authentication(self) -> bool:
        return self.glance.auth is not None and self.glance.auth.dmarc == "fail"


class ThreadRow(Struct, frozen=True):
    thread: Thread
    address: str  # of its inbox
    made: ThreadDigest
    newest: Newest | None  # None next to a thread, where rows have no marks
    assignee: str = ""

    @property
    def inbox_name(self) -> str:
        return self.address.partition("@")[0]

    @property
    def is_sent_alone(self) -> bool:
        """Return whether it is one message, which the inbox wrote."""
        return self.made.digest.has_own and self.thread.message_count == 1

    @property
    def who(self) -> str:
        """Everyone in the thread, and the inbox if it wrote in it."""
        people = self.made.digest.people
        has_inbox = self.made.digest.has_own and not self.is_sent_alone
        if len(people) == 1 and not has_inbox:
            return people[0][0] or people[0][1]
        own = [self.inbox_name] if has_inbox or not people else []
        return ", ".join([*(short_name(*each) for each in people), *own])

    @property
    def addresses(self) -> str:
        return ", ".join(address or name for name, address in self.made.digest.people)


def short_name(name: str, address: str) -> str:
    """Return the first word of a name, or the part of an address before the `@`."""
    return name.split()[0] if name.split() else address.partition("@")[0]


def place_before(context: PageContext) -> dict[str, str]:
    """Return the list next to the thread whose page sent this form, as the query of an address."""
    sender = urlsplit(own_page(context.call.request.headers.get("referer", "")))
    given = dict(parse_qsl(sender.query))
    return {name: given[name] for name in (*PLACE, "unread") if name in given}


def list_before(context: PageContext) -> str:
    """Return the address of the list from which the thread was opened whose page sent this form."""
    place = place_before(context)
    return link("/app/search" if place.get("q") else "/app/mail", **place)


async def show_mail(context: PageContext, query: MailQuery) -> Response:
    rows, total, inbox = await context.read(read_rows, context, query, ROWS)
    return await context.show(
        "mail.html",
        "mail",
        title=inbox.address if inbox else "Mail",
        rows=rows,
        total=total,
        inbox=inbox,
        query=query,
        limit=ROWS,
        chips=CHIPS,
        categories=CATEGORIES,
        saved=await saved_searches(context),
        q="",
    )


def read_rows(
    tx: Tx, context: PageContext, query: MailQuery, limit: int, with_marks: bool = True
) -> tuple[list[ThreadRow], int, Inbox | None]:
    scope = required(tx, context.call.scope, query.inbox_id or None, query.pod_id or None)
    inbox = inboxes.get(tx, scope, query.inbox_id) if query.inbox_id else None
    found, total = threads.list_within(
        tx,
        scope,
        False if query.unread else None,
        labels.fold(query.label) if query.label else None,
        limit,
        query.offset,
        Work(query.work_state, assignee_of(context, query), query.awaiting),
    )
    if leaving := delayed_actions.targets_of(tx, context.session.id):
        total -= sum(thread.id in leaving for thread in found)
        found = [thread for thread in found if thread.id not in leaving]
    return to_rows(tx, found, with_marks), total, inbox


def rows_of_threads(tx: Tx, context: PageContext, thread_ids: list[str]) -> list[ThreadRow]:
    """Return a row without marks for each thread, in the given order."""
    found = threads.list_by_ids(tx, context.call.scope, list(dict.fromkeys(thread_ids)))
    return to_rows(tx, found, with_marks=False)


def to_rows(tx: Tx, found: list[Thread], with_marks: bool) -> list[ThreadRow]:
    made = thread_digests.of_threads(tx, found)
    addresses = inboxes.addresses_of(tx, sorted({thread.inbox_id for thread in found}))
    newest = read_newest(tx, found) if with_marks else {}
    people = users.names_of(tx, sorted({thread.assignee_id for thread in found if thread.assignee_id}))
    return [
        ThreadRow(
            thread,
            addresses.get(thread.inbox_id, ""),
            made[thread.id],
            newest.get(thread.id),
            people.get(thread.assignee_id or "", ""),
        )
        for thread in found
    ]


def assignee_of(context: PageContext, query: MailQuery) -> str | None:
    """Return whose threads the list shows; None: everybody's. `me` is nobody without a user."""
    if query.assignee == ME:
        return context.session.user_id or "unknown"
    return query.assignee or None


def read_newest(tx: Tx, found: list[Thread]) -> dict[str, Newest]:
    last = messages.list_last(tx, [thread.id for thread in found])
    held = holds.list_of_messages(tx, [message.id for message in last.values() if message.has_hold])
    failed = [message.id for message in last.values() if message.status == messages.FAILED]
    bounced = deliveries.bounced_of(tx, failed)
    named = labels.of_threads(tx, [thread.id for thread in found])
    return {
        thread_id: Newest(
            glance=msgspec.json.decode(message.document, type=Glance),
            status=message.status,
            has_bounced=message.id in bounced,
            hold=held[message.id].state if message.id in held else "",
            labels=tuple(named.get(thread_id, ())),
        )
        for thread_id, message in last.items()
    }


async def mark(context: PageContext, body: Marks) -> Response:
    """Mark the messages. Unread means not handled by an agent, so viewing mail never changes it."""
    chosen = [body.toggle] if body.toggle else body.ids[:ROWS]
    if body.action == "label" and not body.toggle:
        return await label(context, chosen, body)
    if body.action == "delete" and not body.toggle:
        return await delete(context, chosen, body)
    if body.action == "junk" and not body.toggle:
        return await mark_junk(context, chosen, body)
    if body.action in ("done", "open") and not body.toggle:
        return await finish(context, chosen, body)

    for thread_id in chosen:
        is_read = body.action == "read"
        if body.toggle:
            is_read = not (await context.run(get_thread, thread_id=thread_id)).is_read
        await context.run(change_thread, thread_id=thread_id, body=ThreadChange(is_read=is_read))
    return go(own_path(body.back))


async def label(context: PageContext, chosen: list[str], body: Marks) -> Response:
    if not body.label.strip():
        raise BadRequest("Enter a label first.", field="label")
    for thread_id in chosen:
        await context.run(change_thread, thread_id=thread_id, body=ThreadChange(add_labels=[body.label]))
    return go(own_path(body.back), f"{len(chosen)} have the label {body.label} now.")


async def mark_junk(context: PageContext, chosen: list[str], body: Marks) -> Response:
    """Move what was received in the threads; what the inbox wrote there stays."""
    received = await context.read(list_received, context, chosen)
    for message_id in received:
        await context.run(junk.mark_junk, message_id=message_id)
    return go(own_path(body.back), f"{len(received)} moved to Junk. The filter learns from them.")


def list_received(tx: Tx, context: PageContext, thread_ids: list[str]) -> list[str]:
    found = threads.list_by_ids(tx, context.call.scope, thread_ids)
    listed = [messages.list_of_thread(tx, each.id, JUNK_OF_THREAD, 0) for each in found]
    return [each.id for page in listed for each in page.messages if each.status == messages.RECEIVED]


async def finish(context: PageContext, chosen: list[str], body: Marks) -> Response:
    is_done = body.action == "done"
    change = ThreadChange(is_done=True) if is_done else ThreadChange(is_done=False, snoozed_until=None)
    for thread_id in chosen:
        await context.run(change_thread, thread_id=thread_id, body=change)
    said = f"{len(chosen)} done. An answer opens a thread again." if is_done else f"{len(chosen)} open again."
    undo_path = f"/app/mail/{chosen[0]}/reopen" if is_done and len(chosen) == 1 else ""
    return go(own_path(body.back), said, undo=undo_path)


async def delete(context: PageContext, chosen: list[str], body: Marks) -> Response:
    trial = await undo.try_all(context, delete_thread, [{"thread_id": thread_id} for thread_id in chosen])
    said = " ".join([f"{len(trial.asked)} deleted in {undo.SECONDS} seconds.", *trial.refused])
    return await undo.keep(context, delete_thread, trial.asked, own_path(body.back), said)
