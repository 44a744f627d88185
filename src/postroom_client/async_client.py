"""The client that is awaited."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar

import httpx2
import msgspec

from postroom_client.calls import calls, deciding, drafting, sending, tenancy, waiting
from postroom_client.results import Event, Message, SearchResult
from postroom_client.settings import DEFAULT_BASE_URL, Flags, require_key, resolve
from postroom_client.transport import methods, paging, stream, wire
from postroom_client.transport.exchange import (
    Call,
    Patience,
    Reply,
    Steps,
    carry_out,
    pause_before_next,
    require_success,
)
from postroom_client.transport.stream import OnPause, Subscription
from postroom_client.transport.wire import OnProgress

T = TypeVar("T")


class AsyncClient:
    """`Client`, awaited."""

    def __init__(
        self, api_key: str | None = None, base_url: str | None = None, *, patience: Patience | None = None
    ) -> None:
        self.api_key = require_key(api_key or os.environ.get("POSTROOM_API_KEY"))
        self.base_url = (base_url or os.environ.get("POSTROOM_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self._patience = patience or Patience()
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
        """Carries out one call, or steps of several."""
        return await carry_out(work, self._exchange_and_read)

    async def _exchange_and_read(self, call: Call[T]) -> T:
        return call.read(await self.exchange(call))

    async def exchange(self, call: Call[Any], on_progress: OnProgress | None = None) -> Reply:
        """The complete answer to a call, after as many attempts as patience allows."""
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
        """Events as they happen, for ever; after a broken connection it goes on behind the last one."""
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
        """Every message of a thread, page by page."""
        return paging.async_each(self.run, calls.list_thread_messages, (thread_id,), {"order": order})

    def iter_events(
        self,
        *,
        after: str | None = None,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
        inbox_id: str | None = None,
        pod_id: str | None = None,
    ) -> AsyncIterator[Event]:
        """The log up to now, oldest first; `stream` goes on for ever."""
        wanted = {"after": after, "inbox_ids": inbox_ids, "event_types": event_types}
        wanted |= {"inbox_id": inbox_id, "pod_id": pod_id}
        return paging.async_each(self.run, calls.list_events, (), wanted)

    me = methods.awaited(calls.me)
    get_account = methods.awaited(tenancy.get_account)
    update_account = methods.awaited(tenancy.update_account)
    create_inbox = methods.awaited(calls.create_inbox)
    list_inboxes = methods.awaited(calls.list_inboxes)
    get_inbox = methods.awaited(calls.get_inbox)
    update_inbox = methods.awaited(tenancy.update_inbox)
    delete_inbox = methods.awaited(calls.delete_inbox)
    create_api_key = methods.awaited(tenancy.create_api_key)
    list_api_keys = methods.awaited(tenancy.list_api_keys)
    delete_api_key = methods.awaited(tenancy.delete_api_key)
    test_inbox_webhook = methods.awaited(tenancy.test_inbox_webhook)
    rotate_inbox_webhook_secret = methods.awaited(tenancy.rotate_inbox_webhook_secret)
    send = methods.awaited(sending.send)
    reply = methods.awaited(sending.reply)
    reply_all = methods.awaited(sending.reply_all)
    forward = methods.awaited(sending.forward)
    create_draft = methods.awaited(drafting.create_draft)
    list_drafts = methods.awaited(drafting.list_drafts)
    get_draft = methods.awaited(drafting.get_draft)
    update_draft = methods.awaited(drafting.update_draft)
    delete_draft = methods.awaited(drafting.delete_draft)
    add_draft_files = methods.awaited(drafting.add_draft_files)
    delete_draft_file = methods.awaited(drafting.delete_draft_file)
    send_draft = methods.awaited(drafting.send_draft)
    list_approvals = methods.awaited(deciding.list_approvals)
    approve_message = methods.awaited(deciding.approve_message)
    reject_message = methods.awaited(deciding.reject_message)
    reschedule_message = methods.awaited(deciding.reschedule_message)
    release_message = methods.awaited(deciding.release_message)
    get_pause = methods.awaited(deciding.get_pause)
    pause = methods.awaited(deciding.pause)
    resume = methods.awaited(deciding.resume)
    get_inbox_limits = methods.awaited(deciding.get_inbox_limits)
    create_pod = methods.awaited(tenancy.create_pod)
    list_pods = methods.awaited(tenancy.list_pods)
    get_pod = methods.awaited(tenancy.get_pod)
    update_pod = methods.awaited(tenancy.update_pod)
    delete_pod = methods.awaited(tenancy.delete_pod)
    create_key = methods.awaited(tenancy.create_key)
    list_keys = methods.awaited(tenancy.list_keys)
    get_key = methods.awaited(tenancy.get_key)
    update_key = methods.awaited(tenancy.update_key)
    delete_key = methods.awaited(tenancy.delete_key)
    get_policy = methods.awaited(tenancy.get_policy)
    set_policy = methods.awaited(tenancy.set_policy)
    set_policy_mode = methods.awaited(tenancy.set_policy_mode)
    add_policy_rule = methods.awaited(tenancy.add_policy_rule)
    delete_policy_rule = methods.awaited(tenancy.delete_policy_rule)
    list_policy_audit = methods.awaited(tenancy.list_policy_audit)
    list_audit = methods.awaited(tenancy.list_audit)
    list_threads = methods.awaited(calls.list_threads)
    get_thread = methods.awaited(calls.get_thread)
    mark_thread = methods.awaited(calls.mark_thread)
    label_thread = methods.awaited(calls.label_thread)
    delete_thread = methods.awaited(calls.delete_thread)
    list_all_threads = methods.awaited(calls.list_all_threads)
    search_page = methods.awaited(calls.search_page)
    get_usage = methods.awaited(calls.get_usage)
    list_thread_messages = methods.awaited(calls.list_thread_messages)
    list_messages = methods.awaited(calls.list_messages)
    get_message = methods.awaited(calls.get_message)
    get_raw_message = methods.awaited(calls.get_raw_message)
    retry_message = methods.awaited(calls.retry_message)
    cancel_message = methods.awaited(calls.cancel_message)
    delete_message = methods.awaited(calls.delete_message)
    get_attachment = methods.awaited(calls.get_attachment)
    get_attachment_text = methods.awaited(calls.get_attachment_text)
    list_events = methods.awaited(calls.list_events)
    wait = methods.awaited(waiting.wait)
    list_suppressions = methods.awaited(calls.list_suppressions)
    add_suppression = methods.awaited(calls.add_suppression)
    delete_suppression = methods.awaited(calls.delete_suppression)
    add_domain = methods.awaited(calls.add_domain)
    list_domains = methods.awaited(calls.list_domains)
    get_domain = methods.awaited(calls.get_domain)
    verify_domain = methods.awaited(calls.verify_domain)
    delete_domain = methods.awaited(calls.delete_domain)
    get_webhook = methods.awaited(calls.get_webhook)
    set_webhook = methods.awaited(calls.set_webhook)
    delete_webhook = methods.awaited(calls.delete_webhook)
    test_webhook = methods.awaited(calls.test_webhook)
    rotate_webhook_secret = methods.awaited(calls.rotate_webhook_secret)
    list_webhook_deliveries = methods.awaited(calls.list_webhook_deliveries)
    retry_webhook_delivery = methods.awaited(calls.retry_webhook_delivery)
    retry_failed_webhook_deliveries = methods.awaited(calls.retry_failed_webhook_deliveries)
    iter_inboxes = methods.async_each(calls.list_inboxes)
    iter_api_keys = methods.async_each(tenancy.list_api_keys)
    iter_threads = methods.async_each(calls.list_threads)
    iter_all_threads = methods.async_each(calls.list_all_threads)
    iter_messages = methods.async_each(calls.list_messages)
    iter_drafts = methods.async_each(drafting.list_drafts)
    iter_approvals = methods.async_each(deciding.list_approvals)
    iter_pods = methods.async_each(tenancy.list_pods)
    iter_keys = methods.async_each(tenancy.list_keys)
    iter_policy_audit = methods.async_each(tenancy.list_policy_audit)
    iter_audit = methods.async_each(tenancy.list_audit)
    iter_suppressions = methods.async_each(calls.list_suppressions)
    iter_domains = methods.async_each(calls.list_domains)
    iter_webhook_deliveries = methods.async_each(calls.list_webhook_deliveries)
