"""Pods, keys, domains, the organization and who asks, of /v0."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from postroom.accounts import accounts, domains, keys, permissions, pods
from postroom.accounts.keys import Caller, Key
from postroom.accounts.pods import Pod
from postroom.accounts.reach import Reach
from postroom.clock import to_iso
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.fields import RowPlace, iso
from postroom.mailbox import inboxes
from postroom.operations import domains as domain_verbs
from postroom.operations import keys as key_verbs
from postroom.operations import pods as pod_verbs
from postroom.resources import Resources, Tx
from postroom.web.agentmail import paging, shapes
from postroom.web.agentmail.setup import setup_shapes
from postroom.web.api.accounts import domains as domain_checks
from postroom.web.call import Call

MOST = 1000  # of lists that are short: keys, domains
STATUS = {True: "VALID", False: "MISSING", None: "MISSING"}


# --- pods


def show_pod(pod: Pod) -> shapes.Page:
    named = {} if pod.client_id is None else {"client_id": pod.client_id}
    moment = to_iso(pod.created_at)
    return {
        "pod_id": pod.id,
        "name": pod.name or ("default" if pod.is_default else pod.id),
        **named,
        "created_at": moment,
        "updated_at": moment,
    }


def create_pod(tx: Tx, caller: Caller, body: setup_shapes.NewPod, now: int) -> shapes.Page:
    accounts.lock(tx, caller.account_id)
    known = None if body.client_id is None else pods.find(tx, caller.reach, body.client_id)
    if known is not None:
        return show_pod(known)
    made = pod_verbs.create_pod(tx, caller, pod_verbs.NewPod(client_id=body.client_id, name=body.name), now)
    return show_pod(pods.get(tx, caller.reach, made.id))


def list_pods(tx: Tx, caller: Caller, query: shapes.PageQuery) -> shapes.Page:
    found = pods.list_span(tx, caller.reach, paging.span_of(query))
    shown, behind = paging.cut(found, query.limit, lambda pod: RowPlace(pod.created_at, pod.id))
    return paging.page("pods", [show_pod(pod) for pod in shown], query.limit, behind)


def get_pod(tx: Tx, caller: Caller, pod_id: str) -> shapes.Page:
    return show_pod(pods.get(tx, caller.reach, pod_id))


def delete_pod(tx: Tx, caller: Caller, pod_id: str, now: int) -> None:
    pod_verbs.delete_pod(tx, caller, pod_id, now)


# --- keys


def show_key(tx: Tx, key: Key) -> shapes.Page:
    inbox = None if key.inbox_id is None else inboxes.find(tx, key.inbox_id)
    return {
        "api_key_id": key.id,
        "type": "bearer",
        "prefix": key.token_prefix,
        "name": key.name or key.id,
        "pod_id": key.pod_id,
        "inbox_id": None if inbox is None else inbox.address,
        "created_at": to_iso(key.created_at),
        "updated_at": to_iso(key.created_at),
        "used_at": iso(key.last_used_at),
        "expires_at": iso(key.expires_at),
    }


def create_key(tx: Tx, caller: Caller, body: setup_shapes.NewKey, config: Config, now: int) -> shapes.Page:
    return make_key(tx, caller, Reach(caller.account_id), body, config, now)


def create_key_within(
    tx: Tx, caller: Caller, within: Reach, body: setup_shapes.NewKey, config: Config, now: int
) -> shapes.Page:
    return make_key(tx, caller, within, body, config, now)


def make_key(
    tx: Tx, caller: Caller, within: Reach, body: setup_shapes.NewKey, config: Config, now: int
) -> shapes.Page:
    if body.public_key is not None:
        raise BadRequest("Keys here are bearer keys: none is registered.", field="public_key")
    new = key_verbs.NewKey(
        name=body.name or "",
        permissions=read_permissions(body.permissions, within.inbox_id is not None),
        expires_at=body.expires_at,
    )
    made: Any = key_verbs.create(tx, caller, within, new, config, now)
    return {**show_key(tx, keys.get(tx, caller.account_id, made.id)), "api_key": made.token}


def read_permissions(given: Mapping[str, bool] | None, is_of_an_inbox: bool) -> list[str] | None:
    """A permission here covers several there: a key with fewer of them would gain, and is not made."""
    if given is None:
        possible = permissions.OF_AN_INBOX if is_of_an_inbox else permissions.ALL
        return [word for word in possible if word != permissions.APPROVE]
    raise BadRequest(
        "permissions are coarser here: make the key with /v1 (read, draft, send, approve, manage), or leave"
        " them out.",
        field="permissions",
    )


def list_keys(tx: Tx, caller: Caller, query: shapes.PageQuery) -> shapes.Page:
    return list_keys_of(tx, Reach(caller.account_id), query)


def list_keys_within(tx: Tx, within: Reach, query: shapes.PageQuery) -> shapes.Page:
    return list_keys_of(tx, within, query)


def list_keys_of(tx: Tx, within: Reach, query: shapes.PageQuery) -> shapes.Page:
    found, _ = keys.list_of(tx, within, MOST, 0)
    part = paging.part_of(found, paging.span_of(query), place_of_key)
    shown, behind = paging.cut(part, query.limit, place_of_key)
    return paging.page("api_keys", [show_key(tx, key) for key in shown], query.limit, behind)


def place_of_key(key: Key) -> RowPlace:
    return RowPlace(key.created_at, key.id)


def get_key(tx: Tx, caller: Caller, key_id: str) -> shapes.Page:
    return show_key(tx, keys.get(tx, caller.account_id, key_id))


def get_key_within(tx: Tx, within: Reach, key_id: str) -> shapes.Page:
    return show_key(tx, keys.get_of(tx, within, key_id))


def change_key(
    tx: Tx, caller: Caller, key_id: str, body: setup_shapes.KeyChange, config: Config, now: int
) -> shapes.Page:
    key = keys.get(tx, caller.account_id, key_id)
    if body.permissions is not UNSET:
        read_permissions(body.permissions or {}, key.inbox_id is not None)
    key_verbs.change_api_key(tx, caller, key_id, key_verbs.KeyChange(name=body.name), config, now)
    return show_key(tx, keys.get(tx, caller.account_id, key_id))


def delete_key(tx: Tx, caller: Caller, key_id: str, now: int) -> None:
    key_verbs.delete_api_key(tx, caller, key_id, now)


def delete_key_within(tx: Tx, caller: Caller, within: Reach, key_id: str, now: int) -> None:
    key_verbs.delete_pod_key(tx, caller, within, key_id, now)


# --- domains


def show_domain(shown: domain_verbs.Domain, *, is_item: bool = False) -> shapes.Page:
    """Everything that can be switched there is on here, but opens are not tracked."""
    item: shapes.Page = {
        "domain_id": shown.id,
        "domain": shown.domain,
        "pod_id": shown.pod_id,
        "feedback_enabled": True,
        "inbound_enabled": True,
        "subdomains_enabled": False,
        "tracking_enabled": False,
        "created_at": shown.created_at,
        "updated_at": shown.verified_at or shown.created_at,
    }
    if is_item:
        return item
    is_verified = shown.status == "verified"
    records = [
        {
            "type": record.type,
            "name": record.name,
            "value": record.value.split()[-1] if record.type == "MX" else record.value,
            "status": "VALID" if is_verified and record.required else STATUS[record.found],
            **({"priority": int(record.value.split()[0])} if record.type == "MX" else {}),
        }
        for record in shown.records
    ]
    return {**item, "status": "VERIFIED" if is_verified else "PENDING", "records": records}


def create_domain(
    tx: Tx, caller: Caller, body: setup_shapes.NewDomain, private_key: bytes, config: Config, now: int
) -> shapes.Page:
    new = domain_verbs.NewDomain(body.domain)
    return show_domain(domain_verbs.create_domain(tx, caller, new, private_key, config, now))


def create_pod_domain(
    tx: Tx,
    caller: Caller,
    pod_id: str,
    body: setup_shapes.NewDomain,
    private_key: bytes,
    config: Config,
    now: int,
) -> shapes.Page:
    new = domain_verbs.NewDomain(body.domain, pods.get(tx, caller.reach, pod_id).id)
    return show_domain(domain_verbs.create_domain(tx, caller, new, private_key, config, now))


async def make_dkim_key(resources: Resources, body: setup_shapes.NewDomain) -> dict[str, Any]:
    return await domain_checks.make_dkim_key(resources, domain_verbs.NewDomain(body.domain))


def list_domains(tx: Tx, caller: Caller, query: shapes.PageQuery, config: Config) -> shapes.Page:
    return list_domains_of(tx, caller.reach, query, config)


def list_pod_domains(
    tx: Tx, caller: Caller, pod_id: str, query: shapes.PageQuery, config: Config
) -> shapes.Page:
    return list_domains_of(tx, Reach(caller.account_id, pods.get(tx, caller.reach, pod_id).id), query, config)


def list_domains_of(tx: Tx, reach: Reach, query: shapes.PageQuery, config: Config) -> shapes.Page:
    found, _ = domains.list_within(tx, reach, MOST, 0)
    part = paging.part_of(found, paging.span_of(query), place_of_domain)
    some, behind = paging.cut(part, query.limit, place_of_domain)
    shown = [show_domain(domain_verbs.show(tx, domain, config), is_item=True) for domain in some]
    return paging.page("domains", shown, query.limit, behind)


def place_of_domain(domain: domains.Domain) -> RowPlace:
    return RowPlace(domain.created_at, domain.id)


def get_domain(tx: Tx, caller: Caller, domain_id: str, config: Config) -> shapes.Page:
    return show_domain(domain_verbs.get_domain(tx, caller, domain_id, config))


def change_domain(
    tx: Tx, caller: Caller, domain_id: str, body: setup_shapes.DomainChange, config: Config
) -> shapes.Page:
    """What it already is may be said again; nothing of it can be switched."""
    shown = show_domain(domain_verbs.get_domain(tx, caller, domain_id, config))
    for name in body.__struct_fields__:
        if getattr(body, name) not in (None, shown[name]):
            raise BadRequest(f"{name} cannot be changed here.", field=name)
    return shown


def delete_domain(tx: Tx, caller: Caller, domain_id: str, now: int) -> None:
    domain_verbs.delete_domain(tx, caller, domain_id, now)


async def verify_domain(call: Call, domain_id: str, pod_id: str = "") -> None:
    await domain_checks.verify_domain(call, domain_id)


def get_zone_file(tx: Tx, caller: Caller, domain_id: str, config: Config) -> str:
    """The records as lines of a zone file."""
    shown = domain_verbs.get_domain(tx, caller, domain_id, config)
    return "".join(f"{line(record)}\n" for record in shown.records)


def line(record: domain_verbs.ShownRecord) -> str:
    value = record.value
    if record.type == "TXT":
        pieces = [value[start : start + 255] for start in range(0, len(value), 255)]
        value = " ".join(f'"{piece}"' for piece in pieces)
    return f"{record.name}. 3600 IN {record.type} {value}"


# --- who asks


def get_organization(tx: Tx, caller: Caller) -> shapes.Page:
    account = accounts.get(tx, caller.account_id)
    _, inbox_count = inboxes.list_within(tx, Reach(account.id), 1, 0)
    _, domain_count = domains.list_within(tx, Reach(account.id), 1, 0)
    moment = to_iso(account.created_at)
    return {
        "organization_id": account.id,
        "inbox_count": inbox_count,
        "domain_count": domain_count,
        "created_at": moment,
        "updated_at": moment,
    }


def get_identity(tx: Tx, caller: Caller) -> shapes.Page:
    inbox = None if caller.inbox_id is None else inboxes.find(tx, caller.inbox_id)
    address = None if inbox is None else inbox.address
    pod_id = caller.reach.pod_id
    scope = "inbox" if address else "pod" if pod_id else "organization"
    return {
        "scope_type": scope,
        "scope_id": address or pod_id or caller.account_id,
        "organization_id": caller.account_id,
        "pod_id": pod_id,
        "inbox_id": address,
        "api_key_id": caller.key_id,
    }
