"""What the server says of itself, and every error."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType


class Health(Struct, rename="camel", frozen=True):
    status: Literal["ok"] = "ok"


class Workers(Struct, rename="camel", frozen=True):
    expected: int
    running: int
    restarts: int


class SearchProgress(Struct, rename="camel", frozen=True):
    """`earlierPercent` is below 100 while email from before an upgrade is indexed."""

    waiting: int
    earlier_percent: int


class Readiness(Struct, rename="camel", frozen=True):
    workers: Workers
    search: SearchProgress
    warnings: Annotated[
        list[str],
        Meta(description="What works, but needs a person soon: a certificate that cannot be renewed."),
    ]
    status: Literal["ok"] = "ok"


class ProtectedResource(Struct, frozen=True):
    """RFC 9728. An API key is a bearer token as well."""

    resource: str
    resource_name: str
    resource_documentation: str
    bearer_methods_supported: list[str]
    authorization_servers: list[str]


class Error(Struct, frozen=True):
    """Every error. Fields after `message` are given where they help."""

    error: str
    message: str
    field: str | UnsetType = UNSET  # that is wrong
    feature: str | UnsetType = UNSET  # that the plan does not have
    request_id: str | UnsetType = UNSET  # of an error on our side
    inbox_id: str | UnsetType = msgspec.field(name="inboxId", default=UNSET)
    thread_id: str | UnsetType = msgspec.field(name="threadId", default=UNSET)
    recipient: str | UnsetType = UNSET  # that is suppressed or not allowed
    recipients: list[str] | UnsetType = UNSET  # that no inbox has
    type: str | UnsetType = UNSET  # why it is suppressed
    version: int | UnsetType = UNSET  # that a draft is at
    reason: str | UnsetType = UNSET  # why a webhook gave no answer
    status: int | UnsetType = UNSET  # what a webhook answered
    milliseconds: int | UnsetType = UNSET
