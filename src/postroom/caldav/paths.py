"""What a path names: the root, a person's calendars, a calendar or a file in it."""

from urllib.parse import unquote, urlsplit

from msgspec import Struct

from postroom.errors import NotFound, no_such
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import calendar_files
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.resources import Tx

ROOT = "/caldav/"
LONGEST_NAME = 250
RECEIVED, SENT = "inbox", "outbox"  # of RFC 6638, section 2


class DavPath(Struct, frozen=True):
    """`name` is of the calendar; `file_name` of a file, "" for the collection itself."""

    name: str = ""
    file_name: str = ""
    is_root: bool = False

    @property
    def is_home(self) -> bool:
        return not self.is_root and not self.name

    @property
    def is_schedule(self) -> bool:
        return self.name in (RECEIVED, SENT)


def home_of(inbox: Inbox) -> str:
    return f"{ROOT}{inbox.id}/"


def path_of(calendar: InboxCalendar) -> str:
    return f"{ROOT}{calendar.inbox_id}/{calendar.path_name or calendar.id}/"


def read(path: str, inbox: Inbox) -> DavPath:
    """Raises NotFound for what is of another inbox, and for names that cannot be."""
    if path in (ROOT, ROOT[:-1]):
        return DavPath(is_root=True)
    parts = path.removeprefix(ROOT).split("/")
    if parts[-1] == "" and len(parts) > 1:
        parts.pop()
    fits = path.startswith(ROOT) and parts[0] == inbox.id and len(parts) <= 3
    if not fits or not all(is_name(each) for each in parts):
        raise NotFound("No such calendar or file. Start at /caldav/.")
    name, file_name = (*parts[1:], "", "")[:2]
    return DavPath(name, file_name)


def is_name(name: str) -> bool:
    """Return whether a name is valid. Bytes that are no UTF-8 come as U+FFFD: two names would be one."""
    is_plain = name.isprintable() and "\ufffd" not in name
    return 0 < len(name) <= LONGEST_NAME and is_plain and name not in (".", "..")


def read_href(written: str, inbox: Inbox) -> DavPath | None:
    try:
        return read(unquote(urlsplit(written.strip()).path), inbox)
    except (NotFound, ValueError):
        return None


def find_calendar(tx: Tx, inbox: Inbox, place: DavPath) -> InboxCalendar:
    found = inbox_calendars.find_of_path(tx, inbox.id, place.name)
    if found is None:
        raise no_such("calendar")
    return found


def find_file(tx: Tx, inbox: Inbox, place: DavPath) -> tuple[InboxCalendar, CalendarEvent | None]:
    calendar = find_calendar(tx, inbox, place)
    return calendar, calendar_files.find(tx, calendar.id, place.file_name)
