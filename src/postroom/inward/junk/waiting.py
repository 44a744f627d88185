"""Which email waits for its examination before it is let in: a policy, the junk filter or clamd decides."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.accounts.rules import junk
from postroom.accounts.rules.junk import JunkRules
from postroom.inward.mails import AddressedMail
from postroom.mailbox import inboxes
from postroom.storage.database import Tx, all_of


class JunkWaiting(Struct, frozen=True):
    under_policy: frozenset[str] = frozenset()
    rules: dict[str, JunkRules] = {}  # of each inbox
    taught: frozenset[str] = frozenset()  # inboxes whose account has taught the junk filter

    def has_to_wait(self, addressed: AddressedMail) -> bool:
        """Return whether it is in no thread until its examination has decided."""
        if addressed.inbox_id in self.under_policy or addressed.mail.awaits_scan:
            return True
        rules = self.rules.get(addressed.inbox_id)
        return rules is not None and rules.action != junk.MARK and addressed.is_from_outside


NONE_WAITS = JunkWaiting()


def find_waiting(tx: Tx, new: Sequence[AddressedMail]) -> JunkWaiting:
    asked = sorted({each.inbox_id for each in new})
    if not asked:
        return NONE_WAITS
    rules = junk.in_force(tx, asked, new[0].mail.junk_action)
    rows = all_of(
        tx,
        "select inboxes.id from inboxes where :wanted"
        " and exists (select 1 from junk_models where junk_models.account_id = inboxes.account_id)",
        "inboxes.id",
        asked,
    )
    return JunkWaiting(inboxes.find_under_policy(tx, asked), rules, frozenset(row["id"] for row in rows))
