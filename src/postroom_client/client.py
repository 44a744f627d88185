"""The client that blocks. It carries out the same descriptions of calls as the one that is awaited."""

import os
import time
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx2

from postroom_client.calls.methods import BlockingMethods
from postroom_client.results import Event
from postroom_client.settings import DEFAULT_BASE_URL, Flags, require_key, resolve, usable
from postroom_client.transport import stream, wire
from postroom_client.transport.exchange import (
    Call,
    OnWait,
    Patience,
    Reply,
    Steps,
    announce_pause,
    decoder,
    pause_before_next,
    require_success,
)
from postroom_client.transport.stream import OnPause, Subscription
from postroom_client.transport.wire import OnProgress

T = TypeVar("T")


class Client(BlockingMethods):
    """Talks to a Postroom server. Without arguments it takes POSTROOM_API_KEY and POSTROOM_BASE_URL.

    `on_wait` is called with the reason and the seconds of each pause before another attempt, as at a limit.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        patience: Patience | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        self.api_key = require_key(api_key or os.environ.get("POSTROOM_API_KEY"))
        self.base_url = usable(base_url or os.environ.get("POSTROOM_BASE_URL") or DEFAULT_BASE_URL)
        self._patience = patience or Patience()
        self._on_wait = on_wait
        self._http = httpx2.Client(
            base_url=self.base_url, headers=wire.headers(self.api_key), verify=wire.trusted()
        )

    @classmethod
    def from_profile(cls, name: str | None = None) -> "Client":
        """Find the server as the `postroom` command does: environment over profile."""
        found = resolve(Flags(profile=name), os.environ)
        return cls(found.api_key, found.base_url)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def run(self, work: Call[T] | Steps[T]) -> T:
        """Performs one call, or several steps."""
        if isinstance(work, Call):
            return work.read(self.exchange(work))
        result: Any = None
        while True:
            try:
                call = work.send(result)
            except StopIteration as end:
                final: T = end.value
                return final
            result = call.read(self.exchange(call))

    def exchange(self, call: Call[Any], on_progress: OnProgress | None = None) -> Reply:
        """Return the complete answer to a call, after as many attempts as patience allows."""
        request = wire.build(self._http, call, on_progress)
        attempt = 1
        while True:
            outcome = wire.attempt(self._http, request, call, on_progress)
            pause = pause_before_next(call, outcome, attempt, self._patience)
            if pause is None:
                return require_success(call, outcome, attempt)
            announce_pause(call, outcome, pause, self._on_wait)
            time.sleep(pause)
            attempt += 1

    def stream(
        self,
        *,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
        last_event_id: str | None = None,
        on_pause: OnPause | None = None,
    ) -> Generator[Event, None, None]:
        """Yield events as they happen, for ever; after a broken connection continue after the last one."""
        subscription = Subscription(inbox_ids, event_types, last_event_id)
        for frame in stream.frames(self.base_url, self.api_key, subscription, on_pause):
            yield decoder(Event).decode(frame.text)
