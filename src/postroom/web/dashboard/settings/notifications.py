"""Notifications: who is notified outside the pages, of what, and whether it works."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.events.notifications import OCCASIONS
from postroom.fields import explain
from postroom.operations import notifications
from postroom.operations.notifications import NotificationsBody, ShownTarget, TargetBody
from postroom.web.dashboard import delayed_operations, undo
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/settings/notifications"
CHANNELS = {
    "slack": "Slack",
    "teams": "Microsoft Teams",
    "discord": "Discord",
    "ntfy": "ntfy",
    "email": "Email",
    "webhook": "Webhook",
}
SENTENCES = {
    "held": "email needs approval",
    "paused": "sending paused",
    "webhook_disabled": "webhook disabled",
    "domain_broken": "DNS records of a domain missing",
    "suspicious": "suspicious email received",
    "rule_disabled": "rule disabled",
    "briefing": "daily briefing",
}


class RemovedTarget(Struct, frozen=True):
    kind: str
    target: str


class TargetForm(RemovedTarget, frozen=True):
    on: list[str] = []
    content: Literal["subject", "email"] = "subject"
    hour: int = 8
    zone: str = "UTC"


async def show_notifications(context: PageContext) -> Response:
    found = (await context.ask(notifications.get_notifications))["targets"]
    return await context.show(
        "notifications.html",
        "settings",
        title="Notifications",
        targets=found,
        channels=CHANNELS,
        occasions=OCCASIONS,
        sentences=SENTENCES,
    )


async def add_target(context: PageContext, body: TargetForm) -> Response:
    """Add a target. For an existing one, replace the events it is notified of."""
    kept = [each for each in await list_kept(context) if (each.kind, each.target) != (body.kind, body.target)]
    new: dict[str, object] = {
        "kind": body.kind,
        "target": body.target.strip(),
        "on": body.on,
        "content": body.content,
        "briefingHour": body.hour,
        "timeZone": body.zone.strip() or "UTC",
    }
    await put(context, [*msgspec.to_builtins(kept), new])
    return go(PATH, f"{body.target.strip()} is notified from now on.")


remove_target = undo.delayed(
    delayed_operations.remove_target,
    PATH,
    "Removing {body.target} in {seconds} seconds.",
    RemovedTarget,
    lambda form: {"kind": form.kind, "target": form.target},
)


async def list_kept(context: PageContext) -> list[TargetBody]:
    found: list[ShownTarget] = (await context.run(notifications.get_notifications)).targets
    return msgspec.convert(
        [
            {
                "kind": each.kind,
                "target": each.target,
                "on": each.on,
                "content": each.content,
                "briefingHour": each.briefing_hour,
                "timeZone": each.time_zone,
            }
            for each in found
        ],
        list[TargetBody],
    )


async def put(context: PageContext, targets: list[dict[str, object]]) -> None:
    try:
        body = msgspec.convert({"targets": targets}, NotificationsBody)
    except msgspec.ValidationError as error:
        raise explain(error, NotificationsBody) from None
    await context.run(notifications.put_notifications, body=body)
