"""Webhooks: where events are posted, the results, posting again; and the list of several endpoints."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.clock import HOUR
from postroom.errors import BadRequest, NotFound, WebhookFailed
from postroom.events import event_log as events
from postroom.events import kinds, webhook_log, webhooks
from postroom.events.event_log import Event
from postroom.fields import Offset, PageQuery
from postroom.mailbox import inboxes
from postroom.operations import webhook_list
from postroom.operations import webhooks as operations
from postroom.operations.webhook_list import ListedWebhookChange, NewListedWebhook
from postroom.operations.webhooks import DeliveryQuery, NewWebhook, RetryFailed, WebhookTest
from postroom.queue.deliveries import Delivery
from postroom.web.api import webhooks as api
from postroom.web.call import Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display import verifying
from postroom.web.dashboard.display.plots import bars
from postroom.web.dashboard.page_context import PageContext, go, plain

PATH = "/app/webhooks"
SHOWN = 50
HOURS = 24
INBOXES_WITH_OWN = 50


class WebhookForm(Struct, rename="camel", frozen=True):
    url: str
    event_types: list[str] = []


class DeliveryLogQuery(Struct, rename="camel", frozen=True):
    state: Literal["", "pending", "delivered", "failed"] = ""
    hours: Literal["1", "24", "168"] = "24"  # how far back failures are counted
    offset: Offset = 0


class HoursForm(Struct, frozen=True):
    hours: Literal["1", "24", "168"] = "24"


class WebhookHealth(Struct, frozen=True):
    hours: list[webhook_log.HourOfPosts]
    last_failure: Delivery | None
    last_delivered: Delivery | None
    failed: int
    of_inboxes: list[webhooks.Webhook]

    @property
    def is_failing(self) -> bool:
        """Return whether nothing arrived since the last failure, or in the last hours with posts."""
        delivered, failed = self.last_delivered, self.last_failure
        if failed is not None and (delivered is None or delivered.created_at < failed.created_at):
            return True
        return any(hour.failed for hour in self.hours) and not any(hour.delivered for hour in self.hours)


async def show_webhooks(context: PageContext, query: DeliveryLogQuery, secret: str = "") -> Response:
    try:
        webhook = await context.ask(operations.get_webhook)
    except NotFound:
        webhook = None
    asked = DeliveryQuery(query.state or None, SHOWN, query.offset)
    page = await context.ask(operations.list_webhook_deliveries, query=asked)
    health = await context.read(read_health, context, int(query.hours))
    listed = (await context.ask(webhook_list.list_webhooks, query=PageQuery(SHOWN, 0)))["data"]
    event_ids = sorted({each["eventId"] for each in page["data"]})
    places = sorted({place for each in listed for place in each["inboxIds"]})
    return await context.show(
        "webhooks.html",
        "webhooks",
        title="Webhooks",
        webhook=webhook,
        secret=secret,
        deliveries=page["data"],
        kind_of=await context.read(events.kinds_of, event_ids),
        total=page["total"],
        query=query,
        health=health,
        plot=draw(health.hours),
        kinds=kinds.KINDS,
        limit=SHOWN,
        listed=listed,
        places=await context.read(inboxes.addresses_of, places),
        samples=verifying.SAMPLES,
    )


def read_health(tx: Tx, context: PageContext, hours: int) -> WebhookHealth:
    account_id, now = context.call.account_id, context.call.now()
    found = webhooks.list_of_account(tx, account_id, INBOXES_WITH_OWN)
    return WebhookHealth(
        webhook_log.list_hours(tx, account_id, HOURS, now),
        webhook_log.find_last(tx, account_id, "failed"),
        webhook_log.find_last(tx, account_id, "delivered"),
        webhook_log.count_failed(tx, account_id, now - hours * HOUR),
        [each for each in found if each.owner != account_id and not each.is_listed],
    )


def draw(hours: list[webhook_log.HourOfPosts]) -> str:
    delivered, failed = [hour.delivered for hour in hours], [hour.failed for hour in hours]
    return bars(delivered, "Events delivered in the last 24 hours", failed)


async def set_webhook(context: PageContext, body: WebhookForm) -> Response:
    made = await context.run(operations.put_webhook, body=NewWebhook(body.url, body.event_types or None))
    if made.secret is not UNSET:
        return await show_webhooks(context, DeliveryLogQuery(), secret=str(made.secret))
    return go(PATH, "Endpoint saved.")


remove_webhook = undo.delayed(operations.delete_webhook, PATH, "Removing the endpoint in {seconds} seconds.")


async def test_webhook(context: PageContext) -> Response:
    return go(PATH, await result_of_test(context, api.test_webhook))


async def result_of_test(
    context: PageContext, test: Callable[..., Awaitable[WebhookTest]], **named: str
) -> str:
    """Return the result of a test, for a webhook of the account, of an inbox or of the list."""
    try:
        done = await context.perform(test, **named)
    except WebhookFailed as error:
        return error.message
    return f"The endpoint answered {done.status} after {done.milliseconds} ms."


async def rotate_secret(context: PageContext) -> Response:
    made = await context.run(operations.rotate_webhook_secret)
    return await show_webhooks(context, DeliveryLogQuery(), secret=made.secret)


async def show_delivery(context: PageContext, delivery_id: str) -> Response:
    """Return what was posted, and every answer to it."""
    shown, event = await context.read(read_delivery, context, delivery_id)
    body = msgspec.json.format(event.payload, indent=2).decode() if event is not None else ""
    return await context.show(
        "delivery.html", "webhooks", title="Delivery", each=shown, event=event, body=body
    )


def read_delivery(tx: Tx, context: PageContext, delivery_id: str) -> tuple[Any, Event | None]:
    shown = operations.show_delivery(tx, context.call.caller, delivery_id)
    return plain(shown), events.find(tx, shown.event_id)


send_again = runs(operations.retry_webhook_delivery, PATH, "Retrying.")


async def send_failed_again(context: PageContext, body: HoursForm) -> Response:
    since = context.call.now() - int(body.hours) * HOUR
    failed = RetryFailed(datetime.fromtimestamp(since / 1000, UTC))
    done = await context.perform(api.retry_failed_deliveries, body=failed)
    return go(PATH, f"{done.retried} are being retried.")


# --- the list: each for some inboxes, pods and kinds of events


class ListedWebhookForm(Struct, rename="camel", frozen=True):
    """`places` are ids of inboxes and pods; `headers` has one field per line."""

    url: str
    event_types: list[str] = []
    places: list[str] = []
    headers: str = ""


class SwitchForm(Struct, frozen=True):
    action: Literal["enable", "disable"]

    @property
    def is_on(self) -> bool:
        return self.action == "enable"


async def add_listed(context: PageContext, body: ListedWebhookForm) -> Response:
    wanted = NewListedWebhook(
        url=body.url,
        event_types=body.event_types or None,
        inbox_ids=[place for place in body.places if not place.startswith("pod_")],
        pod_ids=[place for place in body.places if place.startswith("pod_")],
        headers=read_headers(body.headers),
    )
    made = await context.run(webhook_list.create_webhook, body=wanted)
    return await show_webhooks(
        context, DeliveryLogQuery(), secret="" if made.secret is UNSET else made.secret
    )


def read_headers(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest("Write each header on its own line, as Name: value.", field="headers")
        found[name.strip()] = value.strip()
    return found


switch_listed = runs(
    webhook_list.change_webhook,
    PATH,
    lambda form: "Enabled." if form.is_on else "Disabled. The endpoint receives no more events.",
    SwitchForm,
    lambda form: {"body": ListedWebhookChange(enabled=form.is_on)},
)


async def test_listed(context: PageContext, webhook_id: str) -> Response:
    return go(PATH, await result_of_test(context, api.test_listed_webhook, webhook_id=webhook_id))


async def rotate_listed_secret(context: PageContext, webhook_id: str) -> Response:
    made = await context.run(webhook_list.rotate_listed_webhook_secret, webhook_id=webhook_id)
    return await show_webhooks(context, DeliveryLogQuery(), secret=made.secret)


remove_listed = undo.delayed(
    webhook_list.delete_listed_webhook,
    PATH,
    "Removing the endpoint in {seconds} seconds. It then receives no more events.",
)
