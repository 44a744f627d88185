"""Keys of the account, of its pods and inboxes, and the pods themselves."""

from datetime import UTC, datetime, timedelta

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import keys
from postroom.accounts.keys import Key
from postroom.accounts.permissions import ALL
from postroom.mailbox import inboxes
from postroom.web.api import keys as api_keys
from postroom.web.api import pods as api_pods
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.settings.rules import read_number
from postroom.web.dashboard.values import plain
from postroom.web.interface import body as bodies
from postroom.web.interface.tenant_shapes import ApiKey

PATH = "/app/settings"
SHOWN = 50


class OffsetQuery(Struct, frozen=True):
    offset: bodies.Offset = 0


class KeyForm(Struct, rename="camel", frozen=True):
    """`reach` is empty for the account, else the id of a pod or of an inbox."""

    name: str = ""
    permissions: list[str] = []
    reach: str = ""
    days: str = ""


class PodForm(Struct, rename="camel", frozen=True):
    name: str = ""
    client_id: str = ""


class PodNameForm(Struct, frozen=True):
    name: str = ""


async def show_keys(desk: Desk, query: OffsetQuery, token: str = "") -> Response:
    found, addresses = await desk.call.resources.db.read(read_keys, desk, query.offset)
    return await desk.show(
        "keys.html",
        "settings",
        title="Keys",
        keys=plain([ApiKey.of(key) for key in found[:SHOWN]]),
        addresses=addresses,
        total=query.offset + len(found),
        offset=query.offset,
        limit=SHOWN,
        token=token,
        permissions=ALL,
    )


def read_keys(tx: Tx, desk: Desk, offset: int) -> tuple[list[Key], dict[str, str]]:
    """One more than a page shows, so that it is known whether there is another."""
    found = keys.list_of_account(tx, desk.call.account_id, SHOWN + 1, offset)
    named = {key.inbox_id for key in found if key.inbox_id is not None}
    return found, inboxes.addresses_of(tx, sorted(named))


async def create_key(desk: Desk, body: KeyForm) -> Response:
    days = read_number(body.days, "days")
    now = datetime.fromtimestamp(desk.call.now() / 1000, UTC)
    expires_at = None if days is None else now + timedelta(days=min(days, 3650))
    wanted = bodies.NewKey(body.name, body.permissions or None, expires_at)
    if body.reach.startswith("pod_"):
        made = plain(await api_keys.create_pod_key(desk.call, body.reach, wanted))
    elif body.reach:
        made = plain(await api_keys.create_inbox_key(desk.call, body.reach, wanted))
    else:
        made = plain(await api_keys.create_api_key(desk.call, wanted))
    return await show_keys(desk, OffsetQuery(), token=made["token"])


async def revoke_key(desk: Desk, key_id: str) -> Response:
    await api_keys.delete_api_key(desk.call, key_id)
    return go(f"{PATH}/keys", "The key is revoked. Its streams and sessions have ended.")


async def show_pods(desk: Desk, query: OffsetQuery) -> Response:
    page = plain(await api_pods.list_pods(desk.call, bodies.PageQuery(SHOWN, query.offset)))
    return await desk.show(
        "pods.html",
        "settings",
        title="Pods",
        pods=page["data"],
        total=page["total"],
        offset=query.offset,
        limit=SHOWN,
    )


async def create_pod(desk: Desk, body: PodForm) -> Response:
    await api_pods.create_pod(desk.call, bodies.NewPod(body.client_id or None, body.name or None))
    return go(f"{PATH}/pods", "The pod is there.")


async def rename_pod(desk: Desk, pod_id: str, body: PodNameForm) -> Response:
    await api_pods.change_pod(desk.call, pod_id, bodies.PodChange(name=body.name or None))
    return go(f"{PATH}/pods", "The pod has its new name.")


async def delete_pod(desk: Desk, pod_id: str) -> Response:
    await api_pods.delete_pod(desk.call, pod_id)
    return go(f"{PATH}/pods", "The pod is gone.")
