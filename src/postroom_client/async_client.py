"""The client that is awaited."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar

import httpx2

from postroom_client.calls.methods import AwaitedMethods
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
    carry_out,
    decoder,
    pause_before_next,
    require_success,
)
from postroom_client.transport.stream import OnPause, Subscription
from postroom_client.transport.wire import OnProgress

T = TypeVar("T")


class AsyncClient(AwaitedMethods):
    """`Client`, awaited."""

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
        self._http = httpx2.AsyncClient(
            base_url=self.base_url, headers=wire.headers(self.api_key), verify=wire.trusted()
        )

    @classmethod
    def from_profile(cls, name: str | None = None) -> "AsyncClient":
        found = resolve(Flags(profile=name), os.environ)
        return cls(found.api_key, found.base_url)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def run(self, work: Call[T] | Steps[T]) -> T:
        """Performs one call, or several steps."""
        return await carry_out(work, self._exchange_and_read)

    async def _exchange_and_read(self, call: Call[T]) -> T:
        return call.read(await self.exchange(call))

    async def exchange(self, call: Call[Any], on_progress: OnProgress | None = None) -> Reply:
        """Return the complete answer to a call, after as many attempts as patience allows."""
        request = wire.build(self._http, call, on_progress)
        attempt = 1
        while True:
            outcome = await wire.async_attempt(self._http, request, call, on_progress)
            pause = pause_before_next(call, outcome, attempt, self._patience)
            if pause is None:
                return require_success(call, outcome, attempt)
            announce_pause(call, outcome, pause, self._on_wait)
            await asyncio.sleep(pause)
            attempt += 1

    async def stream(
        self,
        *,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
        last_event_id: str | None = None,
        on_pause: OnPause | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yield events as they happen, for ever; after a broken connection continue after the last one."""
        subscription = Subscription(inbox_ids, event_types, last_event_id)
        async with aclosing(
            stream.async_frames(self.base_url, self.api_key, subscription, on_pause)
        ) as frames:
            async for frame in frames:
                yield decoder(Event).decode(frame.text)
