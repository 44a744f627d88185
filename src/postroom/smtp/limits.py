"""The limits of an SMTP session: sizes, counts and times."""

from msgspec import Struct

from postroom import limits


class SessionLimits(Struct, frozen=True):
    """Every limit of a session; the defaults suit a public server on port 25."""

    hostname: str = "localhost"
    max_message_bytes: int = limits.EMAIL_BYTES
    # An email above this leaves memory for a temporary file.
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
    # Long enough to notice a client that talks before the greeting (RFC 5321 section 4.3.1), too short to
    # slow an honest one.
    greeting_delay_seconds: float = 0.001
    # The time for one whole command, however slowly its bytes come (RFC 5321 section 4.5.3.2.7).
    command_timeout_seconds: float = 300
    # The longest silence inside an email (RFC 5321 section 4.5.3.2.5).
    data_timeout_seconds: float = 180
    # The longest time for one email from 354 to the final dot.
    mail_timeout_seconds: float = 1800
    min_data_bytes_per_second: int = 500
    # The minimum rate does not apply to the first seconds of an email.
    data_grace_seconds: float = 30
    tls_handshake_seconds: float = 30
    # How long a closed connection may take to read our last reply.
    linger_seconds: float = 3


def is_transfer_too_slow(limits: SessionLimits, seconds: float, received_bytes: int) -> bool:
    """Return whether an email that has been arriving for `seconds` should be given up."""
    if seconds > limits.mail_timeout_seconds:
        return True
    return seconds > limits.data_grace_seconds and received_bytes < seconds * limits.min_data_bytes_per_second
