"""What the SMTP server allows, and what it asks of the rest: who may receive, and where a mail goes."""

import ipaddress
from collections.abc import Awaitable, Hashable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from postroom.smtp.envelope import Envelope


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Every limit of a session; the defaults suit a public server on port 25."""

    hostname: str = "localhost"
    max_message_bytes: int = 35 * 1024 * 1024
    # A mail above this leaves memory for a temporary file.
    spool_over_bytes: int = 1024 * 1024
    # RFC 5321 section 4.5.3.1.4 demands 512; extensions and long addresses need more.
    max_line_bytes: int = 4096
    # RFC 5321 section 4.5.3.1.8 demands at least 100.
    max_recipients: int = 100
    # A sender with a long list goes on after 452 (RFC 5321 section 4.5.3.1.10); beyond this it is an attack.
    max_refused_recipients: int = 1000
    max_errors: int = 20
    # Stops endless NOOP, RSET or MAIL; RCPT has its own limits.
    max_commands_without_mail: int = 100
    max_connections: int = 1000
    max_connections_per_address: int = 50
    # Long enough to notice a client that talks before the greeting, too short to slow an honest one.
    greeting_delay_seconds: float = 0.001
    # The time for one whole command, however slowly its bytes come (RFC 5321 section 4.5.3.2.7).
    command_timeout_seconds: float = 300
    # The longest silence inside a mail (RFC 5321 section 4.5.3.2.5).
    data_timeout_seconds: float = 180
    # The longest time for one mail from 354 to the final dot.
    mail_timeout_seconds: float = 1800
    min_data_bytes_per_second: int = 500
    # The minimum rate is not asked of the first seconds of a mail.
    data_grace_seconds: float = 30
    tls_handshake_seconds: float = 30
    # How long a closed connection may take to read our last words.
    linger_seconds: float = 3


class StorageFull(Exception):
    """Raised by an intake that has no room left: the client hears 452 4.3.1 and tries again later."""


class MailLoop(Exception):
    """Raised by an intake for a mail that goes in circles: the client hears 554 5.4.6 and gives up."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The recipient exists. Equal destinations in one mail are one recipient."""

    destination: Hashable


class Refused(Enum):
    """Why a recipient is not accepted."""

    UNKNOWN = auto()
    NOT_LOCAL = auto()
    TRY_LATER = auto()
    FULL = auto()


RecipientVerdict = Accepted | Refused


class RecipientDirectory(Protocol):
    """Knows who can receive mail here."""

    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        """`address` is `local@domain`, or `postmaster` alone; an exception means TRY_LATER."""
        ...


class MailIntake(Protocol):
    """Takes a mail over for good."""

    async def accept(self, envelope: Envelope) -> None:
        """Return only when the mail is durable; the content is gone after the return.

        StorageFull is answered with 452 4.3.1, MailLoop with 554 5.4.6, any other exception with 451 4.3.0.
        """
        ...


def is_transfer_too_slow(limits: SessionLimits, seconds: float, received_bytes: int) -> bool:
    """Whether a mail that has been arriving for `seconds` has earned no more patience."""
    if seconds > limits.mail_timeout_seconds:
        return True
    return seconds > limits.data_grace_seconds and received_bytes < seconds * limits.min_data_bytes_per_second


def network_of(address: str) -> str:
    """The unit that the cap per address counts: one IPv4 address, or the /64 that one IPv6 customer has."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
