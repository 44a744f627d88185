"""The limits of an IMAP session: sizes, counts and times."""

from postroom import limits
from postroom.net.mail_clients.limits import ClientLimits


class ImapLimits(ClientLimits, frozen=True):
    """Every limit of a session; the defaults suit a public server."""

    # A command without its literals: a long list of messages is the longest that programs send.
    # RFC 7162 section 4 asks for 8,192.
    max_line_bytes: int = 64 * 1024
    # A literal inside a command; only APPEND brings an email.
    max_literal_bytes: int = 16 * 1024
    max_mail_bytes: int = limits.EMAIL_BYTES
    max_literals: int = 50
    max_depth: int = 20
    max_errors: int = 20
    max_commands_per_minute: int = 3000
    # RFC 3501 section 5.4 demands at least 30 minutes.
    idle_seconds: float = 1800
