"""Parses the values of settings: each function gets the name, for its error, and the value."""

import os
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

Plan = Literal["free", "developer", "business"]
PLANS: tuple[Plan, ...] = get_args(Plan)
MAX_WORKERS = 64
MOST_OF_A_LIMIT = 1_000_000

SWITCH: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(("on", "true", "1", "yes"), True),
    **dict.fromkeys(("off", "false", "0", "no"), False),
}

_HOST_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_DOMAIN = re.compile(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*")
_SECRET = re.compile(r"[\x21-\x7e]{16,200}")
_API_KEY = re.compile(r"pr_[\x21-\x7e]{16,200}")
_ENDPOINT = re.compile(r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._:-]+)):(?P<port>[0-9]{1,5})")
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")


_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"
DNS_PROVIDERS = ("cloudflare", "desec", "hetzner", "route53")
_DNS_SERVER = re.compile(r"rfc2136://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_ACME_DIRECTORY = re.compile(r"https://[^\s/@?#]+/[!-~]*")
BLOB_URL_FORM = "must be like s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1"
_OWN_HEADER = re.compile(r"x-[!-9;-~]{1,70}")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


class ConfigError(Exception):
    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")


class Endpoint(Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def folder(name: str, value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise ConfigError(name, f"'{value}' has no home folder: {error}") from error


def file(name: str, value: str) -> Path | None:
    return folder(name, value) if value else None


def endpoint(name: str, value: str) -> Endpoint:
    found = _ENDPOINT.fullmatch(value)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(name, f"must be host:port, such as 127.0.0.1:8025, not '{value}'")
    return Endpoint(found["ipv6"] or found["host"], int(found["port"]))


def optional_endpoint(name: str, value: str) -> Endpoint | None:
    return None if value in ("", "off") else endpoint(name, value)


def endpoints(name: str, value: str) -> tuple[Endpoint, ...]:
    return () if value in ("", "off") else tuple(endpoint(name, part.strip()) for part in value.split(","))


def acme_directory(name: str, value: str) -> str:
    if value in ("", "off"):
        return ""
    if value == "on":
        return LETS_ENCRYPT
    if not _ACME_DIRECTORY.fullmatch(value):
        raise ConfigError(
            name, "must be on, off, or the URL of an ACME directory: https://ca.example.com/directory"
        )
    return value


def dns_provider(name: str, value: str) -> str:
    """Return the name of a provider, or the URL of a server that takes dynamic updates."""
    try:
        is_server = _DNS_SERVER.fullmatch(value) is not None and urlsplit(value).port != 0
    except ValueError:
        is_server = False
    if value and value not in DNS_PROVIDERS and not is_server:
        known = ", ".join(DNS_PROVIDERS)
        raise ConfigError(name, f"must be {known} or rfc2136://ns1.example.com, not '{value}'")
    return value


def base_url(name: str, value: str) -> str:
    if not value:
        return ""
    try:
        is_valid = _BASE_URL.fullmatch(value) is not None and urlsplit(value).port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigError(name, f"must be like https://mail.example.com, not '{value}'")
    return value.rstrip("/")


def domain(name: str, value: str) -> str:
    domain = value.lower().rstrip(".")
    if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
        raise ConfigError(name, f"must be a domain such as mail.example.com, not '{value}'")
    return domain


def database_url(name: str, value: str) -> str:
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise ConfigError(name, "must start with postgresql://, or be unset for SQLite")
    return value


def audit_export(name: str, value: str) -> str:
    return blob_url(name, value) if value.startswith("s3:") or not value else str(folder(name, value))


def blob_url(name: str, value: str) -> str:
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        options = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise ConfigError(name, BLOB_URL_FORM) from None
    is_valid = parts.scheme == "s3" and _BUCKET.fullmatch(parts.netloc) and not parts.fragment
    if not is_valid or not options.keys() <= {"endpoint", "region"}:
        raise ConfigError(name, BLOB_URL_FORM)
    if not all(map(_BASE_URL.fullmatch, options.get("endpoint", []))):
        raise ConfigError(name, "the endpoint must be like https://s3.example.com")
    return value


def api_key(name: str, value: str) -> str:
    if value and not _API_KEY.fullmatch(value):
        raise ConfigError(name, "must be pr_ and at least 16 more visible characters")
    return value


def webhook_secret(name: str, value: str) -> str:
    if value and not _SECRET.fullmatch(value):
        raise ConfigError(name, "must be 16 to 200 visible characters")
    return value


def switch(name: str, value: str) -> bool | None:
    if value.lower() not in SWITCH:
        raise ConfigError(name, f"must be on or off, not '{value}'")
    return SWITCH[value.lower()]


def plan(name: str, value: str) -> Plan:
    for plan in PLANS:
        if value == plan:
            return plan
    raise ConfigError(name, f"must be one of {', '.join(PLANS)}, not '{value}'")


def one_of(*words: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in words:
            raise ConfigError(name, f"must be one of {', '.join(filter(None, words))}, not '{value}'")
        return value

    return read


def number(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not (value.isascii() and value.isdigit() and len(value) <= 9 and least <= int(value) <= most):
            raise ConfigError(name, f"must be a number from {least} to {most}, not '{value}'")
        return int(value)

    return read


def workers(name: str, value: str) -> int:
    if not value:
        return 1 if (os.cpu_count() or 1) > 1 else 0
    if not value.isascii() or not value.isdigit() or int(value) > MAX_WORKERS:
        raise ConfigError(name, f"must be a number from 0 to {MAX_WORKERS}, not '{value}'")
    return int(value)


def limit(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 7 or int(value) > MOST_OF_A_LIMIT:
        raise ConfigError(name, f"must be a number from 0, no limit, to {MOST_OF_A_LIMIT}, not '{value}'")
    return int(value)


def origins(name: str, value: str) -> frozenset[str]:
    found = frozenset(filter(None, (part.strip().rstrip("/") for part in value.split(","))))
    for origin in found:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(name, f"must be origins such as https://app.example.com, not '{origin}'")
    return found


def header_names(name: str, value: str) -> frozenset[str]:
    found = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    for header in found:
        if not _OWN_HEADER.fullmatch(header):
            raise ConfigError(name, f"must be header names such as X-SMTPAPI, not '{header}'")
    return found


def networks(name: str, value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip(), strict=False) for part in value.split(",") if part.strip())
    except ValueError as error:
        raise ConfigError(name, f"must be networks such as 10.0.0.0/8, 2001:db8::/32: {error}") from None


def domains(name: str, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(domain(name, part.strip()) for part in value.split(",") if part.strip()))


def percent(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1
    if not 0 <= found <= 100 or not value.isascii():
        raise ConfigError(name, f"must be a number from 0 to 100, such as 0.3, not '{value}'")
    return found


def issuer(name: str, value: str) -> str:
    """Return the issuer as written: it is compared exactly with the provider's own."""
    parts = urlsplit(value)
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    is_valid = parts.hostname and not parts.query and not parts.fragment and "@" not in parts.netloc
    if value and not (is_valid and (parts.scheme == "https" or (parts.scheme == "http" and is_near))):
        raise ConfigError(name, f"must be like https://login.example.com, not '{value}'")
    return value


def judge_url(name: str, value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ConfigError(name, "must be a URL such as http://127.0.0.1:11434/v1/chat/completions")
    return value


def collector_url(name: str, value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query):
        raise ConfigError(name, "must be a URL such as http://127.0.0.1:4318")
    return value


def clamd(name: str, value: str) -> str:
    if value.startswith("unix:/"):
        return value
    host, _, port = value.rpartition(":")
    if value and (not host or not port.isdecimal() or not 0 < int(port) < 65536):
        raise ConfigError(name, "must be an address such as 127.0.0.1:3310 or unix:/run/clamav/clamd.ctl")
    return value


def service(name: str, value: str) -> str:
    if value.startswith("unix:/"):
        return value
    host, _, port = value.rpartition(":")
    if value and (not host or not port.isdecimal() or not 0 < int(port) < 65536):
        raise ConfigError(name, f"must be an address such as 127.0.0.1:783 or unix:/run/spamd, not '{value}'")
    return value


def plain_url(name: str, value: str) -> str:
    parts = urlsplit(value)
    if value and (
        parts.scheme not in ("http", "https") or not parts.hostname or parts.query or "@" in parts.netloc
    ):
        raise ConfigError(name, f"must be a URL such as http://127.0.0.1:11333, not '{value}'")
    return value


def weighted_lists(name: str, value: str) -> tuple[tuple[str, float], ...]:
    """Names of DNS lists, each with its weight: `zen.example=3, bl.example`."""
    found = []
    for part in filter(None, (each.strip() for each in value.split(","))):
        zone, _, weight = part.partition("=")
        if not re.fullmatch(r"-?[0-9]{1,2}(\.[0-9]{1,2})?", weight or "3", re.ASCII):
            raise ConfigError(name, f"must be like zen.example=3, not '{part}'")
        found.append((domain(name, zone.strip()), float(weight or "3")))
    return tuple(found)


def text(name: str, value: str) -> str:
    return value
