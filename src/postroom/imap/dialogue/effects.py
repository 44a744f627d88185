"""What a session wants done, in order; a question is always last."""

from msgspec import Struct

from postroom.imap.dialogue.reader import MailPiece
from postroom.imap.dialogue.requests import Request


class Write(Struct, frozen=True):
    data: bytes


class PerformRequest(Struct, frozen=True):
    """A question: nothing else is read until it is answered."""

    request: Request


class UpgradeToTls:
    """A question: bytes from now on are for TLS."""


class EndIdle:
    """The client has ended its IDLE, whose question is still open."""


class DropAppended:
    """The command that brought an email was refused."""


class EndSession:
    """The session ends: nothing more is read or written."""


Effect = Write | MailPiece | DropAppended | PerformRequest | UpgradeToTls | EndIdle | EndSession


class Performed(Struct, frozen=True):
    """The answer to a question: the tagged response, and the resulting state."""

    reply: bytes
    is_logged_in: bool
    is_selected: bool
