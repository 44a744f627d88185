"""The list of webhooks: several endpoints, each for some inboxes, pods and kinds of events."""

from typing import Literal

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.operations.ways import webhook_list as operations
from postroom.operations.ways.webhook_list import ListedWebhookChange, NewListedWebhook
from postroom.web.api.events import webhooks as api
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.pages.webhooks import PATH, DeliveryLogQuery, show_webhooks, told_of_test


class ListedWebhookForm(Struct, rename="camel", frozen=True):
    """`places` are ids of inboxes and pods; `headers` has one field a line."""

    url: str
    event_types: list[str] = []
    places: list[str] = []
    headers: str = ""


class SwitchForm(Struct, frozen=True):
    action: Literal["enable", "disable"]


async def add_webhook(desk: Desk, body: ListedWebhookForm) -> Response:
    wanted = NewListedWebhook(
        url=body.url,
        event_types=body.event_types or None,
        inbox_ids=[place for place in body.places if not place.startswith("pod_")],
        pod_ids=[place for place in body.places if place.startswith("pod_")],
        headers=read_headers(body.headers),
    )
    made = await desk.run(operations.create_webhook, body=wanted)
    return await show_webhooks(desk, DeliveryLogQuery(), secret="" if made.secret is UNSET else made.secret)


def read_headers(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest("Write each header field as Name: value, on a line of its own.", field="headers")
        found[name.strip()] = value.strip()
    return found


async def switch(desk: Desk, webhook_id: str, body: SwitchForm) -> Response:
    is_on = body.action == "enable"
    await desk.run(operations.change_webhook, webhook_id=webhook_id, body=ListedWebhookChange(enabled=is_on))
    return go(PATH, "Enabled: it begins anew." if is_on else "Disabled. Nothing more is posted there.")


async def test(desk: Desk, webhook_id: str) -> Response:
    return go(PATH, await told_of_test(desk, api.test_listed_webhook, webhook_id=webhook_id))


async def rotate_secret(desk: Desk, webhook_id: str) -> Response:
    made = await desk.run(operations.rotate_listed_webhook_secret, webhook_id=webhook_id)
    return await show_webhooks(desk, DeliveryLogQuery(), secret=made.secret)


remove = undo.delayed(
    operations.delete_listed_webhook,
    PATH,
    "The webhook is removed in {seconds} seconds. Events are no longer posted there then.",
)
