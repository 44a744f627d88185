"""What a session wants done: the only words between the protocol and the outside."""

from dataclasses import dataclass
from enum import Enum, auto

from postroom.smtp.envelope import Recipient


@dataclass(frozen=True, slots=True)
class Send:
    data: bytes


@dataclass(frozen=True, slots=True)
class BeginMail:
    """354 was sent: content follows."""


@dataclass(frozen=True, slots=True)
class MailContent:
    data: bytes


@dataclass(frozen=True, slots=True)
class DropMail:
    """The mail is too large: forget what came, nothing more follows."""


@dataclass(frozen=True, slots=True)
class Close:
    """`is_expected` when the client asked for it, so that nothing of its is still on the way."""

    is_expected: bool = False


@dataclass(frozen=True, slots=True)
class AskRecipient:
    """To be answered with `Session.recipient_answer`."""

    address: str


@dataclass(frozen=True, slots=True)
class AcceptMail:
    """The mail is complete; to be answered with `Session.mail_answer`."""

    helo: str
    tls: bool
    esmtp: bool
    smtputf8: bool
    mail_from: str
    recipients: tuple[Recipient, ...]


@dataclass(frozen=True, slots=True)
class StartTls:
    """To be answered with `Session.tls_started`."""


Question = AskRecipient | AcceptMail | StartTls
Effect = Send | BeginMail | MailContent | DropMail | Close | Question


@dataclass(frozen=True, slots=True)
class Stored:
    """The mail is durable under this id."""

    id: str


class NotStored(Enum):
    """Why a complete mail was not taken."""

    TRY_LATER = auto()
    STORAGE_FULL = auto()
    LOOPS = auto()


MailOutcome = Stored | NotStored
