"""Who can receive mail here, looked up in the database: inboxes, return paths and reviewers' replies."""

from collections.abc import Awaitable

from postroom.accounts import domains
from postroom.accounts.rules import junk
from postroom.inward import destinations, sender_checks
from postroom.inward.mails import Destination
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
        if found.is_full:
            return Refused.FULL
        return Accepted(found.destination, self._may_refuse(tx, found.destination))

    def _may_refuse(self, tx: Tx, destination: Destination) -> bool:
        """Return whether an inbox may refuse it.

        Mail to a signed address answers an email of this server: never.
        """
        if destination.needs_no_inbox or destination.bounce_path is not None:
            return False
        config, inbox_id = self._resources.config, destination.inbox_id
        if config.dmarc == sender_checks.REJECT or config.greylist:
            return True
        return junk.in_force(tx, [inbox_id], config.junk)[inbox_id].action == junk.REJECT
