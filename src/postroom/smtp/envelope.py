"""A received email with everything the session learned about it."""

import re
from collections.abc import Hashable

from msgspec import Struct

from postroom.net.spool import Readable, SpooledContent

_UNSAFE_IN_TRACE = re.compile(r"[^A-Za-z0-9.:_\[\]-]")


class Recipient(Struct, frozen=True):
    """An accepted RCPT: the address as the client gave it, and what the directory made of it."""

    address: str
    destination: Hashable
    may_refuse: bool = False


class Envelope(Struct, frozen=True):
    """`mail_from` is empty for the null sender. The content has only CRLF line ends and no NUL."""

    id: str
    peer: str
    helo: str
    tls: bool
    esmtp: bool
    smtputf8: bool
    mail_from: str
    recipients: tuple[Recipient, ...]
    content: SpooledContent

    @property
    def may_be_refused(self) -> bool:
        """Return whether a recipient may refuse it.

        One answer goes for all, so no further recipient prevents it.
        """
        return any(each.may_refuse for each in self.recipients)

    @property
    def size_bytes(self) -> int:
        return self.content.size_bytes

    def read(self) -> bytes:
        """Return the whole email in memory."""
        return self.content.read()

    def open(self) -> Readable:
        """Return a fresh reader from the first byte, which does not load a spooled email into memory."""
        return self.content.open()

    def received_header(self, hostname: str, date: str) -> bytes:
        """Return the trace field of RFC 5321, 4.4, with its line end; `date` is in the form of RFC 5322."""
        helo = _UNSAFE_IN_TRACE.sub("?", self.helo)
        return (
            f"Received: from {helo} ({_address_literal(self.peer)})\r\n"
            f"\tby {hostname} with {self.protocol} id {self.id};\r\n"
            f"\t{date}\r\n"
        ).encode("ascii", "replace")

    @property
    def protocol(self) -> str:
        """The registered name of how the email came (RFC 3848, RFC 6531 section 4.3)."""
        if not self.esmtp:
            return "SMTP"
        return ("UTF8SMTP" if self.smtputf8 else "ESMTP") + ("S" if self.tls else "")


def _address_literal(peer: str) -> str:
    return f"[IPv6:{peer}]" if ":" in peer else f"[{peer}]"
