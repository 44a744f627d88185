"""What a mail program may not send is in the audit log, as what a request may not."""

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.errors import ApiError, Forbidden, RecipientNotAllowed
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx

TARGET = "submission"
REFUSALS = (Forbidden, RecipientNotAllowed)


def note_refusal(tx: Tx, caller: Caller, inbox: Inbox, error: ApiError, address: str, now: int) -> None:
    what = {"error": error.code, **error.extras}
    audit.record_refusal(tx, caller.actor, TARGET, inbox.reach, now, address=address, after=what)
    if isinstance(error, RecipientNotAllowed):
        for refusal in policy.find_refused(tx, inbox.reach, [str(error.extras["recipient"])]):
            policy.record_stop(tx, policy.REFUSED, policy.OUTBOUND, refusal, now)
