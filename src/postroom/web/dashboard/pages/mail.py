"""Mail of all inboxes or of one: a row for each thread, with the newest words of it."""

from dataclasses import dataclass

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.mail.address import parse_list
from postroom.mailbox import holds, inboxes, messages, threads
from postroom.mailbox.documents import Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND, Message
from postroom.mailbox.threads import Thread
from postroom.web.call import Tx
from postroom.web.dashboard.desk import INBOXES_SHOWN, Desk, go
from postroom.web.dashboard.forms import own_path

ROWS = 50
WORDS = 160


class MailQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    unread: bool = False
    offset: int = 0


class Marks(Struct, frozen=True):
    """Threads that were ticked and what to do with them, or one whose dot was pressed."""

    ids: list[str] = []
    action: str = ""
    toggle: str = ""
    back: str = "/app/mail"


class Glance(Struct, rename="camel", frozen=True):
    """What a row shows of a message."""

    direction: str
    from_addr: str
    header_to: str
    subject: str
    reply_text: str
    codes: list[str]
    automated: bool
    new_participant: bool
    auth: Verdicts | None
    verdict: str = "clean"


@dataclass(frozen=True, slots=True)
class Row:
    thread: Thread
    inbox: Inbox | None
    glance: Glance
    status: str
    hold: str
    has_files: bool

    @property
    def is_inbound(self) -> bool:
        return self.glance.direction == INBOUND

    @property
    def who(self) -> str:
        return name_of(self.glance.from_addr if self.is_inbound else self.glance.header_to)

    @property
    def words(self) -> str:
        return " ".join(self.glance.reply_text[: WORDS * 3].split())[:WORDS]

    @property
    def failed_authentication(self) -> bool:
        return self.glance.auth is not None and self.glance.auth.dmarc == "fail"


def name_of(field: str) -> str:
    """Names, or addresses where there are none."""
    found = parse_list(field[:2000])
    return ", ".join(each.name or each.address for each in found[:3]) or field[:100] or "nobody"


async def show_mail(desk: Desk, query: MailQuery) -> Response:
    rows, total, inbox = await desk.call.resources.db.read(read_rows, desk, query, ROWS)
    return await desk.show(
        "mail.html",
        "mail",
        title=inbox.address if inbox else "Mail",
        rows=rows,
        total=total,
        inbox=inbox,
        query=query,
        limit=ROWS,
        smtp=str(desk.call.resources.config.smtp),
    )


def read_rows(tx: Tx, desk: Desk, query: MailQuery, limit: int) -> tuple[list[Row], int, Inbox | None]:
    flag = False if query.unread else None
    if query.inbox_id:
        inbox = inboxes.get(tx, desk.call.reach, query.inbox_id)
        found, total = threads.list_of_inbox(tx, inbox.id, flag, limit, max(query.offset, 0))
        return to_rows(tx, found, {inbox.id: inbox}), total, inbox
    shown, _ = inboxes.list_within(tx, desk.call.reach, INBOXES_SHOWN, 0)
    found, total = newest_of_all(tx, shown, flag, limit, max(query.offset, 0))
    return to_rows(tx, found, {inbox.id: inbox for inbox in shown}), total, None


def newest_of_all(
    tx: Tx, shown: list[Inbox], flag: bool | None, limit: int, offset: int
) -> tuple[list[Thread], int]:
    found: list[Thread] = []
    total = 0
    for inbox in shown:
        some, count = threads.list_of_inbox(tx, inbox.id, flag, limit + offset, 0)
        found += some
        total += count
    found.sort(key=lambda thread: (thread.last_message_at, thread.id), reverse=True)
    return found[offset : offset + limit], total


def to_rows(tx: Tx, found: list[Thread], by_id: dict[str, Inbox]) -> list[Row]:
    last = messages.list_last(tx, [thread.id for thread in found])
    held = holds.list_of_messages(tx, [message.id for message in last.values() if message.has_hold])
    return [
        to_row(thread, last[thread.id], by_id.get(thread.inbox_id), held)
        for thread in found
        if thread.id in last
    ]


def to_row(thread: Thread, message: Message, inbox: Inbox | None, held: dict[str, holds.Hold]) -> Row:
    glance = msgspec.json.decode(message.document, type=Glance)
    hold = held[message.id].state if message.id in held else ""
    return Row(thread, inbox, glance, message.status, hold, message.has_attachments)


async def mark(desk: Desk, body: Marks) -> Response:
    """Unread is what an agent has not dealt with, so looking at mail never changes it."""
    chosen = [body.toggle] if body.toggle else body.ids[:ROWS]

    def work(tx: Tx) -> None:
        for thread_id in chosen:
            thread = threads.get(tx, desk.call.reach, thread_id)
            threads.mark_read(tx, thread, not thread.is_read if body.toggle else body.action == "read")

    await desk.call.resources.db.write(work)
    return go(own_path(body.back))
