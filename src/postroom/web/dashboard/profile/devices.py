"""Devices of the signed-in person that are notified when an email waits for approval."""

from starlette.responses import Response

from postroom.operations.people import push as verbs
from postroom.web.api.webhooks import require_allowed
from postroom.web.dashboard import undo
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/settings/devices"


async def show_devices(context: PageContext) -> Response:
    devices, key = await context.read(verbs.list_devices, context.call.caller)
    return await context.show("devices.html", "settings", title="Devices", devices=devices, key=key)


async def add(context: PageContext, body: verbs.NewDevice) -> Response:
    """Add a device. The endpoint is external: checked like a webhook, now and at each use."""
    await require_allowed(context.call.resources, body.endpoint)
    name = context.call.request.headers.get("user-agent", "")
    await context.decide(verbs.add_device, body, name)
    return go(PATH, "This device gets a notification when an email needs approval.")


remove = undo.delayed(verbs.remove_device, PATH, "Removing the device in {seconds} seconds.")
