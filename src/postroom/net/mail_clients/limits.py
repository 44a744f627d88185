"""The limits of all mail clients, for IMAP and submission."""

from msgspec import Struct


class ClientLimits(Struct, frozen=True):
    """The defaults suit a public server."""

    max_connections: int = 1000
    max_connections_per_address: int = 50
    max_connections_per_key: int = 50
    # A larger mail goes to a file as it comes.
    spool_over_bytes: int = 256 * 1024
    # Reading one takes up to six times its size of memory.
    max_large_mails: int = 2
    login_seconds: float = 60
    # How long a client may read nothing of what is written to it.
    write_seconds: float = 60
    tls_handshake_seconds: float = 30
    linger_seconds: float = 3
