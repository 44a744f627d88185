"""The two clients. Both carry out the same descriptions of calls; one blocks, the other is awaited."""

import asyncio
import functools
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx2
import msgspec

from postroom_client import calls, deciding, drafting, paging, sending, stream, tenancy, waiting, wire
from postroom_client.errors import Unauthorized
from postroom_client.exchange import (
    Call,
    Patience,
    Reply,
    Steps,
    carry_out,
    pause_before_next,
    require_success,
)
from postroom_client.results import Event, Message, Page, SearchResult
from postroom_client.settings import DEFAULT_BASE_URL, Flags, resolve
from postroom_client.stream import OnPause, Subscription
from postroom_client.wire import OnProgress

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(describe: Callable[P, Call[T] | Steps[T]]) -> "Callable[Concatenate[Client, P], T]":
    @functools.wraps(describe)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(describe(*args, **kwargs))

    return method


def _awaited(
    describe: Callable[P, Call[T] | Steps[T]],
) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    @functools.wraps(describe)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(describe(*args, **kwargs))

    return method


def _each(describe: Callable[P, Call[Page[T]]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    @functools.wraps(describe)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return paging.each(self.run, describe, args, kwargs)

    return method


def _async_each(
    describe: Callable[P, Call[Page[T]]],
) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]":
    @functools.wraps(describe)
    def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return paging.async_each(self.run, describe, args, kwargs)

    return method


def _require_key(api_key: str | None) -> str:
    if not api_key:
        raise Unauthorized("There is no API key. Pass api_key, or set POSTROOM_API_KEY.")
    return api_key


class Client:
    """Talks to a Postroom server. Without arguments it takes POSTROOM_API_KEY and POSTROOM_BASE_URL."""

    def __init__(
        self, api_key: str | None = None, base_url: str | None = None, *, patience: Patience | None = None
    ) -> None:
        self.api_key = _require_key(api_key or os.environ.get("POSTROOM_API_KEY"))
        self.base_url = (base_url or os.environ.get("POSTROOM_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self._patience = patience or Patience()
        self._http = httpx2.Client(base_url=self.base_url, headers=wire.headers(self.api_key))

    @classmethod
    def from_profile(cls, name: str | None = None) -> "Client":
        """As the `postroom` command finds its server: environment over profile."""
        found = resolve(Flags(profile=name), os.environ)
        return cls(found.api_key, found.base_url)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run(self, work: Call[T] | Steps[T]) -> T:
        """Carries out one call, or steps of several."""
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
        """The complete answer to a call, after as many attempts as patience allows."""
        request = wire.build(self._http, call, on_progress)
        attempt = 1
        while True:
            outcome = wire.attempt(self._http, request, call, on_progress)
            pause = pause_before_next(call, outcome, attempt, self._patience)
            if pause is None:
                return require_success(call, outcome, attempt)
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
        """Events as they happen, for ever; after a broken connection it goes on behind the last one."""
        subscription = Subscription(inbox_ids, event_types, last_event_id)
        for frame in stream.frames(self.base_url, self.api_key, subscription, on_pause):
            yield msgspec.json.decode(frame.text, type=Event)

    def search(
        self, q: str, *, inbox_id: str | None = None, pod_id: str | None = None
    ) -> Iterator[SearchResult]:
        """All that a search finds, newest first; each page is asked for when it is wanted."""
        return paging.each(self.run, calls.search_page, (q,), {"inbox_id": inbox_id, "pod_id": pod_id})

    def iter_thread_messages(self, thread_id: str, *, order: calls.Order = "asc") -> Iterator[Message]:
        return paging.each(self.run, calls.list_thread_messages, (thread_id,), {"order": order})

    def iter_events(
        self,
        *,
        after: str | None = None,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
    ) -> Iterator[Event]:
        """The log up to now, oldest first; `stream` goes on for ever."""
        wanted = {"after": after, "inbox_ids": inbox_ids, "event_types": event_types}
        return paging.each(self.run, calls.list_events, (), wanted)

    me = _blocking(calls.me)
    create_inbox = _blocking(calls.create_inbox)
    list_inboxes = _blocking(calls.list_inboxes)
    get_inbox = _blocking(calls.get_inbox)
    update_inbox = _blocking(calls.update_inbox)
    delete_inbox = _blocking(calls.delete_inbox)
    create_api_key = _blocking(calls.create_api_key)
    list_api_keys = _blocking(calls.list_api_keys)
    delete_api_key = _blocking(calls.delete_api_key)
    send = _blocking(sending.send)
    reply = _blocking(sending.reply)
    reply_all = _blocking(sending.reply_all)
    forward = _blocking(sending.forward)
    create_draft = _blocking(drafting.create_draft)
    list_drafts = _blocking(drafting.list_drafts)
    get_draft = _blocking(drafting.get_draft)
    update_draft = _blocking(drafting.update_draft)
    delete_draft = _blocking(drafting.delete_draft)
    add_draft_files = _blocking(drafting.add_draft_files)
    delete_draft_file = _blocking(drafting.delete_draft_file)
    send_draft = _blocking(drafting.send_draft)
    list_approvals = _blocking(deciding.list_approvals)
    approve_message = _blocking(deciding.approve_message)
    reject_message = _blocking(deciding.reject_message)
    reschedule_message = _blocking(deciding.reschedule_message)
    get_pause = _blocking(deciding.get_pause)
    pause = _blocking(deciding.pause)
    resume = _blocking(deciding.resume)
    get_inbox_limits = _blocking(deciding.get_inbox_limits)
    create_pod = _blocking(tenancy.create_pod)
    list_pods = _blocking(tenancy.list_pods)
    get_pod = _blocking(tenancy.get_pod)
    update_pod = _blocking(tenancy.update_pod)
    delete_pod = _blocking(tenancy.delete_pod)
    create_key = _blocking(tenancy.create_key)
    list_keys = _blocking(tenancy.list_keys)
    update_key = _blocking(tenancy.update_key)
    delete_key = _blocking(tenancy.delete_key)
    get_policy = _blocking(tenancy.get_policy)
    set_policy_mode = _blocking(tenancy.set_policy_mode)
    add_policy_rule = _blocking(tenancy.add_policy_rule)
    delete_policy_rule = _blocking(tenancy.delete_policy_rule)
    list_policy_audit = _blocking(tenancy.list_policy_audit)
    list_audit = _blocking(tenancy.list_audit)
    list_threads = _blocking(calls.list_threads)
    get_thread = _blocking(calls.get_thread)
    mark_thread = _blocking(calls.mark_thread)
    label_thread = _blocking(calls.label_thread)
    list_all_threads = _blocking(calls.list_all_threads)
    search_page = _blocking(calls.search_page)
    get_usage = _blocking(calls.get_usage)
    list_thread_messages = _blocking(calls.list_thread_messages)
    list_messages = _blocking(calls.list_messages)
    get_message = _blocking(calls.get_message)
    get_raw_message = _blocking(calls.get_raw_message)
    retry_message = _blocking(calls.retry_message)
    cancel_message = _blocking(calls.cancel_message)
    get_attachment = _blocking(calls.get_attachment)
    get_attachment_text = _blocking(calls.get_attachment_text)
    list_events = _blocking(calls.list_events)
    wait = _blocking(waiting.wait)
    list_suppressions = _blocking(calls.list_suppressions)
    add_suppression = _blocking(calls.add_suppression)
    delete_suppression = _blocking(calls.delete_suppression)
    add_domain = _blocking(calls.add_domain)
    list_domains = _blocking(calls.list_domains)
    get_domain = _blocking(calls.get_domain)
    verify_domain = _blocking(calls.verify_domain)
    delete_domain = _blocking(calls.delete_domain)
    get_webhook = _blocking(calls.get_webhook)
    set_webhook = _blocking(calls.set_webhook)
    delete_webhook = _blocking(calls.delete_webhook)
    test_webhook = _blocking(calls.test_webhook)
    rotate_webhook_secret = _blocking(calls.rotate_webhook_secret)
    list_webhook_deliveries = _blocking(calls.list_webhook_deliveries)
    retry_webhook_delivery = _blocking(calls.retry_webhook_delivery)
    retry_failed_webhook_deliveries = _blocking(calls.retry_failed_webhook_deliveries)
    iter_inboxes = _each(calls.list_inboxes)
    iter_api_keys = _each(calls.list_api_keys)
    iter_threads = _each(calls.list_threads)
    iter_all_threads = _each(calls.list_all_threads)
    iter_messages = _each(calls.list_messages)
    iter_suppressions = _each(calls.list_suppressions)
    iter_domains = _each(calls.list_domains)
    iter_webhook_deliveries = _each(calls.list_webhook_deliveries)


class AsyncClient:
    """`Client`, awaited."""

    def __init__(
        self, api_key: str | None = None, base_url: str | None = None, *, patience: Patience | None = None
    ) -> None:
        self.api_key = _require_key(api_key or os.environ.get("POSTROOM_API_KEY"))
        self.base_url = (base_url or os.environ.get("POSTROOM_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self._patience = patience or Patience()
        self._http = httpx2.AsyncClient(base_url=self.base_url, headers=wire.headers(self.api_key))

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
        await self._http.aclose()

    async def run(self, work: Call[T] | Steps[T]) -> T:
        return await carry_out(work, self._exchange_and_read)

    async def _exchange_and_read(self, call: Call[T]) -> T:
        return call.read(await self.exchange(call))

    async def exchange(self, call: Call[Any], on_progress: OnProgress | None = None) -> Reply:
        request = wire.build(self._http, call, on_progress)
        attempt = 1
        while True:
            outcome = await wire.async_attempt(self._http, request, call, on_progress)
            pause = pause_before_next(call, outcome, attempt, self._patience)
            if pause is None:
                return require_success(call, outcome, attempt)
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
        subscription = Subscription(inbox_ids, event_types, last_event_id)
        async with aclosing(
            stream.async_frames(self.base_url, self.api_key, subscription, on_pause)
        ) as frames:
            async for frame in frames:
                yield msgspec.json.decode(frame.text, type=Event)

    def search(
        self, q: str, *, inbox_id: str | None = None, pod_id: str | None = None
    ) -> AsyncIterator[SearchResult]:
        """All that a search finds, newest first; each page is asked for when it is wanted."""
        return paging.async_each(self.run, calls.search_page, (q,), {"inbox_id": inbox_id, "pod_id": pod_id})

    def iter_thread_messages(self, thread_id: str, *, order: calls.Order = "asc") -> AsyncIterator[Message]:
        return paging.async_each(self.run, calls.list_thread_messages, (thread_id,), {"order": order})

    def iter_events(
        self,
        *,
        after: str | None = None,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
    ) -> AsyncIterator[Event]:
        """The log up to now, oldest first; `stream` goes on for ever."""
        wanted = {"after": after, "inbox_ids": inbox_ids, "event_types": event_types}
        return paging.async_each(self.run, calls.list_events, (), wanted)

    me = _awaited(calls.me)
    create_inbox = _awaited(calls.create_inbox)
    list_inboxes = _awaited(calls.list_inboxes)
    get_inbox = _awaited(calls.get_inbox)
    update_inbox = _awaited(calls.update_inbox)
    delete_inbox = _awaited(calls.delete_inbox)
    create_api_key = _awaited(calls.create_api_key)
    list_api_keys = _awaited(calls.list_api_keys)
    delete_api_key = _awaited(calls.delete_api_key)
    send = _awaited(sending.send)
    reply = _awaited(sending.reply)
    reply_all = _awaited(sending.reply_all)
    forward = _awaited(sending.forward)
    create_draft = _awaited(drafting.create_draft)
    list_drafts = _awaited(drafting.list_drafts)
    get_draft = _awaited(drafting.get_draft)
    update_draft = _awaited(drafting.update_draft)
    delete_draft = _awaited(drafting.delete_draft)
    add_draft_files = _awaited(drafting.add_draft_files)
    delete_draft_file = _awaited(drafting.delete_draft_file)
    send_draft = _awaited(drafting.send_draft)
    list_approvals = _awaited(deciding.list_approvals)
    approve_message = _awaited(deciding.approve_message)
    reject_message = _awaited(deciding.reject_message)
    reschedule_message = _awaited(deciding.reschedule_message)
    get_pause = _awaited(deciding.get_pause)
    pause = _awaited(deciding.pause)
    resume = _awaited(deciding.resume)
    get_inbox_limits = _awaited(deciding.get_inbox_limits)
    create_pod = _awaited(tenancy.create_pod)
    list_pods = _awaited(tenancy.list_pods)
    get_pod = _awaited(tenancy.get_pod)
    update_pod = _awaited(tenancy.update_pod)
    delete_pod = _awaited(tenancy.delete_pod)
    create_key = _awaited(tenancy.create_key)
    list_keys = _awaited(tenancy.list_keys)
    update_key = _awaited(tenancy.update_key)
    delete_key = _awaited(tenancy.delete_key)
    get_policy = _awaited(tenancy.get_policy)
    set_policy_mode = _awaited(tenancy.set_policy_mode)
    add_policy_rule = _awaited(tenancy.add_policy_rule)
    delete_policy_rule = _awaited(tenancy.delete_policy_rule)
    list_policy_audit = _awaited(tenancy.list_policy_audit)
    list_audit = _awaited(tenancy.list_audit)
    list_threads = _awaited(calls.list_threads)
    get_thread = _awaited(calls.get_thread)
    mark_thread = _awaited(calls.mark_thread)
    label_thread = _awaited(calls.label_thread)
    list_all_threads = _awaited(calls.list_all_threads)
    search_page = _awaited(calls.search_page)
    get_usage = _awaited(calls.get_usage)
    list_thread_messages = _awaited(calls.list_thread_messages)
    list_messages = _awaited(calls.list_messages)
    get_message = _awaited(calls.get_message)
    get_raw_message = _awaited(calls.get_raw_message)
    retry_message = _awaited(calls.retry_message)
    cancel_message = _awaited(calls.cancel_message)
    get_attachment = _awaited(calls.get_attachment)
    get_attachment_text = _awaited(calls.get_attachment_text)
    list_events = _awaited(calls.list_events)
    wait = _awaited(waiting.wait)
    list_suppressions = _awaited(calls.list_suppressions)
    add_suppression = _awaited(calls.add_suppression)
    delete_suppression = _awaited(calls.delete_suppression)
    add_domain = _awaited(calls.add_domain)
    list_domains = _awaited(calls.list_domains)
    get_domain = _awaited(calls.get_domain)
    verify_domain = _awaited(calls.verify_domain)
    delete_domain = _awaited(calls.delete_domain)
    get_webhook = _awaited(calls.get_webhook)
    set_webhook = _awaited(calls.set_webhook)
    delete_webhook = _awaited(calls.delete_webhook)
    test_webhook = _awaited(calls.test_webhook)
    rotate_webhook_secret = _awaited(calls.rotate_webhook_secret)
    list_webhook_deliveries = _awaited(calls.list_webhook_deliveries)
    retry_webhook_delivery = _awaited(calls.retry_webhook_delivery)
    retry_failed_webhook_deliveries = _awaited(calls.retry_failed_webhook_deliveries)
    iter_inboxes = _async_each(calls.list_inboxes)
    iter_api_keys = _async_each(calls.list_api_keys)
    iter_threads = _async_each(calls.list_threads)
    iter_all_threads = _async_each(calls.list_all_threads)
    iter_messages = _async_each(calls.list_messages)
    iter_suppressions = _async_each(calls.list_suppressions)
    iter_domains = _async_each(calls.list_domains)
    iter_webhook_deliveries = _async_each(calls.list_webhook_deliveries)
