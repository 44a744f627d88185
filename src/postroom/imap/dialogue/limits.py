"""The limits of an IMAP session: sizes, counts and times."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImapLimits:
    """Every limit of a session; the defaults suit a public server."""

    max_connections: int = 1000
    max_connections_per_address: int = 50
    max_connections_per_key: int = 50
    # A command without its literals: a long list of messages is the longest that programs send.
    max_line_bytes: int = 64 * 1024
    # A literal inside a command; only APPEND brings a mail.
    max_literal_bytes: int = 16 * 1024
    max_mail_bytes: int = 35 * 1024 * 1024
    # A larger mail goes to a file as it comes; so many of them are read at once.
    spool_over_bytes: int = 256 * 1024
    max_large_mails: int = 4
    max_literals: int = 50
    max_depth: int = 20
    max_errors: int = 20
    max_commands_per_minute: int = 3000
    login_seconds: float = 60
    # RFC 3501 section 5.4 demands at least 30 minutes.
    idle_seconds: float = 1800
    # How long a client may take nothing of what is written to it.
    write_seconds: float = 60
    tls_handshake_seconds: float = 30
    linger_seconds: float = 3
