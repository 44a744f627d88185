"""One frozen Config, read from the environment; a wrong value is a ConfigError that names its setting."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from postroom.setting_values import DNS_PROVIDERS, MOST_OF_A_LIMIT, PLANS, ConfigError, Endpoint, Plan
from postroom.settings import HOME_DOMAIN, SETTINGS, SETTINGS_FILE, Setting, unknown_settings

__all__ = [
    "DNS_PROVIDERS",
    "HOME_DOMAIN",
    "MOST_OF_A_LIMIT",
    "PLANS",
    "SETTINGS",
    "SETTINGS_FILE",
    "Config",
    "ConfigError",
    "Endpoint",
    "Plan",
    "Setting",
    "allows_private_targets",
    "load",
    "own_url",
    "serves_https",
    "unknown_settings",
    "uses_journal",
]

CAPTURE = "capture"


class Config(Struct, frozen=True):
    settings: str  # a file with further settings; "" for none
    data_dir: Path
    http: Endpoint
    smtp: Endpoint
    imap: Endpoint | None  # None: no mail client reads here
    submission: tuple[Endpoint, ...]  # where mail clients send; empty: nowhere
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
    allowed_headers: frozenset[str]  # headers that control a relay and may be sent anyway, in lower case
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]  # whose word on the client's address counts
    drain_seconds: int  # after SIGTERM, not ready but still serving
    tls_cert: Path | None  # for HTTPS and STARTTLS; None: HTTP, and a self-signed certificate
    tls_key: Path | None
    audit_export: str  # where the audit log is copied to each day; "" is nowhere
    acme: str  # the directory of the authority to get certificates from; "" for none
    acme_email: str  # where that authority can reach the operator
    dns_provider: str  # where records of certificates are set; "" for none
    dns_token: str
    acme_http: Endpoint | None  # answers the authority and redirects to HTTPS; None: it comes by HTTPS
    log: str  # the form of its lines
    workers: int  # processes that receive mail; 0: this one does
    mta_sts: str  # the mode of the policy that this server publishes
    dane: bool | None  # the resolver's DNSSEC results count; None: if it is on this machine
    tls_reports: bool | None  # domains get daily reports about TLS sessions with their servers
    trusted_sealers: tuple[str, ...]  # forwarders whose DMARC results count (ARC)
    block_lists: tuple[str, ...]  # DNS block lists to check this server against
    oauth_registrations: int  # programs that may register themselves, an hour and network
    suspend_after: int  # an inbox is judged only with so many emails in 7 days
    suspend_bounce_percent: float  # if more of them bounced, the inbox is suspended; 0: never
    suspend_complaint_percent: float
    pace_seconds: int  # between two emails to a provider that asked for less; 0: it is not slowed
    pace_growth_percent: int  # growth of the wait each time that it asks again
    pace_longest_seconds: int
    pace_recovery_percent: int  # reduction of the wait with each email that it takes
    warm_up_mails: int  # that a domain may send to a provider on the first day of a warm-up
    warm_up_growth_percent: int  # growth of that number on each further day
    warm_up_days: int  # until there is no limit any more
    oidc_issuer: str  # the provider that authenticates people; "" for none
    oidc_client_id: str
    oidc_client_secret: str
    oidc_role: str  # of people without an invitation; "" refuses them
    clamd: str  # host:port, or unix: and a path; "" for none
    clamd_wait: int  # how many seconds an email waits for it
    dmarc_reports: bool | None  # domains get daily reports about email in their name
    greylist: bool | None  # unknown networks hand unauthenticated email over twice
    dmarc: str  # what the policy of a sender's domain leads to for email that fails DMARC
    rspamd_url: str  # "" for none
    spamd: str  # host:port, or unix: and a path; "" for none
    address_lists: tuple[tuple[str, float], ...]  # DNS lists of servers, and how much each weighs
    link_lists: tuple[tuple[str, float], ...]  # DNS lists of hosts in links
    junk: str  # what happens to junk where no account, pod or inbox says
    judge_url: str  # asked about received mail; "" for none
    mcp_events: bool | None  # MCP Events are offered; a young proposal
    otel_url: str  # the collector that gets spans; "" for none
    judge_key: str
    judge_model: str
    judge_seconds: int  # how long an answer may take
    judge_per_minute: int  # how often it is asked
    sends_per_minute: int  # of an inbox; here and below: 0 is no limit
    sends_per_day: int  # of an inbox
    cold_per_day: int  # strangers that a young inbox may write to
    inboxes_per_day: int  # that an account may make
    requests_per_minute: int  # of an account
    journal: bool | None  # mail gets its 250 from a journal; None: only with SQLite

    def __repr__(self) -> str:
        return f"Config(data_dir={self.data_dir}, http={self.http}, smtp={self.smtp})"  # no key, no password


def allows_private_targets(config: Config) -> bool:
    """Return whether webhooks and mail may go to private addresses: by default only on a laptop."""
    if config.allow_private is not None:
        return config.allow_private
    host = urlsplit(config.base_url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def uses_journal(config: Config) -> bool:
    """Return whether there is a journal, by default only with SQLite.

    With several nodes, mail must not wait on one node's disk.
    """
    return not config.database_url if config.journal is None else config.journal


def own_url(config: Config) -> str:
    """Return what clients on this machine use if no base URL is set."""
    return f"{'https' if serves_https(config) else 'http'}://{config.http}"


def serves_https(config: Config) -> bool:
    return config.tls_cert is not None or bool(config.acme)


def load(environment: Mapping[str, str]) -> Config:
    if file := environment.get(SETTINGS_FILE):
        given = {name: value for name, value in environment.items() if value}
        environment = {**read_settings_file(file), **given}
    values = {
        setting.field: setting.read(setting.name, environment.get(setting.name) or setting.default)
        for setting in SETTINGS
    }
    # Without a public domain no answer could come back, so by default nothing is sent.
    values["outbound"] = values["outbound"] or (CAPTURE if values["domain"] == HOME_DOMAIN else "mx")
    if (values["tls_cert"] is None) != (values["tls_key"] is None):
        raise ConfigError("POSTROOM_TLS_CERT", "and POSTROOM_TLS_KEY must be set together")
    if values["acme"] and values["tls_cert"]:
        raise ConfigError("POSTROOM_ACME", "and POSTROOM_TLS_CERT exclude each other; unset one of them")
    if values["dns_provider"] in DNS_PROVIDERS and not values["dns_token"]:
        raise ConfigError("POSTROOM_DNS_TOKEN", f"must be set: the token for {values['dns_provider']}")
    oidc = [name for name in ("issuer", "client_id", "client_secret") if not values[f"oidc_{name}"]]
    if len(oidc) in (1, 2):
        raise ConfigError(f"POSTROOM_OIDC_{oidc[0].upper()}", "must be set, like the other OIDC settings")
    return Config(**values)


def read_settings_file(file: str) -> dict[str, str]:
    """Return the settings of its lines `NAME=value`. A `-` before the path: the file may be missing.

    Both are as in systemd's EnvironmentFile.
    """
    try:
        lines = [line.strip() for line in Path(file.removeprefix("-")).read_text().splitlines()]
    except FileNotFoundError as error:
        if file.startswith("-"):
            return {}
        raise ConfigError(SETTINGS_FILE, f"there is no file {file}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(SETTINGS_FILE, f"{file} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        if not line or line.startswith(("#", ";")):
            continue
        if not equals or not name.isidentifier():
            raise ConfigError(SETTINGS_FILE, f"line {number} of {file} must be like NAME=value")
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        found[name] = value[1:-1] if is_quoted else value
    return found
