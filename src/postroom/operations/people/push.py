"""Push notifications: a user's browser subscribes, and is notified of holds that the user may decide."""

from msgspec import Struct

from postroom.accounts import audit, secret_values
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest
from postroom.events import push_subscriptions, web_push
from postroom.events.push_subscriptions import PushSubscription
from postroom.operations.people.passkeys import require_user
from postroom.storage.database import Tx

ENDPOINT_CHARACTERS = 2_000


class NewDevice(Struct, frozen=True):
    """The browser's subscription: where to post, and the keys to encrypt with."""

    endpoint: str
    p256dh: str
    auth: str


class ShownDevice(Struct, frozen=True):
    """What the audit log stores of a device: never its address."""

    name: str


def add_device(tx: Tx, caller: Caller, body: NewDevice, name: str, now: int) -> PushSubscription:
    user = require_user(tx, caller)
    if len(body.endpoint) > ENDPOINT_CHARACTERS or not web_push.is_browser_key(body.p256dh, body.auth):
        raise BadRequest("This is not a valid push subscription.")
    made = push_subscriptions.add(tx, user, body.endpoint, body.p256dh, body.auth, name, now)
    audit.record_by(tx, caller, "device.added", made.id, now, after=ShownDevice(made.name))
    return made


def list_devices(tx: Tx, caller: Caller) -> tuple[list[PushSubscription], str]:
    """Return the devices, and the server's public key that subscriptions are bound to."""
    found = [] if caller.user_id is None else push_subscriptions.list_of_user(tx, caller.user_id)
    return found, web_push.public_text(secret_values.get(tx, web_push.OWN))


def remove_device(tx: Tx, caller: Caller, device_id: str, now: int) -> None:
    push_subscriptions.remove(tx, require_user(tx, caller).id, device_id)
    audit.record_by(tx, caller, "device.removed", device_id, now)
