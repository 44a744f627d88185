"""Domains of /v0, named by their id or by the domain itself."""

from functools import partial
from typing import Any

from postroom.accounts import accounts, domains
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.config import Config
from postroom.deliverability.findings import zone_line
from postroom.errors import BadRequest
from postroom.operations import domains as verbs
from postroom.resources import Resources, Tx
from postroom.web import client_configuration
from postroom.web.agentmail import paging, shapes
from postroom.web.agentmail.setup import setup_shapes
from postroom.web.api import domains as checks
from postroom.web.call import Call

MOST = 1000  # a list of domains is short


def show(tx: Tx, domain: domains.Domain, config: Config, now: int, *, is_item: bool = False) -> shapes.Page:
    """Return a domain as shown. Feedback and inbound mail are always on, open tracking always off."""
    shown = verbs.show(tx, domain, config, now)
    item: shapes.Page = {
        "domain_id": shown.id,
        "domain": shown.domain,
        "pod_id": shown.pod_id,
        "client_id": domain.client_id,
        "feedback_enabled": True,
        "inbound_enabled": True,
        "subdomains_enabled": shown.subdomains,
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
            "status": "VALID" if record.found or (is_verified and record.required) else "MISSING",
            **({"priority": int(record.value.split()[0])} if record.type == "MX" else {}),
        }
        for record in shown.records
    ]
    return {**item, "status": "VERIFIED" if is_verified else "PENDING", "records": records}


async def make_dkim_key(resources: Resources, body: setup_shapes.NewDomain) -> dict[str, Any]:
    return await checks.make_dkim_key(resources, verbs.NewDomain(body.domain))


def create_domain(
    tx: Tx,
    caller: Caller,
    place: Scope,
    body: setup_shapes.NewDomain,
    private_key: bytes,
    config: Config,
    now: int,
) -> shapes.Page:
    """Create a domain. The same client_id again returns the first one."""
    accounts.lock(tx, caller.account_id)
    known = domains.find_by_client_id(tx, place, body.client_id) if body.client_id else None
    if known is not None:
        return show(tx, known, config, now)
    new = verbs.NewDomain(body.domain, place.pod_id, bool(body.subdomains_enabled))
    made = verbs.create_domain(tx, caller, new, private_key, config, now)
    if body.client_id is not None:
        domains.set_client_id(tx, made.id, body.client_id)
    return get_domain(tx, caller, made.id, config, now)


def list_domains(tx: Tx, place: Scope, query: shapes.PageQuery, config: Config, now: int) -> shapes.Page:
    found, _ = domains.list_within(tx, place, MOST, 0)
    item = partial(show, tx, config=config, now=now, is_item=True)
    return paging.page_of("domains", paging.part_of(found, query), query, item)


def get_domain(tx: Tx, caller: Caller, domain_id: str, config: Config, now: int) -> shapes.Page:
    return show(tx, verbs.find_domain(tx, caller, domain_id, config), config, now)


def change_domain(
    tx: Tx, caller: Caller, domain_id: str, body: setup_shapes.DomainChange, config: Config, now: int
) -> shapes.Page:
    """Changes whether it has subdomains; of all else only current values are accepted."""
    if body.subdomains_enabled is not None:
        change = verbs.DomainChange(subdomains=body.subdomains_enabled)
        verbs.change_domain(tx, caller, domain_id, change, config, now)
    shown = get_domain(tx, caller, domain_id, config, now)
    for name in body.__struct_fields__:
        if getattr(body, name) not in (None, shown[name]):
            raise BadRequest(f"{name} cannot be changed here.", field=name)
    return shown


async def verify_domain(call: Call, domain_id: str) -> None:
    await checks.verify_domain(call, domain_id)


def get_setup_link(tx: Tx, caller: Caller, domain_id: str, config: Config) -> shapes.Page:
    """Return no link. DNS providers are not supported: the zone's owner sets the records."""
    verbs.find_domain(tx, caller, domain_id, config)
    return {"supported": False}


def get_zone_file(tx: Tx, caller: Caller, domain_id: str, config: Config, now: int) -> str:
    """Return the records as lines of a zone file."""
    shown = verbs.get_domain(tx, caller, domain_id, config, now)
    lines = [zone_line(record.name, record.type, record.value) for record in shown.records]
    return "".join(f"{each}\n" for each in (*lines, *client_configuration.zone_lines(shown.domain, config)))
