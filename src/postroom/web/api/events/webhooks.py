"""Webhooks over REST: setting, testing, and the log of their deliveries."""

import msgspec
from msgspec import UNSET

from postroom import ids
from postroom.clock import to_iso
from postroom.config import allows_private_targets
from postroom.errors import InvalidWebhookUrl, NoWebhookUrl, WebhookFailed
from postroom.events import webhook_log, webhooks
from postroom.events.events import Event
from postroom.events.payload import EventMessage, Payload
from postroom.events.webhook_log import Attempt
from postroom.events.webhooks import Webhook
from postroom.mail.proof.lookup import DnsTemporary
from postroom.mailbox import inboxes
from postroom.net import target
from postroom.outward.deliver_webhook import post
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.resources import Resources
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import DeliveryQuery, NewWebhook, RetryFailed
from postroom.web.interface.shapes import webhook_shapes

TEST_KIND = "webhook.test"


async def require_allowed(resources: Resources, url: str) -> None:
    """Refuses what can never be posted to; a name that cannot be resolved now is judged at each delivery."""
    try:
        await target.resolve_target(resources.resolver, url, allows_private_targets(resources.config))
    except DnsTemporary:
        return
    except target.ForbiddenTarget as error:
        raise InvalidWebhookUrl(f"This URL cannot be used: {error.reason}") from None


async def get_webhook(call: Call) -> webhook_shapes.Webhook:
    """Get the account's webhook"""
    return webhook_shapes.Webhook.of(await call.resources.db.read(webhooks.get, call.account_id))


async def put_webhook(call: Call, body: NewWebhook) -> webhook_shapes.Webhook:
    """Set the account's webhook; a disabled one is enabled again"""
    await require_allowed(call.resources, body.url)
    types = None if body.event_types is None else tuple(body.event_types)

    def work(tx: Tx) -> tuple[Webhook, bool]:
        owner, before = call.account_id, webhooks.find(tx, call.account_id)
        put = webhooks.put(tx, owner, owner, body.url, types, body.secret, call.now())
        was = None if before is None else webhook_shapes.Webhook.of(before)
        call.record(tx, "webhook.set", owner, before=was, after=webhook_shapes.Webhook.of(put[0]))
        return put

    webhook, is_new = await call.resources.db.write(work)
    return webhook_shapes.Webhook.of(webhook, webhook.secret if is_new else UNSET)


async def delete_webhook(call: Call) -> None:
    """Remove the account's webhook"""

    def work(tx: Tx) -> None:
        before = webhooks.get(tx, call.account_id)
        webhooks.remove(tx, call.account_id)
        call.record(tx, "webhook.removed", call.account_id, before=webhook_shapes.Webhook.of(before))

    await call.resources.db.write(work)


async def rotate_webhook_secret(call: Call) -> webhook_shapes.WebhookSecret:
    """Make a new secret; the old one stays valid for 24 hours"""

    def work(tx: Tx) -> Webhook:
        call.record(tx, "webhook.secret_rotated", call.account_id)
        return webhooks.rotate_secret(tx, call.account_id, call.now())

    return webhook_shapes.WebhookSecret((await call.resources.db.write(work)).secret)


async def rotate_inbox_secret(call: Call, inbox_id: str) -> webhook_shapes.InboxWebhookSecret:
    """Make a new secret for an inbox's own webhook; the old one stays valid for 24 hours"""

    def work(tx: Tx) -> Webhook:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        require_set(webhooks.find(tx, inbox.id))
        call.record(tx, "webhook.secret_rotated", inbox.id, within=inbox.reach)
        return webhooks.rotate_secret(tx, inbox.id, call.now())

    return webhook_shapes.InboxWebhookSecret((await call.resources.db.write(work)).secret)


async def test_webhook(call: Call) -> webhook_shapes.WebhookTest:
    """Post a signed test event now"""
    return await post_test(call, await call.resources.db.read(webhooks.find, call.account_id))


async def test_inbox_webhook(call: Call, inbox_id: str) -> webhook_shapes.WebhookTest:
    """Post a signed test event to an inbox's own webhook now"""

    def work(tx: Tx) -> Webhook | None:
        return webhooks.find(tx, inboxes.get(tx, call.reach, inbox_id).id)

    return await post_test(call, await call.resources.db.read(work))


def require_set(webhook: Webhook | None) -> Webhook:
    if webhook is None:
        raise NoWebhookUrl(
            "No webhook is set. PUT /v1/webhook sets the account's, PATCH /v1/inboxes/{id} an inbox's."
        )
    return webhook


async def post_test(call: Call, webhook: Webhook | None) -> webhook_shapes.WebhookTest:
    event = example_event(call)
    outcome = await post(call.resources, call.webhook_courier, require_set(webhook), event)
    if not outcome.is_success:
        raise WebhookFailed(
            f"The endpoint did not answer with success: {outcome.code or outcome.text}.",
            status=outcome.code,
            milliseconds=outcome.milliseconds,
        )
    return webhook_shapes.WebhookTest(ok=True, status=outcome.code or 0, milliseconds=outcome.milliseconds)


def example_event(call: Call) -> Event:
    now = call.now()
    event_id, moment = ids.new(ids.EVENT, now), to_iso(now)
    message = EventMessage(
        id="",
        sender="Postroom <postmaster@example.com>",
        to="inbox@example.com",
        subject="Test of your webhook",
        body_text="If you can read this, your webhook works.",
        attachments=[],
        received_at=moment,
        cc=[],
        rfc_message_id="",
        reply_text="",
        automated=True,
        auth=None,
    )
    payload = Payload(TEST_KIND, event_id, "", "", message, moment)
    return Event(event_id, call.account_id, 0, "", TEST_KIND, msgspec.json.encode(payload), "", now, "")


async def list_webhook_deliveries(call: Call, query: DeliveryQuery) -> webhook_shapes.WebhookDeliveryPage:
    """List webhook deliveries with every attempt, newest first"""

    def work(tx: Tx) -> tuple[list[tuple[Delivery, list[Attempt]]], int]:
        found, total = webhook_log.list_of_account(
            tx, call.account_id, query.state, query.limit, query.offset
        )
        return [(item, webhook_log.list_attempts(tx, item.id)) for item in found], total

    found, total = await call.read_page(query.offset, work)
    return webhook_shapes.WebhookDeliveryPage(
        [webhook_shapes.WebhookDelivery.of(*pair) for pair in found], total
    )


async def retry_webhook_delivery(call: Call, delivery_id: str) -> webhook_shapes.WebhookDelivery:
    """Send a delivery again, whatever became of it"""

    def work(tx: Tx) -> webhook_shapes.WebhookDelivery:
        webhook_log.send_again(tx, call.account_id, delivery_id, call.now())
        call.record(tx, "webhook.sent_again", delivery_id)
        item = webhook_log.get(tx, call.account_id, delivery_id)
        return webhook_shapes.WebhookDelivery.of(item, webhook_log.list_attempts(tx, item.id))

    shown = await call.resources.db.write(work)
    call.resources.db.ring(deliveries.WEBHOOK_BELL)
    return shown


async def retry_failed_deliveries(call: Call, body: RetryFailed) -> webhook_shapes.Retried:
    """Send again all that failed since a moment"""
    since = int(body.since.timestamp() * 1000)

    def work(tx: Tx) -> int:
        count = webhook_log.send_failed_again(tx, call.account_id, since, call.now())
        if count:
            call.record(tx, "webhook.sent_again", call.account_id, after={"deliveries": count})
        return count

    count = 0
    while changed := await call.resources.db.write(work):
        count += changed
    call.resources.db.ring(deliveries.WEBHOOK_BELL)
    return webhook_shapes.Retried(count)
