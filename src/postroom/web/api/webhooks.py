"""Resolve addresses of webhooks, post tests and retry deliveries: what no transaction can do."""

from typing import Any

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from postroom import ids
from postroom.clock import to_iso
from postroom.config import allows_private_targets
from postroom.errors import InvalidWebhookUrl, WebhookFailed
from postroom.events import webhooks as stored
from postroom.events.event_log import Event
from postroom.events.notifications import EMAIL
from postroom.events.payload import EventMessage, Payload
from postroom.mailbox import inboxes
from postroom.net import allowed_target
from postroom.operations import webhook_list as listed
from postroom.operations import webhooks
from postroom.operations.inboxes import InboxChange, NewInbox
from postroom.operations.notifications import NotificationsBody
from postroom.operations.webhooks import Retried, RetryFailed, WebhookTest
from postroom.outward import mcp_event
from postroom.outward.deliver_webhook import post, post_body
from postroom.queue.outcomes import Outcome
from postroom.resources import Resources
from postroom.web.call import Call
from postroom_mail.authentication.lookup import DnsTemporary

TEST_KIND = "webhook.test"


async def require_allowed(resources: Resources, url: str) -> None:
    """Refuse a URL that can never be used. A name that cannot be resolved now is checked at each delivery."""
    try:
        await allowed_target.resolve_target(resources.resolver, url, allows_private_targets(resources.config))
    except DnsTemporary:
        return
    except allowed_target.ForbiddenTarget as error:
        raise InvalidWebhookUrl(f"This URL cannot be used: {error.reason}.") from None


async def require_allowed_urls(resources: Resources, body: Any) -> dict[str, Any]:
    """Refuse a body with a URL that can never be used."""
    for url in urls_of(body):
        if isinstance(url, str):
            await require_allowed(resources, url)
    return {}


def urls_of(body: Any) -> list[str | UnsetType | None]:
    """Return the URLs of a webhook, of an inbox's webhook, or of notification targets."""
    if isinstance(body, NotificationsBody):
        return [each.target for each in body.targets if each.kind != EMAIL]
    return [body.webhook_url if isinstance(body, NewInbox | InboxChange) else body.url]


async def test_webhook(call: Call) -> WebhookTest:
    """Post a signed test event now"""
    return await post_test(call, await call.resources.db.read(stored.find, call.account_id))


async def test_inbox_webhook(call: Call, inbox_id: str) -> WebhookTest:
    """Post a signed test event to an inbox's own webhook now"""
    inbox = await call.resources.db.read(inboxes.get, call.scope, inbox_id)
    return await post_test(call, await call.resources.db.read(stored.find, inbox.id))


async def test_listed_webhook(call: Call, webhook_id: str) -> WebhookTest:
    """Post a signed test event to a webhook of the list now"""
    webhook = await call.resources.db.read(listed.get_of, call.scope, webhook_id)
    if webhook.form == stored.MCP:
        return await ask_endpoint(call, webhook)
    return await post_test(call, webhook)


async def ask_endpoint(call: Call, webhook: stored.Webhook) -> WebhookTest:
    """Send a challenge, and activate the subscription if the endpoint echoes it."""
    verification_id, challenge, body = mcp_event.new_challenge()
    webhook = replace(webhook, headers={**webhook.headers, **mcp_event.headers(webhook)})
    outcome = await post_body(call.resources, call.webhook_courier, webhook, verification_id, body)
    if not outcome.is_success or not mcp_event.agrees(outcome.text, challenge):
        raise WebhookFailed(
            "The endpoint did not answer with the challenge. Have it return the challenge.",
            status=outcome.code,
            milliseconds=outcome.milliseconds,
            reason=failure_of(outcome),
        )
    await call.resources.db.write(listed.activate, call.scope, webhook.owner)
    return WebhookTest(ok=True, status=outcome.code or 0, milliseconds=outcome.milliseconds)


def failure_of(outcome: Outcome) -> str:
    """Return the category of the failure, never the endpoint's answer."""
    if outcome.is_success:
        return "challenge_failed"
    return "unreachable" if outcome.code is None else f"http_{outcome.code // 100}xx"


async def post_test(call: Call, webhook: stored.Webhook | None) -> WebhookTest:
    event = example_event(call)
    outcome = await post(call.resources, call.webhook_courier, webhooks.require_set(webhook), event)
    if not outcome.is_success:
        raise WebhookFailed(
            f"The endpoint did not answer with success: {outcome.code or outcome.text}.",
            status=outcome.code,
            milliseconds=outcome.milliseconds,
        )
    return WebhookTest(ok=True, status=outcome.code or 0, milliseconds=outcome.milliseconds)


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


async def retry_failed_deliveries(call: Call, body: RetryFailed) -> Retried:
    """Send again all that failed since a time"""
    since, count = int(body.since.timestamp() * 1000), 0
    while changed := await call.resources.db.write(
        webhooks.retry_some_failed, call.decider, since, call.now()
    ):
        count += changed
    return Retried(count)
