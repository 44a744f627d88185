"""The client that blocks. It carries out the same descriptions of calls as the one that is awaited."""

import os
import time
from collections.abc import Generator, Iterator, Sequence
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
    pause_before_next,
    require_success,
)
from postroom_client.transport.stream import OnPause, Subscription
from postroom_client.transport.wire import OnProgress

T = TypeVar("T")


class Client:
    """Talks to a Postroom server. Without arguments it takes POSTROOM_API_KEY and POSTROOM_BASE_URL."""

    def __init__(
        self, api_key: str | None = None, base_url: str | None = None, *, patience: Patience | None = None
    ) -> None:
        self.api_key = require_key(api_key or os.environ.get("POSTROOM_API_KEY"))
        self.base_url = (base_url or os.environ.get("POSTROOM_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self._patience = patience or Patience()
        self._http = httpx2.Client(
            base_url=self.base_url, headers=wire.headers(self.api_key), verify=wire.trusted()
        )

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
        """Give the connections back."""
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
        """Every message of a thread, page by page."""
        return paging.each(self.run, calls.list_thread_messages, (thread_id,), {"order": order})

    def iter_events(
        self,
        *,
        after: str | None = None,
        inbox_ids: Sequence[str] = (),
        event_types: Sequence[str] = (),
        inbox_id: str | None = None,
        pod_id: str | None = None,
    ) -> Iterator[Event]:
        """The log up to now, oldest first; `stream` goes on for ever."""
        wanted = {"after": after, "inbox_ids": inbox_ids, "event_types": event_types}
        wanted |= {"inbox_id": inbox_id, "pod_id": pod_id}
        return paging.each(self.run, calls.list_events, (), wanted)

    me = methods.blocking(calls.me)
    get_account = methods.blocking(tenancy.get_account)
    update_account = methods.blocking(tenancy.update_account)
    create_inbox = methods.blocking(calls.create_inbox)
    list_inboxes = methods.blocking(calls.list_inboxes)
    get_inbox = methods.blocking(calls.get_inbox)
    update_inbox = methods.blocking(tenancy.update_inbox)
    delete_inbox = methods.blocking(calls.delete_inbox)
    create_api_key = methods.blocking(tenancy.create_api_key)
    list_api_keys = methods.blocking(tenancy.list_api_keys)
    delete_api_key = methods.blocking(tenancy.delete_api_key)
    test_inbox_webhook = methods.blocking(tenancy.test_inbox_webhook)
    rotate_inbox_webhook_secret = methods.blocking(tenancy.rotate_inbox_webhook_secret)
    send = methods.blocking(sending.send)
    reply = methods.blocking(sending.reply)
    reply_all = methods.blocking(sending.reply_all)
    forward = methods.blocking(sending.forward)
    create_draft = methods.blocking(drafting.create_draft)
    list_drafts = methods.blocking(drafting.list_drafts)
    get_draft = methods.blocking(drafting.get_draft)
    update_draft = methods.blocking(drafting.update_draft)
    delete_draft = methods.blocking(drafting.delete_draft)
    add_draft_files = methods.blocking(drafting.add_draft_files)
    delete_draft_file = methods.blocking(drafting.delete_draft_file)
    send_draft = methods.blocking(drafting.send_draft)
    list_approvals = methods.blocking(deciding.list_approvals)
    approve_message = methods.blocking(deciding.approve_message)
    reject_message = methods.blocking(deciding.reject_message)
    reschedule_message = methods.blocking(deciding.reschedule_message)
    release_message = methods.blocking(deciding.release_message)
    get_pause = methods.blocking(deciding.get_pause)
    pause = methods.blocking(deciding.pause)
    resume = methods.blocking(deciding.resume)
    get_inbox_limits = methods.blocking(deciding.get_inbox_limits)
    create_pod = methods.blocking(tenancy.create_pod)
    list_pods = methods.blocking(tenancy.list_pods)
    get_pod = methods.blocking(tenancy.get_pod)
    update_pod = methods.blocking(tenancy.update_pod)
    delete_pod = methods.blocking(tenancy.delete_pod)
    create_key = methods.blocking(tenancy.create_key)
    list_keys = methods.blocking(tenancy.list_keys)
    get_key = methods.blocking(tenancy.get_key)
    update_key = methods.blocking(tenancy.update_key)
    delete_key = methods.blocking(tenancy.delete_key)
    get_policy = methods.blocking(tenancy.get_policy)
    set_policy = methods.blocking(tenancy.set_policy)
    set_policy_mode = methods.blocking(tenancy.set_policy_mode)
    add_policy_rule = methods.blocking(tenancy.add_policy_rule)
    delete_policy_rule = methods.blocking(tenancy.delete_policy_rule)
    list_policy_audit = methods.blocking(tenancy.list_policy_audit)
    list_audit = methods.blocking(tenancy.list_audit)
    list_threads = methods.blocking(calls.list_threads)
    get_thread = methods.blocking(calls.get_thread)
    mark_thread = methods.blocking(calls.mark_thread)
    label_thread = methods.blocking(calls.label_thread)
    delete_thread = methods.blocking(calls.delete_thread)
    list_all_threads = methods.blocking(calls.list_all_threads)
    search_page = methods.blocking(calls.search_page)
    get_usage = methods.blocking(calls.get_usage)
    list_thread_messages = methods.blocking(calls.list_thread_messages)
    list_messages = methods.blocking(calls.list_messages)
    get_message = methods.blocking(calls.get_message)
    get_raw_message = methods.blocking(calls.get_raw_message)
    retry_message = methods.blocking(calls.retry_message)
    cancel_message = methods.blocking(calls.cancel_message)
    delete_message = methods.blocking(calls.delete_message)
    get_attachment = methods.blocking(calls.get_attachment)
    get_attachment_text = methods.blocking(calls.get_attachment_text)
    list_events = methods.blocking(calls.list_events)
    wait = methods.blocking(waiting.wait)
    list_suppressions = methods.blocking(calls.list_suppressions)
    add_suppression = methods.blocking(calls.add_suppression)
    delete_suppression = methods.blocking(calls.delete_suppression)
    add_domain = methods.blocking(calls.add_domain)
    list_domains = methods.blocking(calls.list_domains)
    get_domain = methods.blocking(calls.get_domain)
    verify_domain = methods.blocking(calls.verify_domain)
    delete_domain = methods.blocking(calls.delete_domain)
    get_webhook = methods.blocking(calls.get_webhook)
    set_webhook = methods.blocking(calls.set_webhook)
    delete_webhook = methods.blocking(calls.delete_webhook)
    test_webhook = methods.blocking(calls.test_webhook)
    rotate_webhook_secret = methods.blocking(calls.rotate_webhook_secret)
    list_webhook_deliveries = methods.blocking(calls.list_webhook_deliveries)
    retry_webhook_delivery = methods.blocking(calls.retry_webhook_delivery)
    retry_failed_webhook_deliveries = methods.blocking(calls.retry_failed_webhook_deliveries)
    iter_inboxes = methods.each(calls.list_inboxes)
    iter_api_keys = methods.each(tenancy.list_api_keys)
    iter_threads = methods.each(calls.list_threads)
    iter_all_threads = methods.each(calls.list_all_threads)
    iter_messages = methods.each(calls.list_messages)
    iter_drafts = methods.each(drafting.list_drafts)
    iter_approvals = methods.each(deciding.list_approvals)
    iter_pods = methods.each(tenancy.list_pods)
    iter_keys = methods.each(tenancy.list_keys)
    iter_policy_audit = methods.each(tenancy.list_policy_audit)
    iter_audit = methods.each(tenancy.list_audit)
    iter_suppressions = methods.each(calls.list_suppressions)
    iter_domains = methods.each(calls.list_domains)
    iter_webhook_deliveries = methods.each(calls.list_webhook_deliveries)
