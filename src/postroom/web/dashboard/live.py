"""Open pages hear at /app/live that something happened, and ask for it themselves, as their session may."""

import asyncio
import contextlib
from collections.abc import Iterable
from urllib.parse import parse_qs

import msgspec
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from postroom import ids, log
from postroom.accounts import sessions
from postroom.accounts.reach import Reach
from postroom.accounts.sessions import Session
from postroom.errors import ApiError, Forbidden, NotFound, Unauthorized
from postroom.events import events
from postroom.events.events import Hint
from postroom.resources import Resources, Tx
from postroom.web.dashboard.forms import COOKIE, is_own_origin
from postroom.web.streams.stream import (
    CONNECTIONS_PER_ACCOUNT,
    GOING_AWAY,
    REVOKED,
    TOO_MANY_CONNECTIONS,
    refuse,
)

PATH = "/app/live"
HINTS_READ = 200
NAMED = 50  # more places than this are not named one by one
REST_SECONDS = 0.15  # a page hears at most so often, however much happens
# And the more pages are open, the less often each: what it hears it asks for, which costs a few milliseconds.
REST_SECONDS_A_PAGE = 0.2
LONGEST_REST_SECONDS = 15.0
LOOK_SECONDS = 1.0


class OpenPage:
    """One open page."""

    def __init__(self, session: Session, reach: Reach) -> None:
        self.session = session
        self._reach = reach
        self._last = ""
        self._counts: dict[str, int] = {}
        self._places: set[str] = set()
        self.news = asyncio.Event()
        self.is_over = asyncio.Event()
        self.ended: tuple[int, str] | None = None

    def tell(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            if self._reach.covers(self._reach.account_id, hint.pod_id, hint.inbox_id):
                self._last = hint.event_id
                self._counts[hint.kind] = self._counts.get(hint.kind, 0) + 1
                self._places |= {hint.inbox_id, hint.thread_id} if len(self._places) < NAMED else {"many"}
                self.news.set()

    def end(self, code: int, reason: str) -> None:
        self.ended = (code, reason)
        self.leave()

    def leave(self) -> None:
        self.is_over.set()
        self.news.set()

    async def rest(self, seconds: float) -> None:
        """Unless it ends meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.is_over.wait()

    def take_news(self) -> str:
        """All since the last time, in one message."""
        news = {"last": self._last, "counts": self._counts, "places": sorted(self._places)}
        self._counts, self._places = {}, set()
        self.news.clear()
        return msgspec.json.encode(news).decode()


class Pulse:
    """Reads an account's log once for all its pages that are open in this process."""

    def __init__(self, resources: Resources, account_id: str) -> None:
        self.pages: set[OpenPage] = set()
        self._resources = resources
        self._account_id = account_id
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        db = self._resources.db
        ear = db.listen(events.bell(self._account_id))
        try:
            position = await db.read(events.last_position, self._account_id)
            while True:
                try:
                    position = await self._look(position)
                except Exception as error:
                    log.get().error("cannot read events", account=self._account_id, reason=str(error))
                await ear.wait(LOOK_SECONDS)
                await asyncio.sleep(REST_SECONDS)
        finally:
            ear.close()

    async def _look(self, position: int) -> int:
        db, now = self._resources.db, self._resources.now()
        valid = await db.read(sessions.find_valid, sorted({page.session.id for page in self.pages}), now)
        for page in self.pages:
            if page.session.id not in valid:
                page.end(REVOKED, "the session ended")
        while hints := await db.read(events.list_hints, self._account_id, position, HINTS_READ):
            position = hints[-1].position
            for page in self.pages:
                page.tell(hints)
        return position


class Live:
    """Every open page of this process."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._pulses: dict[str, Pulse] = {}

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            page, missed = await self._admit(scope)
        except ApiError as error:
            await refuse(send, error, f"req_{ids.trace()}")
            return
        await send({"type": "websocket.accept"})
        pulse = self._join(page)
        page.tell(missed)
        try:
            await self._talk(page, receive, send)
        except asyncio.CancelledError:  # the server stops; nobody waits for this task
            return
        finally:
            self._leave(pulse, page)

    async def _admit(self, scope: Scope) -> tuple[OpenPage, list[Hint]]:
        request = HTTPConnection(scope)
        config = self._resources.config
        if not is_own_origin(request.headers.get("origin"), request.headers.get("host"), config.base_url):
            raise Forbidden("This is for the pages of Postroom itself.")
        after = parse_qs(scope["query_string"].decode("latin-1")).get("after", [""])[0]
        token = request.cookies.get(COOKIE, "")
        return await self._resources.db.read(admit, token, after, self._resources.now())

    def _join(self, page: OpenPage) -> Pulse:
        account_id = page.session.account_id
        pulse = self._pulses.get(account_id)
        if pulse is None:
            pulse = self._pulses[account_id] = Pulse(self._resources, account_id)
        if len(pulse.pages) >= CONNECTIONS_PER_ACCOUNT:
            page.end(TOO_MANY_CONNECTIONS, "too many open pages")
        pulse.pages.add(page)
        return pulse

    def _leave(self, pulse: Pulse, page: OpenPage) -> None:
        pulse.pages.discard(page)
        if not pulse.pages and self._pulses.get(page.session.account_id) is pulse:
            del self._pulses[page.session.account_id]
            pulse.stop()

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
                await send({"type": "websocket.send", "text": page.take_news()})
                await page.rest(rest_seconds(sum(len(pulse.pages) for pulse in self._pulses.values())))
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    def close(self) -> None:
        for pulse in self._pulses.values():
            for page in pulse.pages:
                page.end(GOING_AWAY, "the server is stopping")


def rest_seconds(pages: int) -> float:
    """For all pages together it comes to about the same, however many there are."""
    return min(max(REST_SECONDS, pages * REST_SECONDS_A_PAGE), LONGEST_REST_SECONDS)


async def until_gone(page: OpenPage, receive: Receive) -> None:
    """A page says nothing that matters; when it is closed, its end is noted."""
    while (await receive())["type"] != "websocket.disconnect":
        pass
    page.leave()


def admit(tx: Tx, token: str, after: str, now: int) -> tuple[OpenPage, list[Hint]]:
    """The page, and what it missed since the event that it knows."""
    found = sessions.find(tx, token, now) if token else None
    if found is None:
        raise Unauthorized("Sign in first.")
    session, caller = found
    try:
        position = events.position_of(tx, caller.reach, after)
    except NotFound:  # none had happened when the page was made, or it has been open for long
        position = 0
    missed = events.list_hints(tx, caller.account_id, position, HINTS_READ)
    return OpenPage(session, caller.reach), missed
