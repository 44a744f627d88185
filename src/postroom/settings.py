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

    @property
    def flag(self) -> str:
        return self.name.removeprefix("POSTROOM_").lower()


# Every setting. A new one is a line here, a sentence in `setting_meanings` and a field of Config.
SETTINGS = (
    Setting(SETTINGS_FILE, "settings", "", read.text),
    Setting("POSTROOM_DATA_DIR", "data_dir", "./data", read.folder),
    Setting("POSTROOM_HTTP", "http", "127.0.0.1:8025", read.endpoint),
    Setting("POSTROOM_SMTP", "smtp", "127.0.0.1:2525", read.endpoint),
    Setting("POSTROOM_IMAP", "imap", "", read.optional_endpoint),
    Setting("POSTROOM_SUBMISSION", "submission", "", read.endpoints),
    Setting("POSTROOM_BASE_URL", "base_url", "", read.base_url),
    Setting("POSTROOM_DOMAIN", "domain", HOME_DOMAIN, read.domain),
    Setting("POSTROOM_DATABASE_URL", "database_url", "", read.database_url),
    Setting("POSTROOM_BLOB_URL", "blob_url", "", read.blob_url),
    Setting("POSTROOM_OUTBOUND", "outbound", "", read.text),
    Setting("POSTROOM_WEBHOOK_URL", "webhook_url", "", read.text),
    Setting("POSTROOM_WEBHOOK_SECRET", "webhook_secret", "", read.webhook_secret),
    Setting("POSTROOM_ALLOW_PRIVATE_WEBHOOKS", "allow_private", "", read.switch),
    Setting("POSTROOM_CORS_ORIGINS", "cors_origins", "", read.origins),
    Setting("POSTROOM_ALLOWED_HEADERS", "allowed_headers", "", read.header_names),
    Setting("POSTROOM_TRUSTED_PROXIES", "trusted_proxies", "", read.networks),
    Setting("POSTROOM_DRAIN_SECONDS", "drain_seconds", "0", read.number(0, MAX_DRAIN_SECONDS)),
    Setting("POSTROOM_TLS_CERT", "tls_cert", "", read.file),
    Setting("POSTROOM_TLS_KEY", "tls_key", "", read.file),
    Setting("POSTROOM_AUDIT_EXPORT", "audit_export", "", read.audit_export),
    Setting("POSTROOM_ACME", "acme", "off", read.acme_directory),
    Setting("POSTROOM_ACME_EMAIL", "acme_email", "", read.text),
    Setting("POSTROOM_ACME_HTTP", "acme_http", "0.0.0.0:80", read.optional_endpoint),
    Setting("POSTROOM_DNS", "dns_provider", "", read.dns_provider),
    Setting("POSTROOM_DNS_TOKEN", "dns_token", "", read.text),
    Setting("POSTROOM_LOG", "log", LOG_FORMS[0], read.one_of(*LOG_FORMS)),
    Setting("POSTROOM_WORKERS", "workers", "", read.workers),
    Setting("POSTROOM_JOURNAL", "journal", "", read.switch),
    Setting("POSTROOM_MTA_STS", "mta_sts", STS_MODES[0], read.one_of(*STS_MODES)),
    Setting("POSTROOM_DANE", "dane", "", read.switch),
    Setting("POSTROOM_TLS_REPORTS", "tls_reports", "on", read.switch),
    Setting("POSTROOM_TRUSTED_SEALERS", "trusted_sealers", "", read.domains),
    Setting("POSTROOM_BLOCK_LISTS", "block_lists", "", read.domains),
    Setting("POSTROOM_OAUTH_REGISTRATIONS", "oauth_registrations", "200", read.number(1, 1_000_000)),
    Setting("POSTROOM_SUSPEND_AFTER", "suspend_after", "50", read.number(1, 1_000_000)),
    Setting("POSTROOM_SUSPEND_BOUNCES", "suspend_bounce_percent", "10", read.percent),
    Setting("POSTROOM_SUSPEND_COMPLAINTS", "suspend_complaint_percent", "1", read.percent),
    Setting("POSTROOM_PACE_SECONDS", "pace_seconds", "1", read.number(0, 3600)),
    Setting("POSTROOM_PACE_GROWTH", "pace_growth_percent", "100", read.number(0, 1000)),
    Setting("POSTROOM_PACE_LONGEST", "pace_longest_seconds", "300", read.number(1, 86400)),
    Setting("POSTROOM_PACE_RECOVERY", "pace_recovery_percent", "25", read.number(1, 100)),
    Setting("POSTROOM_WARM_UP_MAILS", "warm_up_mails", "50", read.number(1, 1_000_000)),
    Setting("POSTROOM_WARM_UP_GROWTH", "warm_up_growth_percent", "50", read.number(1, 1000)),
    Setting("POSTROOM_WARM_UP_DAYS", "warm_up_days", "30", read.number(1, 365)),
    Setting("POSTROOM_OIDC_ISSUER", "oidc_issuer", "", read.issuer),
    Setting("POSTROOM_OIDC_CLIENT_ID", "oidc_client_id", "", read.text),
    Setting("POSTROOM_OIDC_CLIENT_SECRET", "oidc_client_secret", "", read.text),
    Setting("POSTROOM_OIDC_ROLE", "oidc_role", "", read.one_of("", *ROLES)),
    Setting("POSTROOM_MCP_EVENTS", "mcp_events", "off", read.switch),
    Setting("POSTROOM_OTEL", "otel_url", "", read.collector_url),
    Setting("POSTROOM_CLAMD", "clamd", "", read.clamd),
    Setting("POSTROOM_CLAMD_WAIT", "clamd_wait", "0", read.number(0, 86_400)),
    Setting("POSTROOM_DMARC", "dmarc", "mark", read.one_of(*DMARC_ACTIONS)),
    Setting("POSTROOM_DMARC_REPORTS", "dmarc_reports", "on", read.switch),
    Setting("POSTROOM_GREYLIST", "greylist", "off", read.switch),
    Setting("POSTROOM_RSPAMD_URL", "rspamd_url", "", read.plain_url),
    Setting("POSTROOM_SPAMD", "spamd", "", read.service),
    Setting("POSTROOM_DNSBL", "address_lists", "", read.weighted_lists),
    Setting("POSTROOM_URIBL", "link_lists", "", read.weighted_lists),
    Setting("POSTROOM_JUNK", "junk", "mark", read.one_of(*JUNK_ACTIONS)),
    Setting("POSTROOM_JUDGE_URL", "judge_url", "", read.judge_url),
    Setting("POSTROOM_JUDGE_KEY", "judge_key", "", read.text),
    Setting("POSTROOM_JUDGE_MODEL", "judge_model", "", read.text),
    Setting("POSTROOM_JUDGE_SECONDS", "judge_seconds", "10", read.number(1, 600)),
    Setting("POSTROOM_JUDGE_PER_MINUTE", "judge_per_minute", "60", read.number(1, 600)),
    Setting("POSTROOM_SENDS_PER_MINUTE", "sends_per_minute", str(limits.SENDS_PER_MINUTE), read.limit),
    Setting("POSTROOM_SENDS_PER_DAY", "sends_per_day", str(limits.SENDS_PER_DAY), read.limit),
    Setting("POSTROOM_COLD_PER_DAY", "cold_per_day", str(limits.COLD_RECIPIENTS_PER_DAY), read.limit),
    Setting("POSTROOM_INBOXES_PER_DAY", "inboxes_per_day", str(limits.INBOXES_PER_DAY), read.limit),
    Setting(
        "POSTROOM_REQUESTS_PER_MINUTE", "requests_per_minute", str(limits.REQUESTS_PER_MINUTE), read.limit
    ),
    Setting("POSTROOM_API_KEY", "api_key", "", read.api_key),
    Setting("POSTROOM_PLAN", "plan", "free", read.plan),
)

# Read by the command and the client, on the same machine.
OF_THE_CLIENT = frozenset(
    f"POSTROOM_{name}"
    for name in ("INBOX_ID", "PROFILE", "BRIDGE_TOKEN", "EVENT", "EVENT_ID", "TEST_PATH", "TEST_POSTGRES_URL")
)


def unknown_settings(environment: Mapping[str, str]) -> list[str]:
    """Return variables that look like settings and are none: probably misspelt."""
    known = {setting.name for setting in SETTINGS} | OF_THE_CLIENT
    return sorted(name for name in environment if name.startswith("POSTROOM_") and name not in known)
