"""Operations on the domains of an account, and on the server's own."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom.accounts import audit, dkim_keys, domains, pods
from postroom.accounts.dkim_keys import DkimKey, KeyState
from postroom.accounts.domains import DnsRecord
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.config import Config
from postroom.deliverability import check_domain, domain_reports
from postroom.deliverability.findings import HealthCheck
from postroom.deliverability.zone_checks import WantedRecords
from postroom.errors import BadRequest, DomainTaken, InvalidDomain
from postroom.external_mailboxes import connections
from postroom.fields import Outbound, PageQuery, PodId, Timestamp, iso, show_item
from postroom.net import relay
from postroom.operations.operator import require_operator
from postroom.queue import deliveries
from postroom.queue.providers import warm_ups
from postroom.storage.database import Tx
from postroom_mail.authentication.dkim import Algorithm

DOMAIN_NAME = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


Subdomains = Annotated[
    bool,
    Meta(description="Inboxes and aliases may have addresses at all its subdomains, without verifying them."),
]


class NewDomain(Struct, rename="camel", frozen=True):
    domain: Annotated[str, Meta(description="Its name.", examples=["mail.example.com"])]
    pod_id: PodId | None = None
    subdomains: Subdomains = False


class DomainChange(Struct, rename="camel", frozen=True):
    outbound: Outbound | UnsetType | None = UNSET
    subdomains: Subdomains | UnsetType = UNSET
    warm_up: Annotated[
        bool | UnsetType,
        Meta(description="Start with little email to each provider and increase it daily."),
    ] = UNSET


class ShownRecord(Struct, rename="camel", frozen=True):
    type: str
    name: str
    value: str
    purpose: str
    required: bool
    found: bool | None


class DomainKey(Struct, rename="camel", frozen=True):
    """A signing key of a domain: active, waiting or retired."""

    selector: str
    name: Annotated[str, Meta(description="Of its TXT record.")]
    algorithm: Algorithm
    state: Annotated[
        KeyState,
        Meta(description="A waiting key signs once its record is found; a retired one no longer signs."),
    ]
    created_at: Timestamp | None
    active_at: Timestamp | None
    retired_at: Timestamp | None
    removable_at: Annotated[
        Timestamp | None, Meta(description="When the record of a retired key can be removed.")
    ]

    @classmethod
    def of(cls, key: DkimKey, domain: str) -> "DomainKey":
        made_at, active_at = iso(key.created_at or None), iso(key.active_at or None)
        return show_item(cls, key, name=key.name_below(domain), created_at=made_at, active_at=active_at)


class Domain(Struct, rename="camel", frozen=True):
    id: str
    domain: str
    pod_id: str | None
    status: Literal["pending", "verified"]
    created_at: Timestamp
    verified_at: Timestamp | None
    outbound: str | None
    records: list[ShownRecord]
    dkim: list[DomainKey]
    system: Annotated[bool, Meta(description="The server's own domain; it cannot be deleted.")] = False
    warm_up: Annotated[bool, Meta(description="Its daily limit to each provider grows.")] = False
    subdomains: Subdomains = False

    @classmethod
    def of(
        cls,
        domain: domains.Domain,
        records: list[DnsRecord],
        keys: list[DkimKey],
        found: Sequence[bool] | None = None,
        warm_up: bool = False,
    ) -> "Domain":
        there: Sequence[bool | None] = found or [None] * len(records)
        return show_item(
            cls,
            domain,
            domain=domain.name,
            status="pending" if domain.verified_at is None else "verified",
            outbound=relay.mask(domain.outbound),
            records=[
                show_item(ShownRecord, record, required=record.is_required, found=is_there)
                for record, is_there in zip(records, there, strict=True)
            ],
            dkim=[DomainKey.of(key, domain.name) for key in keys],
            system=domain.id == domains.SERVICE_ID,
            warm_up=warm_up,
            subdomains=bool(domain.subdomains),
        )


class DomainPage(Struct, rename="camel", frozen=True):
    data: list[Domain]
    total: int


class DomainHealth(Struct, rename="camel", frozen=True):
    data: list[HealthCheck]


def create_domain(
    tx: Tx, caller: Caller, body: NewDomain, private_key: bytes, config: Config, now: int
) -> Domain:
    """Add your domain; the answer lists the DNS records to set"""
    name = read_name(body, config)
    pod_id = pods.choose(tx, caller.scope, body.pod_id)
    domain = domains.add(tx, caller.account_id, name, private_key, now, pod_id)
    if body.subdomains:
        domain = domains.set_subdomains(tx, domain, True)
    record(tx, caller, "domain.added", domain, now)
    return show(tx, domain, config, now)


def read_name(body: NewDomain, config: Config) -> str:
    name = body.domain.lower()
    if not DOMAIN_NAME.fullmatch(name) or name == config.domain:
        raise InvalidDomain(
            "domain must be a name such as mail.example.com, and not this service's own.", field="domain"
        )
    return name


def list_domains(tx: Tx, caller: Caller, query: PageQuery, config: Config, now: int) -> DomainPage:
    """List your domains, newest first; for keys of the account the server's own comes first"""
    own = [domains.of_service(tx, config.domain)] if caller.scope.is_account else []
    first = own[query.offset : query.offset + query.limit]
    limit, offset = query.limit - len(first), max(0, query.offset - len(own))
    found, total = domains.list_within(tx, caller.scope, limit, offset)
    return DomainPage([show(tx, domain, config, now) for domain in [*first, *found]], total + len(own))


def get_domain(tx: Tx, caller: Caller, domain_id: str, config: Config, now: int) -> Domain:
    """Get a domain and its DNS records"""
    return show(tx, find_domain(tx, caller, domain_id, config), config, now)


def find_domain(tx: Tx, caller: Caller, domain_id: str, config: Config) -> domains.Domain:
    if domain_id == domains.SERVICE_ID and caller.scope.is_account:
        return domains.of_service(tx, config.domain)
    return domains.get(tx, caller.scope, domain_id)


def change_domain(
    tx: Tx, caller: Caller, domain_id: str, body: DomainChange, config: Config, now: int
) -> Domain:
    """Change the relay of a domain (null: the pod's or the server's), its warm-up or its subdomains"""
    domain = find_domain(tx, caller, domain_id, config)
    if domain.id == domains.SERVICE_ID:
        require_operator(tx, caller)
    if body.warm_up is not UNSET:
        set_warm_up(tx, caller, domain, body.warm_up, now)
    if body.subdomains is not UNSET:
        if domain.id == domains.SERVICE_ID:
            raise BadRequest("The server's own domain has no subdomains for inboxes.", field="subdomains")
        domain = domains.set_subdomains(tx, domain, body.subdomains)
        record(tx, caller, "domain.changed", domain, now)
    if body.outbound is not UNSET:
        if domain.id == domains.SERVICE_ID:
            raise BadRequest(
                "POSTROOM_OUTBOUND sets how email of the server's own domain is sent.", field="outbound"
            )
        domain = domains.set_outbound(tx, domain, relay.require_relays(body.outbound))
        record(tx, caller, "domain.changed", domain, now)
    return show(tx, domain, config, now)


def set_warm_up(tx: Tx, caller: Caller, domain: domains.Domain, is_on: bool, now: int) -> None:
    """Start or end the warm-up of a verified domain. Email that waits is sent when it ends."""
    if domain.verified_at is None:
        raise BadRequest("Verify the domain first.", field="warmUp")
    if is_on and warm_ups.begin(tx, domain.account_id, domain.name, now):
        record(tx, caller, "domain.warm_up_begun", domain, now)
    elif not is_on and warm_ups.end(tx, domain.account_id, domain.name):
        record(tx, caller, "domain.warm_up_ended", domain, now)
        if warm_ups.let_go(tx, domain.name, now):
            tx.ring(deliveries.BELL)


def require_rotatable(tx: Tx, caller: Caller, domain_id: str, config: Config) -> domains.Domain:
    """Raise unless the keys may be rotated. Checked before new keys are made, since that is slow."""
    domain = find_domain(tx, caller, domain_id, config)
    if domain.id == domains.SERVICE_ID:
        require_operator(tx, caller)
    dkim_keys.require_none_waiting(tx, domain.account_id, domain.name)
    return domain


def rotate_dkim(
    tx: Tx, caller: Caller, domain_id: str, private_key: bytes, config: Config, now: int
) -> Domain:
    domain = require_rotatable(tx, caller, domain_id, config)
    dkim_keys.begin_rotation(tx, domain.account_id, domain.name, private_key, now)
    record(tx, caller, "domain.dkim_rotated", domain, now)
    return show(tx, domain, config, now)


def delete_domain(tx: Tx, caller: Caller, domain_id: str, now: int) -> None:
    """Delete a domain that no inbox uses"""
    if domain_id == domains.SERVICE_ID and caller.scope.is_account:
        raise DomainTaken("The server's own domain cannot be deleted.")
    domain = domains.remove(tx, caller.scope, domain_id)
    domain_reports.remove_all(tx, domain.account_id, domain.name)
    warm_ups.end(tx, domain.account_id, domain.name)
    record(tx, caller, "domain.removed", domain, now)


def find_wanted(
    tx: Tx, caller: Caller, domain_id: str, config: Config, now: int
) -> tuple[domains.Domain, list[DnsRecord]]:
    domain = find_domain(tx, caller, domain_id, config)
    return domain, wanted_records(tx, domain, config, now)


def find_wanted_zone(tx: Tx, caller: Caller, domain_id: str, config: Config) -> WantedRecords:
    return check_domain.find_wanted(tx, find_domain(tx, caller, domain_id, config), config)


def mark_verified(tx: Tx, caller: Caller, domain: domains.Domain, now: int) -> domains.Domain:
    verified = domains.mark_verified(tx, domain, now)
    record(tx, caller, "domain.verified", verified, now)
    return verified


def show(tx: Tx, domain: domains.Domain, config: Config, now: int) -> Domain:
    wanted, is_warming = wanted_records(tx, domain, config, now), is_warming_up(tx, domain)
    return Domain.of(domain, wanted, keys_of(tx, domain), warm_up=is_warming)


def is_warming_up(tx: Tx, domain: domains.Domain) -> bool:
    return warm_ups.is_on(tx, domain.name, domain.account_id)


def keys_of(tx: Tx, domain: domains.Domain) -> list[DkimKey]:
    return dkim_keys.list_of(tx, domain.account_id, domain.name)


def wanted_records(tx: Tx, domain: domains.Domain, config: Config, now: int) -> list[DnsRecord]:
    comes_by_mx = not connections.has_posts(tx, domain.account_id)
    keys = keys_of(tx, domain)
    return domains.records(domain.name, config.domain, keys, now, comes_by_mx, bool(domain.subdomains))


def record(tx: Tx, caller: Caller, action: str, domain: domains.Domain, now: int) -> None:
    where = caller.scope if domain.id == domains.SERVICE_ID else Scope(domain.account_id, domain.pod_id)
    is_open = {"subdomains": True} if domain.subdomains else {}
    shown = {"domain": domain.name, "outbound": relay.mask(domain.outbound), **is_open}
    audit.record_by(tx, caller, action, domain.id, now, within=where, after=shown)
