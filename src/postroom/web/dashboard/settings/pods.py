"""Pods, the tenants of an account: created, named, with approval rules, and deleted."""

from msgspec import Struct
from starlette.responses import Response

from postroom import fields
from postroom.operations import keys, pods
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.paging import SHOWN, OffsetQuery
from postroom.web.dashboard.settings.keys import PATH
from postroom.web.dashboard.settings.rules import CHOICES, saves_rules

POD = f"{PATH}/pods/{{pod_id}}"


class OutboundForm(Struct, frozen=True):
    outbound: str = ""


class PodNameForm(Struct, frozen=True):
    name: str = ""


async def show_pods(context: PageContext, query: OffsetQuery) -> Response:
    page = await context.ask(pods.list_pods, query=query.to_page())
    return await context.show(
        "pods.html", "settings", title="Pods", pods=page["data"], **query.of(page["total"])
    )


create_pod = runs(pods.create_pod, f"{PATH}/pods", "The pod is created.")


async def show_pod(context: PageContext, pod_id: str) -> Response:
    pod = await context.ask(pods.get_pod, pod_id=pod_id)
    own_keys = await context.ask(keys.list_pod_keys, pod_id=pod["id"], query=fields.PageQuery(SHOWN))
    return await context.show(
        "pod.html",
        "settings",
        title=pod["name"] or "Pod",
        pod=pod,
        keys=own_keys["data"],
        **CHOICES,
    )


rename_pod = runs(
    pods.change_pod,
    POD,
    "The pod is renamed.",
    PodNameForm,
    lambda form: {"body": pods.PodChange(name=form.name or None)},
)
set_outbound = runs(
    pods.change_pod,
    POD,
    "Email of this pod is sent that way from now on.",
    OutboundForm,
    lambda form: {"body": pods.PodChange(outbound=form.outbound.strip() or None)},
)
set_rules = saves_rules(pods.change_pod, pods.PodChange, POD)
delete_pod = undo.delayed(pods.delete_pod, f"{PATH}/pods", "The pod is deleted in {seconds} seconds.")
