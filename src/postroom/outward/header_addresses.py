"""Whether From and Reply-To of an email are the sender's to use."""

from postroom.accounts.keys import Caller
from postroom.errors import FeatureRequiresPaidPlan
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.outward.send_stages import Ready, sender_of
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of, parse_list


def require_own_senders(new: list[Ready], owners: dict[str, Inbox]) -> None:
    """Require own senders again: an alias may have been deleted since the email was written."""
    for each in new:
        if each.submission.order.from_address is not None:
            sender_of(each.submission.order, owners[each.inbox_id])


def require_allowed_reply_to(tx: Tx, caller: Caller, reply_to: str | None) -> None:
    if reply_to is None or caller.plan != "free":
        return
    mailboxes = [mailbox_of(address.address) for address in parse_list(reply_to)]
    owners = [inboxes.find_by_address(tx, mailbox) for mailbox in mailboxes]
    if not all(inbox is not None and inbox.account_id == caller.account_id for inbox in owners):
        raise FeatureRequiresPaidPlan(
            "On the free plan replyTo must be the address of an inbox of this account.",
            feature="external_reply_to",
        )
