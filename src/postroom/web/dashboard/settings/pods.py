"""Pods, the tenants of an account: made, named, held to rules of approval and deleted."""

from msgspec import Struct
from starlette.responses import Response

from postroom import fields
from postroom.accounts.rules import approval
from postroom.web.api.accounts import keys as api_keys
from postroom.web.api.accounts import pods as api_pods
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.values import plain
from postroom.web.dashboard.settings.keys import PATH
from postroom.web.dashboard.settings.paging import SHOWN, OffsetQuery
from postroom.web.dashboard.settings.rules import SENTENCES, ApprovalForm, read_approval
from postroom.web.interface.bodies import body as bodies


class PodForm(Struct, rename="camel", frozen=True):
    name: str = ""
    client_id: str = ""


class PodNameForm(Struct, frozen=True):
    name: str = ""


async def show_pods(desk: Desk, query: OffsetQuery) -> Response:
    page = plain(await api_pods.list_pods(desk.call, query.to_page()))
    return await desk.show(
        "pods.html", "settings", title="Pods", pods=page["data"], **query.of(page["total"])
    )


async def create_pod(desk: Desk, body: PodForm) -> Response:
    await api_pods.create_pod(desk.call, bodies.NewPod(body.client_id or None, body.name or None))
    return go(f"{PATH}/pods", "The pod is there.")


async def show_pod(desk: Desk, pod_id: str) -> Response:
    pod = plain(await api_pods.get_pod(desk.call, pod_id))
    keys = plain(await api_keys.list_pod_keys(desk.call, pod["id"], fields.PageQuery(SHOWN)))
    return await desk.show(
        "pod.html",
        "settings",
        title=pod["name"] or "A pod",
        pod=pod,
        keys=keys["data"],
        words=approval.WORDS,
        sentences=SENTENCES,
    )


async def rename_pod(desk: Desk, pod_id: str, body: PodNameForm) -> Response:
    await api_pods.change_pod(desk.call, pod_id, bodies.PodChange(name=body.name or None))
    return go(f"{PATH}/pods/{pod_id}", "The pod has its new name.")


async def set_rules(desk: Desk, pod_id: str, body: ApprovalForm) -> Response:
    await api_pods.change_pod(desk.call, pod_id, bodies.PodChange(approval=read_approval(body)))
    return go(f"{PATH}/pods/{pod_id}", "The rules of this pod hold from now on.")


async def delete_pod(desk: Desk, pod_id: str) -> Response:
    await api_pods.delete_pod(desk.call, pod_id)
    return go(f"{PATH}/pods", "The pod is gone.")
