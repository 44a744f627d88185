"""What calls about an account's own arrangements return: suppressions, domains, webhooks, itself."""

from datetime import datetime

from msgspec import Struct

from postroom_client.results import ApprovalRules


class Account(Struct, rename="camel", frozen=True):
    id: str
    name: str = ""
    plan: str = ""
    approval: ApprovalRules | None = None
    retention_days: int | None = None
    created_at: datetime | None = None
    stored_bytes: int = 0
    storage_limit_bytes: int | None = None


class Suppression(Struct, rename="camel", frozen=True):
    address: str
    type: str = "manual"
    created_at: datetime | None = None
    message_id: str | None = None
    reason: str | None = None


class DnsRecord(Struct, rename="camel", frozen=True):
    """A record to set; `found` is known once the domain was looked up."""

    type: str
    name: str
    value: str
    purpose: str = ""
    required: bool = False
    found: bool | None = None


class Domain(Struct, rename="camel", frozen=True):
    id: str
    domain: str
    status: str = "pending"
    created_at: datetime | None = None
    verified_at: datetime | None = None
    records: list[DnsRecord] = []
    pod_id: str | None = None


class Webhook(Struct, rename="camel", frozen=True):
    """`secret` is shown once, when it is made."""

    url: str
    event_types: list[str] = []
    enabled: bool = True
    created_at: datetime | None = None
    disabled_reason: str | None = None
    secret: str | None = None


class WebhookSecret(Struct, rename="camel", frozen=True):
    secret: str


class WebhookTest(Struct, rename="camel", frozen=True):
    ok: bool
    status: int = 0
    milliseconds: int = 0


class WebhookAttempt(Struct, rename="camel", frozen=True):
    """One try; `answer` is the beginning of what the endpoint said, or why there was no answer."""

    at: datetime | None = None
    status: int | None = None
    milliseconds: int | None = None
    answer: str | None = None


class WebhookDelivery(Struct, rename="camel", frozen=True):
    id: str
    event_id: str = ""
    inbox_id: str = ""
    url: str = ""
    state: str = ""
    attempts: list[WebhookAttempt] = []
    created_at: datetime | None = None
    next_attempt_at: datetime | None = None


class Retried(Struct, frozen=True):
    """How many deliveries go again."""

    retried: int
