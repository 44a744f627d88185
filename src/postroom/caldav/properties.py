"""Properties of calendars and their files (RFC 4918, 3744, 4791, 6638, 6578), by their names."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial

import msgspec
from msgspec import Struct

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.caldav import paths
from postroom.caldav.xml_writing import Responded, c, cs, d, element, href, text
from postroom.mailbox.calendars.calendar_files import FileVersion
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom_mail.writing.calendar_lines import to_bytes
from postroom_mail.writing.zone_rules import zone_lines

FILE_TYPE = "text/calendar; charset=utf-8; component=VEVENT"
REPORTS = (c("calendar-query"), c("calendar-multiget"), c("free-busy-query"), d("sync-collection"))
SYNC = "data:,"  # a token must be a URI (RFC 6578, section 4)
ZONE_YEAR = 2020
Values = dict[str, Callable[[], str]]


class PropertyReader(Struct, frozen=True):
    """Who reads properties, and whose they are."""

    caller: Caller
    inbox: Inbox

    @property
    def home(self) -> str:
        return paths.home_of(self.inbox)


def sync_token(calendar: InboxCalendar, version: int | None = None) -> str:
    return f"{SYNC}{calendar.id}-{calendar.version if version is None else version}"


def read_token(calendar: InboxCalendar, token: str) -> int | None:
    number = token.removeprefix(f"{SYNC}{calendar.id}-")
    return int(number) if number.isdecimal() and number.isascii() and len(number) < 16 else None


def etag(version: int) -> str:
    return f'"{version}"'


def shared(reader: PropertyReader) -> Values:
    """Return the properties that every resource has."""
    own = element_of_principal(reader)
    return {
        d("current-user-principal"): lambda: own,
        d("owner"): lambda: own,
        d("principal-collection-set"): lambda: href(paths.ROOT),
        d("supported-report-set"): lambda: "".join(map(_report, REPORTS)),
        d("current-user-privilege-set"): lambda: privileges(reader.caller),
    }


def element_of_principal(reader: PropertyReader) -> str:
    return href(reader.home)


def _report(name: str) -> str:
    return element(d("supported-report"), element(d("report"), element(name)))


def privileges(caller: Caller, is_read_only: bool = False) -> str:
    names = ["read", "read-current-user-privilege-set"]
    if not is_read_only and caller.permissions & {"send", "draft"}:
        names += ["write", "write-content", "write-properties", "bind", "unbind"]
    own = "".join(element(d("privilege"), element(d(name))) for name in names)
    return own + element(d("privilege"), element(c("read-free-busy")))


def of_root(reader: PropertyReader) -> Values:
    return shared(reader) | {
        d("resourcetype"): lambda: element(d("collection")),
        d("displayname"): lambda: "Postroom",
    }


def of_home(reader: PropertyReader) -> Values:
    """Return those of the principal and of the home of its calendars, which are one resource."""
    inbox, home = reader.inbox, reader.home
    addresses = "".join(element(d("href"), text(f"mailto:{each}")) for each in inbox.own_addresses)
    return shared(reader) | {
        d("resourcetype"): lambda: element(d("collection")) + element(d("principal")),
        d("displayname"): lambda: text(inbox.display_name or inbox.address),
        d("principal-URL"): lambda: href(home),
        c("calendar-home-set"): lambda: href(home),
        c("calendar-user-address-set"): lambda: addresses,
        c("calendar-user-type"): lambda: "INDIVIDUAL",
        c("schedule-inbox-URL"): lambda: href(f"{home}{paths.RECEIVED}/"),
        c("schedule-outbox-URL"): lambda: href(f"{home}{paths.SENT}/"),
        cs("email-address-set"): lambda: "".join(
            element(cs("email-address"), text(each)) for each in inbox.own_addresses
        ),
    }


def of_schedule(reader: PropertyReader, name: str, default: InboxCalendar) -> Values:
    kind = c("schedule-inbox" if name == paths.RECEIVED else "schedule-outbox")
    found = shared(reader) | {
        d("resourcetype"): lambda: element(d("collection")) + element(kind),
        d("displayname"): lambda: name.title(),
        cs("getctag"): lambda: "0",
    }
    if name == paths.RECEIVED:
        found[c("schedule-default-calendar-URL")] = lambda: href(paths.path_of(default))
    return found


def of_calendar(reader: PropertyReader, calendar: InboxCalendar) -> Values:
    component = element(c("comp"), name="VEVENT")
    data = element(c("calendar-data"), **{"content-type": "text/calendar", "version": "2.0"})
    collations = (element(c("supported-collation"), each) for each in ("i;ascii-casemap", "i;octet"))
    supported = "".join(collations)
    kept = msgspec.json.decode(calendar.properties, type=dict[str, str])
    live = shared(reader) | {
        d("current-user-privilege-set"): lambda: privileges(reader.caller, bool(calendar.source_url)),
        d("resourcetype"): lambda: element(d("collection")) + element(c("calendar")),
        d("displayname"): lambda: text(calendar.name),
        d("sync-token"): lambda: sync_token(calendar),
        cs("getctag"): lambda: sync_token(calendar),
        d("getcontenttype"): lambda: FILE_TYPE,
        d("creationdate"): lambda: _iso(calendar.created_at),
        c("supported-calendar-component-set"): lambda: component,
        c("supported-calendar-data"): lambda: data,
        c("supported-collation-set"): lambda: supported,
        c("max-resource-size"): lambda: str(limits.CALENDAR_OBJECT_BYTES),
        c("max-attendees-per-instance"): lambda: str(limits.ATTENDEES),
        c("min-date-time"): lambda: "19000101T000000Z",
        c("max-date-time"): lambda: "22001231T235959Z",
        c("calendar-timezone"): lambda: zone_text(calendar.time_zone),
        c("schedule-calendar-transp"): lambda: element(c("opaque")),
    }
    given: Values = {name: partial(text, value) for name, value in kept.items()}
    return given | live


def zone_text(name: str) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Postroom//Postroom//EN"]
    return text(to_bytes([*lines, *zone_lines(name, ZONE_YEAR), "END:VCALENDAR"]).decode().replace("\r", ""))


def of_file(reader: PropertyReader, file: FileVersion, content: Callable[[], str] | None = None) -> Values:
    found = {
        d("resourcetype"): lambda: "",
        d("getetag"): lambda: text(etag(file.version)),
        c("schedule-tag"): lambda: text(etag(file.version)),
        d("getcontenttype"): lambda: FILE_TYPE,
        d("getlastmodified"): lambda: http_date(file.updated_at),
    }
    if content is not None:
        found[c("calendar-data")] = content
    return shared(reader) | found


def _iso(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def http_date(moment: int) -> str:
    return format_datetime(datetime.fromtimestamp(moment / 1000, UTC), usegmt=True)


ALL = frozenset(
    map(d, ("resourcetype", "displayname", "getetag", "getcontenttype", "getlastmodified", "creationdate"))
)


def answer(path: str, values: Values, wanted: Sequence[str] | None, names_only: bool = False) -> Responded:
    """Answer for a resource. `wanted` None: the usual properties (`allprop`)."""
    if names_only:
        return Responded(path, [(name, "") for name in values])
    if wanted is None:
        return Responded(path, [(name, make()) for name, make in values.items() if name in ALL])
    found = [(name, values[name]()) for name in wanted if name in values]
    return Responded(path, found, [name for name in wanted if name not in values])
