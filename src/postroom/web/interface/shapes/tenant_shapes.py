"""What answers about tenants carry: pods, keys, policies and the audit log."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, defstruct
from msgspec.structs import fields

from postroom.accounts import accounts, keys, permissions, pods
from postroom.accounts.rules import approval, limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.clock import to_iso
from postroom.config import Plan
from postroom.fields import Timestamp

AnyJson = Annotated[Raw | None, Meta(description="Any JSON value.")]


def iso(moment: int | None) -> str | None:
    return None if moment is None else to_iso(moment)


class Pod(Struct, rename="camel", frozen=True):
    id: str
    client_id: str | None
    name: str | None
    is_default: bool
    created_at: Timestamp
    approval: Approval | None

    @classmethod
    def of(cls, pod: pods.Pod) -> "Pod":
        return cls(
            id=pod.id,
            client_id=pod.client_id,
            name=pod.name,
            is_default=pod.is_default,
            created_at=to_iso(pod.created_at),
            approval=approval.decode(pod.approval),
        )


class PodPage(Struct, rename="camel", frozen=True):
    data: list[Pod]
    total: int


class ApiKey(Struct, rename="camel", frozen=True):
    id: str
    name: str
    pod_id: str | None
    inbox_id: str | None
    permissions: list[str]
    expires_at: Timestamp | None
    created_by: str | None
    token_prefix: str
    last4: str
    created_at: Timestamp
    last_used_at: Timestamp | None
    approval: Approval | None
    limits: Budget | None

    @classmethod
    def of(cls, key: keys.Key) -> "ApiKey":
        return cls(
            id=key.id,
            name=key.name,
            pod_id=key.pod_id,
            inbox_id=key.inbox_id,
            permissions=list(key.permissions),
            expires_at=iso(key.expires_at),
            created_by=key.created_by,
            token_prefix=key.token_prefix,
            last4=key.last4,
            created_at=to_iso(key.created_at),
            last_used_at=iso(key.last_used_at),
            approval=approval.decode(key.approval),
            limits=None if key.limits is None else limits.decode(key.limits),
        )


class ApiKeyPage(Struct, rename="camel", frozen=True):
    data: list[ApiKey]
    total: int


# The only answer that shows the token.
KeyWithToken = defstruct(
    "CreatedApiKey",
    [*((item.name, item.type) for item in fields(ApiKey)), ("token", str)],
    rename="camel",
    frozen=True,
)


CreatedApiKey = Annotated[Struct, KeyWithToken]


def created_key(key: keys.Key, token: str) -> Struct:
    shown = ApiKey.of(key)
    return KeyWithToken(*(getattr(shown, name) for name in shown.__struct_fields__), token)


class KeyScope(Struct, rename="camel", frozen=True):
    pod_id: str | None
    inbox_id: str | None


class Me(Struct, rename="camel", frozen=True):
    account_id: str
    customer_id: str
    account_name: str
    plan: Plan
    key_id: str
    scope: Literal["account", "pod", "inbox"]
    api_key_scope: KeyScope | Literal["account"]
    pod_id: str | None
    inbox_id: str | None
    permissions: list[str]
    mcp_scopes: list[str] | None

    @classmethod
    def of(cls, caller: keys.Caller) -> "Me":
        reach = caller.reach
        return cls(
            account_id=caller.account_id,
            customer_id=caller.account_id,
            account_name=caller.account_name,
            plan=caller.plan,
            key_id=caller.key_id,
            scope="inbox" if reach.inbox_id else "pod" if reach.pod_id else "account",
            api_key_scope="account" if reach.is_account else KeyScope(reach.pod_id, reach.inbox_id),
            pod_id=reach.pod_id,
            inbox_id=reach.inbox_id,
            permissions=[word for word in permissions.ALL if word in caller.permissions],
            mcp_scopes=None,
        )


class Account(Struct, rename="camel", frozen=True):
    id: str
    name: str
    plan: Plan
    approval: Approval | None
    retention_days: int | None
    stored_bytes: int
    storage_limit_bytes: int | None
    created_at: Timestamp

    @classmethod
    def of(cls, account: accounts.Account) -> "Account":
        return cls(
            id=account.id,
            name=account.name,
            plan=account.plan,
            approval=approval.decode(account.approval),
            retention_days=account.retention_days,
            stored_bytes=account.stored_bytes,
            storage_limit_bytes=account.storage_limit_bytes,
            created_at=to_iso(account.created_at),
        )
