"""Whatever stands in a field, a request costs little of the event loop, and no more than its length.

Every text of every route, of the interface and of the pages, is sent at its longest in many hostile
shapes: one long text and, where it is in a list, as many short ones as fit. Of the loop the lines are counted
that its thread runs, which are the same every time: a reader that goes through a long text there runs one for
each of its marks. What one line hides is a single call: expressions are judged in `tests/test_patterns.py`,
and the rest copies or compares. What is done in other threads could be counted only by slowing it down
tenfold; there processor time is taken, and growth judged, not time: sixteen times the text may cost 64 times
as much, where linear is 16 and quadratic 256, of what takes long enough to be measured, and the least counts.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from postroom.first_start import make_first_account
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database
from postroom.web.app import App
from postroom.web.connection import HEAD_LIMIT_BYTES
from postroom.web.dashboard.forms import COOKIE
from postroom.web.dashboard.routes import PAGES
from postroom.web.requests.request_body import IS_WHOLE
from postroom.web.routes import ROUTES
from postroom.web.routing import Route
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from tests.api import hostile_fields
from tests.api.hostile_fields import HEADER_SHAPES, SHAPES, Place, Sent, takes_files
from tests.api.loop_work import Cost, cost_of
from tests.conftest import settings
from tests.doubles import FakeClock, post_intake
from tests.doubles_dns import DnsServer
from tests.storage.test_hot_queries import RefusingCourier

pytestmark = pytest.mark.sqlite_alone

SHAPES_A_PLACE = min(int(os.environ.get("POSTROOM_TEST_SHAPES", "1")), len(SHAPES))  # of sixteen
PARTS = 3  # in each some text is read to its end
MOST_STEPS = 20_000
LITTLE_MS = 200.0  # of the process: less is not worth a look
SHARE, MOST_GROWTH = 16, 64.0
HEADER_CHARACTERS = HEAD_LIMIT_BYTES - 1_000
BETWEEN_MS = 6_100  # by the server's clock, so that no limit of a minute is met


@dataclass
class Visitor:
    """Asks a door without a socket, as somebody who may do everything."""

    door: App
    clock: FakeClock
    token: str
    cookie: str = ""
    ids: dict[str, str] = field(default_factory=dict)  # of what is there, by its name in paths
    numbers: Any = field(default_factory=itertools.count)
    statuses: set[int] = field(default_factory=set)

    async def cost_of(self, place: Place, given: str | list[str]) -> Cost:
        return await self.ask(place.route, hostile_fields.request(place, given, self.ids))

    async def ask(self, route: Route, sent: Sent, **changed: str) -> Cost:
        self.clock.turn(BETWEEN_MS)
        fields = {
            "authorization": f"Bearer {self.token}",
            "idempotency-key": f"key-{next(self.numbers)}",
            "cookie": f"{COOKIE}={self.cookie}",
            "sec-fetch-site": "same-origin",
            **changed,
        }
        scope = {
            "type": "http",
            "method": route.method,
            "path": sent.path,
            "query_string": sent.query,
            "headers": hostile_fields.head(sent, fields).raw,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "state": {IS_WHOLE: True},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": sent.body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses.add(message["status"])

        return await cost_of(lambda: self.door(scope, receive, send))


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    """Knows no name."""
    async with DnsServer() as running:
        yield running


@pytest.fixture
async def visitor(db: Database, dns: DnsServer, tmp_path: Path, clock: FakeClock) -> Visitor:
    """Without the loops of a server: all that the process does is done for a request."""
    config = settings(tmp_path)
    first = await db.write(make_first_account, config, clock.now())
    assert first is not None
    resolver = Resolver([dns.address])
    resources = Resources(config, db, LocalBlobs(tmp_path / "blobs"), clock, resolver, asyncio.Event())
    door = App(resources, RefusingCourier(), Streams(resources, Hubs(resources)), post_intake(resources))
    made = Visitor(door, clock, first.token)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(door), base_url="http://inside") as client:
        client.headers["Authorization"] = f"Bearer {first.token}"
        made.ids = await fill_mailbox(client)
        client.headers["Sec-Fetch-Site"] = "same-origin"
        signed_in = await client.post("/app/sign-in", data={"link": first.link})
        made.cookie = signed_in.cookies[COOKIE]
    return made


async def fill_mailbox(api: httpx2.AsyncClient) -> dict[str, str]:
    """One of everything that a path can name, so that what is asked of it is read to its end."""

    async def new(path: str, **body: Any) -> dict[str, Any]:
        answer = await api.post(path, json=body, headers={"Idempotency-Key": "first"})
        assert answer.is_success, answer.text
        made: dict[str, Any] = answer.json()
        return made

    inbox = (await new("/v1/inboxes", mailboxName="hello"))["id"]
    await api.patch(f"/v1/inboxes/{inbox}", json={"approval": {"when": ["links"]}})
    held = await new(f"/v1/inboxes/{inbox}/send", to="a@b.example", subject="Hi", body="See evil.example")
    return {
        "inbox_id": inbox,
        "message_id": held["id"],
        "thread_id": held["threadId"],
        "draft_id": (await new(f"/v1/inboxes/{inbox}/drafts", to="a@b.example"))["id"],
        "pod_id": (await new("/v1/pods", clientId="customer"))["id"],
        "key_id": (await new("/v1/api-keys", name="other"))["id"],
        "filename": "a.txt",
    }


Make = Callable[[Place, str, int], str | list[str]]


async def fault_of(
    visitor: Visitor, place: Place, unit: str, make: Make, little_ms: float = LITTLE_MS
) -> str:
    """What is wrong with the cost of one shape in one place; empty if nothing is."""
    whole = make(place, unit, 1)
    cost = await visitor.cost_of(place, whole)
    if cost.steps > MOST_STEPS:  # at the first use of a page its template is read, and never again
        cost = await visitor.cost_of(place, whole)
    if cost.steps > MOST_STEPS:
        return f"{cost.steps} steps in the loop"
    if cost.whole <= little_ms:
        return ""
    part = await least_ms(visitor, place, make(place, unit, SHARE))
    growth = cost.whole / part
    if growth > MOST_GROWTH:
        growth = await least_ms(visitor, place, whole) / part
    return "" if growth <= MOST_GROWTH else f"{growth:.0f} times the work for {SHARE} times the text"


async def least_ms(visitor: Visitor, place: Place, given: str | list[str]) -> float:
    return min([(await visitor.cost_of(place, given)).whole for _ in range(2)])


def some_of(shapes: list[str], number: int) -> set[str]:
    """Each place is tried in some, and places side by side, which are mostly read alike, in all of them."""
    return {shapes[(number * SHAPES_A_PLACE + each) % len(shapes)] for each in range(SHAPES_A_PLACE)}


def makers(place: Place) -> Sequence[Make]:
    is_listed = len(place.steps) > 1
    return [hostile_fields.fill, hostile_fields.spread] if is_listed else [hostile_fields.fill]


def part_of(routes: Sequence[Route], part: str) -> list[Place]:
    return [place for place in hostile_fields.places(routes) if place.part == part]


PLACES = {
    "paths and queries": [
        place for place in hostile_fields.places((*ROUTES, *PAGES)) if place.part in ("path", "query")
    ],
    "bodies": part_of(ROUTES, "body"),
    "forms": part_of(PAGES, "body"),
}


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", PLACES)
async def test_a_hostile_text_costs_the_loop_little_and_the_server_no_more_than_its_length(
    visitor: Visitor, kind: str, part: int
) -> None:
    faults = [
        f"{place}, {name}: {fault}"
        for number, place in list(enumerate(PLACES[kind]))[part::PARTS]
        for name in some_of(list(SHAPES), number)
        for make in makers(place)
        if (fault := await fault_of(visitor, place, SHAPES[name], make))
    ]
    assert faults == []
    assert 400 in visitor.statuses
    assert visitor.statuses & {200, 303}, "nothing was read to its end"
    assert 500 not in visitor.statuses


async def test_a_hostile_header_costs_the_loop_little(visitor: Visitor) -> None:
    """Asked of a page, of the interface and of a mail with files; nobody needs a key for the first."""
    asked = ("GET /app", "GET /v1/me", "POST /v1/inboxes/{inbox_id}/send")
    routes = [route for route in (*ROUTES, *PAGES) if route.name in asked]
    names = hostile_fields.header_names()
    assert names >= {"authorization", "content-type", "cookie", "idempotency-key", "origin"}
    faults = []
    for number, (name, route) in enumerate(itertools.product(sorted(names), routes)):
        sent = hostile_fields.request(Place(route, "path", ("none",)), "", visitor.ids)
        befores = hostile_fields.BEFORE.get(name, ("",))
        for before, shape in itertools.product(befores, some_of(list(HEADER_SHAPES), number)):
            text = before + (HEADER_SHAPES[shape] * HEADER_CHARACTERS)[:HEADER_CHARACTERS]
            steps = (await visitor.ask(route, sent, **{name: text})).steps
            if steps > MOST_STEPS:
                steps = (await visitor.ask(route, sent, **{name: text})).steps
            if steps > MOST_STEPS:
                faults.append(f"{route.name}, {name}: {before}{shape}: {steps} steps in the loop")
    assert faults == []


async def test_a_form_in_a_codec_that_takes_quadratic_time_is_refused(visitor: Visitor) -> None:
    route = next(route for route in ROUTES if route.name == "POST /v1/inboxes/{inbox_id}/send")
    part = 'Content-Disposition: form-data; name="body"'
    body = f"--x\r\n{part}\r\n\r\n{'a' * 100_000}-{'b' * 100_000}\r\n--x--\r\n"
    for codec, status in (("punycode", 415), ("idna", 415), ("UTF-8", 400)):
        visitor.statuses.clear()
        kind = f"multipart/form-data; charset={codec}; boundary=x"
        sent = Sent(f"/v1/inboxes/{visitor.ids['inbox_id']}/send", b"", body.encode(), kind)
        assert (await visitor.ask(route, sent)).steps < MOST_STEPS
        assert visitor.statuses == {status}


async def test_a_reader_that_goes_back_is_seen(visitor: Visitor) -> None:
    """So that the test above cannot pass for want of sight."""

    async def read_by_marks(scope: Any, receive: Any, send: Any) -> None:
        for mark in (await receive())["body"]:
            assert mark

    visitor.door = cast(App, read_by_marks)
    place = next(
        place for place in PLACES["bodies"] if place.steps == ("body",) and place.route.path.endswith("/send")
    )
    assert "steps in the loop" in await fault_of(visitor, place, "<", hostile_fields.fill)

    def read_twice(body: bytes) -> None:
        for place in range(0, len(body), 32):
            body[place:].count(b"<")

    async def read_aside(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(read_twice, (await receive())["body"])

    visitor.door = cast(App, read_aside)
    assert "times the work" in await fault_of(visitor, place, "<", hostile_fields.fill, little_ms=0)


def test_every_text_of_a_request_with_files_has_a_bound() -> None:
    """Such a body may have 37 MB: nothing but the files themselves may be as long."""
    unbounded = {
        place.steps
        for place in PLACES["bodies"]
        if takes_files(place.route)
        and place.max_length is None
        and place.steps[-1] not in ("data", "text")  # the files
    }
    assert unbounded == set()


def test_every_route_with_a_body_or_a_query_of_texts_is_tried() -> None:
    tried = {place.route.name for places in PLACES.values() for place in places}
    assert len(tried) > 100
    assert {"POST /v1/inboxes/{inbox_id}/send", "POST /v1/inboxes/{inbox_id}/drafts"} <= tried
