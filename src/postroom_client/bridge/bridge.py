"""The bridge: hands every event to a local handler, in order, at least once, and stores its position."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom_client.bridge import files
from postroom_client.bridge.files import Failure, Place
from postroom_client.bridge.handlers import Handler
from postroom_client.calls import calls
from postroom_client.client import Client
from postroom_client.errors import ConnectionFailed, NotFound, PostroomError, StreamRefused
from postroom_client.limits import LONGEST_PAGE
from postroom_client.results import Event, EventPage
from postroom_client.transport.exchange import Call, backoff, decoded, decoder
from postroom_client.transport.stream import PASSING_STATUSES, Frame, Subscription, frames

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_POLL_SECONDS = 50.0
LOOK_SECONDS = 0.5


class RawPage(Struct, frozen=True):
    """Events as the exact text that the server sent."""

    data: list[msgspec.Raw]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    inbox_ids: tuple[str, ...] = ()
    event_types: tuple[str, ...] = ()


class Bridge:
    """Holds the lock of its profile while it runs. Its position advances when an event was taken."""

    def __init__(
        self,
        profile: str,
        client: Client,
        wanted: Wanted,
        handler: Handler,
        note: Callable[[str], None],
        aside_after: int = 0,
    ) -> None:
        """Set up a bridge. After `aside_after` attempts an event is put aside; 0: never."""
        files.require_safe_name(profile)
        self._aside_after = aside_after
        self._profile = profile
        self._client = client
        self._wanted = wanted
        self._handler = handler
        self._note = note
        self._place = Place("")
        self._failures = 0

    def run(self, *, from_start: bool = False) -> None:
        """Runs until an error that a retry cannot fix."""
        with files.locked(self._profile):
            while True:
                try:
                    self._find_place(from_start=from_start)
                    for frame in self._coming():
                        self._failures = 0
                        self._deliver(frame)
                except PostroomError as error:
                    self._rest_after(error)

    def _rest_after(self, error: PostroomError) -> None:
        """Raises errors that will not pass."""
        if not self._is_passing(error):
            raise error
        self._failures += 1
        pause = backoff(self._failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._record_pause(error.message, pause)
        time.sleep(pause)

    def _is_passing(self, error: PostroomError) -> bool:
        """Return whether to retry. A position that the log no longer has is refused too, but found again."""
        if isinstance(error, StreamRefused):
            try:
                return not self._is_kept()
            except PostroomError:
                return True
        return isinstance(error, ConnectionFailed) or error.status in PASSING_STATUSES

    # the place

    def _find_place(self, *, from_start: bool) -> None:
        """Find the position at the first start for an account: the log's end, or its beginning if asked."""
        account_id = self._client.me().account_id
        for inbox_id in self._wanted.inbox_ids:
            self._client.get_inbox(inbox_id)  # raises if there is none: nothing would ever come
        found = files.find_place(self._profile)
        if found is None or found.account_id != account_id:
            self._move(Place(account_id, None if from_start else self._find_end()))
            return
        self._place = found
        if not self._is_kept():
            self._note(
                "The server no longer keeps the last event that was handled: continuing with the oldest one."
            )
            self._move(replace(found, last_event_id=None))

    def _find_end(self) -> str | None:
        """Return the id of the last event."""
        last: str | None = None
        while (page := self._ask(calls.list_events(after=last, limit=LONGEST_PAGE))).data:
            last = page.next
        return last

    def _is_kept(self) -> bool:
        if self._place.last_event_id is None:
            return True
        try:
            self._ask(calls.list_events(after=self._place.last_event_id, limit=1))
        except NotFound:
            return False
        return True

    def _move(self, place: Place) -> None:
        files.save(files.place_path(self._profile), place)
        self._place = place

    # events

    def _coming(self) -> Iterator[Frame]:
        """Yield events. The stream can only continue after one, so the very first is asked for."""
        while self._place.last_event_id is None:
            yield from self._first()
        subscription = Subscription(
            self._wanted.inbox_ids, self._wanted.event_types, self._place.last_event_id
        )
        self._note(f"Continuing after {self._place.last_event_id}.")
        yield from frames(self._client.base_url, self._client.api_key, subscription, self._record_pause)

    def _first(self) -> Iterator[Frame]:
        call = calls.list_events(
            limit=1,
            wait=LONGEST_POLL_SECONDS,
            inbox_ids=self._wanted.inbox_ids,
            event_types=self._wanted.event_types,
        )
        for text in self._ask(call).data:
            event = decoder(Event).decode(text)
            yield Frame(event.event_id, event.event, bytes(text).decode())

    def _deliver(self, frame: Frame) -> None:
        """Deliver an event. If it is not taken, offer it again; later ones wait until it is given up."""
        attempts = self._earlier_attempts(frame)
        outcome = "handed over"
        while (reason := self._handler.hand_over(frame)) is not None:
            attempts += 1
            self._move(replace(self._place, failing=Failure(frame.event_id, attempts, reason)))
            pause = backoff(attempts, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
            self._note(f"{frame.event_id}: {reason}. Again in {pause:.1f} s.")
            if self._gives_up(frame, attempts, pause):
                outcome = f"set aside, {files.put_aside(self._profile, frame.event_id, frame.text)}"
                break
        self._move(Place(self._place.account_id, frame.event_id, datetime.now(UTC)))
        files.skip_path(self._profile).unlink(missing_ok=True)
        self._note(f"{frame.event_id} {frame.kind}: {outcome}.")

    def _earlier_attempts(self, frame: Frame) -> int:
        """Includes those before a restart of the bridge."""
        failing = self._place.failing
        return failing.attempts if failing is not None and failing.event_id == frame.event_id else 0

    def _gives_up(self, frame: Frame, attempts: int, pause: float) -> bool:
        """Sleeps until the next attempt, unless the limit is reached or a skip is requested."""
        if 0 < self._aside_after <= attempts:
            return True
        ends = time.monotonic() + pause
        while not files.is_to_skip(self._profile, frame.event_id):
            left = ends - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, LOOK_SECONDS))
        return True

    def _ask(self, call: Call[EventPage]) -> RawPage:
        return decoded(RawPage)(self._client.exchange(call))

    def _record_pause(self, reason: str, seconds: float) -> None:
        self._note(f"The connection broke ({reason}). Again in {seconds:.1f} s.")
