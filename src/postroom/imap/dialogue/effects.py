"""What a session wants done, in this order; a question is always the last."""

from msgspec import Struct

from postroom.imap.dialogue.reader import MailPiece
from postroom.imap.dialogue.requests import Request


class Write(Struct, frozen=True):
    data: bytes


class PerformRequest(Struct, frozen=True):
    """A question: nothing else is read until it is answered."""

    request: Request


class UpgradeToTls:
    """A question: what comes from now on is for TLS to read."""


class EndIdle:
    """The client has ended its IDLE, whose question is still open."""


class DropAppended:
    """The command that brought a mail was refused."""


class EndSession:
    """Nothing is said or heard from now on."""


Effect = Write | MailPiece | DropAppended | PerformRequest | UpgradeToTls | EndIdle | EndSession


class Performed(Struct, frozen=True):
    """The answer to a question: what the client is told behind its tag, and the state it is in then."""

    reply: bytes
    is_logged_in: bool
    is_selected: bool
