"""Tenants of an account: pods, keys, who may write and be written to, and the log of decisions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from postroom_client.calls import given
from postroom_client.charge_results import AuditEntry, Pod, Policy, PolicyRule, PolicyStop
from postroom_client.exchange import Call, decoded, nothing, path, present
from postroom_client.results import ApiKey, Page
from postroom_client.sending import spell_moment

Direction = Literal["inbound", "outbound"]
Mode = Literal["none", "allowlist", "inherit"]
RuleType = Literal["allow", "block"]
StopAction = Literal["blocked", "refused", "released"]


def create_pod(*, client_id: str | None = None, name: str | None = None) -> Call[Pod]:
    """A tenant of the account, for inboxes, domains and keys of its own."""
    body = given({"clientId": client_id, "name": name})
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
    name: str | UnsetType | None = UNSET,
    approval: dict[str, Any] | UnsetType | None = UNSET,
) -> Call[Pod]:
    """Change what is given; None clears it."""
    body = {key: value for key, value in {"name": name, "approval": approval}.items() if value is not UNSET}
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
) -> Call[ApiKey]:
    """A key of the account, or of a pod; its token is shown only now."""
    body = given(
        {
            "name": name,
            "permissions": None if permissions is None else list(permissions),
            "expiresAt": None if expires_at is None else spell_moment(expires_at),
        }
    )
    return Call("POST", _keys(pod_id), decoded(ApiKey), json=body, is_repeatable=False)


def list_keys(*, pod_id: str | None = None, limit: int = 50, offset: int = 0) -> Call[Page[ApiKey]]:
    """Keys of the account, or of a pod, oldest first."""
    query = present(limit=limit, offset=offset)
    return Call("GET", _keys(pod_id), decoded(Page[ApiKey]), query=query)


def update_key(
    key_id: str,
    *,
    name: str | UnsetType = UNSET,
    permissions: Sequence[str] | UnsetType = UNSET,
    approval: dict[str, Any] | UnsetType | None = UNSET,
    limits: dict[str, int] | UnsetType | None = UNSET,
) -> Call[ApiKey]:
    """Change a key of any reach; of its permissions some can be taken away."""
    changes = {"name": name, "permissions": permissions, "approval": approval, "limits": limits}
    body = {key: value for key, value in changes.items() if value is not UNSET}
    return Call("PATCH", path("v1", "api-keys", key_id), decoded(ApiKey), json=body)


def delete_key(key_id: str) -> Call[None]:
    """Revoke a key, at once."""
    return Call("DELETE", path("v1", "api-keys", key_id), nothing)


def get_policy(*, inbox_id: str | None = None, pod_id: str | None = None) -> Call[Policy]:
    """Who may write, and who may be written to: of the account, a pod or an inbox."""
    return Call("GET", "/v1/policy", decoded(Policy), query=present(inboxId=inbox_id, podId=pod_id))


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
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[PolicyStop]]:
    """What policies stopped, newest first."""
    query = present(
        inboxId=inbox_id, podId=pod_id, action=action, direction=direction, limit=limit, offset=offset
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
        since=None if since is None else spell_moment(since),
        until=None if until is None else spell_moment(until),
        actor=actor,
        action=action,
        limit=limit,
        offset=offset,
    )
    return Call("GET", "/v1/audit", decoded(Page[AuditEntry]), query=query)


def _keys(pod_id: str | None) -> str:
    return path("v1", "api-keys") if pod_id is None else path("v1", "pods", pod_id, "api-keys")
