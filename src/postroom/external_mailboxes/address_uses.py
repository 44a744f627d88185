"""Keeps the addresses of people apart from those of inboxes, in whichever order they are made.

The server sends links to people that sign them in or decide for them. An agent that reads such an email could
use them: no inbox receives or pulls the email of a user, a reviewer or a notification target.
"""

from collections.abc import Iterable

from postroom import ids
from postroom.accounts import domains
from postroom.accounts.people import users
from postroom.accounts.rules import approval
from postroom.errors import AddressIsAnInbox, BadRequest
from postroom.events import notifications
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import Connection
from postroom.mailbox import catch_all, inboxes
from postroom.storage.database import Tx, insert_new
from postroom_mail.mime.address import mailbox_of, split

_RULES = {ids.ACCOUNT: "accounts", ids.POD: "pods", ids.INBOX: "inboxes", ids.KEY: "keys"}


def record(tx: Tx, account_id: str, owner_id: str, addresses: Iterable[str]) -> None:
    """Replace what is known of this owner. Owners that are gone are recognized when they are asked for."""
    tx.run("delete from address_uses where owner_id = :id", id=owner_id)
    for address in sorted({mailbox_of(each) for each in addresses}):
        insert_new(tx, "address_uses", address=address, owner_id=owner_id, account_id=account_id)


def record_reviewers(tx: Tx, account_id: str, owner_id: str, stored: str | None) -> None:
    """Raise AddressIsAnInbox if an approval rule of account, pod, inbox or key names an inbox as reviewer."""
    named = approval.add_up([stored]).reviewers
    for address in sorted(named):
        require_no_inbox(tx, account_id, address, "approval")
    record(tx, account_id, owner_id, [*named, *_targets(tx, owner_id)])


def record_targets(tx: Tx, account_id: str) -> None:
    """Call after the notification targets of an account were stored."""
    record(tx, account_id, account_id, _addresses_of(tx, account_id))


def require_no_inbox(tx: Tx, account_id: str, address: str, field: str) -> None:
    """Raise AddressIsAnInbox if an inbox of this server receives or pulls the email of this address."""
    _lock(tx, mailbox_of(address))
    if is_of_inbox(tx, account_id, address):
        raise AddressIsAnInbox(
            f"{address} belongs to an inbox of this server, where agents read. People need another one.",
            field=field,
        )


def require_no_person(tx: Tx, addresses: Iterable[str], field: str, of_account: str | None = None) -> None:
    """Raise AddressIsAnInbox if a user, reviewer or notification target of any account has one of these.

    `of_account`: it makes an inbox with this address. Of other accounts only users count then: no notice goes
    to an address of this server, and else anybody could keep others from a name by calling it a reviewer.
    """
    for mailbox in sorted({mailbox_of(each) for each in addresses}):
        _lock(tx, mailbox)
        owners = _owners(tx, mailbox, of_account)
        if any(mailbox in map(mailbox_of, _addresses_of(tx, each)) for each in owners):
            raise AddressIsAnInbox(
                f"{mailbox} belongs to a person who uses this server. Agents must not read that email.",
                field=field,
            )


def require_external(tx: Tx, connection: Connection, service_domain: str) -> None:
    """Raise BadRequest if a mailbox elsewhere claims an address of this server, not its inbox's own."""
    if connection.kind != connections.IMAP:
        return
    inbox = inboxes.find(tx, connection.inbox_id or "")
    is_own = inbox is not None and mailbox_of(connection.address) == inbox.address and not connection.tagged
    if not is_own and domains.is_served(tx, split(connection.address)[1], service_domain):
        raise BadRequest(
            f"{connection.address} is an address of this server. Use its inbox.", field="address"
        )


def prove(tx: Tx, connection: Connection, service_domain: str) -> None:
    """Prove the mailbox's address at the first login that worked. It becomes that of its inboxes."""
    require_external(tx, connection, service_domain)
    require_no_person(tx, connection.pulled, "address")
    connections.connect_inboxes(tx, connection)


def is_of_inbox(tx: Tx, account_id: str, address: str) -> bool:
    """Return whether an inbox receives or pulls it.

    A connection of another account counts once its login has worked: anybody can name an address.
    """
    mailbox = mailbox_of(address)
    if inboxes.find_by_address(tx, mailbox) is not None or catch_all.may_take(tx, mailbox):
        return True
    pulled = [connections.find(tx, each) for each in _owners(tx, mailbox) if ids.is_id(ids.CONNECTION, each)]
    return any(each is not None and (each.is_proven or each.account_id == account_id) for each in pulled)


def _lock(tx: Tx, mailbox: str) -> None:
    """Lock the address: until this transaction ends, no other one decides about it.

    PostgreSQL makes a second insert of the same key wait, also when the first one was deleted again.
    """
    key = {"address": mailbox, "owner_id": ""}
    insert_new(tx, "address_uses", **key, account_id="")
    tx.run("delete from address_uses where address = :address and owner_id = :owner_id", **key)


def _owners(tx: Tx, mailbox: str, of_account: str | None = None) -> list[str]:
    """Return all owners; with an account, all of it and the users of others."""
    rows = tx.all("select owner_id, account_id from address_uses where address = :address", address=mailbox)
    return [
        row["owner_id"]
        for row in rows
        if of_account in (None, row["account_id"]) or ids.is_id(ids.USER, row["owner_id"])
    ]


def _addresses_of(tx: Tx, owner_id: str) -> list[str]:
    """Return the addresses of people that an owner uses now."""
    kind = owner_id.partition("_")[0]
    if kind == ids.USER:
        user = users.find(tx, owner_id)
        return [] if user is None else [user.email]
    if kind not in _RULES:
        return []
    rows = tx.all(f"select approval from {_RULES[kind]} where id = :id", id=owner_id)
    return [*approval.add_up([row["approval"] for row in rows]).reviewers, *_targets(tx, owner_id)]


def _targets(tx: Tx, owner_id: str) -> list[str]:
    if not ids.is_id(ids.ACCOUNT, owner_id):
        return []
    found = notifications.list_targets(tx, owner_id)
    return [each.target for each in found if each.kind == notifications.EMAIL]
