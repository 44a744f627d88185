"""Every setting: its name, its default, and how its value is read."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from postroom import limits
from postroom import setting_values as read

LOG_FORMS = ("logfmt", "json")
STS_MODES = ("testing", "enforce", "none")
MAX_DRAIN_SECONDS = 3600
SETTINGS_FILE = "POSTROOM_SETTINGS"
HOME_DOMAIN = "postroom.localhost"
DMARC_ACTIONS = ("mark", "junk", "reject")
JUNK_ACTIONS = ("mark", "folder", "reject")
ROLES = ("owner", "admin", "approver", "viewer")


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
    Setting("POSTROOM_BLOB_URL", "blob_url", "", read.blob_url, "Store of large emails: s3://…"),
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
        "Fewer emails: never suspended.",
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
        "Seconds between emails after 421 or 451; 0: off.",
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
        "POSTROOM_WARM_UP_MAILS", "warm_up_mails", "50", read.number(1, 1_000_000), "Emails on the first day."
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
    Setting("POSTROOM_DMARC", "dmarc", "mark", read.one_of(*DMARC_ACTIONS), "mark, junk or reject."),
    Setting(
        "POSTROOM_DMARC_REPORTS", "dmarc_reports", "on", read.switch, "on or off: report to senders' domains."
    ),
    Setting("POSTROOM_GREYLIST", "greylist", "off", read.switch, "on or off: unknown senders come twice."),
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
