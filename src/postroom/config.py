"""One frozen Config, read from the environment; a wrong value is a ConfigError that names its setting."""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from postroom import limits
from postroom import setting_values as read
from postroom.setting_values import DNS_PROVIDERS, MOST_OF_A_LIMIT, PLANS, ConfigError, Endpoint, Plan

__all__ = [
    "DNS_PROVIDERS",
    "MOST_OF_A_LIMIT",
    "PLANS",
    "Config",
    "ConfigError",
    "Endpoint",
    "Plan",
    "allows_private_targets",
    "load",
    "own_url",
    "serves_https",
    "unknown_settings",
    "uses_journal",
]

LOG_FORMS = ("logfmt", "json")
STS_MODES = ("testing", "enforce", "none")
MAX_DRAIN_SECONDS = 3600
SETTINGS_FILE = "POSTROOM_SETTINGS"
HOME_DOMAIN = "postroom.localhost"
CAPTURE = "capture"
JUNK_ACTIONS = ("mark", "folder", "reject")
ROLES = ("owner", "admin", "approver", "viewer")


class Config(Struct, frozen=True):
    settings: str  # a file with further settings; "" for none
    data_dir: Path
    http: Endpoint
    smtp: Endpoint
    imap: Endpoint | None  # None: no mail program reads here
    submission: tuple[Endpoint, ...]  # where mail programs send; empty: nowhere
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
    suspend_after: int  # an inbox is judged only with so many mails in 7 days
    suspend_bounce_percent: float  # if more of them bounced, the inbox is suspended; 0: never
    suspend_complaint_percent: float
    pace_seconds: int  # between two mails to a provider that asked for less; 0: it is not slowed
    pace_growth_percent: int  # growth of the wait each time that it asks again
    pace_longest_seconds: int
    pace_recovery_percent: int  # reduction of the wait with each mail that it takes
    warm_up_mails: int  # that a domain may send to a provider on the first day of a warm-up
    warm_up_growth_percent: int  # growth of that number on each further day
    warm_up_days: int  # until there is no limit any more
    oidc_issuer: str  # the provider that authenticates people; "" for none
    oidc_client_id: str
    oidc_client_secret: str
    oidc_role: str  # of people without an invitation; "" refuses them
    clamd: str  # host:port, or unix: and a path; "" for none
    clamd_wait: int  # how many seconds an email waits for it
    dmarc: str  # whether the policy of a sender's domain makes email that fails DMARC junk
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
    """Whether webhooks and mail may go to private addresses: by default only on a laptop."""
    if config.allow_private is not None:
        return config.allow_private
    host = urlsplit(config.base_url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def uses_journal(config: Config) -> bool:
    """By default only with SQLite: with several nodes mail must not wait on one node's disk."""
    return not config.database_url if config.journal is None else config.journal


def own_url(config: Config) -> str:
    """What clients on this machine use if no base URL is set."""
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
    if values["dns_provider"] in read.DNS_PROVIDERS and not values["dns_token"]:
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


class Setting(NamedTuple):
    """An environment variable and a flag of `serve`; its field in Config has the parsed value."""

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
    Setting(SETTINGS_FILE, "settings", "", read.text, "File with settings, NAME=value a line."),
    Setting("POSTROOM_DATA_DIR", "data_dir", "./data", read.folder, "Folder for mail and database."),
    Setting("POSTROOM_HTTP", "http", "127.0.0.1:8025", read.endpoint, "Address of the REST interface."),
    Setting("POSTROOM_SMTP", "smtp", "127.0.0.1:2525", read.endpoint, "Address that takes mail in."),
    Setting("POSTROOM_IMAP", "imap", "", read.optional_endpoint, "For mail programs; off by default."),
    Setting("POSTROOM_SUBMISSION", "submission", "", read.endpoints, "Where mail programs send."),
    Setting("POSTROOM_BASE_URL", "base_url", "", read.base_url, "The URL that clients use."),
    Setting("POSTROOM_DOMAIN", "domain", HOME_DOMAIN, read.domain, "Domain of the inboxes."),
    Setting("POSTROOM_DATABASE_URL", "database_url", "", read.database_url, "postgresql://…"),
    Setting("POSTROOM_BLOB_URL", "blob_url", "", read.blob_url, "Store of large mails: s3://…"),
    Setting("POSTROOM_OUTBOUND", "outbound", "", read.text, "capture, mx, or a relay: smtp://…"),
    Setting("POSTROOM_WEBHOOK_URL", "webhook_url", "", read.text, "First account's webhook."),
    Setting("POSTROOM_WEBHOOK_SECRET", "webhook_secret", "", read.webhook_secret, "Its secret."),
    Setting(
        "POSTROOM_ALLOW_PRIVATE_WEBHOOKS",
        "allow_private",
        "",
        read.switch,
        "on or off: allow private addresses.",
    ),
    Setting("POSTROOM_CORS_ORIGINS", "cors_origins", "", read.origins, "Sites whose pages may call."),
    Setting(
        "POSTROOM_ALLOWED_HEADERS",
        "allowed_headers",
        "",
        read.header_names,
        "Relay headers that may be sent.",
    ),
    Setting("POSTROOM_TRUSTED_PROXIES", "trusted_proxies", "", read.networks, "Networks of trusted proxies."),
    Setting(
        "POSTROOM_DRAIN_SECONDS",
        "drain_seconds",
        "0",
        read.number(0, MAX_DRAIN_SECONDS),
        "Seconds that /ready fails before stopping.",
    ),
    Setting("POSTROOM_TLS_CERT", "tls_cert", "", read.file, "Certificate with its chain: HTTPS, STARTTLS."),
    Setting("POSTROOM_TLS_KEY", "tls_key", "", read.file, "Its key."),
    Setting(
        "POSTROOM_AUDIT_EXPORT",
        "audit_export",
        "",
        read.audit_export,
        "Daily copies of the audit log: a folder or s3://….",
    ),
    Setting(
        "POSTROOM_ACME", "acme", "off", read.acme_directory, "on: free certificates; or a directory's URL."
    ),
    Setting("POSTROOM_ACME_EMAIL", "acme_email", "", read.text, "Where the authority can reach you."),
    Setting(
        "POSTROOM_ACME_HTTP", "acme_http", "0.0.0.0:80", read.optional_endpoint, "For its questions, or off."
    ),
    Setting(
        "POSTROOM_DNS", "dns_provider", "", read.dns_provider, "Sets DNS records: a provider, or rfc2136://…"
    ),
    Setting("POSTROOM_DNS_TOKEN", "dns_token", "", read.text, "Its token, or the key for updates."),
    Setting("POSTROOM_LOG", "log", LOG_FORMS[0], read.one_of(*LOG_FORMS), "Form of the log: logfmt or json."),
    Setting(
        "POSTROOM_WORKERS", "workers", "", read.workers, "Processes that take mail in; 0: the server itself."
    ),
    Setting("POSTROOM_JOURNAL", "journal", "", read.switch, "on or off: mail is journaled, then stored."),
    Setting("POSTROOM_MTA_STS", "mta_sts", STS_MODES[0], read.one_of(*STS_MODES), "Mode of MTA-STS."),
    Setting("POSTROOM_DANE", "dane", "", read.switch, "on or off: trust the resolver's DNSSEC."),
    Setting(
        "POSTROOM_TLS_REPORTS", "tls_reports", "on", read.switch, "on or off: send TLS reports to domains."
    ),
    Setting(
        "POSTROOM_TRUSTED_SEALERS", "trusted_sealers", "", read.domains, "Forwarders whose ARC seals count."
    ),
    Setting("POSTROOM_BLOCK_LISTS", "block_lists", "", read.domains, "DNS block lists that may be asked."),
    Setting(
        "POSTROOM_OAUTH_REGISTRATIONS",
        "oauth_registrations",
        "200",
        read.number(1, 1_000_000),
        "Programs that may register, an hour and network.",
    ),
    Setting(
        "POSTROOM_SUSPEND_AFTER",
        "suspend_after",
        "50",
        read.number(1, 1_000_000),
        "Fewer mails: never suspended.",
    ),
    Setting("POSTROOM_SUSPEND_BOUNCES", "suspend_bounce_percent", "10", read.percent, "Percent; 0: never."),
    Setting(
        "POSTROOM_SUSPEND_COMPLAINTS", "suspend_complaint_percent", "1", read.percent, "Percent; 0: never."
    ),
    Setting(
        "POSTROOM_PACE_SECONDS",
        "pace_seconds",
        "1",
        read.number(0, 3600),
        "Seconds between mails after 421 or 451; 0: off.",
    ),
    Setting(
        "POSTROOM_PACE_GROWTH",
        "pace_growth_percent",
        "100",
        read.number(0, 1000),
        "Percent longer per further one.",
    ),
    Setting(
        "POSTROOM_PACE_LONGEST", "pace_longest_seconds", "300", read.number(1, 86400), "Seconds at most."
    ),
    Setting(
        "POSTROOM_PACE_RECOVERY",
        "pace_recovery_percent",
        "25",
        read.number(1, 100),
        "Percent shorter per mail taken.",
    ),
    Setting(
        "POSTROOM_WARM_UP_MAILS", "warm_up_mails", "50", read.number(1, 1_000_000), "Mails on the first day."
    ),
    Setting(
        "POSTROOM_WARM_UP_GROWTH",
        "warm_up_growth_percent",
        "50",
        read.number(1, 1000),
        "Percent more per day.",
    ),
    Setting(
        "POSTROOM_WARM_UP_DAYS", "warm_up_days", "30", read.number(1, 365), "Days until there is no limit."
    ),
    Setting("POSTROOM_OIDC_ISSUER", "oidc_issuer", "", read.issuer, "Provider of single sign-on."),
    Setting("POSTROOM_OIDC_CLIENT_ID", "oidc_client_id", "", read.text, "Client id at that provider."),
    Setting("POSTROOM_OIDC_CLIENT_SECRET", "oidc_client_secret", "", read.text, "Its secret."),
    Setting("POSTROOM_OIDC_ROLE", "oidc_role", "", read.one_of("", *ROLES), "Role of people not invited."),
    Setting("POSTROOM_MCP_EVENTS", "mcp_events", "off", read.switch, "on or off: subscriptions by MCP."),
    Setting("POSTROOM_OTEL", "otel_url", "", read.collector_url, "A collector of OpenTelemetry (OTLP)."),
    Setting("POSTROOM_CLAMD", "clamd", "", read.clamd, "Looks for malware: host:port or unix:/path."),
    Setting("POSTROOM_CLAMD_WAIT", "clamd_wait", "0", read.number(0, 86_400), "Seconds to wait for it."),
    Setting("POSTROOM_DMARC", "dmarc", "mark", read.one_of("mark", "junk"), "mark or junk: if DMARC fails."),
    Setting("POSTROOM_RSPAMD_URL", "rspamd_url", "", read.plain_url, "Your rspamd: http://127.0.0.1:11333."),
    Setting("POSTROOM_SPAMD", "spamd", "", read.service, "Your SpamAssassin: host:port or unix:/path."),
    Setting("POSTROOM_DNSBL", "address_lists", "", read.weighted_lists, "Lists of servers: bl.example=3."),
    Setting("POSTROOM_URIBL", "link_lists", "", read.weighted_lists, "Lists of hosts in links."),
    Setting("POSTROOM_JUNK", "junk", "mark", read.one_of(*JUNK_ACTIONS), "mark, folder or reject."),
    Setting("POSTROOM_JUDGE_URL", "judge_url", "", read.judge_url, "Your own judge of mail: chat or JSON."),
    Setting("POSTROOM_JUDGE_KEY", "judge_key", "", read.text, "Its bearer key."),
    Setting("POSTROOM_JUDGE_MODEL", "judge_model", "", read.text, "The model of a chat endpoint."),
    Setting(
        "POSTROOM_JUDGE_SECONDS", "judge_seconds", "10", read.number(1, 600), "Longest wait for an answer."
    ),
    Setting(
        "POSTROOM_JUDGE_PER_MINUTE", "judge_per_minute", "60", read.number(1, 600), "Most requests to it."
    ),
    Setting(
        "POSTROOM_SENDS_PER_MINUTE",
        "sends_per_minute",
        str(limits.SENDS_PER_MINUTE),
        read.limit,
        "Of an inbox; 0: no limit.",
    ),
    Setting(
        "POSTROOM_SENDS_PER_DAY",
        "sends_per_day",
        str(limits.SENDS_PER_DAY),
        read.limit,
        "Of an inbox; 0: no limit.",
    ),
    Setting(
        "POSTROOM_COLD_PER_DAY",
        "cold_per_day",
        str(limits.COLD_RECIPIENTS_PER_DAY),
        read.limit,
        "Strangers a young inbox may write to.",
    ),
    Setting(
        "POSTROOM_INBOXES_PER_DAY",
        "inboxes_per_day",
        str(limits.INBOXES_PER_DAY),
        read.limit,
        "New ones of an account.",
    ),
    Setting(
        "POSTROOM_REQUESTS_PER_MINUTE",
        "requests_per_minute",
        str(limits.REQUESTS_PER_MINUTE),
        read.limit,
        "Of an account.",
    ),
    Setting("POSTROOM_API_KEY", "api_key", "", read.api_key, "Key of the first account."),
    Setting("POSTROOM_PLAN", "plan", "free", read.plan, "Plan of the first account."),
)

# Read by the command and the client, on the same machine.
OF_THE_CLIENT = frozenset(
    f"POSTROOM_{name}"
    for name in ("INBOX_ID", "PROFILE", "BRIDGE_TOKEN", "EVENT", "EVENT_ID", "TEST_PATH", "TEST_POSTGRES_URL")
)


def unknown_settings(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none: probably misspelt."""
    known = {setting.name for setting in SETTINGS} | OF_THE_CLIENT
    return sorted(name for name in environment if name.startswith("POSTROOM_") and name not in known)
