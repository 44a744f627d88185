"""Aliases: further addresses of an inbox, for mail in and out."""

from msgspec import Struct

from postroom.errors import AddressTaken, AliasLimitReached, no_such
from postroom.limits import ALIASES
from postroom.storage.database import Tx, insert_new, item_from_row, update


class Alias(Struct, frozen=True):
    address: str
    inbox_id: str
    account_id: str
    domain: str  # the verified domain that it lies in, or the server's own
    created_at: int


def add(tx: Tx, alias: Alias) -> None:
    """Store an alias; its inbox is locked.

    Another transaction that makes an inbox with this address waits in `is_free`, or this one waits for it.
    """
    known = list_of(tx, alias.inbox_id)
    if len(known) >= ALIASES:
        raise AliasLimitReached(f"An inbox can have {ALIASES} aliases. Delete one first.")
    columns = {name: getattr(alias, name) for name in alias.__struct_fields__}
    is_added = insert_new(tx, "aliases", **columns) == 1
    if not is_added or tx.one(
        "select 1 as found from inboxes where address = :address", address=alias.address
    ):
        raise AddressTaken(f"{alias.address} is already in use. Choose another address.", field="address")
    _set(tx, alias.inbox_id, [*known, alias])


def is_free(tx: Tx, address: str) -> bool:
    """Return whether no alias has this address, also none that another transaction is adding."""
    probe = {"address": address, "inbox_id": "", "account_id": "", "domain": "", "created_at": 0}
    if insert_new(tx, "aliases", **probe) == 0:
        return False
    tx.run("delete from aliases where address = :address", address=address)
    return True


def list_of(tx: Tx, inbox_id: str) -> list[Alias]:
    rows = tx.all(
        "select * from aliases where inbox_id = :inbox_id order by created_at, address", inbox_id=inbox_id
    )
    return [item_from_row(Alias, row) for row in rows]


def remove(tx: Tx, inbox_id: str, address: str) -> Alias:
    """Remove an alias of an inbox that is locked."""
    known = list_of(tx, inbox_id)
    found = next((each for each in known if each.address == address), None)
    if found is None:
        raise no_such("alias")
    tx.run("delete from aliases where address = :address", address=address)
    _set(tx, inbox_id, [each for each in known if each is not found])
    return found


def remove_all(tx: Tx, inbox_id: str) -> None:
    tx.run("delete from aliases where inbox_id = :inbox_id", inbox_id=inbox_id)


def _set(tx: Tx, inbox_id: str, known: list[Alias]) -> None:
    update(tx, "inboxes", inbox_id, aliases=" ".join(each.address for each in known) or None)
