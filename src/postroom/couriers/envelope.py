"""An outgoing email and its MAIL and RCPT commands, fitted to the server's extensions."""

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from postroom.limits import ADDRESS_CHARACTERS
from postroom.outward.courier import DeliveryError, OutgoingMail
from postroom_mail.authentication.organization import ascii_domain

# A control character or a bracket would end the address in the middle of the command.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>]")


class OutgoingEnvelope(Struct, frozen=True):
    mail_line: bytes
    rcpt_line: bytes


def require_sendable(mail: OutgoingMail) -> None:
    """Refuse an email of which any server may read a part as a command, however it treats line ends."""
    for address in (mail.mail_from, mail.recipient):
        if _UNSAFE.search(address) or len(address) > ADDRESS_CHARACTERS:
            raise DeliveryError("the address is not valid", permanent=True, enhanced="5.1.3")
    line_ends = mail.raw.count(b"\r\n")
    if mail.raw.count(b"\n") != line_ends or mail.raw.count(b"\r") != line_ends:
        raise DeliveryError("the email has a bare CR or LF", permanent=True, enhanced="5.6.0")


def make_envelope(mail: OutgoingMail, host: str, features: Mapping[str, str]) -> OutgoingEnvelope:
    """Raises DeliveryError if this server can never take this email."""
    _require_size(mail, host, features)
    sender, recipient = _with_ascii_domain(mail.mail_from), _with_ascii_domain(mail.recipient)
    parameters = f" SIZE={len(mail.raw)}" if "SIZE" in features else ""
    if "8BITMIME" in features and not mail.raw.isascii():  # RFC 6152
        parameters += " BODY=8BITMIME"
    if not (sender + recipient).isascii():
        if "SMTPUTF8" not in features:  # RFC 6531 section 3.2
            reason = f"{host} accepts only ASCII addresses"
            raise DeliveryError(reason, permanent=True, enhanced="5.6.7")
        parameters += " SMTPUTF8"
    mail_line = f"MAIL FROM:<{sender}>{parameters}\r\n".encode(errors="replace")
    return OutgoingEnvelope(mail_line, f"RCPT TO:<{recipient}>\r\n".encode(errors="replace"))


def _require_size(mail: OutgoingMail, host: str, features: Mapping[str, str]) -> None:
    limit = features.get("SIZE", "").strip()
    if not limit.isascii() or not limit.isdigit() or len(limit) > 20 or int(limit) == 0:
        return  # absent, unreadable or "no fixed limit" (RFC 1870 section 3)
    if len(mail.raw) > int(limit):
        reason = f"the email has {len(mail.raw)} bytes, {host} accepts at most {limit}"
        raise DeliveryError(reason, permanent=True, enhanced="5.3.4")


def _with_ascii_domain(address: str) -> str:
    local_part, at, domain = address.rpartition("@")
    return f"{local_part}{at}{_on_the_wire(domain)}" if at else address


@lru_cache(maxsize=1000)
def _on_the_wire(domain: str) -> str:
    return ascii_domain(domain) or domain
