"""The account and its tenants: pods, keys, rules and budgets, who may write and be written to, the log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from postroom_client.account_results import Account, WebhookTest
from postroom_client.calls.calls import given
from postroom_client.calls.sending import spell_moment
from postroom_client.charge_results import AuditEntry, InboxSecret, Pod, Policy, PolicyRule, PolicyStop
from postroom_client.results import ApiKey, ApprovalRules, Budget, Inbox, MetadataValue, Page
from postroom_client.transport.exchange import Call, decoded, nothing, path, present

Direction = Literal["inbound", "outbound"]
Mode = Literal["none", "allowlist", "inherit"]
RuleType = Literal["allow", "block"]
StopAction = Literal["blocked", "refused", "released"]
Rules = ApprovalRules | Mapping[str, Any]
Limits = Budget | Mapping[str, int]


def get_account() -> Call[Account]:
    """The account: its name, its plan and its rules of approval."""
    return Call("GET", "/v1/account", decoded(Account))


def update_account(
    *,
    name: str | UnsetType = UNSET,
    approval: Rules | UnsetType | None = UNSET,
    retention_days: int | UnsetType | None = UNSET,
) -> Call[Account]:
    """Change what is given; None clears it."""
    body = _changes(name=name, approval=approval, retentionDays=retention_days)
    return Call("PATCH", "/v1/account", decoded(Account), json=body)


def update_inbox(
    inbox_id: str,
    *,
    display_name: str | UnsetType | None = UNSET,
    webhook_url: str | UnsetType | None = UNSET,
    approval: Rules | UnsetType | None = UNSET,
    limits: Limits | UnsetType | None = UNSET,
    metadata: Mapping[str, MetadataValue | None] | UnsetType | None = UNSET,
    retention_days: int | UnsetType | None = UNSET,
) -> Call[Inbox]:
    """Change what is given; None clears it. Of `metadata`, keys that are not named stay, None removes one."""
    body = _changes(
        displayName=display_name,
        webhookUrl=webhook_url,
        approval=approval,
        limits=limits,
        metadata=metadata,
        retentionDays=retention_days,
    )
    return Call("PATCH", path("v1", "inboxes", inbox_id), decoded(Inbox), json=body)


def test_inbox_webhook(inbox_id: str) -> Call[WebhookTest]:
    """Have a signed event of kind `webhook.test` posted to the inbox's own webhook now."""
    target = path("v1", "inboxes", inbox_id, "webhook", "test")
    return Call("POST", target, decoded(WebhookTest), is_repeatable=False)


def rotate_inbox_webhook_secret(inbox_id: str) -> Call[InboxSecret]:
    """A new secret of the inbox's own webhook, shown only now."""
    target = path("v1", "inboxes", inbox_id, "webhook", "rotate-secret")
    return Call("POST", target, decoded(InboxSecret), is_repeatable=False)


def create_pod(
    *, client_id: str | None = None, name: str | None = None, approval: Rules | None = None
) -> Call[Pod]:
    """A tenant of the account, for inboxes, domains and keys of its own."""
    body = given({"clientId": client_id, "name": name, "approval": approval})
    return Call("POST", "/v1/pods", decoded(Pod), json=body, is_repeatable=False)


def list_pods(*, limit: int = 50, offset: int = 0) -> Call[Page[Pod]]:
    """Pods, newest first."""
    return Call("GET", "/v1/pods", decoded(Page[Pod]), query=present(limit=limit, offset=offset))


def get_pod(pod_id: str) -> Call[Pod]:
    """By its id, or by the `client_id` that you gave it."""
    return Call("GET", path("v1", "pods", pod_id), decoded(Pod))


def update_pod(
    pod_id: str,
    *,
    client_id: str | UnsetType | None = UNSET,
    name: str | UnsetType | None = UNSET,
    approval: Rules | UnsetType | None = UNSET,
) -> Call[Pod]:
    """Change what is given; None clears it."""
    body = _changes(clientId=client_id, name=name, approval=approval)
    return Call("PATCH", path("v1", "pods", pod_id), decoded(Pod), json=body)


def delete_pod(pod_id: str) -> Call[None]:
    """Only an empty one."""
    return Call("DELETE", path("v1", "pods", pod_id), nothing)


def create_key(
    name: str = "",
    *,
    pod_id: str | None = None,
    permissions: Sequence[str] | None = None,
    expires_at: datetime | str | None = None,
    approval: Rules | None = None,
    limits: Limits | None = None,
) -> Call[ApiKey]:
    """A key of the account, or of a pod; its token is shown only now."""
    return _new_key(_keys(pod_id), name, permissions, expires_at, approval, limits)


def list_keys(*, pod_id: str | None = None, limit: int = 50, offset: int = 0) -> Call[Page[ApiKey]]:
    """Keys of the account, or of a pod, oldest first."""
    query = present(limit=limit, offset=offset)
    return Call("GET", _keys(pod_id), decoded(Page[ApiKey]), query=query)


def get_key(key_id: str) -> Call[ApiKey]:
    """A key of any reach, without its token."""
    return Call("GET", path("v1", "api-keys", key_id), decoded(ApiKey))


def update_key(
    key_id: str,
    *,
    name: str | UnsetType = UNSET,
    permissions: Sequence[str] | UnsetType = UNSET,
    approval: Rules | UnsetType | None = UNSET,
    limits: Limits | UnsetType | None = UNSET,
    expires_at: datetime | str | UnsetType = UNSET,
) -> Call[ApiKey]:
    """Change a key of any reach; of its permissions some can be taken away, and its end can come sooner."""
    ends = UNSET if expires_at is UNSET else spell_moment(expires_at)
    body = _changes(name=name, permissions=permissions, approval=approval, limits=limits, expiresAt=ends)
    return Call("PATCH", path("v1", "api-keys", key_id), decoded(ApiKey), json=body)


def delete_key(key_id: str) -> Call[None]:
    """Revoke a key, at once."""
    return Call("DELETE", path("v1", "api-keys", key_id), nothing)


def create_api_key(
    inbox_id: str,
    name: str = "",
    *,
    permissions: Sequence[str] | None = None,
    expires_at: datetime | str | None = None,
    approval: Rules | None = None,
    limits: Limits | None = None,
) -> Call[ApiKey]:
    """A key that reaches this inbox alone; its token is shown only now."""
    target = path("v1", "inboxes", inbox_id, "api-keys")
    return _new_key(target, name, permissions, expires_at, approval, limits)


def list_api_keys(inbox_id: str, *, limit: int = 50, offset: int = 0) -> Call[Page[ApiKey]]:
    """Keys of an inbox, oldest first, without their tokens."""
    target = path("v1", "inboxes", inbox_id, "api-keys")
    return Call("GET", target, decoded(Page[ApiKey]), query=present(limit=limit, offset=offset))


def delete_api_key(inbox_id: str, key_id: str) -> Call[None]:
    """Revoke a key of an inbox, at once."""
    return Call("DELETE", path("v1", "inboxes", inbox_id, "api-keys", key_id), nothing)


def get_policy(*, inbox_id: str | None = None, pod_id: str | None = None) -> Call[Policy]:
    """Who may write, and who may be written to: of the account, a pod or an inbox."""
    return Call("GET", "/v1/policy", decoded(Policy), query=present(inboxId=inbox_id, podId=pod_id))


def set_policy(
    *,
    inbound: Mapping[str, Any] | UnsetType = UNSET,
    outbound: Mapping[str, Any] | UnsetType = UNSET,
    inbox_id: str | None = None,
    pod_id: str | None = None,
) -> Call[Policy]:
    """Replace the directions that are given, each `{"mode": …, "rules": [{"type": …, "value": …}]}`."""
    body = _changes(inbound=inbound, outbound=outbound)
    query = present(inboxId=inbox_id, podId=pod_id)
    return Call("PUT", "/v1/policy", decoded(Policy), json=body, query=query)


def set_policy_mode(
    direction: Direction, mode: Mode, *, inbox_id: str | None = None, pod_id: str | None = None
) -> Call[Policy]:
    """`allowlist` lets nobody through whom no rule allows."""
    body = {"direction": direction, "mode": mode}
    query = present(inboxId=inbox_id, podId=pod_id)
    return Call("PUT", "/v1/policy/mode", decoded(Policy), json=body, query=query)


def add_policy_rule(
    direction: Direction,
    type: RuleType,
    value: str,
    *,
    inbox_id: str | None = None,
    pod_id: str | None = None,
) -> Call[PolicyRule]:
    """`value`: an address, a domain, or `*.domain` for the names below it."""
    body = {"direction": direction, "type": type, "value": value}
    query = present(inboxId=inbox_id, podId=pod_id)
    return Call("POST", "/v1/policy/rules", decoded(PolicyRule), json=body, query=query, is_repeatable=False)


def delete_policy_rule(rule_id: str, *, inbox_id: str | None = None, pod_id: str | None = None) -> Call[None]:
    """Take a rule away."""
    query = present(inboxId=inbox_id, podId=pod_id)
    return Call("DELETE", path("v1", "policy", "rules", rule_id), nothing, query=query)


def list_policy_audit(
    *,
    inbox_id: str | None = None,
    pod_id: str | None = None,
    action: StopAction | None = None,
    direction: Direction | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[PolicyStop]]:
    """What policies stopped, newest first."""
    query = present(
        inboxId=inbox_id,
        podId=pod_id,
        action=action,
        direction=direction,
        since=_spelled(since),
        until=_spelled(until),
        limit=limit,
        offset=offset,
    )
    return Call("GET", "/v1/policy/audit", decoded(Page[PolicyStop]), query=query)


def list_audit(
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    actor: str | None = None,
    action: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[AuditEntry]]:
    """Every decision of a person, or of a key that may approve or manage; newest first."""
    query = present(
        since=_spelled(since),
        until=_spelled(until),
        actor=actor,
        action=action,
        limit=limit,
        offset=offset,
    )
    return Call("GET", "/v1/audit", decoded(Page[AuditEntry]), query=query)


def _new_key(
    target: str,
    name: str,
    permissions: Sequence[str] | None,
    expires_at: datetime | str | None,
    approval: Rules | None,
    limits: Limits | None,
) -> Call[ApiKey]:
    wanted = None if permissions is None else list(permissions)
    body = given({"name": name, "permissions": wanted, "expiresAt": _spelled(expires_at)})
    body |= given({"approval": approval, "limits": limits})
    return Call("POST", target, decoded(ApiKey), json=body, is_repeatable=False)


def _changes(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not UNSET}


def _spelled(moment: datetime | str | None) -> str | None:
    return None if moment is None else spell_moment(moment)


def _keys(pod_id: str | None) -> str:
    return path("v1", "api-keys") if pod_id is None else path("v1", "pods", pod_id, "api-keys")
