"""A claimed notification: written for a chat, a phone, mail, a webhook or a browser, and posted."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from postroom.accounts import secret_values
from postroom.clock import HOUR, SECOND
from postroom.events import notifications, push_subscriptions, web_push, webhooks
from postroom.events.notifications import EMAIL, WEBHOOK, WHOLE, Notification, NotificationTarget, Recipient
from postroom.events.push_subscriptions import PushSubscription
from postroom.events.webhook_signature import sign, standard_headers
from postroom.outward.courier import WebhookCourier
from postroom.outward.deliver_webhook import try_url
from postroom.outward.notices import chat_forms, system_emails, whole_email
from postroom.processes import pools
from postroom.queue import deliveries, outcomes
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.queue.recording import Recorder
from postroom.resources import Resources
from postroom.storage.database import Tx

LIFETIME = HOUR
GONE = (404, 410)  # the browser has ended its subscription (RFC 8030 section 7.3)
SENTENCES: dict[str, str] = {
    "held": "An email needs approval",
    "paused": "Sending is paused",
    "webhook_disabled": "A webhook is disabled",
    "domain_broken": "A domain needs attention",
    "suspicious": "A suspicious email arrived",
    "rule_disabled": "A rule is disabled",
    "briefing": "Daily briefing",
}
MANY: dict[str, Callable[[int], str]] = {
    "held": lambda count: f"{count} emails need approval",
    "suspicious": lambda count: f"{count} suspicious emails arrived",
}


async def deliver_notification(
    resources: Resources, courier: WebhookCourier, recorder: Recorder, delivery: Delivery
) -> None:
    found = await resources.db.write(notifications.take, delivery.message_id)
    if found is None or found.notification.created_at + LIFETIME <= resources.now():
        await resources.db.write(system_emails.give_up, delivery, resources.now())
        return
    note, target = found
    if note.link.startswith("/"):
        note = replace(note, link=f"{resources.config.base_url}{note.link}")
    if isinstance(target, NotificationTarget) and target.kind == EMAIL:
        email = await email_of(resources, note, target)
        await resources.db.write(send_system_email, delivery, note, target, email, resources.now())
        return
    address, body, headers = await write_for(resources, note, target)
    outcome = await post(resources, courier, address, body, headers)
    tried = TriedDelivery(delivery, outcome)
    await recorder.record(tried, lambda: write_tried(resources, tried))


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    await resources.db.write(record_tried, tried)
    return []


def record_tried(tx: Tx, tried: TriedDelivery) -> None:
    state = outcomes.record(tx, tried)
    found = notifications.take(tx, tried.delivery.message_id)
    if state is None or found is None:
        return
    error = None if tried.outcome.is_success else f"{tried.outcome.code or ''} {tried.outcome.text}".strip()
    target, ended_at = found.target, tried.outcome.ended_at
    if isinstance(target, PushSubscription):
        is_ended = tried.outcome.code in GONE
        shown = "The browser ended it. Turn it on again there." if is_ended else error
        push_subscriptions.record_outcome(tx, target.id, shown, is_ended, ended_at)
    else:
        notifications.record_outcome(tx, target.id, error, ended_at)


async def write_for(
    resources: Resources, note: Notification, target: Recipient
) -> tuple[str, bytes, dict[str, str]]:
    now = resources.now()
    if isinstance(target, NotificationTarget):
        secret = await resources.db.read(find_secret, note.account_id)
        email = await email_of(resources, note, target)
        return target.target, *written(note, target, email, secret, now)
    own = await resources.db.read(secret_values.get, web_push.OWN)
    content = for_browser(note)
    contact = f"mailto:postmaster@{resources.config.domain}"
    body, headers = await pools.READING.run(
        web_push.to_request, content, target.endpoint, target.p256dh, target.auth, own, contact, now
    )
    return target.endpoint, body, headers


async def email_of(resources: Resources, note: Notification, target: NotificationTarget) -> str:
    """Return the whole email for a target that wants it, or "". Of several, the first."""
    email = await whole_email.read_email(resources, note) if target.content == WHOLE else ""
    return f"The first of them:\n\n{email}" if email and note.count > 1 else email


def for_browser(note: Notification) -> bytes:
    """Return what the page's script shows; the link leads to a page of this server."""
    about = note.subject if note.count == 1 else ""
    path = f"/app/{note.link.partition('/app/')[2]}"
    return msgspec.json.encode({"title": headline(note), "body": about, "path": path, "tag": note.kind})


def find_secret(tx: Tx, account_id: str) -> str | None:
    webhook = webhooks.find(tx, account_id)
    return None if webhook is None else webhook.secret


def send_system_email(
    tx: Tx, delivery: Delivery, note: Notification, target: NotificationTarget, email: str, now: int
) -> None:
    """Sends it as an email, which is retried like any other."""
    deliveries.record_answer(tx, delivery, None, "", 0)
    if deliveries.finish(tx, delivery, deliveries.DONE, None, "It is sent by email.", now):
        system_emails.add(tx, note.account_id, None, target.target, headline(note), text_of(note, email), now)
        notifications.record_outcome(tx, target.id, None, now)


async def post(
    resources: Resources,
    courier: WebhookCourier,
    address: str,
    body: bytes,
    headers: dict[str, str],
) -> Outcome:
    return await try_url(resources, courier, address, body, headers, is_refusal)


def is_refusal(status: int) -> bool:
    return 400 <= status < 500 and status not in (408, 429)


def headline(note: Notification) -> str:
    if note.count > 1 and note.kind in MANY:
        return MANY[note.kind](note.count)
    return SENTENCES[note.kind]


def text_of(note: Notification, email: str = "") -> str:
    """Contains nothing of an email but its subject, unless the target gets it whole."""
    line = chat_forms.line_of(headline(note), about(note))
    link = chat_forms.sign_in_line(email, note.link)
    return f"{line}\n\n{email}\n\n{link}\n" if email else f"{line}\n{link}\n"


def about(note: Notification) -> str:
    return note.subject if note.count == 1 else ""


def written(
    note: Notification, target: NotificationTarget, email: str, secret: str | None, now: int
) -> tuple[bytes, dict[str, str]]:
    if target.kind != WEBHOOK:
        return chat_forms.write(target.kind, headline(note), about(note), email, note.link)
    body = msgspec.json.encode(
        {
            "event": "notification",
            "id": note.id,
            "kind": note.kind,
            "count": note.count,
            "subject": note.subject,
            "link": note.link,
        }
    )
    if secret is None:
        return body, chat_forms.JSON
    timestamp = now // SECOND
    signed = {"X-Timestamp": str(timestamp), "X-Signature": sign(secret, timestamp, body)}
    return body, {**chat_forms.JSON, **signed, **standard_headers(secret, note.id, timestamp, body)}
