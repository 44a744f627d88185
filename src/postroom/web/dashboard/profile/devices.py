"""Devices of whoever is signed in that ring when a mail waits for approval."""

from msgspec import Struct
from starlette.responses import Response

from postroom.operations.people import push as verbs
from postroom.web.api.events.webhooks import require_allowed
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go

PATH = "/app/settings/devices"


class RingForm(Struct, frozen=True):
    endpoint: str
    p256dh: str
    auth: str


async def show_devices(desk: Desk) -> Response:
    devices, key = await desk.read(verbs.list_devices, desk.call.caller)
    return await desk.show("devices.html", "settings", title="Devices", devices=devices, key=key)


async def add(desk: Desk, body: RingForm) -> Response:
    """The address is one from outside: checked like that of a webhook, now and whenever it is used."""
    await require_allowed(desk.call.resources, body.endpoint)
    name = desk.call.request.headers.get("user-agent", "")
    new = verbs.NewDevice(body.endpoint, body.p256dh, body.auth)
    await desk.decide(verbs.add_device, new, name)
    return go(PATH, "This device rings when a mail waits for you.")


remove = undo.delayed(verbs.remove_device, PATH, "That device rings no longer in {seconds} seconds.")
