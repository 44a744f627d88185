"""Settings: rules of approval, keys, pods, policies, suppressed addresses, domains, and the audit log."""

from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import approval
from postroom.accounts.approval import Approval, OverPerDay
from postroom.accounts.permissions import ALL
from postroom.web.api import audit as api_audit
from postroom.web.api import domains as api_domains
from postroom.web.api import keys as api_keys
from postroom.web.api import pods as api_pods
from postroom.web.api import policy as api_policy
from postroom.web.api import suppressions as api_suppressions
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.values import plain
from postroom.web.interface import body as bodies
from postroom.web.interface import tenant_body

PATH = "/app/settings"
SHOWN = 50


class Offset(Struct, frozen=True):
    offset: int = 0


class ApprovalForm(Struct, rename="camel", frozen=True):
    when: list[str] = []
    over_per_day: str = ""
    expires_hours: int = approval.EXPIRES_HOURS
    reviewers: str = ""


class KeyForm(Struct, rename="camel", frozen=True):
    name: str = ""
    permissions: list[str] = []
    inbox_id: str = ""


class PodForm(Struct, rename="camel", frozen=True):
    name: str = ""
    client_id: str = ""


class PolicyQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""


class ModeForm(Struct, rename="camel", frozen=True):
    mode: Literal["none", "allowlist", "inherit"]
    direction: Literal["inbound", "outbound"]
    inbox_id: str = ""


class RuleForm(Struct, rename="camel", frozen=True):
    type: Literal["allow", "block"]
    value: str
    direction: Literal["inbound", "outbound"]
    inbox_id: str = ""


class AddressForm(Struct, frozen=True):
    address: str


class DomainForm(Struct, frozen=True):
    domain: str


async def show_settings(desk: Desk) -> Response:
    account = plain(await api_pods.get_account(desk.call)) if desk.call.reach.is_account else None
    return await desk.show(
        "settings.html", "settings", title="Settings", account=account, words=approval.WORDS
    )


async def set_approval(desk: Desk, body: ApprovalForm) -> Response:
    rules: list[str | OverPerDay] = [*body.when]
    if body.over_per_day.strip().isdigit():
        rules.append(OverPerDay(int(body.over_per_day)))
    people = [address.strip() for address in body.reviewers.replace(",", "\n").split("\n") if address.strip()]
    wanted = Approval(rules, body.expires_hours, people) if rules or people else None
    await api_pods.change_account(desk.call, bodies.AccountChange(approval=wanted))
    return go(PATH, "The rules hold from now on.")


async def show_keys(desk: Desk, query: Offset, token: str = "") -> Response:
    page = plain(await api_keys.list_api_keys(desk.call, bodies.PageQuery(SHOWN, max(query.offset, 0))))
    return await desk.show(
        "keys.html",
        "settings",
        title="Keys",
        keys=page["data"],
        total=page["total"],
        offset=query.offset,
        limit=SHOWN,
        token=token,
        permissions=ALL,
    )


async def create_key(desk: Desk, body: KeyForm) -> Response:
    wanted = bodies.NewKey(body.name, body.permissions or None)
    if body.inbox_id:
        made = plain(await api_keys.create_inbox_key(desk.call, body.inbox_id, wanted))
    else:
        made = plain(await api_keys.create_api_key(desk.call, wanted))
    return await show_keys(desk, Offset(), token=made["token"])


async def revoke_key(desk: Desk, key_id: str) -> Response:
    await api_keys.delete_api_key(desk.call, key_id)
    return go(f"{PATH}/keys", "The key is revoked. Its streams and sessions have ended.")


async def show_pods(desk: Desk, query: Offset) -> Response:
    page = plain(await api_pods.list_pods(desk.call, bodies.PageQuery(SHOWN, max(query.offset, 0))))
    return await desk.show(
        "pods.html", "settings", title="Pods", pods=page["data"], total=page["total"], offset=query.offset
    )


async def create_pod(desk: Desk, body: PodForm) -> Response:
    await api_pods.create_pod(desk.call, bodies.NewPod(body.client_id or None, body.name or None))
    return go(f"{PATH}/pods", "The pod is there.")


async def delete_pod(desk: Desk, pod_id: str) -> Response:
    await api_pods.delete_pod(desk.call, pod_id)
    return go(f"{PATH}/pods", "The pod is gone.")


def boundary(inbox_id: str) -> bodies.Boundary:
    return bodies.Boundary(inbox_id or None, None)


async def show_policy(desk: Desk, query: PolicyQuery) -> Response:
    found = plain(await api_policy.get_policy(desk.call, boundary(query.inbox_id)))
    asked = tenant_body.PolicyAuditQuery(inbox_id=query.inbox_id or None, limit=20)
    stopped = plain(await api_policy.list_policy_audit(desk.call, asked))["data"]
    return await desk.show(
        "policy.html", "settings", title="Policy", policy=found, query=query, stopped=stopped
    )


async def set_mode(desk: Desk, body: ModeForm) -> Response:
    await api_policy.put_policy_mode(
        desk.call, boundary(body.inbox_id), tenant_body.ModeChange(body.mode, body.direction)
    )
    return back_to_policy(body.inbox_id, "The mode is set.")


async def add_rule(desk: Desk, body: RuleForm) -> Response:
    await api_policy.add_policy_rule(
        desk.call, boundary(body.inbox_id), tenant_body.NewRule(body.type, body.value, body.direction)
    )
    return back_to_policy(body.inbox_id, "The rule holds from now on.")


async def remove_rule(desk: Desk, rule_id: str, body: PolicyQuery) -> Response:
    await api_policy.delete_policy_rule(desk.call, rule_id, boundary(body.inbox_id))
    return back_to_policy(body.inbox_id, "The rule is gone.")


def back_to_policy(inbox_id: str, notice: str) -> Response:
    return go(f"{PATH}/policy?inboxId={inbox_id}" if inbox_id else f"{PATH}/policy", notice)


async def show_suppressions(desk: Desk, query: Offset) -> Response:
    asked = bodies.PageQuery(SHOWN, max(query.offset, 0))
    page = plain(await api_suppressions.list_suppressions(desk.call, asked))
    return await desk.show(
        "suppressions.html",
        "settings",
        title="Suppressed addresses",
        suppressions=page["data"],
        total=page["total"],
        offset=query.offset,
        limit=SHOWN,
    )


async def suppress(desk: Desk, body: AddressForm) -> Response:
    await api_suppressions.add_suppression(desk.call, bodies.NewSuppression(body.address))
    return go(f"{PATH}/suppressions", f"Nothing is sent to {body.address} any more.")


async def unsuppress(desk: Desk, body: AddressForm) -> Response:
    await api_suppressions.delete_suppression(desk.call, body.address)
    return go(f"{PATH}/suppressions", f"{body.address} may be written to again.")


async def show_domains(desk: Desk, query: Offset) -> Response:
    page = plain(await api_domains.list_domains(desk.call, bodies.PageQuery(SHOWN, max(query.offset, 0))))
    return await desk.show(
        "domains.html", "settings", title="Domains", domains=page["data"], checked=None, total=page["total"]
    )


async def add_domain(desk: Desk, body: DomainForm) -> Response:
    await api_domains.create_domain(desk.call, bodies.NewDomain(body.domain))
    return go(f"{PATH}/domains", f"{body.domain} is added. Set its records, then check them.")


async def check_domain(desk: Desk, domain_id: str) -> Response:
    checked = plain(await api_domains.verify_domain(desk.call, domain_id))
    page = plain(await api_domains.list_domains(desk.call, bodies.PageQuery(SHOWN, 0)))
    shown = [checked if each["id"] == domain_id else each for each in page["data"]]
    return await desk.show(
        "domains.html", "settings", title="Domains", domains=shown, checked=domain_id, total=page["total"]
    )


async def show_audit(desk: Desk, query: Offset) -> Response:
    page = plain(await api_audit.list_audit(desk.call, tenant_body.AuditQuery(offset=max(query.offset, 0))))
    return await desk.show(
        "audit.html",
        "settings",
        title="Audit",
        entries=page["data"],
        total=page["total"],
        offset=query.offset,
        limit=SHOWN,
    )
