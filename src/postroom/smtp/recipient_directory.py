"""Who can receive mail here, looked up in the database: inboxes, return paths and reviewers' replies."""

from collections.abc import Awaitable

from postroom.accounts import domains
from postroom.inward import destinations
from postroom.resources import Resources, Tx
from postroom.smtp.backend import Accepted, RecipientVerdict, Refused
from postroom_mail.mime.address import mailbox_of


class DatabaseDirectory:
    def __init__(self, resources: Resources, return_path_secret: bytes) -> None:
        self._resources = resources
        self._return_path_secret = return_path_secret

    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        whole = address if "@" in address else f"{address}@{self._resources.config.domain}"
        return self._resources.db.look_up(self._find_destination, whole)

    def _find_destination(self, tx: Tx, address: str) -> RecipientVerdict:
        mailbox = mailbox_of(address)
        own_domain, now = self._resources.config.domain, self._resources.now()
        if not domains.is_served(tx, mailbox.rpartition("@")[2], own_domain):
            return Refused.NOT_LOCAL
        found = destinations.find(tx, address, self._return_path_secret, own_domain, now)
        if found is None:
            return Refused.UNKNOWN
        return Refused.FULL if found.is_full else Accepted(found.destination)
