"""The effects that a session asks for: all that passes from the protocol to the connection."""

from enum import Enum, auto

from msgspec import Struct

from postroom.smtp.envelope import Recipient


class Send(Struct, frozen=True):
    data: bytes


class BeginMail(Struct, frozen=True):
    """354 was sent: content follows."""


class MailContent(Struct, frozen=True):
    data: bytes


class DropMail(Struct, frozen=True):
    """The email is too large: discard what came; no more content follows."""


class HangUp(Struct, frozen=True):
    """`is_expected` if the client asked for it, so that no more input is on its way."""

    is_expected: bool = False


class AskRecipient(Struct, frozen=True):
    """To be answered with `SmtpDialogue.recipient_answer`."""

    address: str


class AcceptMail(Struct, frozen=True):
    """The email is complete; to be answered with `SmtpDialogue.mail_answer`."""

    helo: str
    tls: bool
    esmtp: bool
    smtputf8: bool
    mail_from: str
    recipients: tuple[Recipient, ...]


class StartTls(Struct, frozen=True):
    """To be answered with `SmtpDialogue.tls_started`."""


Question = AskRecipient | AcceptMail | StartTls
Effect = Send | BeginMail | MailContent | DropMail | HangUp | Question


class MailStored(Struct, frozen=True):
    """The email is durable under this id."""

    id: str


class MailNotStored(Enum):
    """Why a complete mail was not stored."""

    TRY_LATER = auto()
    STORAGE_FULL = auto()
    LOOPS = auto()


class MailAnswered(Struct, frozen=True):
    """The reply was written by the part that handled the email, accepted or not."""

    reply: bytes
    is_accepted: bool


MailOutcome = MailStored | MailAnswered | MailNotStored
