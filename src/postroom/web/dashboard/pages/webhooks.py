"""Webhooks: where events are posted, how that went, and sending again."""

from typing import Literal

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.clock import DAY
from postroom.errors import NotFound, WebhookFailed
from postroom.events import kinds, webhook_log
from postroom.web.api import webhooks as api
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.values import plain
from postroom.web.interface.body import DeliveryQuery, NewWebhook

PATH = "/app/webhooks"
SHOWN = 50


class WebhookForm(Struct, rename="camel", frozen=True):
    url: str
    event_types: list[str] = []


class LogQuery(Struct, rename="camel", frozen=True):
    state: Literal["", "pending", "delivered", "failed"] = ""
    offset: int = 0


async def show_webhooks(desk: Desk, query: LogQuery, secret: str = "", status: int = 200) -> Response:
    try:
        webhook = plain(await api.get_webhook(desk.call))
    except NotFound:
        webhook = None
    asked = DeliveryQuery(query.state or None, SHOWN, max(query.offset, 0))
    page = plain(await api.list_webhook_deliveries(desk.call, asked))
    since = desk.call.now() - DAY
    failed = await desk.call.resources.db.read(webhook_log.count_failed, desk.call.account_id, since)
    return await desk.show(
        "webhooks.html",
        "webhooks",
        status,
        title="Webhooks",
        webhook=webhook,
        secret=secret,
        deliveries=page["data"],
        total=page["total"],
        query=query,
        failed=failed,
        kinds=kinds.KINDS,
        limit=SHOWN,
    )


async def set_webhook(desk: Desk, body: WebhookForm) -> Response:
    made = await api.put_webhook(desk.call, NewWebhook(body.url, body.event_types or None))
    if made.secret is not UNSET:
        return await show_webhooks(desk, LogQuery(), secret=str(made.secret))
    return go(PATH, "The webhook is set.")


async def remove_webhook(desk: Desk) -> Response:
    await api.delete_webhook(desk.call)
    return go(PATH, "The webhook is gone.")


async def test_webhook(desk: Desk) -> Response:
    try:
        done = await api.test_webhook(desk.call)
    except WebhookFailed as error:
        return go(PATH, error.message)
    return go(PATH, f"The endpoint answered {done.status} after {done.milliseconds} ms.")


async def rotate_secret(desk: Desk) -> Response:
    made = await api.rotate_webhook_secret(desk.call)
    return await show_webhooks(desk, LogQuery(), secret=made.secret)


async def send_again(desk: Desk, delivery_id: str) -> Response:
    await api.retry_webhook_delivery(desk.call, delivery_id)
    return go(PATH, "It is posted again now.")


async def send_failed_again(desk: Desk) -> Response:
    since = desk.call.now() - DAY
    count = await desk.call.resources.db.write(
        webhook_log.send_failed_again, desk.call.account_id, since, desk.call.now()
    )
    return go(PATH, f"{count} are posted again now.")
