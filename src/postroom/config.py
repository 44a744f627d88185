"""One frozen Config, read from the environment; a wrong value is a ConfigError that names its setting."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import parse_qs, urlsplit

Plan = Literal["free", "developer", "business"]
PLANS: tuple[Plan, ...] = get_args(Plan)
MAX_WORKERS = 64
LOG_FORMS = ("logfmt", "json")
STS_MODES = ("testing", "enforce", "none")
MAX_DRAIN_SECONDS = 3600
MOST_OF_A_LIMIT = 1_000_000
HOME_DOMAIN = "postroom.localhost"
CAPTURE = "capture"
ROLES = ("owner", "admin", "approver", "viewer")

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
BLOB_URL_FORM = "must be like s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1"
_OWN_HEADER = re.compile(r"x-[!-9;-~]{1,70}")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


class ConfigError(Exception):
    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    data_dir: Path
    http: Endpoint
    smtp: Endpoint
    imap: Endpoint | None  # None: no mail program reads here
    submission: Endpoint | None  # None: no mail program sends here
    base_url: str  # "" until the HTTP port is known
    domain: str
    database_url: str  # "" is SQLite in the data folder
    blob_url: str  # "" is a folder in the data folder
    api_key: str  # "" makes a random one
    plan: Plan
    outbound: str  # capture, mx, or the URL of a relay
    webhook_url: str  # "" sets none
    webhook_secret: str  # "" makes a random one
    allow_private: bool | None  # None: only while base_url is loopback
    cors_origins: frozenset[str]  # sites whose pages may call the interface
    allowed_headers: frozenset[str]  # that steer a relay and may be sent all the same, in small letters
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]  # whose word on who is there counts
    drain_seconds: int  # after SIGTERM, not ready but still serving
    tls_cert: Path | None  # for HTTPS and STARTTLS; None: HTTP, and a certificate of our own making
    tls_key: Path | None
    log: str  # the form of its lines
    workers: int  # processes that take mail in; 0: this one does
    mta_sts: str  # the mode of the policy that this server gives
    dane: bool | None  # the resolver's word on DNSSEC counts; None: where it is on this machine
    tls_reports: bool | None  # domains are told daily how sessions with their servers began
    trusted_sealers: tuple[str, ...]  # forwarders whose word on DMARC counts (ARC)
    block_lists: tuple[str, ...]  # asked by DNS whether this server is on them
    suspend_after: int  # so many mails of an inbox in 7 days decide something
    suspend_bounce_percent: float  # more of them bounced: the inbox is suspended; 0: never
    suspend_complaint_percent: float
    oidc_issuer: str  # whose word on who somebody is counts at sign-in; "" asks nobody
    oidc_client_id: str
    oidc_client_secret: str
    oidc_role: str  # of people whom nobody invited; "" refuses them
    judge_url: str  # asked about mail that came in; "" asks nobody
    judge_key: str
    judge_model: str
    judge_seconds: int  # how long an answer may take
    judge_per_minute: int  # how often it is asked
    sends_per_minute: int  # of an inbox; here and below: 0 is no limit
    sends_per_day: int  # of an inbox
    cold_per_day: int  # strangers that a young inbox may write to
    inboxes_per_day: int  # that an account may make
    requests_per_minute: int  # of an account
    journal: bool | None  # mail gets its 250 from a journal; None: with SQLite

    def __repr__(self) -> str:
        return f"Config(data_dir={self.data_dir}, http={self.http}, smtp={self.smtp})"  # no key, no password


def allows_private_targets(config: Config) -> bool:
    """Whether webhooks and mail may go to private addresses: by default on a laptop only."""
    if config.allow_private is not None:
        return config.allow_private
    host = urlsplit(config.base_url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def uses_journal(config: Config) -> bool:
    """By default with SQLite alone: the disk of a node is its own, and its mail must not wait there."""
    return not config.database_url if config.journal is None else config.journal


def own_url(config: Config) -> str:
    """What clients on this machine use, where no base URL is set."""
    return f"{'https' if config.tls_cert else 'http'}://{config.http}"


def load(environment: Mapping[str, str]) -> Config:
    values = {
        setting.field: setting.read(setting.name, environment.get(setting.name) or setting.default)
        for setting in SETTINGS
    }
    # At home nobody outside could answer, so nothing goes there by surprise.
    values["outbound"] = values["outbound"] or (CAPTURE if values["domain"] == HOME_DOMAIN else "mx")
    if (values["tls_cert"] is None) != (values["tls_key"] is None):
        raise ConfigError("POSTROOM_TLS_CERT", "needs POSTROOM_TLS_KEY, and the other way round")
    oidc = [name for name in ("issuer", "client_id", "client_secret") if not values[f"oidc_{name}"]]
    if len(oidc) in (1, 2):
        raise ConfigError(f"POSTROOM_OIDC_{oidc[0].upper()}", "must be set, as the others of OIDC are")
    return Config(**values)


def _folder(name: str, value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise ConfigError(name, f"'{value}' names no home folder: {error}") from error


def _file(name: str, value: str) -> Path | None:
    return _folder(name, value) if value else None


def _endpoint(name: str, value: str) -> Endpoint:
    found = _ENDPOINT.fullmatch(value)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(name, f"must be host:port, such as 127.0.0.1:8025, not '{value}'")
    return Endpoint(found["ipv6"] or found["host"], int(found["port"]))


def _optional_endpoint(name: str, value: str) -> Endpoint | None:
    return None if value in ("", "off") else _endpoint(name, value)


def _base_url(name: str, value: str) -> str:
    if not value:
        return ""
    try:
        is_valid = _BASE_URL.fullmatch(value) is not None and urlsplit(value).port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigError(name, f"must be like https://mail.example.com, not '{value}'")
    return value.rstrip("/")


def _domain(name: str, value: str) -> str:
    domain = value.lower().rstrip(".")
    if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
        raise ConfigError(name, f"must be a domain such as mail.example.com, not '{value}'")
    return domain


def _database_url(name: str, value: str) -> str:
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise ConfigError(name, "must start with postgresql://, or be unset for SQLite")
    return value


def _blob_url(name: str, value: str) -> str:
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


def _api_key(name: str, value: str) -> str:
    if value and not _API_KEY.fullmatch(value):
        raise ConfigError(name, "must be pr_ and at least 16 more visible characters")
    return value


def _webhook_secret(name: str, value: str) -> str:
    if value and not _SECRET.fullmatch(value):
        raise ConfigError(name, "must be 16 to 200 visible characters")
    return value


def _switch(name: str, value: str) -> bool | None:
    if value.lower() not in SWITCH:
        raise ConfigError(name, f"must be on or off, not '{value}'")
    return SWITCH[value.lower()]


def _plan(name: str, value: str) -> Plan:
    for plan in PLANS:
        if value == plan:
            return plan
    raise ConfigError(name, f"must be one of {', '.join(PLANS)}, not '{value}'")


def _one_of(*words: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in words:
            raise ConfigError(name, f"must be one of {', '.join(filter(None, words))}, not '{value}'")
        return value

    return read


def _number(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not (value.isascii() and value.isdigit() and len(value) <= 9 and least <= int(value) <= most):
            raise ConfigError(name, f"must be a number from {least} to {most}, not '{value}'")
        return int(value)

    return read


def _workers(name: str, value: str) -> int:
    if not value:
        return 1 if (os.cpu_count() or 1) > 1 else 0
    if not value.isascii() or not value.isdigit() or int(value) > MAX_WORKERS:
        raise ConfigError(name, f"must be a number from 0 to {MAX_WORKERS}, not '{value}'")
    return int(value)


def _limit(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 7 or int(value) > MOST_OF_A_LIMIT:
        raise ConfigError(name, f"must be a number from 0, no limit, to {MOST_OF_A_LIMIT}, not '{value}'")
    return int(value)


def _origins(name: str, value: str) -> frozenset[str]:
    found = frozenset(filter(None, (part.strip().rstrip("/") for part in value.split(","))))
    for origin in found:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(name, f"must be origins such as https://app.example.com, not '{origin}'")
    return found


def _header_names(name: str, value: str) -> frozenset[str]:
    found = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    for header in found:
        if not _OWN_HEADER.fullmatch(header):
            raise ConfigError(name, f"must be names of headers such as X-SMTPAPI, not '{header}'")
    return found


def _networks(name: str, value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip(), strict=False) for part in value.split(",") if part.strip())
    except ValueError as error:
        raise ConfigError(name, f"must be networks such as 10.0.0.0/8, 2001:db8::/32: {error}") from None


def _domains(name: str, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_domain(name, part.strip()) for part in value.split(",") if part.strip()))


def _percent(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1
    if not 0 <= found <= 100 or not value.isascii():
        raise ConfigError(name, f"must be a number from 0 to 100, such as 0.3, not '{value}'")
    return found


def _issuer(name: str, value: str) -> str:
    """Compared letter by letter with what the provider says of itself."""
    parts = urlsplit(value)
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    is_valid = parts.hostname and not parts.query and not parts.fragment and "@" not in parts.netloc
    if value and not (is_valid and (parts.scheme == "https" or (parts.scheme == "http" and is_near))):
        raise ConfigError(name, f"must be like https://login.example.com, not '{value}'")
    return value


def _judge_url(name: str, value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ConfigError(name, "must be a URL such as http://127.0.0.1:11434/v1/chat/completions")
    return value


def _text(name: str, value: str) -> str:
    return value


class Setting(NamedTuple):
    """A variable of the environment, and a flag of `serve`; its field in Config has the value as read."""

    name: str
    field: str
    default: str
    read: Callable[[str, str], Any]
    help: str

    @property
    def flag(self) -> str:
        return self.name.removeprefix("POSTROOM_").lower()


# Every setting. A new one is a line here and a field of Config.
SETTINGS = (
    Setting("POSTROOM_DATA_DIR", "data_dir", "./data", _folder, "Folder for mail and database."),
    Setting("POSTROOM_HTTP", "http", "127.0.0.1:8025", _endpoint, "Address of the REST interface."),
    Setting("POSTROOM_SMTP", "smtp", "127.0.0.1:2525", _endpoint, "Address that takes mail in."),
    Setting("POSTROOM_IMAP", "imap", "", _optional_endpoint, "Address for mail programs; off by default."),
    Setting("POSTROOM_SUBMISSION", "submission", "", _optional_endpoint, "Where mail programs send."),
    Setting("POSTROOM_BASE_URL", "base_url", "", _base_url, "The URL that clients use."),
    Setting("POSTROOM_DOMAIN", "domain", HOME_DOMAIN, _domain, "Domain of the inboxes."),
    Setting("POSTROOM_DATABASE_URL", "database_url", "", _database_url, "postgresql://…"),
    Setting("POSTROOM_BLOB_URL", "blob_url", "", _blob_url, "Store of large mails: s3://…"),
    Setting("POSTROOM_OUTBOUND", "outbound", "", _text, "capture, mx, or a relay: smtp://…"),
    Setting("POSTROOM_WEBHOOK_URL", "webhook_url", "", _text, "First account's webhook."),
    Setting("POSTROOM_WEBHOOK_SECRET", "webhook_secret", "", _webhook_secret, "Its secret."),
    Setting("POSTROOM_ALLOW_PRIVATE_WEBHOOKS", "allow_private", "", _switch, "on or off: private targets."),
    Setting("POSTROOM_CORS_ORIGINS", "cors_origins", "", _origins, "Sites whose pages may call."),
    Setting("POSTROOM_ALLOWED_HEADERS", "allowed_headers", "", _header_names, "Relay headers to let out."),
    Setting("POSTROOM_TRUSTED_PROXIES", "trusted_proxies", "", _networks, "Networks of proxies to believe."),
    Setting(
        "POSTROOM_DRAIN_SECONDS", "drain_seconds", "0", _number(0, MAX_DRAIN_SECONDS), "Not ready so long."
    ),
    Setting("POSTROOM_TLS_CERT", "tls_cert", "", _file, "Certificate with its chain: HTTPS, STARTTLS."),
    Setting("POSTROOM_TLS_KEY", "tls_key", "", _file, "Its key."),
    Setting("POSTROOM_LOG", "log", LOG_FORMS[0], _one_of(*LOG_FORMS), "Form of the log: logfmt or json."),
    Setting("POSTROOM_WORKERS", "workers", "", _workers, "Processes that take mail in; 0: none of its own."),
    Setting("POSTROOM_JOURNAL", "journal", "", _switch, "on or off: mail is journaled, then stored."),
    Setting("POSTROOM_MTA_STS", "mta_sts", STS_MODES[0], _one_of(*STS_MODES), "Policy: its mode."),
    Setting("POSTROOM_DANE", "dane", "", _switch, "on or off: DNSSEC of the resolver counts."),
    Setting("POSTROOM_TLS_REPORTS", "tls_reports", "on", _switch, "on or off: domains are told of TLS."),
    Setting("POSTROOM_TRUSTED_SEALERS", "trusted_sealers", "", _domains, "Forwarders whose ARC seals count."),
    Setting("POSTROOM_BLOCK_LISTS", "block_lists", "", _domains, "DNS block lists that may be asked."),
    Setting("POSTROOM_SUSPEND_AFTER", "suspend_after", "50", _number(1, 1_000_000), "Fewer decide nothing."),
    Setting("POSTROOM_SUSPEND_BOUNCES", "suspend_bounce_percent", "10", _percent, "Percent; 0: never."),
    Setting("POSTROOM_SUSPEND_COMPLAINTS", "suspend_complaint_percent", "1", _percent, "Percent; 0: never."),
    Setting("POSTROOM_OIDC_ISSUER", "oidc_issuer", "", _issuer, "Provider of single sign-on."),
    Setting("POSTROOM_OIDC_CLIENT_ID", "oidc_client_id", "", _text, "How it knows this server."),
    Setting("POSTROOM_OIDC_CLIENT_SECRET", "oidc_client_secret", "", _text, "Its secret."),
    Setting("POSTROOM_OIDC_ROLE", "oidc_role", "", _one_of("", *ROLES), "Of people nobody invited."),
    Setting("POSTROOM_JUDGE_URL", "judge_url", "", _judge_url, "A judge of your own: chat or JSON."),
    Setting("POSTROOM_JUDGE_KEY", "judge_key", "", _text, "Its bearer key."),
    Setting("POSTROOM_JUDGE_MODEL", "judge_model", "", _text, "The model of a chat endpoint."),
    Setting("POSTROOM_JUDGE_SECONDS", "judge_seconds", "10", _number(1, 600), "How long an answer may take."),
    Setting("POSTROOM_JUDGE_PER_MINUTE", "judge_per_minute", "60", _number(1, 600), "How often it is asked."),
    Setting("POSTROOM_SENDS_PER_MINUTE", "sends_per_minute", "10", _limit, "Of an inbox; 0: no limit."),
    Setting("POSTROOM_SENDS_PER_DAY", "sends_per_day", "200", _limit, "Of an inbox; 0: no limit."),
    Setting("POSTROOM_COLD_PER_DAY", "cold_per_day", "20", _limit, "Strangers a young inbox may write to."),
    Setting("POSTROOM_INBOXES_PER_DAY", "inboxes_per_day", "100", _limit, "New ones of an account."),
    Setting("POSTROOM_REQUESTS_PER_MINUTE", "requests_per_minute", "1000", _limit, "Of an account."),
    Setting("POSTROOM_API_KEY", "api_key", "", _api_key, "Key of the first account."),
    Setting("POSTROOM_PLAN", "plan", "free", _plan, "Plan of the first account."),
)

# Read by the command and the client, on the same machine.
OF_THE_CLIENT = frozenset(
    f"POSTROOM_{name}"
    for name in ("INBOX_ID", "PROFILE", "BRIDGE_TOKEN", "EVENT", "EVENT_ID", "TEST_PATH", "TEST_POSTGRES_URL")
)


def unknown_settings(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none: most likely misspelt."""
    known = {setting.name for setting in SETTINGS} | OF_THE_CLIENT
    return sorted(name for name in environment if name.startswith("POSTROOM_") and name not in known)
