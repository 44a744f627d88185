"""Delivers a claimed webhook: signs the stored bytes, posts them, records the outcome."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from postroom import log, traces
from postroom.clock import SECOND
from postroom.events import event_log, notifications, webhooks
from postroom.events.event_log import Event
from postroom.events.payload import traceparent_of
from postroom.events.webhook_signature import sign, standard_headers
from postroom.events.webhooks import Webhook
from postroom.outward import mcp_event, spans, webhook_filter
from postroom.outward.courier import DeliveryError, WebhookCourier, to_outcome
from postroom.processes import process_metrics
from postroom.queue import deliveries, outcomes
from postroom.queue.deliveries import DONE, FAILED, Delivery
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.queue.recording import Recorder
from postroom.resources import Resources
from postroom.storage.database import Tx

GONE = 410
UNAUTHORIZED = 401


async def deliver_webhook(
    resources: Resources, courier: WebhookCourier, recorder: Recorder, delivery: Delivery
) -> None:
    event = await resources.db.read(event_log.find, delivery.event_id or "")
    webhook = await resources.db.read(webhooks.find, delivery.webhook_owner or "")
    if event is None or webhook is None or not (webhook.enabled or delivery.is_replay):
        await resources.db.write(give_up, delivery, resources.now())
        return
    may_end = webhook.expires_at is not None or webhook.key_id is not None
    if may_end and await resources.db.read(webhook_filter.is_over, webhook, resources.now()):
        await resources.db.write(end_subscription, delivery, webhook, resources.now())
        return
    outcome = await try_to_post(resources, courier, webhook, event)
    tried = TriedDelivery(delivery, outcome)
    await recorder.record(tried, lambda: write(resources, tried, webhook))
    process_metrics.WEBHOOK_ATTEMPTS.increment(
        process_metrics.DONE
        if outcome.is_success
        else process_metrics.FAILED
        if outcome.is_permanent
        else process_metrics.AGAIN
    )


async def write(resources: Resources, tried: TriedDelivery, webhook: Webhook | None) -> list[str]:
    await resources.db.write(record_tried, tried, webhook)
    return []


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    """Writes an outcome that an earlier run left."""
    webhook = await resources.db.read(webhooks.find, tried.delivery.webhook_owner or "")
    return await write(resources, tried, webhook)


def end_subscription(tx: Tx, delivery: Delivery, webhook: Webhook, now: int) -> None:
    webhooks.remove(tx, webhook.owner)
    give_up(tx, delivery, now)


def give_up(tx: Tx, delivery: Delivery, now: int) -> None:
    deliveries.finish(tx, delivery, FAILED, None, "There is no longer an enabled webhook for it.", now)


async def try_to_post(
    resources: Resources, courier: WebhookCourier, webhook: Webhook, event: Event
) -> Outcome:
    """Post an event. Any exception counts as an attempt, so that nothing is retried for ever."""
    started_at = resources.now()
    parent, span_id = traces.read(traceparent_of(event.payload)), traces.new_span()
    try:
        outcome = await post(resources, courier, webhook, event, span_id)
        if resources.tracing is not None and parent is not None:
            spans.record_post(resources.tracing, event.kind, parent, span_id, started_at, outcome)
        return outcome
    except Exception:
        log.get().exception("an event could not be posted", event_id=event.id)
        ended_at = resources.now()
        took = ended_at - started_at
        return Outcome(code=None, text="An error on this server.", milliseconds=took, ended_at=ended_at)


async def post(
    resources: Resources, courier: WebhookCourier, webhook: Webhook, event: Event, span_id: str = ""
) -> Outcome:
    """Posts the event in the webhook's vocabulary, which may give no body or several for one event."""
    traced = traces.read(traceparent_of(event.payload))
    if traced is not None:
        own = span_id if resources.tracing is not None else ""
        webhook = replace(
            webhook, headers={**webhook.headers, "traceparent": traces.write(traced[0], own or traced[1])}
        )
    if webhook.query and not await resources.db.read(webhook_filter.matches, webhook, event):
        return nothing_to_send("Its search does not match.", resources.now())
    if webhook.form == webhooks.MCP:
        webhook = replace(webhook, headers={**webhook.headers, **mcp_event.headers(webhook)})
        return await post_body(resources, courier, webhook, event.id, mcp_event.write(event.payload))
    if not webhook.vocabulary or not event.message_id:  # a test event has no message
        return await post_body(resources, courier, webhook, event.id, event.payload)
    render, now = resources.event_translation.render, resources.now()
    assert render is not None
    posts = await resources.db.read(render, event, webhook.vocabulary, resources.config.base_url, now)
    outcome = nothing_to_send("It has no event in this format.", now)
    for event_id, body in posts:
        outcome = await post_body(resources, courier, webhook, event_id, body)
        if not outcome.is_success:
            return outcome
    return outcome


def nothing_to_send(why: str, now: int) -> Outcome:
    return Outcome(code=None, text=why, milliseconds=0, ended_at=now, is_success=True)


async def post_body(
    resources: Resources, courier: WebhookCourier, webhook: Webhook, event_id: str, body: bytes
) -> Outcome:
    """Post the body. After a 401 try the previous secret too: the receiver may not have the new one yet."""
    for secret in webhook.secrets_at(resources.now()):
        signed = signed_headers(event_id, body, secret, resources.now())
        if webhook.vocabulary:
            signed |= svix_headers(signed)
        headers = {**webhook.headers, **signed}
        outcome = await try_url(resources, courier, webhook.url, body, headers, lambda status: status == GONE)
        if outcome.code != UNAUTHORIZED:
            break
    return outcome


async def try_url(
    resources: Resources,
    courier: WebhookCourier,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    is_final: Callable[[int], bool],
) -> Outcome:
    """Try a URL. `is_final` says which status ends the delivery; others are retried."""
    started_at = resources.now()
    try:
        answer = await courier.post(url, body, headers)
    except DeliveryError as error:
        return to_outcome(error, started_at, resources.now())
    return Outcome(
        code=answer.status,
        text=answer.excerpt,
        milliseconds=answer.milliseconds,
        ended_at=resources.now(),
        is_success=answer.is_success,
        is_permanent=is_final(answer.status),
        retry_after_seconds=answer.retry_after_seconds,
    )


def svix_headers(signed: dict[str, str]) -> dict[str, str]:
    """Return the same signature under the header names of Svix, if the secret has the right form."""
    names = ("id", "timestamp", "signature")
    return {f"svix-{name}": signed[f"webhook-{name}"] for name in names if f"webhook-{name}" in signed}


def signed_headers(event_id: str, body: bytes, secret: str, now: int) -> dict[str, str]:
    timestamp = now // SECOND
    return {
        "Content-Type": "application/json",
        "User-Agent": "Postroom",
        "X-Timestamp": str(timestamp),
        "X-Signature": sign(secret, timestamp, body),
        "X-Event-Id": event_id,
        **standard_headers(secret, event_id, timestamp, body),
    }


def record_tried(tx: Tx, tried: TriedDelivery, webhook: Webhook | None) -> None:
    """Record an attempt. A manual repeat says nothing about the health of the endpoint.

    `webhook` is from before the attempt; None if it was deleted.
    """
    state = outcomes.record(tx, tried)
    if state is None or webhook is None or tried.delivery.is_replay:
        return
    if state == DONE:
        webhooks.record_success(tx, webhook)
    else:
        webhooks.record_failure(tx, webhook, tried.outcome.code == GONE, tried.outcome.ended_at)
        record_if_disabled(tx, webhook, tried.outcome.ended_at)


def record_if_disabled(tx: Tx, webhook: Webhook, now: int) -> None:
    current = webhooks.find(tx, webhook.owner)
    if webhook.enabled and current is not None and not current.enabled:
        notifications.notify(tx, webhook.account_id, notifications.WEBHOOK_DISABLED, "", webhook.url, now)
