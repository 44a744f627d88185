"""Letters and notices that this server would have sent, for the operator of a server that sends nothing."""

from postroom.accounts.keys import Caller
from postroom.operations import operator
from postroom.outward.notices import letters
from postroom.outward.notices.letters import ServerLetter
from postroom.storage.database import Tx


def list_captured(tx: Tx, caller: Caller, limit: int) -> list[ServerLetter]:
    operator.require_operator(tx, caller)
    return letters.list_all_captured(tx, limit)
