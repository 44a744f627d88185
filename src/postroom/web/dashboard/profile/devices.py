"""Devices of whoever is signed in that ring when a mail waits for approval."""

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
    """The address is one from outside: checked like that of a webhook, now and whenever it is used."""
    await require_allowed(desk.call.resources, body.endpoint)
    name = desk.call.request.headers.get("user-agent", "")
    await desk.decide(verbs.add_device, body, name)
    return go(PATH, "This device rings when a mail waits for you.")


remove = undo.delayed(verbs.remove_device, PATH, "That device rings no longer in {seconds} seconds.")
