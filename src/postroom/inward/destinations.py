"""Finds who receives mail at an address: an inbox, or what a signed address is about."""

from msgspec import Struct

from postroom.accounts import accounts, domains
from postroom.clock import DAY
from postroom.inward import review_answers
from postroom.inward.addressing import is_check, is_nobodys, takes_reports
from postroom.inward.mails import NOBODY, Destination
from postroom.mailbox import catch_all, inboxes, messages
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of
from postroom_mail.writing import return_path, review_path

BOUNCE_MAX_AGE_DAYS = 10


class LocalRecipient(Struct, frozen=True):
    """Who receives mail at an address; `is_full` when its account has no room left for mail."""

    destination: Destination
    is_full: bool = False


def find(
    tx: Tx, address: str, return_path_secret: bytes, service_domain: str, now: int
) -> LocalRecipient | None:
    """Return the recipient. `address` is of a domain that is served here."""
    local_part = address.rpartition("@")[0]
    if return_path.is_return_path(local_part):
        return _find_return_path(tx, local_part, return_path_secret, now)
    if review_path.is_review_path(local_part):
        reviewed = review_answers.find_reviewed(tx, local_part)
        return None if reviewed is None else LocalRecipient(Destination(reviewed.inbox_id, review=reviewed))
    mailbox = mailbox_of(address)
    inbox = inboxes.find_by_address(tx, mailbox)
    if inbox is None and (found := _find_without_inbox(mailbox)) is not None:
        return found
    inbox = inbox or _find_taking(tx, mailbox, service_domain)
    if inbox is None:
        return None
    delivered_to = "" if mailbox == inbox.address else mailbox
    return LocalRecipient(
        Destination(inbox.id, delivered_to=delivered_to), accounts.is_full(tx, inbox.account_id)
    )


def _find_taking(tx: Tx, mailbox: str, service_domain: str) -> Inbox | None:
    """Return the inbox that takes mail for an unknown address."""
    name, _, host = mailbox.rpartition("@")
    zone = domains.find_zone(tx, host, service_domain)
    if zone is None:
        return None
    operators = catch_all.find_of_operator(tx, service_domain) if name in catch_all.OPERATORS_NAMES else None
    return operators or catch_all.find_taking(tx, mailbox, zone.name)


def _find_without_inbox(mailbox: str) -> LocalRecipient | None:
    if takes_reports(mailbox) or is_check(mailbox):
        domain = mailbox.rpartition("@")[2]
        return LocalRecipient(Destination("", report_domain=domain, is_check=is_check(mailbox)))
    return LocalRecipient(NOBODY) if is_nobodys(mailbox) else None


def _find_return_path(tx: Tx, local_part: str, secret: bytes, now: int) -> LocalRecipient | None:
    """Return the recipient of a report.

    It is never the inbox with the name before the plus: the report is not for its owner.
    """
    path = return_path.decode(secret, local_part, now // DAY, BOUNCE_MAX_AGE_DAYS)
    message = None if path is None else messages.find(tx, path.message_id)
    if message is None or inboxes.find(tx, message.inbox_id) is None:
        return None
    return LocalRecipient(Destination(message.inbox_id, path))
