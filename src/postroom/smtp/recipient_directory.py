"""Who can receive mail here, looked up in the database: inboxes, return paths and reviewers' replies."""

from collections.abc import Awaitable

from postroom.accounts import accounts, domains
from postroom.clock import DAY
from postroom.inward import review_answers
from postroom.inward.addressing import is_nobodys
from postroom.inward.mails import NOBODY, Destination
from postroom.mail.address import mailbox_of
from postroom.mail.writing import return_path, review_path
from postroom.mailbox import inboxes, messages
from postroom.resources import Resources, Tx
from postroom.smtp.backend import Accepted, RecipientVerdict, Refused

BOUNCE_MAX_AGE_DAYS = 10


class DatabaseDirectory:
    def __init__(self, resources: Resources, return_path_secret: bytes) -> None:
        self._resources = resources
        self._return_path_secret = return_path_secret

    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        whole = address if "@" in address else f"{address}@{self._resources.config.domain}"
        return self._resources.db.look_up(self._find_destination, whole)

    def _find_destination(self, tx: Tx, address: str) -> RecipientVerdict:
        mailbox = mailbox_of(address)
        if not domains.is_served(tx, mailbox.rpartition("@")[2], self._resources.config.domain):
            return Refused.NOT_LOCAL
        local_part = address.rpartition("@")[0]
        if return_path.is_return_path(local_part):
            return self._find_return_path(tx, local_part)
        if review_path.is_review_path(local_part):
            reviewed = review_answers.find_reviewed(tx, local_part)
            if reviewed is None:
                return Refused.UNKNOWN
            return Accepted(Destination(reviewed.inbox_id, review=reviewed))
        inbox = inboxes.find_by_address(tx, mailbox)
        if inbox is None:
            return Accepted(NOBODY) if is_nobodys(mailbox) else Refused.UNKNOWN
        return Refused.FULL if accounts.is_full(tx, inbox.account_id) else Accepted(Destination(inbox.id))

    def _find_return_path(self, tx: Tx, local_part: str) -> RecipientVerdict:
        """Never an inbox whose name happens to stand before the plus: the report is not for its owner."""
        today = self._resources.now() // DAY
        path = return_path.decode(self._return_path_secret, local_part, today, BOUNCE_MAX_AGE_DAYS)
        message = None if path is None else messages.find(tx, path.message_id)
        if message is None or inboxes.find(tx, message.inbox_id) is None:
            return Refused.UNKNOWN
        return Accepted(Destination(message.inbox_id, path))
