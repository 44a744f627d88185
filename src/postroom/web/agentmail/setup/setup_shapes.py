"""Requests of /v0 besides mail: pods, keys, domains, lists, webhooks, metrics."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits
from postroom.fields import Moment
from postroom.web.agentmail.paging import collect
from postroom.web.agentmail.shapes import ClientId, Words


class NewPod(Struct, frozen=True):
    name: str | None = None
    client_id: ClientId | None = None


class NewKey(Struct, frozen=True):
    name: str | None = None
    permissions: dict[str, bool] | None = None
    expires_at: Moment | None = None
    public_key: Any = None


class KeyChange(Struct, frozen=True):
    name: str | UnsetType = UNSET
    permissions: dict[str, bool] | UnsetType | None = UNSET


class DomainChange(Struct, frozen=True):
    feedback_enabled: bool | None = None
    inbound_enabled: bool | None = None
    subdomains_enabled: bool | None = None
    tracking_enabled: bool | None = None


class NewDomain(DomainChange, frozen=True, kw_only=True):
    domain: str
    client_id: ClientId | None = None


class NewEntry(Struct, frozen=True):
    entry: Annotated[str, Meta(max_length=limits.ADDRESS_CHARACTERS)]
    reason: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*$")] | None = None


class MetricsQuery(Struct, frozen=True):
    start: str | None = None
    end: str | None = None
    period: Annotated[int, Meta(ge=1)] | None = None
    limit: Annotated[int, Meta(ge=1)] = 100
    descending: bool | None = None
    event_types: Words = []
    usage_types: Words = []
    rate_types: Words = []
    collect = staticmethod(collect)


class NewWebhook(Struct, frozen=True):
    url: str
    event_types: Annotated[list[str], Meta(min_length=1, max_length=limits.WEBHOOK_KINDS)]
    inbox_ids: Annotated[list[str], Meta(max_length=10)] | None = None
    pod_ids: Annotated[list[str], Meta(max_length=10)] | None = None
    client_id: ClientId | None = None
    headers: dict[str, str] | None = None


class WebhookChange(Struct, frozen=True):
    url: str | None = None
    event_types: Annotated[list[str], Meta(max_length=limits.WEBHOOK_KINDS)] | None = None
    add_inbox_ids: Words | None = None
    remove_inbox_ids: Words | None = None
    add_pod_ids: Words | None = None
    remove_pod_ids: Words | None = None
    enabled: bool | None = None


class HeadersChange(Struct, frozen=True):
    headers: dict[str, str] | None = None
    remove_headers: Words | None = None
