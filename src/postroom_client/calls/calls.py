"""Every call of the interface but sending: method, path, what it carries and what it returns."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

from postroom_client.account_results import (
    Domain,
    Retried,
    Suppression,
    Webhook,
    WebhookDelivery,
    WebhookSecret,
    WebhookTest,
)
from postroom_client.results import (
    ApprovalRules,
    AttachmentText,
    Budget,
    EventPage,
    Inbox,
    Me,
    Message,
    MetadataValue,
    Page,
    SearchPage,
    Thread,
    ThreadMessages,
    Usage,
)
from postroom_client.transport.exchange import Call, content, decoded, nothing, path, present

Order = Literal["asc", "desc"]
UsageGrouping = Literal["day", "inbox", "pod"]
Direction = Literal["inbound", "outbound"]
DeliveryState = Literal["pending", "delivered", "failed"]
ANSWER_MARGIN_SECONDS = 15


def me() -> Call[Me]:
    """Who the key speaks for."""
    return Call("GET", "/v1/me", decoded(Me))


# inboxes


def create_inbox(
    mailbox_name: str,
    *,
    display_name: str | None = None,
    domain: str | None = None,
    pod_id: str | None = None,
    webhook_url: str | None = None,
    approval: ApprovalRules | Mapping[str, Any] | None = None,
    limits: Budget | Mapping[str, int] | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
    retention_days: int | None = None,
) -> Call[Inbox]:
    """Create `mailbox_name@domain`; without a domain, on the server's own."""
    body: dict[str, Any] = {"mailboxName": mailbox_name, "displayName": display_name, "domain": domain}
    body |= {"podId": pod_id, "webhookUrl": webhook_url, "approval": approval, "limits": limits}
    body |= {"metadata": metadata, "retentionDays": retention_days}
    return Call("POST", "/v1/inboxes", decoded(Inbox), json=given(body), is_repeatable=False)


def list_inboxes(*, pod_id: str | None = None, limit: int = 50, offset: int = 0) -> Call[Page[Inbox]]:
    """Inboxes, newest first; of one pod by its id or `client_id`."""
    query = present(podId=pod_id, limit=limit, offset=offset)
    return Call("GET", "/v1/inboxes", decoded(Page[Inbox]), query=query)


def get_inbox(inbox_id: str) -> Call[Inbox]:
    """An inbox by its id."""
    return Call("GET", path("v1", "inboxes", inbox_id), decoded(Inbox))


def delete_inbox(inbox_id: str) -> Call[None]:
    """Delete an inbox and all it holds."""
    return Call("DELETE", path("v1", "inboxes", inbox_id), nothing)


# threads and messages


def list_all_threads(
    *,
    inbox_id: str | None = None,
    pod_id: str | None = None,
    is_read: bool | None = None,
    label: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[Thread]]:
    """Threads across inboxes, newest first; the total stops counting 1,000 behind the page."""
    where = {"inboxId": inbox_id, "podId": pod_id}
    query = present(**where, is_read=is_read, label=label, limit=limit, offset=offset)
    return Call("GET", "/v1/threads", decoded(Page[Thread]), query=query)


def list_threads(
    inbox_id: str,
    *,
    is_read: bool | None = None,
    label: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[Thread]]:
    """Threads, newest first; `is_read=False` gives the work not yet done."""
    query = present(is_read=is_read, label=label, limit=limit, offset=offset)
    return Call("GET", path("v1", "inboxes", inbox_id, "threads"), decoded(Page[Thread]), query=query)


def get_thread(thread_id: str) -> Call[Thread]:
    """A thread by its id."""
    return Call("GET", path("v1", "threads", thread_id), decoded(Thread))


def mark_thread(thread_id: str, *, is_read: bool) -> Call[Thread]:
    """Set the read flag."""
    return Call("PATCH", path("v1", "threads", thread_id), decoded(Thread), json={"is_read": is_read})


def label_thread(thread_id: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[Thread]:
    """Add labels to a thread, and remove some."""
    body = {"addLabels": list(add), "removeLabels": list(remove)}
    return Call("PATCH", path("v1", "threads", thread_id), decoded(Thread), json=body)


def delete_thread(thread_id: str) -> Call[None]:
    """Delete a thread with its messages; what has not left never does."""
    return Call("DELETE", path("v1", "threads", thread_id), nothing)


def search_page(
    q: str,
    *,
    inbox_id: str | None = None,
    pod_id: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
) -> Call[SearchPage]:
    """One page of what a search finds, newest first; `search` gives all of them."""
    query = present(q=q, inboxId=inbox_id, podId=pod_id, limit=limit, cursor=cursor)
    return Call("GET", "/v1/search", decoded(SearchPage), query=query)


def get_usage(
    *,
    first: date | None = None,
    last: date | None = None,
    group_by: UsageGrouping = "day",
    inbox_id: str | None = None,
    pod_id: str | None = None,
) -> Call[Usage]:
    """What was received, sent and kept; without days, in the last 30."""
    days = {"from": first and first.isoformat(), "to": last and last.isoformat()}
    query = present(**days, group_by=group_by, inboxId=inbox_id, podId=pod_id)
    return Call("GET", "/v1/usage", decoded(Usage), query=query)


def list_thread_messages(
    thread_id: str, *, order: Order = "asc", limit: int = 50, offset: int = 0
) -> Call[ThreadMessages]:
    """The messages of a thread, oldest first unless asked otherwise."""
    query = present(order=None if order == "asc" else order, limit=limit, offset=offset)
    return Call("GET", path("v1", "threads", thread_id, "messages"), decoded(ThreadMessages), query=query)


def list_messages(
    inbox_id: str,
    *,
    direction: Direction | None = None,
    include_blocked: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[Message]]:
    """The messages of an inbox across its threads, newest first."""
    include = "blocked" if include_blocked else None
    query = present(direction=direction, include=include, limit=limit, offset=offset)
    return Call("GET", path("v1", "inboxes", inbox_id, "messages"), decoded(Page[Message]), query=query)


def get_message(message_id: str) -> Call[Message]:
    """A message; a sent one with the state of each recipient."""
    return Call("GET", path("v1", "messages", message_id), decoded(Message))


def get_raw_message(message_id: str) -> Call[bytes]:
    """The mail as it came, RFC 5322."""
    return Call("GET", path("v1", "messages", message_id, "raw"), content, timeout_seconds=120)


def retry_message(message_id: str) -> Call[Message]:
    """Deliver again now what is waiting or failed."""
    return Call("POST", path("v1", "messages", message_id, "retry"), decoded(Message), is_repeatable=False)


def cancel_message(message_id: str) -> Call[Message]:
    """Give up the deliveries that are still waiting."""
    return Call("POST", path("v1", "messages", message_id, "cancel"), decoded(Message), is_repeatable=False)


def delete_message(message_id: str) -> Call[None]:
    """Delete a message; what has not left never does."""
    return Call("DELETE", path("v1", "messages", message_id), nothing)


# attachments


def get_attachment(message_id: str, filename: str) -> Call[bytes]:
    """The bytes of a file."""
    target = path("v1", "attachments", message_id, filename)
    return Call("GET", target, content, follows_redirects=True, timeout_seconds=120)


def get_attachment_text(message_id: str, filename: str) -> Call[AttachmentText]:
    """The text found in an attachment."""
    return Call("GET", path("v1", "attachments", message_id, filename, "text"), decoded(AttachmentText))


# events


def list_events(
    *,
    after: str | None = None,
    limit: int = 50,
    wait: float = 0,
    order: Order = "asc",
    inbox_ids: Sequence[str] = (),
    event_types: Sequence[str] = (),
    inbox_id: str | None = None,
    pod_id: str | None = None,
) -> Call[EventPage]:
    """The log of events, oldest first; with `wait`, holds on up to 60 seconds for one."""
    query = present(
        after=after,
        limit=limit,
        wait=wait or None,
        order=None if order == "asc" else order,
        inbox_ids=",".join(inbox_ids) or None,
        event_types=",".join(event_types) or None,
        inboxId=inbox_id,
        podId=pod_id,
    )
    return Call(
        "GET", "/v1/events", decoded(EventPage), query=query, timeout_seconds=wait + ANSWER_MARGIN_SECONDS
    )


# suppressions


def list_suppressions(*, limit: int = 50, offset: int = 0) -> Call[Page[Suppression]]:
    """Addresses that no mail goes to."""
    query = present(limit=limit, offset=offset)
    return Call("GET", "/v1/suppressions", decoded(Page[Suppression]), query=query)


def add_suppression(address: str) -> Call[Suppression]:
    """Never send to an address again."""
    return Call("POST", "/v1/suppressions", decoded(Suppression), json={"address": address})


def delete_suppression(address: str) -> Call[None]:
    """Let mail go to an address again."""
    return Call("DELETE", path("v1", "suppressions", address), nothing)


# domains


def add_domain(domain: str, *, pod_id: str | None = None) -> Call[Domain]:
    """Add a domain of your own, of a pod if you like; the result lists the DNS records to set."""
    body = given({"domain": domain, "podId": pod_id})
    return Call("POST", "/v1/domains", decoded(Domain), json=body, is_repeatable=False)


def list_domains(*, limit: int = 50, offset: int = 0) -> Call[Page[Domain]]:
    """Domains of your own, newest first."""
    return Call("GET", "/v1/domains", decoded(Page[Domain]), query=present(limit=limit, offset=offset))


def get_domain(domain_id: str) -> Call[Domain]:
    """A domain and the DNS records to set for it."""
    return Call("GET", path("v1", "domains", domain_id), decoded(Domain))


def verify_domain(domain_id: str) -> Call[Domain]:
    """Look the records up in DNS; each then says whether it was found."""
    return Call("POST", path("v1", "domains", domain_id, "verify"), decoded(Domain), timeout_seconds=60)


def delete_domain(domain_id: str) -> Call[None]:
    """Delete a domain that no inbox uses."""
    return Call("DELETE", path("v1", "domains", domain_id), nothing)


# webhooks


def get_webhook() -> Call[Webhook]:
    """The account's webhook, without its secret."""
    return Call("GET", "/v1/webhook", decoded(Webhook))


def set_webhook(
    url: str, *, event_types: Sequence[str] | None = None, secret: str | None = None
) -> Call[Webhook]:
    """Have the account's events posted to `url`; a secret that is made now is shown only now."""
    kinds = None if event_types is None else list(event_types)
    body = given({"url": url, "eventTypes": kinds, "secret": secret})
    return Call("PUT", "/v1/webhook", decoded(Webhook), json=body)


def delete_webhook() -> Call[None]:
    """Post events nowhere any more."""
    return Call("DELETE", "/v1/webhook", nothing)


def test_webhook() -> Call[WebhookTest]:
    """Have a signed event of kind `webhook.test` posted now."""
    return Call("POST", "/v1/webhook/test", decoded(WebhookTest), is_repeatable=False)


def rotate_webhook_secret() -> Call[WebhookSecret]:
    """A new secret, shown only now."""
    return Call("POST", "/v1/webhook/rotate-secret", decoded(WebhookSecret), is_repeatable=False)


def list_webhook_deliveries(
    *, state: DeliveryState | None = None, limit: int = 50, offset: int = 0
) -> Call[Page[WebhookDelivery]]:
    """What was posted, newest first, with every attempt."""
    query = present(state=state, limit=limit, offset=offset)
    return Call("GET", "/v1/webhook/deliveries", decoded(Page[WebhookDelivery]), query=query)


def retry_webhook_delivery(delivery_id: str) -> Call[WebhookDelivery]:
    """Post it again, now."""
    target = path("v1", "webhook", "deliveries", delivery_id, "retry")
    return Call("POST", target, decoded(WebhookDelivery), is_repeatable=False)


def retry_failed_webhook_deliveries(since: datetime) -> Call[Retried]:
    """Post again, now, all that failed since a moment."""
    body = {"since": since.astimezone(UTC)}
    return Call("POST", "/v1/webhook/deliveries/retry", decoded(Retried), json=body, is_repeatable=False)


def given(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
