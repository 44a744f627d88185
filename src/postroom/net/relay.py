"""Parses where mail is sent: directly to the recipients' servers, or through relays, some known by name."""

import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from postroom.errors import BadRequest

_FORM = (
    "must be capture, mx, smtp://host:port, smtps://user:password@host:port, or a service by name: "
    "ses://user:password@region, mailgun://user:password@, postmark://token@, resend://key@"
)
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
_MAILGUN_HOSTS = {"": "smtp.mailgun.org", "us": "smtp.mailgun.org", "eu": "smtp.eu.mailgun.org"}
_DEFAULT_PORTS = {"smtp": 25, "smtps": 465}
_SUBMISSION_PORT = 587  # RFC 6409 section 3.1
MOST_RELAYS = 3
OAUTH_SUFFIX = "+token"  # after smtp or smtps: the password is an OAuth token
MASK = "***"


@dataclass(frozen=True, slots=True)
class Relay:
    """The server that takes every outgoing mail. Without a username there is no login."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    implicit_tls: bool = False
    has_token: bool = False  # instead of a password, by XOAUTH2 or OAUTHBEARER
    address: str = ""  # to connect to, if it was checked before

    @property
    def must_be_verified(self) -> bool:
        """Return whether the certificate must prove the host: for a password, or if TLS was asked for."""
        return not is_loopback(self.host) and (self.implicit_tls or bool(self.username))


def parse_ways(value: str) -> list[Relay | None]:
    """Parse relays separated by spaces. The first is used, and the next if one takes no connections."""
    ways = [parse_outbound(part) for part in value.split()]
    if not ways:
        raise ValueError(_FORM)
    return ways


def require_relays(value: str | None) -> str | None:
    """Require relays only, for a domain or a pod: the server's own address is the operator's."""
    if value is None:
        return None
    if MASK in value:
        raise BadRequest("The stored password is not shown: give the whole outbound again.", field="outbound")
    try:
        relays = parse_ways(value)
    except ValueError as error:
        raise BadRequest(f"outbound {error}.", field="outbound") from None
    if None in relays or len(relays) > MOST_RELAYS:
        raise BadRequest(f"outbound takes 1 to {MOST_RELAYS} relays, not mx.", field="outbound")
    return " ".join(value.split())


def mask(value: str | None) -> str | None:
    """Return the value for display, without secrets."""
    return None if value is None else " ".join(map(_mask_one, value.split()))


def _mask_one(value: str) -> str:
    scheme, _, rest = value.partition("://")
    secret, at, place = rest.rpartition("@")
    username, colon, _ = secret.partition(":")
    return f"{scheme}://{username if colon else ''}{colon}{MASK}@{place}" if at else value


def parse_outbound(value: str) -> Relay | None:
    """Return None for `mx`. Raises ValueError with a reason that never contains the password."""
    if value == "mx":
        return None
    if value.partition("://")[0] in _NAMED:
        return _parse_named(value)
    scheme, found, rest = value.partition(f"{OAUTH_SUFFIX}://")
    if found and scheme in _DEFAULT_PORTS:
        return _with_token(parse_outbound(f"{scheme}://{rest}"))
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        raise ValueError(_FORM) from None
    _require_plain(value, url)
    username, password = _credentials(url)
    default_port = _SUBMISSION_PORT if url.scheme == "smtp" and username else _DEFAULT_PORTS[url.scheme]
    return Relay(url.hostname or "", port or default_port, username, password, url.scheme == "smtps")


def _with_token(relay: Relay | None) -> Relay:
    if relay is None or not relay.username:
        raise ValueError(_FORM)
    return replace(relay, has_token=True)


def _parse_named(value: str) -> Relay:
    scheme, _, rest = value.partition("://")
    secret, at, place = rest.rpartition("@")
    username, colon, password = secret.partition(":")
    if not at or not username or not value.isprintable():
        raise ValueError(_FORM)
    return _NAMED[scheme](unquote(username), unquote(password) if colon else "", place.rstrip("/").lower())


def _ses(username: str, password: str, region: str) -> Relay:
    if not password or not _REGION.fullmatch(region):
        raise ValueError("ses:// needs SMTP credentials and a region: ses://user:password@eu-central-1")
    return Relay(f"email-smtp.{region}.amazonaws.com", 465, username, password, implicit_tls=True)


def _mailgun(username: str, password: str, place: str) -> Relay:
    if not password or place not in _MAILGUN_HOSTS:
        raise ValueError("mailgun:// needs SMTP credentials: mailgun://postmaster%40domain:password@ or @eu")
    return Relay(_MAILGUN_HOSTS[place], 465, username, password, implicit_tls=True)


def _postmark(token: str, password: str, place: str) -> Relay:
    """Return Postmark's relay, which has no port with implicit TLS."""
    if password or place:
        raise ValueError("postmark:// needs only the server's token: postmark://token@")
    return Relay("smtp.postmarkapp.com", _SUBMISSION_PORT, token, token)


def _resend(key: str, password: str, place: str) -> Relay:
    if password or place:
        raise ValueError("resend:// needs only the key: resend://re_key@")
    return Relay("smtp.resend.com", 465, "resend", key, implicit_tls=True)


_NAMED = {"ses": _ses, "mailgun": _mailgun, "postmark": _postmark, "resend": _resend}


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _require_plain(value: str, url: SplitResult) -> None:
    if not value.isprintable() or " " in value or url.scheme not in _DEFAULT_PORTS or not url.hostname:
        raise ValueError(_FORM)
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError(f"{_FORM}; a / ? or # inside the password is written as %2F, %3F or %23")
    if url.port == 0:
        raise ValueError("the port must be 1 to 65535")


def _credentials(url: SplitResult) -> tuple[str, str]:
    username, password = unquote(url.username or ""), unquote(url.password or "")
    if bool(username) != bool(password):
        raise ValueError("the user name and the password must be given together, as user:password@")
    if "\0" in username + password:
        raise ValueError("the user name and the password must not contain NUL")
    return username, password
