"""Tells open pages at /app/live that something happened; they fetch it themselves, with their session."""

import asyncio
import contextlib
from urllib.parse import parse_qs

import msgspec
from starlette.requests import HTTPConnection
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from postroom import ids
from postroom.accounts import sessions
from postroom.accounts.permissions import READING, require_any
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import Session
from postroom.errors import ApiError, Forbidden, NotFound, Unauthorized
from postroom.events import event_log as events
from postroom.events.event_log import Event
from postroom.limits import STREAMS_OF_AN_ACCOUNT
from postroom.resources import Resources, Tx
from postroom.web.dashboard.forms import COOKIE, is_own_origin
from postroom.web.requests import cookies
from postroom.web.requests.request_body import require_short_query
from postroom.web.streams.hub import Hub, Hubs, TranslatedEvent
from postroom.web.streams.stream import (
    GOING_AWAY,
    REVOKED,
    TOO_MANY_CONNECTIONS,
    refuse,
)

PATH = "/app/live"
NAMED = 50  # more places than this are not named one by one
MANY = "many"
MOST_MISSED = 1000  # events that a returning page gets one by one
REST_SECONDS = 0.15  # a page is notified at most this often
# The more pages are open, the less often each: a notified page makes a request of a few milliseconds.
REST_SECONDS_A_PAGE = 0.2
LONGEST_REST_SECONDS = 15.0
SESSION_WATCH_SECONDS = 1.0


class OpenPage:
    """One open page. It learns that something happened in its scope, not what."""

    translate = None

    def __init__(self, session: Session, scope: Scope) -> None:
        self.session = session
        self.scope = scope
        self.cursor = 0
        self.replay: asyncio.Task[None] | None = None
        self._last = ""
        self._counts: dict[str, int] = {}
        self._places: set[str] = set()
        self.news = asyncio.Event()
        self.is_over = asyncio.Event()
        self.ended: tuple[int, str] | None = None

    def wants(self, event: Event) -> bool:
        return self.scope.covers(event.account_id, event.pod_id, event.inbox_id)

    def offer(self, event: Event, frame: bytes, translated: list[TranslatedEvent] | None) -> bool:
        if event.position > self.cursor:
            self.cursor = event.position
            if self.wants(event):
                self._push(event)
        return True

    async def catch_up(self, event: Event) -> bool:
        self._push(event)
        return True

    def _push(self, event: Event) -> None:
        self._last = event.id
        self._counts[event.kind] = self._counts.get(event.kind, 0) + 1
        if len(self._places) < NAMED:
            self._places |= {event.inbox_id, event.thread_id}
        else:
            self._places.add(MANY)
        self.news.set()

    def announce_many(self) -> None:
        """Announce a reload: too much happened for single notices."""
        self._places.add(MANY)
        self.news.set()

    def close(self, code: int, reason: str) -> None:
        self.ended = (code, reason)
        self.leave()

    def leave(self) -> None:
        self.is_over.set()
        self.news.set()

    async def rest(self, seconds: float) -> None:
        """Waits, unless the page ends meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.is_over.wait()

    def take_changes(self) -> str:
        """Return everything since the last time, in one message."""
        news = {"last": self._last, "counts": self._counts, "places": sorted(self._places)}
        self._counts, self._places = {}, set()
        self.news.clear()
        return msgspec.json.encode(news).decode()


class Live:
    """Every open page of this process."""

    def __init__(self, resources: Resources, hubs: Hubs) -> None:
        self._resources = resources
        self._hubs = hubs
        self._pages: set[OpenPage] = set()

    async def serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            page, known = await self._admit(scope)
        except ApiError as error:
            await refuse(send, error, f"req_{ids.trace()}")
            return
        await send({"type": "websocket.accept"})
        account_id = page.session.account_id
        if sum(each.session.account_id == account_id for each in self._pages) >= STREAMS_OF_AN_ACCOUNT:
            page.close(TOO_MANY_CONNECTIONS, "too many open pages")
        self._pages.add(page)
        hub = self._hubs.add(account_id, page)
        joining = asyncio.create_task(join(hub, page, known))
        try:
            await self._talk(page, receive, send)
        except asyncio.CancelledError:  # the server stops; nobody waits for this task
            return
        finally:
            joining.cancel()
            self._pages.discard(page)
            self._hubs.remove(hub, page)

    async def _admit(self, scope: AsgiScope) -> tuple[OpenPage, int | None]:
        request = HTTPConnection(scope)
        config = self._resources.config
        if not is_own_origin(request.headers.get("origin"), request.headers.get("host"), config.base_url):
            raise Forbidden("This is only for Postroom's own pages.")
        require_short_query(request)
        after = parse_qs(scope["query_string"].decode("latin-1")).get("after", [""])[0]
        token = cookies.find(request, COOKIE)
        return await self._resources.db.read(admit, token, after, self._resources.now())

    async def watch_sessions(self) -> None:
        """Runs until cancelled: if a session has ended, its pages close within a second."""
        while True:
            await asyncio.sleep(SESSION_WATCH_SECONDS)
            asked = sorted({page.session.id for page in self._pages})
            if not asked:
                continue
            valid = await self._resources.db.read(sessions.find_valid, asked, self._resources.now())
            for page in self._pages:
                if page.session.id not in valid and page.session.id in asked:
                    page.close(REVOKED, "the session ended")

    async def _talk(self, page: OpenPage, receive: Receive, send: Send) -> None:
        listening = asyncio.create_task(until_gone(page, receive))
        try:
            while True:
                await page.news.wait()
                if page.ended is not None:
                    code, reason = page.ended
                    await send({"type": "websocket.close", "code": code, "reason": reason})
                if page.is_over.is_set():
                    return
                await send({"type": "websocket.send", "text": page.take_changes()})
                await page.rest(rest_seconds(len(self._pages)))
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    def close(self) -> None:
        for page in self._pages:
            page.close(GOING_AWAY, "the server is stopping")


async def join(hub: Hub, page: OpenPage, known: int | None) -> None:
    """Join the hub, after replaying events newer than the page's last one, if they are not too many."""
    await hub.wait_until_ready()
    if known is not None and hub.position - known <= MOST_MISSED:
        hub.start_replay(page, known)
        return
    if known is None or hub.position > known:
        page.announce_many()
    hub.join(page, hub.position)


def rest_seconds(pages: int) -> float:
    """Grows with the number of pages, so that the total load stays about the same."""
    return min(max(REST_SECONDS, pages * REST_SECONDS_A_PAGE), LONGEST_REST_SECONDS)


async def until_gone(page: OpenPage, receive: Receive) -> None:
    """Wait until the page is closed. Nothing that it sends matters."""
    while (await receive())["type"] != "websocket.disconnect":
        pass
    page.leave()


def admit(tx: Tx, token: str, after: str, now: int) -> tuple[OpenPage, int | None]:
    """Return the page, and the position of the event that it knows; None if that is no longer in the log."""
    found = sessions.find(tx, token, now) if token else None
    if found is None:
        raise Unauthorized("Sign in first.")
    session, caller = found
    require_any(caller.permissions, READING)
    page = OpenPage(session, caller.scope)
    if not after:  # none had happened when the page was made
        return page, 0
    try:
        return page, events.position_of(tx, caller.scope, after)
    except NotFound:
        return page, None
