"""Emails and notices that this server would have sent, for the operator of a server that sends nothing."""

from postroom.accounts.keys import Caller
from postroom.operations import operator
from postroom.outward.notices import system_emails
from postroom.outward.notices.system_emails import SystemEmail
from postroom.storage.database import Tx


def list_captured(tx: Tx, caller: Caller, limit: int) -> list[SystemEmail]:
    operator.require_operator(tx, caller)
    return system_emails.list_all_captured(tx, limit)
