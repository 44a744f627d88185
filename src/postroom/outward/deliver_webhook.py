"""A claimed webhook delivery: sign the stored bytes, post them, record the outcome."""

from dataclasses import dataclass

from postroom import log
from postroom.clock import SECOND
from postroom.events import events, webhooks
from postroom.events.events import Event
from postroom.events.webhook_signature import sign, standard_headers
from postroom.events.webhooks import Webhook
from postroom.outward.courier import DeliveryError, WebhookAnswer, WebhookCourier
from postroom.processes import process_metrics
from postroom.queue import deliveries, retries
from postroom.queue.deliveries import DONE, FAILED, Delivery
from postroom.resources import Resources
from postroom.storage.database import Tx

GONE = 410
UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to: the endpoint's answer, or why there was none."""

    code: int | None
    text: str
    milliseconds: int
    is_success: bool = False
    is_permanent: bool = False
    retry_after_seconds: int | None = None


async def deliver_webhook(resources: Resources, courier: WebhookCourier, delivery: Delivery) -> None:
    event = await resources.db.read(events.find, delivery.event_id or "")
    webhook = await resources.db.read(webhooks.find, delivery.webhook_owner or "")
    if event is None or webhook is None or not (webhook.enabled or delivery.is_replay):
        await resources.db.write(give_up, delivery, resources.now())
        return
    outcome = await try_to_post(resources, courier, webhook, event)
    await resources.db.write(record_outcome, delivery, webhook, outcome, resources.now())
    process_metrics.WEBHOOK_ATTEMPTS.increment(
        process_metrics.DONE
        if outcome.is_success
        else process_metrics.FAILED
        if outcome.is_permanent
        else process_metrics.AGAIN
    )


def give_up(tx: Tx, delivery: Delivery, now: int) -> None:
    deliveries.finish(tx, delivery, FAILED, None, "There is no enabled webhook for it any more.", now)


async def try_to_post(
    resources: Resources, courier: WebhookCourier, webhook: Webhook, event: Event
) -> Outcome:
    """Whatever goes wrong counts as an attempt, so that nothing is tried again and again for ever."""
    started_at = resources.now()
    try:
        return await post(resources, courier, webhook, event)
    except Exception:
        log.get().exception("an event could not be posted", event_id=event.id)
        return Outcome(None, "An error on this server.", resources.now() - started_at)


async def post(resources: Resources, courier: WebhookCourier, webhook: Webhook, event: Event) -> Outcome:
    """A receiver may still have the secret from before a rotation: after a 401 it is tried too."""
    started_at = resources.now()
    answer: WebhookAnswer | None = None
    for secret in webhook.secrets_at(started_at):
        try:
            answer = await courier.post(
                webhook.url, event.payload, signed_headers(event, secret, resources.now())
            )
        except DeliveryError as error:
            took = resources.now() - started_at
            return Outcome(error.code, error.reason, took, is_permanent=error.permanent)
        if answer.status != UNAUTHORIZED:
            break
    assert answer is not None
    return Outcome(
        code=answer.status,
        text=answer.excerpt,
        milliseconds=answer.milliseconds,
        is_success=answer.is_success,
        is_permanent=answer.status == GONE,
        retry_after_seconds=answer.retry_after_seconds,
    )


def signed_headers(event: Event, secret: str, now: int) -> dict[str, str]:
    timestamp = now // SECOND
    return {
        "Content-Type": "application/json",
        "User-Agent": "Postroom",
        "X-Timestamp": str(timestamp),
        "X-Signature": sign(secret, timestamp, event.payload),
        "X-Event-Id": event.id,
        **standard_headers(secret, event.id, timestamp, event.payload),
    }


def record_outcome(tx: Tx, delivery: Delivery, webhook: Webhook, outcome: Outcome, now: int) -> None:
    """What a person has posted again says nothing about the health of the endpoint."""
    deliveries.note_answer(tx, delivery, outcome.code, outcome.text, outcome.milliseconds)
    if outcome.is_success:
        deliveries.finish(tx, delivery, DONE, outcome.code, outcome.text, now)
        if not delivery.is_replay:
            webhooks.note_success(tx, webhook)
        return
    if not delivery.is_replay:
        webhooks.note_failure(tx, webhook, outcome.code == GONE, now)
    wait = None if outcome.is_permanent else retries.wait_after(delivery.kind, delivery.waits_used)
    if wait is None:
        deliveries.finish(tx, delivery, FAILED, outcome.code, outcome.text, now)
        return
    asked = (outcome.retry_after_seconds or 0) * SECOND
    deliveries.try_again_at(tx, delivery, now + max(wait, asked), outcome.code, outcome.text)
