"""Pods over REST, and what an account may change of itself."""

from dataclasses import replace

from msgspec import UNSET

from postroom.accounts import accounts, pods
from postroom.accounts.reach import Reach
from postroom.accounts.rules import approval as approvals
from postroom.fields import PageQuery
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import AccountChange, NewPod, PodChange
from postroom.web.interface.shapes import tenant_shapes
from postroom.web.interface.shapes.tenant_shapes import Account, Pod


async def create_pod(call: Call, body: NewPod) -> Pod:
    """Create a pod"""

    def work(tx: Tx) -> Pod:
        pod = pods.add(tx, call.account_id, body.client_id, body.name, call.now())
        shown = Pod.of(pod)
        call.record(tx, "pod.created", pod.id, within=Reach(call.account_id, pod.id), after=shown)
        return shown

    return await call.resources.db.write(work)


async def list_pods(call: Call, query: PageQuery) -> tenant_shapes.PodPage:
    """List pods, newest first"""
    found, total = await call.resources.db.read(pods.list_within, call.reach, query.limit, query.offset)
    return tenant_shapes.PodPage([Pod.of(pod) for pod in found], total)


async def get_pod(call: Call, pod_id: str) -> Pod:
    """Get a pod, by its id or your own"""
    return Pod.of(await call.resources.db.read(pods.get, call.reach, pod_id))


async def change_pod(call: Call, pod_id: str, body: PodChange) -> Pod:
    """Change a pod; null clears a field"""

    def work(tx: Tx) -> Pod:
        before = pod = pods.get(tx, call.reach, pod_id)
        if body.name is not UNSET:
            pod = pods.rename(tx, pod, body.name)
        if body.approval is not UNSET:
            asked = body.approval and approvals.require_valid(body.approval)
            pod = pods.set_approval(tx, pod, approvals.encode(asked))
        where = Reach(call.account_id, pod.id)
        call.record(tx, "pod.changed", pod.id, within=where, before=Pod.of(before), after=Pod.of(pod))
        return Pod.of(pod)

    return await call.resources.db.write(work)


async def delete_pod(call: Call, pod_id: str) -> None:
    """Delete a pod in which nothing lies; its keys go with it"""

    def work(tx: Tx) -> None:
        pod = pods.remove(tx, call.reach, pod_id)
        call.record(tx, "pod.deleted", pod.id, within=Reach(call.account_id, pod.id), before=Pod.of(pod))

    await call.resources.db.write(work)


async def get_account(call: Call) -> Account:
    """Get the account"""
    return Account.of(await call.resources.db.read(accounts.get, call.account_id))


async def change_account(call: Call, body: AccountChange) -> Account:
    """Change the account; null clears a field"""

    def work(tx: Tx) -> Account:
        before = account = accounts.get(tx, call.account_id)
        if body.name is not UNSET:
            account = replace(account, name=body.name)
        if body.approval is not UNSET:
            asked = body.approval and approvals.require_valid(body.approval)
            account = replace(account, approval=approvals.encode(asked))
        if body.retention_days is not UNSET:
            account = replace(account, retention_days=body.retention_days)
        accounts.put(tx, account)
        shown = Account.of(account)
        call.record(tx, "account.changed", account.id, before=Account.of(before), after=shown)
        return shown

    return await call.resources.db.write(work)
