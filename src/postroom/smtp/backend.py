"""What the SMTP server asks of the rest of the program: who can receive mail, and where to store it."""

import traceback
from collections.abc import Awaitable, Hashable
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from postroom import log
from postroom.errors import Unavailable
from postroom.smtp.envelope import Envelope


class StorageFull(Exception):
    """Raised by an intake without disk space: the client gets 452 4.3.1 and tries again later."""


class MailLoop(Exception):
    """Raised by an intake for an email that passed too many servers: the client gets 554 5.4.6."""


class MailRefused(Exception):
    """Raised by an intake for an email that nobody here wants; the argument is the reply for the client."""


class Accepted(Struct, frozen=True):
    """The recipient exists. Equal destinations in one email are one recipient.

    `may_refuse`: the intake finds out before the 250 whether the recipient wants the email.
    """

    destination: Hashable
    may_refuse: bool = False


class Refused(Enum):
    """Why a recipient is not accepted."""

    UNKNOWN = auto()
    NOT_LOCAL = auto()
    TRY_LATER = auto()
    FULL = auto()
    PUT_OFF = auto()  # its client has asked for too many that do not exist


RecipientVerdict = Accepted | Refused


class RecipientDirectory(Protocol):
    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        """Check a recipient, `local@domain` or `postmaster` alone; an exception means TRY_LATER."""
        ...


class MailIntake(Protocol):
    async def accept(self, envelope: Envelope) -> None:
        """Returns only when the email is durable; the content is gone after the return.

        StorageFull is answered with 452 4.3.1, MailLoop with 554 5.4.6, MailRefused with its reply, any other
        exception with 451 4.3.0.
        """
        ...


def look_up_failed(error: Exception) -> Refused:
    """Call it inside an except block. The client may retry; the reason is logged every 10 seconds at most."""
    facts = {} if isinstance(error, Unavailable) else {"exception": traceback.format_exc()}
    log.get().seldom("recipient look-up failed", reason=str(error), **facts)
    return Refused.TRY_LATER
