"""Pods, the tenants of an account: created, named, with approval rules, and deleted."""

from msgspec import Struct
from starlette.responses import Response

from postroom import fields
from postroom.accounts.rules import approval
from postroom.operations import keys, pods
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.settings.keys import PATH
from postroom.web.dashboard.settings.paging import SHOWN, OffsetQuery
from postroom.web.dashboard.settings.rules import SENTENCES, ApprovalForm, read_approval


class OutboundForm(Struct, frozen=True):
    outbound: str = ""


class PodNameForm(Struct, frozen=True):
    name: str = ""


async def show_pods(desk: Desk, query: OffsetQuery) -> Response:
    page = await desk.ask(pods.list_pods, query=query.to_page())
    return await desk.show(
        "pods.html", "settings", title="Pods", pods=page["data"], **query.of(page["total"])
    )


async def create_pod(desk: Desk, body: pods.NewPod) -> Response:
    await desk.run(pods.create_pod, body=body)
    return go(f"{PATH}/pods", "The pod is created.")


async def show_pod(desk: Desk, pod_id: str) -> Response:
    pod = await desk.ask(pods.get_pod, pod_id=pod_id)
    own_keys = await desk.ask(keys.list_pod_keys, pod_id=pod["id"], query=fields.PageQuery(SHOWN))
    return await desk.show(
        "pod.html",
        "settings",
        title=pod["name"] or "A pod",
        pod=pod,
        keys=own_keys["data"],
        words=approval.WORDS,
        sentences=SENTENCES,
    )


async def rename_pod(desk: Desk, pod_id: str, body: PodNameForm) -> Response:
    await desk.run(pods.change_pod, pod_id=pod_id, body=pods.PodChange(name=body.name or None))
    return go(f"{PATH}/pods/{pod_id}", "The pod is renamed.")


async def set_outbound(desk: Desk, pod_id: str, body: OutboundForm) -> Response:
    await desk.run(
        pods.change_pod, pod_id=pod_id, body=pods.PodChange(outbound=body.outbound.strip() or None)
    )
    return go(f"{PATH}/pods/{pod_id}", "Mail of this pod is sent that way from now on.")


async def set_rules(desk: Desk, pod_id: str, body: ApprovalForm) -> Response:
    await desk.run(pods.change_pod, pod_id=pod_id, body=pods.PodChange(approval=read_approval(body)))
    return go(f"{PATH}/pods/{pod_id}", "The rules of this pod are saved.")


delete_pod = undo.delayed(pods.delete_pod, f"{PATH}/pods", "The pod is deleted in {seconds} seconds.")
