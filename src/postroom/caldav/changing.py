"""PUT, DELETE, MKCALENDAR and PROPPATCH: each reads what a client sends, and runs verbs of the operations."""

from collections.abc import Iterator

from postroom import limits
from postroom.accounts.permissions import MANAGING, WRITING, require_any
from postroom.caldav import paths, properties
from postroom.caldav.paths import DavPath
from postroom.caldav.xml_reading import XmlElement, read_xml
from postroom.caldav.xml_writing import Responded, a, c, cs, d, multistatus
from postroom.errors import ApiError, BadRequest, Forbidden
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars import calendar_paths, calendars, file_changes
from postroom.operations.calendars.calendar_paths import Described
from postroom.operations.calendars.dav_requests import DavAnswer, DavRequest
from postroom.operations.calendars.file_changes import ClientFile, FileRefused
from postroom.operations.calendars.scheduling import Asker, EventTarget
from postroom.processes import pools
from postroom.resources import Resources
from postroom_mail.reading.content_lines import content_lines
from postroom_mail.reading.time_zones import known_zone
from postroom_mail.writing.calendar_object import CalendarObject, InvalidObject, read_object

PROTECTED = (d(""), c(""), cs("get"))
KEPT_OF_CALDAV = (c("calendar-description"), a("calendar-color"), a("calendar-order"))


async def put(resources: Resources, request: DavRequest, place: DavPath) -> DavAnswer:
    require_any(request.caller.permissions, WRITING)
    if not place.file_name:
        raise FileRefused("calendar-collection-location-ok", "Store a file in a calendar.", status=405)
    calendar, event = await resources.db.read(paths.find_file, request.inbox, place)
    require_writable(calendar)
    require_version(request, event)
    if len(request.body) > limits.CALENDAR_OBJECT_BYTES:
        reason = f"An event has at most {limits.CALENDAR_OBJECT_BYTES} bytes."
        raise FileRefused("max-resource-size", reason)
    found = await pools.READING.run(read_or_refuse, request.body)
    asker = Asker(resources, request.caller, request.traceparent)
    target = EventTarget(calendar, request.inbox, event)
    await file_changes.put_file(asker, target, ClientFile(place.file_name, found, request.body))
    _, stored = await resources.db.read(paths.find_file, request.inbox, place)
    return DavAnswer(201 if event is None else 204, headers=schedule_tag(stored))


def schedule_tag(stored: CalendarEvent | None) -> dict[str, str]:
    """Return the Schedule-Tag (RFC 6638, 3.2.10).

    There is no ETag: an event is not stored as it came (RFC 4791, 5.3.4).
    """
    is_ordered = stored is not None and bool(stored.series.part.attendees)
    return {"Schedule-Tag": properties.etag(stored.version)} if stored is not None and is_ordered else {}


def read_or_refuse(content: bytes) -> CalendarObject:
    try:
        return read_object(content)
    except InvalidObject as error:
        raise FileRefused(error.word, str(error)) from None


def require_writable(calendar: InboxCalendar) -> None:
    if calendar.source_url:
        raise Forbidden("This calendar follows a feed: its events change there.")


def require_version(request: DavRequest, event: CalendarEvent | None) -> None:
    """Check the preconditions (RFC 9110, 13.1), for invitations also of RFC 6638, 3.2.10."""
    held = "" if event is None else properties.etag(event.version)
    wanted = [request.headers.get(name) for name in ("if-match", "if-schedule-tag-match")]
    for given in filter(None, wanted):
        if not held or (given.strip() != "*" and held not in tags(given)):
            raise FileRefused("if-match", "The event was changed meanwhile. Read it again.", status=412)
    unwanted = request.headers.get("if-none-match")
    if unwanted and held and (unwanted.strip() == "*" or held in tags(unwanted)):
        raise FileRefused("if-none-match", "There is a file of this name already.", status=412)


def tags(given: str) -> list[str]:
    return [each.strip().removeprefix("W/") for each in given.split(",", 100)]


async def delete(resources: Resources, request: DavRequest, place: DavPath) -> DavAnswer:
    caller = request.caller
    if not place.file_name:
        require_any(caller.permissions, MANAGING)
        calendar = await resources.db.read(paths.find_calendar, request.inbox, place)
        await resources.db.write(calendars.delete_calendar, caller, calendar.id, resources.now())
        return DavAnswer(204)
    require_any(caller.permissions, WRITING)
    calendar, event = await resources.db.read(paths.find_file, request.inbox, place)
    require_writable(calendar)
    require_version(request, event)
    if event is None:
        return DavAnswer(404)
    target = EventTarget(calendar, request.inbox, event)
    is_silent = request.headers.get("schedule-reply", "").strip().upper() == "F"
    asker = Asker(resources, caller, request.traceparent)
    await file_changes.remove_file(asker, target, is_silent)
    return DavAnswer(204)


async def make_calendar(resources: Resources, request: DavRequest, place: DavPath) -> DavAnswer:
    """Make a calendar, by MKCALENDAR or by an extended MKCOL (RFC 5689)."""
    require_any(request.caller.permissions, WRITING)
    if not place.name or place.file_name or place.is_schedule:
        reason = "Make a calendar below your own path."
        raise FileRefused("calendar-collection-location-ok", reason)
    root = await pools.READING.run(read_xml, request.body)
    given = describe([] if root is None else [each for each in root.children if each.name == d("set")])
    made = (request.caller, request.inbox.id, place.name, given, resources.now())
    await resources.db.write(calendar_paths.make, *made)
    return DavAnswer(201)


def describe(changes: list[XmlElement]) -> Described:
    """Raises FileRefused for an object that is no event."""
    name = zone = None
    kept: dict[str, str | None] = {}
    for change in changes:
        for each in properties_of(change):
            value = None if change.name == d("remove") else each.text.strip()
            if each.name == d("displayname") and value:
                name = value
            elif each.name == c("calendar-timezone") and value:
                zone = read_zone(value)
            elif each.name == c("supported-calendar-component-set"):
                require_events(each)
            elif is_kept(each):
                kept[each.name] = value
    return Described(name, zone, kept)


def properties_of(change: XmlElement) -> Iterator[XmlElement]:
    for prop in change.all(d("prop")):
        yield from prop.children


def is_kept(given: XmlElement) -> bool:
    is_live = given.name.startswith(PROTECTED) and given.name not in KEPT_OF_CALDAV
    return not is_live and not given.children


def require_events(given: XmlElement) -> None:
    names = [each.attributes.get("name", "").upper() for each in given.all(c("comp"))]
    if names and "VEVENT" not in names:
        reason = "Calendars here hold events (VEVENT) only."
        raise FileRefused("supported-calendar-component", reason)


def read_zone(value: str) -> str | None:
    """Return the zone that a VTIMEZONE names, if it is known by that."""
    named = (line.value.strip() for line in content_lines(value.encode()) if line.name == "TZID")
    found = known_zone(next(named, ""))
    return None if found is None else found.key


async def change_properties(
    resources: Resources, request: DavRequest, place: DavPath, path: str
) -> DavAnswer:
    """Change all properties, or none (RFC 4918, 9.2)."""
    require_any(request.caller.permissions, WRITING)
    root = await pools.READING.run(read_xml, request.body)
    if root is None or root.name != d("propertyupdate"):
        raise BadRequest("A PROPPATCH needs a propertyupdate.")
    asked = [each for change in root.children for each in properties_of(change)]
    if not place.name or place.is_schedule or place.file_name:
        return refuse(path, [each.name for each in asked])
    calendar = await resources.db.read(paths.find_calendar, request.inbox, place)
    settable = (d("displayname"), c("calendar-timezone"))
    wrong = [each.name for each in asked if each.name not in settable and not is_kept(each)]
    if wrong:
        return refuse(path, wrong)
    changed = (request.caller, calendar.id, describe(root.children), resources.now())
    try:
        await resources.db.write(calendar_paths.describe, *changed)
    except ApiError as error:
        if error.status != 400:
            raise
        return refuse(path, [each.name for each in asked])
    return DavAnswer(207, multistatus([Responded(path, [(each.name, "") for each in asked])]))


def refuse(path: str, names: list[str]) -> DavAnswer:
    return DavAnswer(207, multistatus([Responded(path, refused=names)]))
