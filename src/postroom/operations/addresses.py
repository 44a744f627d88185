"""Operations on the further addresses of an inbox: aliases, a catch-all, subdomains."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom.accounts import accounts, audit, domains
from postroom.accounts.domains import SERVICE, ServedDomain
from postroom.accounts.keys import Caller
from postroom.config import HOME_DOMAIN, Config
from postroom.errors import AddressTaken, BadRequest, CatchAllTaken, Forbidden
from postroom.external_mailboxes import address_uses
from postroom.fields import PageQuery, Timestamp, show_item
from postroom.limits import ADDRESS_CHARACTERS, ALIASES
from postroom.mailbox import aliases, catch_all, inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of

CatchAll = Annotated[
    bool,
    Meta(
        description="Receives email to every address of the domain that no inbox has. One inbox per domain."
    ),
]
Subdomains = Annotated[
    bool,
    Meta(
        description="Receives email to its name at every subdomain of the domain; with a catch-all, "
        "to every name."
    ),
]


class NewAlias(Struct, rename="camel", frozen=True):
    address: Annotated[
        str,
        Meta(
            max_length=ADDRESS_CHARACTERS,
            description="At the server's domain or a verified one of the account.",
            examples=["billing@example.com"],
        ),
    ]


class Alias(Struct, rename="camel", frozen=True):
    address: str
    created_at: Timestamp

    @classmethod
    def of(cls, alias: aliases.Alias) -> "Alias":
        return show_item(cls, alias)


class AliasPage(Struct, rename="camel", frozen=True):
    data: Annotated[list[Alias], Meta(description=f"Oldest first; an inbox has at most {ALIASES}.")]
    total: int


def create_alias(tx: Tx, caller: Caller, inbox_id: str, body: NewAlias, config: Config, now: int) -> Alias:
    """Add an alias: the inbox receives its email, and may send in its name"""
    found = inboxes.get(tx, caller.scope, inbox_id)
    address = body.address.lower()
    name, _, host = address.rpartition("@")
    if not name or mailbox_of(address) != address:
        raise BadRequest(
            f"`address` is not an email address for an alias: {body.address[:100]!r}. Use name@example.com,"
            " without a +tag.",
            field="address",
        )
    require_name(tx, caller, name, host, config)
    domains.require_usable(tx, caller.scope, host, config.domain, "address")
    inboxes.lock(tx, found.id)
    address_uses.require_no_person(tx, [address], "address", caller.account_id)
    zone = domains.zone_of(tx, host, config.domain)
    added = aliases.Alias(address, found.id, caller.account_id, zone, now)
    aliases.add(tx, added)
    record(tx, caller, "inbox.alias_added", found, added, now)
    return Alias.of(added)


def require_name(tx: Tx, caller: Caller, name: str, host: str, config: Config) -> None:
    """Raise unless an inbox may have the name; a reserved one as with allowReserved."""
    inboxes.require_mailbox_name(name, "address")
    if name in inboxes.RESERVED_NAMES and not may_take_reserved(tx, caller, host, config):
        raise AddressTaken(f"'{name}' is a reserved name. Choose another.", field="address")


def may_take_reserved(tx: Tx, caller: Caller, host: str | None, config: Config) -> bool:
    """Return whether the caller may take a reserved name.

    On the account's own domain, or on the server's if the account is the operator's. Never on the default
    domain, which is for use at home.
    """
    if not caller.scope.is_account:
        raise Forbidden("Reserved names need a key of the account.")
    if host is not None and host.lower() != config.domain:
        return True  # it has to be a verified one of the account
    return config.domain != HOME_DOMAIN and accounts.is_first(tx, caller.account_id)


def list_aliases(tx: Tx, caller: Caller, inbox_id: str, query: PageQuery) -> AliasPage:
    """List the aliases of an inbox, oldest first"""
    found = aliases.list_of(tx, inboxes.get(tx, caller.scope, inbox_id).id)
    part = found[query.offset : query.offset + query.limit]
    return AliasPage([Alias.of(each) for each in part], len(found))


def delete_alias(tx: Tx, caller: Caller, inbox_id: str, address: str, now: int) -> None:
    """Delete an alias; email to it is refused from now on"""
    inbox = inboxes.get(tx, caller.scope, inbox_id)
    inboxes.lock(tx, inbox.id)
    removed = aliases.remove(tx, inbox.id, mailbox_of(address))
    record(tx, caller, "inbox.alias_removed", inbox, removed, now)
    tx.ring(inboxes.GONE)


def record(tx: Tx, caller: Caller, action: str, inbox: Inbox, alias: aliases.Alias, now: int) -> None:
    shown = {"alias": alias.address}
    before, after = (shown, None) if action.endswith("removed") else (None, shown)
    audit.record_by(tx, caller, action, inbox.id, now, within=inbox.scope, before=before, after=after)


def with_others(
    tx: Tx,
    caller: Caller,
    inbox: Inbox,
    takes_all: bool | UnsetType,
    takes_subdomains: bool | UnsetType,
    config: Config,
) -> Inbox:
    """Store whether the inbox takes mail to addresses that nobody has; return it as it is then."""
    changed = replace(
        inbox,
        catch_all=inbox.catch_all if takes_all is UNSET else int(takes_all),
        subdomains=inbox.subdomains if takes_subdomains is UNSET else int(takes_subdomains),
    )
    if changed == inbox:
        return inbox
    if changed.catch_all < inbox.catch_all or changed.subdomains < inbox.subdomains:
        tx.ring(inboxes.GONE)
    if not changed.catch_all and not changed.subdomains:
        inboxes.put(tx, changed)
        return changed
    field = "catchAll" if changed.catch_all else "subdomains"
    zone = require_own_domain(tx, caller, inbox, field, config)
    accounts.lock(tx, caller.account_id)  # of two requests at the same time the second one sees the first
    if changed.catch_all and (other := inboxes.find_catch_all(tx, zone.name)) and other.id != inbox.id:
        raise CatchAllTaken(f"Another inbox takes all other email of {zone.name}. Only one can.", field=field)
    inboxes.put(tx, changed)
    address_uses.require_no_person(tx, catch_all.list_taken(tx, changed, zone.name), field, inbox.account_id)
    return changed


def require_own_domain(tx: Tx, caller: Caller, inbox: Inbox, field: str, config: Config) -> ServedDomain:
    """Return the domain of the inbox, or raise if it is not the account's. The operator owns the server's."""
    host = inbox.address.rpartition("@")[2]
    zone = domains.find_zone(tx, host, config.domain)
    is_operators = caller.scope.is_account and accounts.is_first(tx, caller.account_id)
    if zone is None or (zone.owner == SERVICE and not is_operators):
        raise BadRequest(f"{field} needs an inbox on one of your domains. {host} is shared.", field=field)
    if zone.owner != SERVICE:
        domains.require_usable(tx, caller.scope, zone.name, config.domain, field)
    return zone
