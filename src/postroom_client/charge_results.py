"""What calls about people in charge return: approvals, pauses, budgets, drafts, pods, policy, audit."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from postroom_client.results import Actor, ApprovalRules, Attachment, Hold, Message


class Approval(Struct, rename="camel", frozen=True):
    """A send that waits, or waited, for a decision."""

    message: Message
    hold: Hold


class Pause(Struct, rename="camel", frozen=True):
    paused: bool = False
    since: datetime | None = None
    by: Actor | None = None


class Meter(Struct, rename="camel", frozen=True):
    limit: int = 0
    used: int = 0
    resets_at: datetime | None = None


class InboxLimits(Struct, rename="camel", frozen=True):
    per_minute: Meter
    per_day: Meter
    cold_per_day: Meter


class Draft(Struct, rename="camel", frozen=True):
    """A mail that is not sent yet; what is missing is None or empty."""

    id: str
    inbox_id: str
    to: list[str] = []
    cc: list[str] = []
    bcc: list[str] = []
    subject: str | None = None
    body: str | None = None
    body_html: str | None = None
    thread_id: str | None = None
    include_quote: bool = True
    reply_to: str | None = None
    reply_all: bool = False
    forward_of: str | None = None
    automated: bool = False
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    send_at: str | None = None
    undo_seconds: int = 0
    attachments: list[Attachment] = []
    created_by: Actor | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Pod(Struct, rename="camel", frozen=True):
    id: str
    client_id: str | None = None
    name: str | None = None
    is_default: bool = False
    created_at: datetime | None = None
    approval: ApprovalRules | None = None


class PolicyRule(Struct, rename="camel", frozen=True):
    id: str
    type: str = ""
    value: str = ""
    created_at: datetime | None = None


class DirectionPolicy(Struct, rename="camel", frozen=True):
    mode: str = "inherit"
    rules: list[PolicyRule] = []


class InboxSecret(Struct, rename="camel", frozen=True):
    webhook_secret: str


class Policy(Struct, rename="camel", frozen=True):
    inbound: DirectionPolicy
    outbound: DirectionPolicy


class PolicyStop(Struct, rename="camel", frozen=True):
    """What a policy stopped, or what was let in after all."""

    at: datetime | None = None
    action: str = ""
    direction: str = ""
    address: str = ""
    rule: str | None = None
    inbox_id: str = ""
    message_id: str | None = None


class AuditEntry(Struct, rename="camel", frozen=True):
    id: str
    at: datetime | None = None
    actor: Actor | None = None
    address: str = ""
    action: str = ""
    target: str = ""
    before: Any = None
    after: Any = None
    count: int = 1
    pod_id: str | None = None
    inbox_id: str | None = None
