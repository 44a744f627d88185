"""Reads POSTROOM_OUTBOUND: straight to the recipients' servers, or through one relay."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

_FORM = "must be capture, mx, smtp://host:port or smtps://user:password@host:port"
_DEFAULT_PORTS = {"smtp": 25, "smtps": 465}
_SUBMISSION_PORT = 587


@dataclass(frozen=True, slots=True)
class Relay:
    """The server that takes every outgoing mail. Without a username nobody signs in."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    implicit_tls: bool = False

    @property
    def must_be_verified(self) -> bool:
        """Whether the certificate must prove the host: a password is at stake, or TLS was asked for."""
        return not is_loopback(self.host) and (self.implicit_tls or bool(self.username))


def parse_outbound(value: str) -> Relay | None:
    """None for `mx`. Raises ValueError with a reason that never holds the password."""
    if value == "mx":
        return None
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        raise ValueError(_FORM) from None
    _require_plain(value, url)
    username, password = _credentials(url)
    default_port = _SUBMISSION_PORT if url.scheme == "smtp" and username else _DEFAULT_PORTS[url.scheme]
    return Relay(url.hostname or "", port or default_port, username, password, url.scheme == "smtps")


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
        raise ValueError("the user name and the password must not hold a NUL")
    return username, password
