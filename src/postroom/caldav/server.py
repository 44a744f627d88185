"""Answers CalDAV requests: finds what the path names, and runs the method there."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from postroom.accounts.permissions import READING, require_any
from postroom.caldav import changing, free_busy, paths, properties, reports
from postroom.caldav.filters import read_query, read_range
from postroom.caldav.paths import DavPath
from postroom.caldav.properties import PropertyReader, Values
from postroom.caldav.reports import LONG_SECONDS
from postroom.caldav.xml_reading import XmlElement, read_xml
from postroom.caldav.xml_writing import MEDIA_TYPE, c, d, error, href, multistatus
from postroom.calendar_errors import EventChanged
from postroom.errors import BadRequest, MethodNotAllowed, NotFound
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars.calendar_files import FileVersion
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars.dav_requests import DavAnswer, DavRequest
from postroom.operations.calendars.file_changes import FileRefused
from postroom.processes import pools
from postroom.resources import Resources, Tx

METHODS = ("OPTIONS", "GET", "HEAD", "PUT", "DELETE", "PROPFIND", "PROPPATCH", "REPORT", "MKCALENDAR", "POST")
# RFC 6578 sections 3.2 and 3.6, RFC 4791 section 5.3.1; all others are of CalDAV.
CONDITIONS_OF_DAV = {"valid-sync-token", "number-of-matches-within-limits", "resource-must-be-null"}
# RFC 4918 section 18, RFC 4791 section 5.1, RFC 6638 section 2.
OPTIONS = {"DAV": "1, 3, calendar-access, calendar-auto-schedule", "Allow": ", ".join(METHODS)}


class CalDav:
    """Runs the methods of CalDAV for one inbox's calendars."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._methods: dict[str, Callable[[DavRequest, DavPath], Awaitable[DavAnswer]]] = {
            "GET": self._get,
            "PUT": partial(changing.put, resources),
            "DELETE": partial(changing.delete, resources),
            "PROPFIND": self._find_properties,
            "PROPPATCH": self._change_properties,
            "REPORT": self._report,
            "MKCALENDAR": partial(changing.make_calendar, resources),
            "MKCOL": partial(changing.make_calendar, resources),
            "POST": self._post,
        }

    async def answer(self, request: DavRequest) -> DavAnswer:
        """Raises ApiError where REST would; other refusals name the condition of the standard."""
        method = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if method is None:
            raise MethodNotAllowed(f"CalDAV here has no {request.method[:20]}.", allow=METHODS)
        require_any(request.caller.permissions, READING)
        place = paths.read(request.path, request.inbox)
        try:
            answer = await method(request, place)
        except FileRefused as refused:
            return refusal(refused, request, place)
        except EventChanged as changed:
            return DavAnswer(412, error(d("if-match"), changed.message), {"Content-Type": MEDIA_TYPE})
        if answer.status == 207:
            return DavAnswer(207, answer.body, {"Content-Type": MEDIA_TYPE, **OPTIONS})
        return answer

    # GET

    async def _get(self, request: DavRequest, place: DavPath) -> DavAnswer:
        if not place.file_name:
            raise MethodNotAllowed("Read a calendar with PROPFIND or REPORT.", allow=METHODS)
        _, event = await self._resources.db.read(paths.find_file, request.inbox, place)
        if event is None:
            raise NotFound("No such file. Read the calendar again.")
        changing.require_version(request, event)
        content = await pools.COMPOSING.run(reports.content_of, event)
        tag = properties.etag(event.version)
        headers = {
            "Content-Type": properties.FILE_TYPE,
            "ETag": tag,
            "Schedule-Tag": tag,  # RFC 6638 section 8.2
            "Last-Modified": properties.http_date(event.updated_at),
            "X-Content-Type-Options": "nosniff",
        }
        return DavAnswer(200, content, headers)

    async def _post(self, request: DavRequest, place: DavPath) -> DavAnswer:
        if place.name != paths.SENT or place.file_name:
            # RFC 6638 section 5.
            raise MethodNotAllowed("POST asks the outbox for free and busy time.", allow=METHODS)
        found = await self._resources.db.read_long(
            free_busy.ask, LONG_SECONDS, request, self._resources.now()
        )
        return DavAnswer(200, found, {"Content-Type": MEDIA_TYPE})

    # Properties

    async def _find_properties(self, request: DavRequest, place: DavPath) -> DavAnswer:
        depth = request.headers.get("depth", "0").strip().lower()
        if depth not in ("0", "1"):
            # RFC 4918 section 9.1.1.
            raise FileRefused("propfind-finite-depth", "Ask with Depth 0 or 1.")
        root = await pools.READING.run(read_xml, request.body)
        wanted, names_only = read_wanted(root)
        reader = PropertyReader(request.caller, request.inbox)
        found = await self._resources.db.read_long(find_resources, LONG_SECONDS, reader, place, depth == "1")
        answered = await pools.COMPOSING.run(describe, found, wanted, names_only)
        return DavAnswer(207, answered)

    async def _change_properties(self, request: DavRequest, place: DavPath) -> DavAnswer:
        return await changing.change_properties(self._resources, request, place, request.path)

    # Reports

    async def _report(self, request: DavRequest, place: DavPath) -> DavAnswer:
        report = await pools.READING.run(read_xml, request.body)
        if report is None:
            raise BadRequest("A REPORT needs a body.")
        if report.name == d("principal-property-search") and not place.name:  # RFC 3744 section 9.4
            return DavAnswer(207, multistatus([]))
        run = {
            c("calendar-query"): self._query,  # RFC 4791 sections 7.8 to 7.10
            c("calendar-multiget"): self._multiget,
            c("free-busy-query"): self._free_busy,
            d("sync-collection"): self._sync,  # RFC 6578 section 3.2
        }.get(report.name)
        if run is None or not place.name or place.is_schedule:  # RFC 3253 section 3.6
            raise FileRefused("supported-report", "This report does not exist here.")
        calendar = await self._resources.db.read(paths.find_calendar, request.inbox, place)
        return await run(PropertyReader(request.caller, request.inbox), calendar, place, report)

    async def _query(
        self, reader: PropertyReader, calendar: InboxCalendar, place: DavPath, report: XmlElement
    ) -> DavAnswer:
        query, wanted, path = read_query(report), reports.read_wanted(report), path_of(reader, place)
        db = self._resources.db
        if query.is_plain and query.time is None and query.event and not wanted.needs_data:
            files = await db.read_long(reports.list_files, LONG_SECONDS, calendar)
            listed = [(f"{path}{each.name}", properties.of_file(reader, each)) for each in files]
            return DavAnswer(207, await pools.COMPOSING.run(describe, listed, wanted.names, False))
        events = await db.read_long(reports.find_events, LONG_SECONDS, calendar, query)
        found = await pools.COMPOSING.run(reports.write_events, reader, path, events, wanted, query)
        return DavAnswer(207, await pools.COMPOSING.run(multistatus, found))

    async def _multiget(
        self, reader: PropertyReader, calendar: InboxCalendar, place: DavPath, report: XmlElement
    ) -> DavAnswer:
        names, wanted = reports.read_names(report, reader, place), reports.read_wanted(report)
        asked = [name for name in names if name]
        found = await self._resources.db.read_long(reports.find_named, LONG_SECONDS, calendar, asked)
        hrefs = [each.text.strip() for each in report.all(d("href"))]
        given = (reader, path_of(reader, place), names, found, wanted, hrefs)
        answered = await pools.COMPOSING.run(reports.write_named, *given)
        return DavAnswer(207, await pools.COMPOSING.run(multistatus, answered))

    async def _free_busy(
        self, reader: PropertyReader, calendar: InboxCalendar, place: DavPath, report: XmlElement
    ) -> DavAnswer:
        time = read_range(report.child(c("time-range")))
        if time is None:
            raise BadRequest("A free-busy-query needs a time-range.")
        found = await self._resources.db.read_long(reports.find_busy, LONG_SECONDS, calendar, time)
        content = free_busy.write(found, time, self._resources.now())
        return DavAnswer(200, content, {"Content-Type": "text/calendar; charset=utf-8"})

    async def _sync(
        self, reader: PropertyReader, calendar: InboxCalendar, place: DavPath, report: XmlElement
    ) -> DavAnswer:
        given = report.child(d("sync-token"))
        token = "" if given is None else given.text.strip()
        since = properties.read_token(calendar, token) if token else None
        if token and since is None:
            raise FileRefused("valid-sync-token", "This sync-token is not of this calendar.")
        wanted = reports.read_wanted(report)
        most = reports.CHANGES_WITH_DATA if wanted.needs_data else reports.CHANGES
        limit = reports.read_limit(report, most)
        asked = (calendar, since, limit, wanted.needs_data)
        changes = await self._resources.db.read_long(reports.find_changes, LONG_SECONDS, *asked)
        path = path_of(reader, place)
        written = await pools.COMPOSING.run(reports.write_changes, reader, calendar, path, changes, wanted)
        return DavAnswer(207, written)


def path_of(reader: PropertyReader, place: DavPath) -> str:
    return f"{reader.home}{place.name}/"


def read_wanted(root: XmlElement | None) -> tuple[list[str] | None, bool]:
    """Return the names that are asked for; None: the usual ones."""
    if root is None or root.child(d("allprop")) is not None:
        return None, False
    if root.child(d("propname")) is not None:
        return None, True
    prop = root.child(d("prop"))
    if prop is None:
        raise BadRequest("A PROPFIND needs prop, allprop or propname.")
    return [each.name for each in prop.children], False


def describe(found: list[tuple[str, Values]], wanted: Sequence[str] | None, names_only: bool) -> bytes:
    return multistatus(properties.answer(path, values, wanted, names_only) for path, values in found)


def find_resources(
    tx: Tx, reader: PropertyReader, place: DavPath, with_members: bool
) -> list[tuple[str, Values]]:
    """Return the resource of a path, and with `with_members` those right below it."""
    if place.is_root:
        found = [(paths.ROOT, properties.of_root(reader))]
        return [*found, *([(reader.home, properties.of_home(reader))] if with_members else [])]
    if place.is_home:
        return [
            (reader.home, properties.of_home(reader)),
            *(members_of_home(tx, reader) if with_members else []),
        ]
    if place.is_schedule:
        default = inbox_calendars.default_of(tx, reader.inbox.id)
        return [(path_of(reader, place), properties.of_schedule(reader, place.name, default))]
    if place.file_name:
        return [find_file(tx, reader, place)]
    calendar = paths.find_calendar(tx, reader.inbox, place)
    path = path_of(reader, place)
    found = [(path, properties.of_calendar(reader, calendar))]
    if with_members:
        files = reports.list_files(tx, calendar)
        found += [(f"{path}{each.name}", properties.of_file(reader, each)) for each in files]
    return found


def members_of_home(tx: Tx, reader: PropertyReader) -> list[tuple[str, Values]]:
    calendars = inbox_calendars.list_of_inbox(tx, reader.inbox.id)
    own = [(paths.path_of(each), properties.of_calendar(reader, each)) for each in calendars]
    default = inbox_calendars.default_of(tx, reader.inbox.id)
    boxes = [
        (f"{reader.home}{name}/", properties.of_schedule(reader, name, default))
        for name in (paths.RECEIVED, paths.SENT)
    ]
    return [*own, *boxes]


def find_file(tx: Tx, reader: PropertyReader, place: DavPath) -> tuple[str, Values]:
    _, event = paths.find_file(tx, reader.inbox, place)
    if event is None:
        raise NotFound("No such file. Read the calendar again.")
    file = FileVersion(place.file_name, event.version, event.updated_at, event.id)
    return f"{path_of(reader, place)}{place.file_name}", properties.of_file(reader, file)


def refusal(refused: FileRefused, request: DavRequest, place: DavPath) -> DavAnswer:
    name = refused.condition
    named = d(name) if name in CONDITIONS_OF_DAV or refused.status != 403 else c(name)
    if name in ("propfind-finite-depth", "supported-report", "valid-sync-token"):
        named = d(name)
    home = paths.home_of(request.inbox)
    inner = href(f"{home}{place.name}/{refused.taken_by}") if refused.taken_by else ""
    return DavAnswer(refused.status, error(named, refused.message, inner), {"Content-Type": MEDIA_TYPE})
