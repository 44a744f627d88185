"""Keys over REST: of the account, of a pod, of an inbox; each made, listed, changed and revoked."""

from collections.abc import Callable
from dataclasses import replace

from msgspec import UNSET, Struct

from postroom.accounts import accounts, keys, permissions, pods
from postroom.accounts.keys import Key
from postroom.accounts.reach import Reach
from postroom.accounts.rules import approval as approvals
from postroom.accounts.rules import limits
from postroom.errors import BadRequest, Forbidden
from postroom.fields import PageQuery, to_moment
from postroom.mailbox import inboxes
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import KeyChange, NewKey
from postroom.web.interface.shapes import tenant_shapes
from postroom.web.interface.shapes.tenant_shapes import ApiKey, ApiKeyPage

Find = Callable[[Tx], Reach]  # how far the keys of a path reach


async def who_am_i(call: Call) -> tenant_shapes.Me:
    """Who a key speaks for"""
    return tenant_shapes.Me.of(call.caller)


async def create_api_key(call: Call, body: NewKey) -> tenant_shapes.CreatedApiKey:
    """Create a key of the account"""
    return await create(call, lambda tx: Reach(call.account_id), body)


async def list_api_keys(call: Call, query: PageQuery) -> ApiKeyPage:
    """List the keys of the account, oldest first"""
    return await list_keys(call, lambda tx: Reach(call.account_id), query)


async def create_pod_key(call: Call, pod_id: str, body: NewKey) -> tenant_shapes.CreatedApiKey:
    """Create a key that reaches this pod alone"""
    return await create(call, lambda tx: of_pod(tx, call, pod_id), body)


async def list_pod_keys(call: Call, pod_id: str, query: PageQuery) -> ApiKeyPage:
    """List the keys of a pod, oldest first"""
    return await list_keys(call, lambda tx: of_pod(tx, call, pod_id), query)


async def delete_pod_key(call: Call, pod_id: str, key_id: str) -> None:
    """Revoke a key of a pod, at once"""
    await revoke(call, lambda tx: keys.get_of(tx, of_pod(tx, call, pod_id), key_id))


async def create_inbox_key(call: Call, inbox_id: str, body: NewKey) -> tenant_shapes.CreatedApiKey:
    """Create a key that reaches this inbox alone"""
    return await create(call, lambda tx: inboxes.get(tx, call.reach, inbox_id).reach, body)


async def list_inbox_keys(call: Call, inbox_id: str, query: PageQuery) -> ApiKeyPage:
    """List the keys of an inbox, oldest first"""
    return await list_keys(call, lambda tx: inboxes.get(tx, call.reach, inbox_id).reach, query)


async def delete_inbox_key(call: Call, inbox_id: str, key_id: str) -> None:
    """Revoke a key of an inbox, at once"""
    await revoke(call, lambda tx: keys.get_of(tx, inboxes.get(tx, call.reach, inbox_id).reach, key_id))


async def delete_api_key(call: Call, key_id: str) -> None:
    """Revoke any key of the account, at once"""
    await revoke(call, lambda tx: keys.get(tx, call.account_id, key_id))


async def get_api_key(call: Call, key_id: str) -> ApiKey:
    """Get any key of the account"""
    return ApiKey.of(await call.resources.db.read(keys.get, call.account_id, key_id))


async def change_api_key(call: Call, key_id: str, body: KeyChange) -> ApiKey:
    """Change any key of the account: its name, its approval, its limits; fewer permissions, a sooner end"""

    def work(tx: Tx) -> ApiKey:
        accounts.change_inbox_count(tx, call.account_id, 0)
        key = keys.get(tx, call.account_id, key_id)
        if call.caller.is_bound and not (body.approval is UNSET and body.limits is UNSET):
            raise Forbidden("A key that is held or limited itself changes the rules and limits of no key.")
        changed = apply(key, body, call.now())
        if permissions.MANAGE not in changed.permissions or changed.expires_at != key.expires_at:
            keys.require_another_manager(tx, key, call.now())
        keys.put(tx, changed)
        shown = ApiKey.of(changed)
        call.record(tx, "key.changed", key.id, within=key.reach, before=ApiKey.of(key), after=shown)
        return shown

    return await call.resources.db.write(work)


def apply(key: Key, body: KeyChange, now: int) -> Key:
    if body.name is not UNSET:
        key = replace(key, name=body.name)
    if body.permissions is not UNSET:
        key = replace(key, permissions=fewer(key, body.permissions))
    if body.expires_at is not UNSET:
        key = replace(key, expires_at=sooner(key, to_moment(body.expires_at), now))
    if body.approval is not UNSET:
        asked = body.approval and approvals.require_valid(body.approval)
        key = replace(key, approval=approvals.encode(asked))
    if body.limits is not UNSET:
        budget = limits.encode(body.limits and limits.require_valid(body.limits))
        key = replace(key, limits=budget, budget_id=None)  # a budget of its own from now on
    return key


def fewer(key: Key, asked: list[str]) -> tuple[str, ...]:
    wanted = permissions.read(asked, key.inbox_id is not None)
    if not set(wanted) <= set(key.permissions):
        raise BadRequest("permissions can only become fewer. Make a new key for more.", field="permissions")
    return wanted


def sooner(key: Key, ends_at: int | None, now: int) -> int:
    if ends_at is None or ends_at <= now:
        raise BadRequest("expiresAt must lie in the future. To end a key now, revoke it.", field="expiresAt")
    if key.expires_at is not None and ends_at > key.expires_at:
        raise BadRequest("A key can only end sooner. Make a new one that lives longer.", field="expiresAt")
    return ends_at


def of_pod(tx: Tx, call: Call, pod_id: str) -> Reach:
    return Reach(call.account_id, pods.get(tx, call.reach, pod_id).id)


async def create(call: Call, find: Find, body: NewKey) -> Struct:
    token = keys.new_token()

    def work(tx: Tx) -> Key:
        accounts.change_inbox_count(tx, call.account_id, 0)  # two at once are counted one after the other
        within = find(tx)
        keys.require_room(tx, within)
        asked, ends_at = body.permissions, to_moment(body.expires_at)
        key = keys.make(tx, call.caller, within, body.name, token, asked, ends_at, call.now())
        call.record(tx, "key.created", key.id, within=within, after=ApiKey.of(key))
        return key

    return tenant_shapes.created_key(await call.resources.db.write(work), token)


async def list_keys(call: Call, find: Find, query: PageQuery) -> ApiKeyPage:
    found, total = await call.resources.db.read(
        lambda tx: keys.list_of(tx, find(tx), query.limit, query.offset)
    )
    return ApiKeyPage([ApiKey.of(key) for key in found], total)


async def revoke(call: Call, find: Callable[[Tx], Key]) -> None:
    def work(tx: Tx) -> None:
        accounts.change_inbox_count(tx, call.account_id, 0)
        key = find(tx)
        keys.require_another_manager(tx, key, call.now())
        keys.remove(tx, key.id)
        call.record(tx, "key.revoked", key.id, within=key.reach, before=ApiKey.of(key))

    await call.resources.db.write(work)
