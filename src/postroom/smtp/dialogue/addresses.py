"""Reads the addresses of MAIL and RCPT; one that could route onwards never leaves this module."""

import re

from postroom.smtp.dialogue import replies
from postroom.smtp.dialogue.replies import Refusal

_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_PLAIN = r'[^\s"@<>()\[\]\\,;:]++'
# RFC 5321 section 4.1.2; a domain may be an address literal (section 4.1.3).
_MAILBOX = re.compile(rf'({_QUOTED}|{_PLAIN})@([^"@]+)')
_LABEL = r"[^\x00-,./:-@\[-^`{-\x7f]+"  # letters, digits, "_", "-" and all beyond ASCII
_DOMAIN = re.compile(rf"\[[0-9A-Za-z.:-]+\]|{_LABEL}(?:\.{_LABEL})*")
_SOURCE_ROUTE = re.compile(r"\A@[^:]*+:")
_PLAIN_LOCAL = re.compile(_PLAIN)
_MAX_RECIPIENT_CHARACTERS = 254  # RFC 5321 section 4.5.3.1.3: a path of 256, without its brackets


def read_sender(path: str) -> str:
    """Return the address of MAIL FROM, empty for the null sender. A source route is ignored (RFC 5321, C)."""
    if path == "":
        return ""
    address = _SOURCE_ROUTE.sub("", path, count=1) if path.startswith("@") else path
    match = _MAILBOX.fullmatch(address)
    if match is None or not _is_domain(match[2]):
        raise Refusal(replies.BAD_SENDER)
    return address


def read_recipient(path: str) -> str:
    """Return the address of RCPT TO to ask the directory for: exactly one `@`, the domain in lower case.

    RFC 5321, 4.1.1.3 wants `Postmaster` without a domain to work.
    """
    if path.lower() == "postmaster":
        return "postmaster"
    match = _MAILBOX.fullmatch(path)
    if match is None:
        raise Refusal(_reply_to_odd_path(path))
    local, domain = _unquote(match[1]), match[2].lower()
    if _routes_onwards(local):
        raise Refusal(replies.NO_RELAY)
    if not _is_domain(domain) or len(path) > _MAX_RECIPIENT_CHARACTERS:
        raise Refusal(replies.BAD_RECIPIENT)
    return f"{local if _PLAIN_LOCAL.fullmatch(local) else match[1]}@{domain}"


def _reply_to_odd_path(path: str) -> bytes:
    """Refuse source routes, bang paths and quoted addresses without a domain: all ask us to relay."""
    return replies.NO_RELAY if any(sign in path for sign in "@%!") else replies.BAD_RECIPIENT


def _routes_onwards(local: str) -> bool:
    """Return whether a local part hides another address (RFC 1123 section 5.2.16).

    After a `+` only `@` can: the rest is a free tag.
    """
    name = local.partition("+")[0]
    return "@" in local or "%" in name or "!" in name


def _unquote(local: str) -> str:
    if not local.startswith('"'):
        return local
    return re.sub(r"\\(.)", r"\1", local[1:-1])


def _is_domain(domain: str) -> bool:
    return _DOMAIN.fullmatch(domain) is not None
