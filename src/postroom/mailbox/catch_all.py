"""Which inbox takes mail to an address that none has: a catch-all, one with subdomains, the operator's."""

from postroom.accounts import domains
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx

OPERATORS_NAMES = ("postmaster", "abuse")  # RFC 5321 section 4.5.1, RFC 2142


def find_taking(tx: Tx, mailbox: str, zone: str) -> Inbox | None:
    """Return the inbox that takes mail for an unknown address: the one of that name, else the catch-all."""
    name, _, host = mailbox.rpartition("@")
    named = None if host == zone else inboxes.find_by_address(tx, f"{name}@{zone}")
    if named is not None and named.subdomains:
        return named
    caught = inboxes.find_catch_all(tx, zone)
    return caught if caught is not None and (host == zone or caught.subdomains) else None


def find_of_operator(tx: Tx, service_domain: str) -> Inbox | None:
    """Return `postmaster` or `abuse` of the server's own domain, else the first account's oldest inbox."""
    named = (inboxes.find_by_address(tx, f"{name}@{service_domain}") for name in OPERATORS_NAMES)
    found = next(filter(None, named), None)
    row = found is None and tx.one(
        "select * from inboxes where account_id = (select id from accounts order by id limit 1)"
        " order by created_at, id limit 1"
    )
    return Inbox.from_row(row) if row else found


def may_take(tx: Tx, mailbox: str) -> bool:
    """Return whether some inbox takes mail to this unused address, of any account that has the domain."""
    host = mailbox.rpartition("@")[2]
    return any(find_taking(tx, mailbox, zone) is not None for zone in domains.at_or_above(host))


def list_taken(tx: Tx, inbox: Inbox, zone: str) -> list[str]:
    """List the known addresses of people whose mail this inbox takes."""
    rows = tx.all(
        "select distinct address from address_uses where address like :at or address like :below",
        at=f"%@{zone}",
        below=f"%.{zone}",
    )
    found = ((row["address"], find_taking(tx, row["address"], zone)) for row in rows)
    return [address for address, taking in found if taking is not None and taking.id == inbox.id]
