"""Devices of the signed-in person that are notified when a mail waits for approval."""

from starlette.responses import Response

from postroom.operations.people import push as verbs
from postroom.web.api.events.webhooks import require_allowed
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go

PATH = "/app/settings/devices"


async def show_devices(desk: Desk) -> Response:
    devices, key = await desk.read(verbs.list_devices, desk.call.caller)
    return await desk.show("devices.html", "settings", title="Devices", devices=devices, key=key)


async def add(desk: Desk, body: verbs.NewDevice) -> Response:
    """The endpoint is external: checked like a webhook, now and at each use."""
    await require_allowed(desk.call.resources, body.endpoint)
    name = desk.call.request.headers.get("user-agent", "")
    await desk.decide(verbs.add_device, body, name)
    return go(PATH, "This device is notified when a mail waits for you.")


remove = undo.delayed(verbs.remove_device, PATH, "That device is removed in {seconds} seconds.")
