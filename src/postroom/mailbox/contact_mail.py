"""Goes through all email of a scope, inbox by inbox, and finds that of one address: From, To, Cc and Bcc."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.mailbox import documents, holds, messages
from postroom.mailbox.messages import Message
from postroom.storage import pages
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize, parse_list

# The email of an inbox, each part by its index: listed, blocked or junk, and in Trash.
MAIL = (messages.LISTED, "direction = 'blocked' and is_trashed = 0", "is_trashed = 1")
DRAFTS, CALENDAR, REST = len(MAIL), len(MAIL) + 1, len(MAIL) + 2
PARTS = REST + 1
INBOXES_AT_ONCE = 50
OF_INBOX = {DRAFTS: "drafts", CALENDAR: "calendar_events"}


class MailCursor(Struct, frozen=True, omit_defaults=True):
    """How far a walk is: behind a row of a part of an inbox. `has_kept`: an erasure left something in it."""

    inbox_id: str = ""
    part: int = 0
    at: int = -1
    id: str = ""
    has_kept: bool = False


class _People(Struct, rename="camel", frozen=True):
    """The fields of a document that name people."""

    from_addr: str
    header_to: str
    cc: list[str]
    bcc: list[str] | None = None


_people = msgspec.json.Decoder(_People)


def list_inboxes(tx: Tx, scope: Scope, after: str) -> list[str]:
    owner, owner_id = scope.owner_of_inboxes
    rows = tx.all(
        f"select id from inboxes where {owner} = :owner_id and id > :after order by id limit :limit",
        owner_id=owner_id,
        after=after,
        limit=INBOXES_AT_ONCE,
    )
    return [row["id"] for row in rows]


def next_place(tx: Tx, scope: Scope, place: MailCursor) -> MailCursor | None:
    """Return the next part, or the first one of the next inbox; None at the end."""
    if place.inbox_id and place.part + 1 < PARTS:
        return MailCursor(place.inbox_id, place.part + 1, has_kept=place.has_kept)
    following = list_inboxes(tx, scope, place.inbox_id)
    return MailCursor(following[0]) if following else None


def list_page(tx: Tx, place: MailCursor, until: int, rows: int) -> tuple[list[Message], MailCursor | None]:
    """List the messages after a cursor in its part, up to a moment. The next cursor is None at the end."""
    sized = tx.all(
        f"select id, created_at, {documents.SIZE} as {pages.SIZE} from messages where inbox_id = :inbox_id"
        f" and {MAIL[place.part]} and (created_at, id) > (:at, :id) and created_at <= :until"
        " order by created_at, id limit :rows",
        inbox_id=place.inbox_id,
        at=place.at,
        id=place.id,
        until=until,
        rows=rows,
    )
    fitting = sized[: pages.fitting([row[pages.SIZE] for row in sized])]
    found = messages.list_by_ids(tx, [row["id"] for row in fitting])
    if len(fitting) < rows and len(fitting) == len(sized):
        return found, None
    return found, replace(place, at=fitting[-1]["created_at"], id=fitting[-1]["id"])


def of_address(tx: Tx, found: Sequence[Message], address: str) -> list[Message]:
    """Return those with the address in From, To, Cc or Bcc."""
    held = holds.list_of_messages(tx, [each.id for each in found if each.has_hold])
    return [
        each
        for each in found
        if any(
            normalize(person.address) == address
            for field in fields_of(each, held[each.id].bcc if each.id in held else ())
            for person in parse_list(field)
        )
    ]


def fields_of(message: Message, held_bcc: Sequence[str]) -> Iterator[str]:
    people = _people.decode(message.stored[0])
    yield from (people.from_addr, people.header_to, *people.cc, *(people.bcc or ()), *held_bcc)
