"""A small CalDAV client: it signs in with an inbox's address and a key, and reads answers as trees."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import httpx2
from defusedxml.ElementTree import fromstring

from tests.conftest import Server
from tests.plain_transport import http_client

D, C, CS, A = (
    "{DAV:}",
    "{urn:ietf:params:xml:ns:caldav}",
    "{http://calendarserver.org/ns/}",
    "{http://apple.com/ns/ical/}",
)
NAMES = (
    'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:CS="http://calendarserver.org/ns/"'
    ' xmlns:A="http://apple.com/ns/ical/"'
)
EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20261114T120000Z
SUMMARY:{summary}
DTSTART:{start}
DTEND:{end}
{more}END:VEVENT
END:VCALENDAR
"""


def event(uid: str = "a", summary: str = "Planning", more: str = "", **times: str) -> str:
    given = {"start": "20261120T150000Z", "end": "20261120T160000Z", **times}
    return EVENT.format(uid=uid, summary=summary, more=more, **given).replace("\n", "\r\n")


class Dav:
    def __init__(self, http: httpx2.AsyncClient, home: str, calendar: str) -> None:
        self.http, self.home, self.calendar = http, home, calendar

    async def ask(self, method: str, path: str, body: str = "", **headers: str) -> httpx2.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, path, content=body.encode(), headers=given)

    async def put(self, name: str, body: str, **headers: str) -> httpx2.Response:
        return await self.ask("PUT", f"{self.calendar}{name}", body, **headers)

    async def properties(self, path: str, *names: str, depth: str = "0") -> dict[str, dict[str, Element]]:
        asked = "".join(f"<{name}/>" for name in names)
        body = f"<D:propfind {NAMES}><D:prop>{asked}</D:prop></D:propfind>"
        answer = await self.ask("PROPFIND", path, body, Depth=depth)
        assert answer.status_code == 207, answer.text
        return found_in(answer)

    async def report(self, body: str, path: str = "") -> httpx2.Response:
        return await self.ask("REPORT", path or self.calendar, body, Depth="1")

    async def sync(self, token: str = "", limit: str = "") -> tuple[str, dict[str, int]]:
        """The next token, and the status of each file that was changed (404: removed)."""
        page = f"<D:limit><D:nresults>{limit}</D:nresults></D:limit>" if limit else ""
        answer = await self.report(
            f"<D:sync-collection {NAMES}><D:sync-token>{token}</D:sync-token><D:sync-level>1</D:sync-level>"
            f"{page}<D:prop><D:getetag/></D:prop></D:sync-collection>"
        )
        assert answer.status_code == 207, answer.text
        return fromstring(answer.content).findtext(f"{D}sync-token") or "", statuses_of(answer)

    async def query(self, inside: str, data: str = "<C:calendar-data/>") -> dict[str, str]:
        """The content of each file that fits the filter of VEVENT."""
        answer = await self.report(
            f"<C:calendar-query {NAMES}><D:prop><D:getetag/>{data}</D:prop><C:filter>"
            f'<C:comp-filter name="VCALENDAR">{inside}</C:comp-filter></C:filter></C:calendar-query>'
        )
        assert answer.status_code == 207, answer.text
        found = found_in(answer)
        return {path.rsplit("/", 1)[1]: each[f"{C}calendar-data"].text or "" for path, each in found.items()}


def found_in(answer: httpx2.Response) -> dict[str, dict[str, Element]]:
    """The properties of each resource that it has."""
    found: dict[str, dict[str, Element]] = {}
    for response in fromstring(answer.content).iter(f"{D}response"):
        path = unquote(response.findtext(f"{D}href") or "")
        for propstat in response.iter(f"{D}propstat"):
            if "200" in (propstat.findtext(f"{D}status") or ""):
                prop = propstat.find(f"{D}prop")
                assert prop is not None
                found[path] = {each.tag: each for each in prop}
    return found


def statuses_of(answer: httpx2.Response) -> dict[str, int]:
    found = {}
    for response in fromstring(answer.content).iter(f"{D}response"):
        said = response.findtext(f"{D}status") or response.findtext(f"{D}propstat/{D}status") or ""
        found[unquote(response.findtext(f"{D}href") or "").rsplit("/", 1)[1]] = int(said.split()[1])
    return found


def condition_of(answer: httpx2.Response) -> str:
    """The precondition that a refusal names."""
    error = fromstring(answer.content)
    assert error.tag == f"{D}error"
    return error[0].tag.rpartition("}")[2]


@asynccontextmanager
async def signed_in(server: Server, address: str, key: str) -> AsyncIterator[Dav]:
    """Finds the calendar as a client does: from the well-known address by redirect and principal."""
    basic = base64.b64encode(f"{address}:{key}".encode()).decode()
    async with http_client(server.base_url, {"Authorization": f"Basic {basic}"}) as http:
        dav = Dav(http, "", "")
        moved = await dav.ask("PROPFIND", "/.well-known/caldav")
        assert moved.status_code == 301
        root = await dav.properties(moved.headers["location"], "D:current-user-principal")
        (found,) = root.values()
        principal = found[f"{D}current-user-principal"].findtext(f"{D}href") or ""
        (found,) = (await dav.properties(principal, "C:calendar-home-set")).values()
        dav.home = found[f"{C}calendar-home-set"].findtext(f"{D}href") or ""
        listed = await dav.properties(dav.home, "D:resourcetype", depth="1")
        kinds = {path: [each.tag for each in found[f"{D}resourcetype"]] for path, found in listed.items()}
        dav.calendar = next(path for path, kind in kinds.items() if f"{C}calendar" in kind)
        yield dav
