"""Domains whose mail is received and signed here. The service has one; accounts may verify their own."""

import re

from msgspec import Struct, structs
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import dkim_keys, pods
from postroom.accounts.dkim_keys import DkimKey
from postroom.accounts.scope import Scope, default_pod
from postroom.clock import to_iso
from postroom.errors import DomainTaken, InvalidDomain, no_such
from postroom.storage.database import LOCK_ROWS, Tx, all_of, count, insert_new, item_from_row, update
from postroom_mail.authentication import dkim

SERVICE = "service"  # the owner of the key of the service's own domain
MOST_LABELS = 20  # of a name that are looked at
_HOST = re.compile(r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")
SERVICE_ID = f"{ids.DOMAIN}_{0:032x}"


class Domain(Struct, frozen=True):
    id: str
    account_id: str
    name: str
    verified_at: int | None
    created_at: int
    pod_id: str | None  # None: the service's own
    outbound: str | None = None  # its relays, with their passwords
    client_id: str | None = None  # an id chosen by the client: the same one again returns this domain
    subdomains: int = 0  # inboxes may have addresses at its subdomains


class ServedDomain(Struct, frozen=True):
    """A domain that is served here, and whose it is. Mail from its subdomains is signed with its keys."""

    name: str
    owner: str


class DnsRecord(Struct, frozen=True):
    """A line to set in the domain's zone."""

    type: str
    name: str
    value: str
    purpose: str
    is_required: bool


def records(
    name: str,
    service_domain: str,
    keys: list[DkimKey],
    now: int,
    comes_by_mx: bool = True,
    subdomains: bool = False,
) -> list[DnsRecord]:
    """Return the DNS records to publish.

    If a mail service posts the mail, the key record alone verifies the domain.
    """
    below = DnsRecord(
        "MX", f"*.{name}", f"10 {service_domain}.", "Email for all subdomains comes here.", False
    )
    signing = [_signing_record(name, key) for key in keys if now < (key.removable_at or now + 1)]
    return [
        DnsRecord("MX", name, f"10 {service_domain}.", "Email for the domain comes here.", comes_by_mx),
        *((below,) if subdomains else ()),
        *signing,
        DnsRecord(
            "TXT", name, spf_record(name, service_domain), "This server may send for the domain.", False
        ),
        DnsRecord("TXT", f"_dmarc.{name}", dmarc_record(name), "What to do with forgeries.", False),
    ]


def _signing_record(name: str, key: DkimKey) -> DnsRecord:
    value = dkim.public_record(key.private_key)
    is_required = key.algorithm == dkim.RSA and key.state == "active"
    return DnsRecord("TXT", key.name_below(name), value, _purpose(key), is_required)


def _purpose(key: DkimKey) -> str:
    if key.removable_at is not None:
        return (
            f"An old key, for email on its way. The record can be removed after {to_iso(key.removable_at)}."
        )
    if key.state == "waiting":
        return "A new key: it signs once this record is found."
    return "Receivers verify our signature."


def dmarc_record(name: str) -> str:
    return f"v=DMARC1; p=quarantine; rua=mailto:dmarc@{name}"


def spf_record(name: str, service_domain: str) -> str:
    sender = "mx a" if name == service_domain else f"include:{service_domain}"
    return f"v=spf1 {sender} ~all"


def add(
    tx: Tx, account_id: str, name: str, private_key: bytes, now: int, pod_id: str | None = None
) -> Domain:
    """Add a domain, in the default pod unless another is given."""
    if find_owner(tx, name) is not None:
        raise DomainTaken(f"{name} has been verified by another account, or by this one.", field="domain")
    pod = pod_id or default_pod(account_id)
    pods.lock(tx, pod)  # it must not be deleted meanwhile
    domain = Domain(ids.new(ids.DOMAIN, now), account_id, name, None, now, pod)
    if not insert_new(tx, "domains", **structs.asdict(domain)):
        raise DomainTaken(f"This account has already added {name}. Verify it or delete it.", field="domain")
    dkim_keys.add_first(tx, account_id, name, private_key, now)
    return domain


def get(tx: Tx, scope: Scope, domain_id: str) -> Domain:
    row = ids.is_id(ids.DOMAIN, domain_id) and tx.one(
        "select * from domains where id = :id and account_id = :account_id",
        id=domain_id,
        account_id=scope.account_id,
    )
    if not row or not scope.covers_pod(row["pod_id"]):
        raise no_such("domain")
    return item_from_row(Domain, row)


def require_within(tx: Tx, scope: Scope, domain_id: str) -> None:
    """Require the domain to be in scope. The server's own domain is in scope of every whole account."""
    if domain_id != SERVICE_ID or not scope.is_account:
        get(tx, scope, domain_id)


def find_by_name(tx: Tx, scope: Scope, name: str) -> Domain | None:
    return _find_by(tx, scope, "name", name.lower())


def find_by_client_id(tx: Tx, scope: Scope, client_id: str) -> Domain | None:
    return _find_by(tx, scope, "client_id", client_id)


def _find_by(tx: Tx, scope: Scope, column: str, value: str) -> Domain | None:
    rows = tx.all(
        f"select * from domains where account_id = :account_id and {column} = :value order by created_at, id",
        account_id=scope.account_id,
        value=value,
    )
    return next((item_from_row(Domain, row) for row in rows if scope.covers_pod(row["pod_id"])), None)


def set_client_id(tx: Tx, domain_id: str, client_id: str) -> None:
    update(tx, "domains", domain_id, client_id=client_id)


def of_service(tx: Tx, service_domain: str) -> Domain:
    """Return the server's own domain. It exists since the first account, and belongs to no pod."""
    row = tx.one("select min(created_at) as since from accounts")
    since = int(row["since"] or 0) if row else 0
    return Domain(SERVICE_ID, SERVICE, service_domain, since, since, None)


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[Domain], int]:
    if scope.inbox_id is not None:
        return [], 0
    column = "account_id" if scope.pod_id is None else "pod_id"
    owner_id = scope.pod_id or scope.account_id
    rows = tx.all(
        f"select * from domains where {column} = :owner_id"
        " order by created_at desc, id desc limit :limit offset :offset",
        owner_id=owner_id,
        limit=limit,
        offset=offset,
    )
    total = count(tx, f"select count(*) as number from domains where {column} = :id", id=owner_id)
    return [item_from_row(Domain, row) for row in rows], total


def list_verified_names(tx: Tx) -> list[str]:
    rows = tx.all("select distinct name from domains where verified_at is not null order by name")
    return [row["name"] for row in rows]


def list_all(tx: Tx) -> list[Domain]:
    return [
        item_from_row(Domain, row) for row in tx.all("select * from domains order by name, created_at, id")
    ]


def lock_name(tx: Tx, name: str) -> None:
    """Locks all claims to the name: of two accounts at the same moment the second must see the first."""
    tx.all(f"select id from domains where name = :name order by id {LOCK_ROWS}", name=name)


def mark_verified(tx: Tx, domain: Domain, now: int) -> Domain:
    lock_name(tx, domain.name)
    if tx.one(
        "select 1 as found from domains where name = :name and verified_at is not null", name=domain.name
    ):
        raise DomainTaken(f"{domain.name} is already verified.")
    _require_unused(tx, domain)
    update(tx, "domains", domain.id, verified_at=now)
    return replace(domain, verified_at=now)


def _require_unused(tx: Tx, domain: Domain) -> None:
    """Refuse a name below which another account has addresses, as at a subdomain of its own domain."""
    above = at_or_above(domain.name)[1:]
    owners = all_of(
        tx,
        "select name, account_id from domains"
        " where :wanted and verified_at is not null and account_id <> :own",
        "name",
        above,
        own=domain.account_id,
    )
    if any(_has_addresses(tx, row["account_id"], row["name"], f"%@{domain.name}") for row in owners):
        raise DomainTaken(f"Another account uses addresses at {domain.name}, below its domain.")


def set_subdomains(tx: Tx, domain: Domain, is_on: bool) -> Domain:
    """Raise DomainTaken where they end while an inbox or an alias still has an address at one."""
    if not is_on and _has_addresses(tx, domain.account_id, domain.name, f"%.{domain.name}"):
        raise DomainTaken(
            f"Inboxes still use subdomains of {domain.name}. Delete those addresses first.",
            field="subdomains",
        )
    update(tx, "domains", domain.id, subdomains=int(is_on))
    return replace(domain, subdomains=int(is_on))


def _has_addresses(tx: Tx, account_id: str, name: str, pattern: str = "%") -> bool:
    return any(
        tx.one(
            f"select 1 as found from {table} where account_id = :account_id and domain = :name"
            " and address like :pattern limit 1",
            account_id=account_id,
            name=name,
            pattern=pattern,
        )
        for table in ("inboxes", "aliases")
    )


def set_outbound(tx: Tx, domain: Domain, outbound: str | None) -> Domain:
    update(tx, "domains", domain.id, outbound=outbound)
    return replace(domain, outbound=outbound)


def remove(tx: Tx, scope: Scope, domain_id: str) -> Domain:
    domain, account_id = get(tx, scope, domain_id), scope.account_id
    if _has_addresses(tx, account_id, domain.name):
        raise DomainTaken(f"Inboxes still use {domain.name}, by address or alias. Delete those first.")
    tx.run("delete from domain_health where domain_id = :id", id=domain.id)
    tx.run("delete from domains where id = :id", id=domain.id)
    dkim_keys.remove_all(tx, account_id, domain.name)
    return domain


def require_usable(tx: Tx, scope: Scope, name: str | None, service_domain: str, field: str = "domain") -> str:
    """Return the domain for a new address: the server's own, or a verified one in scope. `field` named it."""
    wanted = service_domain if name is None else name.lower()
    can_exist = len(wanted) <= 253 and wanted.isprintable()
    if wanted == service_domain or (can_exist and _is_proved_within(tx, scope, wanted, service_domain)):
        return wanted
    raise InvalidDomain(
        f"'{wanted[:253]}' is not a verified domain of this account. Verify it, or use {service_domain}.",
        field=field,
    )


def _is_proved_within(tx: Tx, scope: Scope, name: str, service_domain: str) -> bool:
    zone = find_zone(tx, name, service_domain)
    row = zone and tx.one(
        "select account_id, pod_id from domains where name = :name and verified_at is not null"
        " and (name = :asked or subdomains = 1)",
        name=zone.name,
        asked=name,
    )
    if not row or not _HOST.fullmatch(name):
        return False
    return row is not None and row["account_id"] == scope.account_id and scope.covers_pod(row["pod_id"])


def find_owner(tx: Tx, name: str) -> str | None:
    """Return the account that verified this domain."""
    row = tx.one("select account_id from domains where name = :name and verified_at is not null", name=name)
    return None if row is None else str(row["account_id"])


def is_served(tx: Tx, name: str, service_domain: str) -> bool:
    return find_zone(tx, name, service_domain) is not None


def at_or_above(name: str) -> list[str]:
    """Return the name and the names above it, longest first, without the top-level domain."""
    labels = name.split(".")
    return [".".join(labels[start:]) for start in range(max(1, min(len(labels) - 1, MOST_LABELS)))]


def find_zone(tx: Tx, name: str, service_domain: str) -> ServedDomain | None:
    """Return the served domain: the name itself, or the next one above it that takes mail for subdomains."""
    if name == service_domain:
        return ServedDomain(name, SERVICE)
    names = at_or_above(name)
    rows = all_of(
        tx,
        "select name, account_id, (subdomains = 1 or exists (select 1 from inboxes"
        " where inboxes.domain = domains.name and inboxes.subdomains = 1)) as is_open"
        " from domains where :wanted and verified_at is not null",
        "name",
        names,
    )
    found = max(rows, key=lambda row: len(row["name"]), default=None)
    if service_domain in names and (found is None or len(found["name"]) < len(service_domain)):
        return ServedDomain(service_domain, SERVICE) if _takes_subdomains(tx, service_domain) else None
    if found is None or (found["name"] != name and not found["is_open"]):
        return None
    return ServedDomain(found["name"], found["account_id"])


def _takes_subdomains(tx: Tx, service_domain: str) -> bool:
    return bool(
        tx.one(
            "select 1 as found from inboxes where domain = :name and subdomains = 1 limit 1",
            name=service_domain,
        )
    )


def zone_of(tx: Tx, name: str, service_domain: str) -> str:
    zone = find_zone(tx, name, service_domain)
    return name if zone is None else zone.name


def keys_of(tx: Tx, name: str, service_domain: str) -> list[DkimKey]:
    """Return all keys, also retired ones, of the verified owner of the name or of the domain above it."""
    zone = find_zone(tx, name, service_domain)
    return [] if zone is None else dkim_keys.list_of(tx, zone.owner, zone.name)


def signing_keys(tx: Tx, name: str, service_domain: str) -> tuple[DkimKey, ...]:
    return tuple(key for key in keys_of(tx, name, service_domain) if key.state == "active")
