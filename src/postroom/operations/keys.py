"""Operations on API keys of the account, of a pod or of an inbox: created, listed, changed and revoked."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import fields, replace

from postroom.accounts import accounts, audit, key_rules, keys, permissions
from postroom.accounts.keys import Caller, Key
from postroom.accounts.names import Name
from postroom.accounts.rules import approval, limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import AccountLimits, Budget
from postroom.accounts.rules.origin_guard import GuardStep
from postroom.accounts.scope import Scope
from postroom.config import Config, Plan
from postroom.errors import BadRequest
from postroom.external_mailboxes import address_uses
from postroom.fields import Moment, PageQuery, Timestamp, show_item, to_moment
from postroom.mailbox import canaries, inboxes
from postroom.outward.holding import stop
from postroom.storage.database import Tx

Permission = Annotated[str, Meta(extra_json_schema={"enum": list(permissions.KNOWN)})]


class NewKey(Struct, rename="camel", frozen=True):
    name: Name = ""
    permissions: (
        Annotated[
            list[Permission],
            Meta(min_length=1, description="What the key may do; by default all that its creator may."),
        ]
        | None
    ) = None
    expires_at: Annotated[Moment, Meta(description="When the key expires; never by default.")] | None = None
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET


class NewScopedKey(NewKey, frozen=True):
    """By default a key of the account."""

    pod_id: (
        Annotated[str, Meta(description="The key sees this pod only: its id, or its clientId.")] | None
    ) = None
    inbox_id: Annotated[str, Meta(description="The key sees this inbox only.")] | None = None


class KeyChange(Struct, rename="camel", frozen=True):
    name: Name | UnsetType = UNSET
    permissions: (
        Annotated[list[Permission], Meta(min_length=1, description="Some of those it has.")] | UnsetType
    ) = UNSET
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    expires_at: Annotated[Moment, Meta(description="Sooner than it ends now.")] | UnsetType = UNSET


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
    origin_guard: str | None
    kind: Annotated[Literal["key", "oauth"], Meta(description="oauth: a program that a person allowed.")]

    @classmethod
    def of(cls, key: keys.Key) -> "ApiKey":
        return show_item(
            cls,
            key,
            approval=approval.decode(key.approval),
            limits=None if key.limits is None else limits.decode(key.limits),
            kind="oauth" if key.kind == keys.OAUTH else "key",
        )


class KeyQuery(PageQuery, frozen=True):
    everywhere: Annotated[bool, Meta(description="Also the keys of its pods and inboxes.")] = False


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
    limits: AccountLimits
    canary: Annotated[str, Meta(description="What the agent of this inbox reads.")] | UnsetType = UNSET

    @classmethod
    def of(cls, caller: keys.Caller, limits: AccountLimits, canary: str | UnsetType = UNSET) -> "Me":
        scope = caller.scope
        return show_item(
            cls,
            caller,
            customer_id=caller.account_id,
            scope="inbox" if scope.inbox_id else "pod" if scope.pod_id else "account",
            api_key_scope="account" if scope.is_account else KeyScope(scope.pod_id, scope.inbox_id),
            permissions=[word for word in permissions.KNOWN if word in caller.permissions],
            mcp_scopes=None,
            limits=limits,
            canary=canary,
        )


def who_am_i(tx: Tx, caller: Caller, config: Config) -> Me:
    """Get who a key acts for, and the limits in force"""
    canary = UNSET if caller.inbox_id is None else canaries.find_line(tx, caller.inbox_id)
    return Me.of(caller, limits.in_force(config, caller.account_limits), canary)


def create_api_key(tx: Tx, caller: Caller, body: NewScopedKey, config: Config, now: int) -> CreatedApiKey:
    """Create a key of the account, of a pod or of an inbox"""
    return create(tx, caller, scope_of(tx, caller, body), body, config, now)


def scope_of(tx: Tx, caller: Caller, body: NewScopedKey) -> Scope:
    """Return the scope of a new key. Raise for an unknown pod or inbox, rather than widen the scope."""
    pod = inboxes.narrow(tx, Scope(caller.account_id), None, body.pod_id)
    if pod is None:
        raise BadRequest("podId is not a pod of this account. GET /v1/pods lists them.", field="podId")
    found = inboxes.narrow(tx, pod, body.inbox_id, None)
    if found is None:
        where = "this account" if body.pod_id is None else "this pod"
        raise BadRequest(f"inboxId is not an inbox of {where}.", field="inboxId")
    return found


def list_api_keys(tx: Tx, caller: Caller, query: KeyQuery) -> ApiKeyPage:
    """List the keys of the account, oldest first"""
    if not query.everywhere:
        return list_keys(tx, Scope(caller.account_id), query)
    found = keys.list_of_account(tx, caller.account_id, query.limit, query.offset)
    return ApiKeyPage([ApiKey.of(key) for key in found], keys.count_of_account(tx, caller.account_id))


def create_pod_key(
    tx: Tx, caller: Caller, within: Scope, body: NewKey, config: Config, now: int
) -> CreatedApiKey:
    """Create a key for this pod only"""
    return create(tx, caller, within, body, config, now)


def list_pod_keys(tx: Tx, within: Scope, query: PageQuery) -> ApiKeyPage:
    """List the keys of a pod, oldest first"""
    return list_keys(tx, within, query)


def delete_pod_key(tx: Tx, caller: Caller, within: Scope, key_id: str, now: int) -> None:
    """Revoke a key of a pod at once"""
    revoke(tx, caller, keys.get_of(tx, within, key_id), now)


def create_inbox_key(
    tx: Tx, caller: Caller, within: Scope, body: NewKey, config: Config, now: int
) -> CreatedApiKey:
    """Create a key for this inbox only"""
    return create(tx, caller, within, body, config, now)


def list_inbox_keys(tx: Tx, within: Scope, query: PageQuery) -> ApiKeyPage:
    """List the keys of an inbox, oldest first"""
    return list_keys(tx, within, query)


def delete_inbox_key(tx: Tx, caller: Caller, within: Scope, key_id: str, now: int) -> None:
    """Revoke a key of an inbox at once"""
    revoke(tx, caller, keys.get_of(tx, within, key_id), now)


def delete_api_key(tx: Tx, caller: Caller, key_id: str, now: int) -> None:
    """Revoke any key of the account at once"""
    revoke(tx, caller, keys.get(tx, caller.account_id, key_id), now)


def get_api_key(tx: Tx, caller: Caller, key_id: str) -> ApiKey:
    """Get any key of the account"""
    return ApiKey.of(keys.get(tx, caller.account_id, key_id))


def change_api_key(tx: Tx, caller: Caller, key_id: str, body: KeyChange, config: Config, now: int) -> ApiKey:
    """Change any key of the account: name, approval, limits, fewer permissions, an earlier end"""
    accounts.lock(tx, caller.account_id)
    key = keys.get(tx, caller.account_id, key_id)
    if binds(body):
        key_rules.require_may_bind(caller)
    changed = apply(key, body, limits.in_force(config, caller.account_limits), now)
    if permissions.MANAGE not in changed.permissions or changed.expires_at != key.expires_at:
        key_rules.require_another_manager(tx, key, now)
    keys.put(tx, changed)
    if body.approval is not UNSET:
        address_uses.record_reviewers(tx, key.account_id, key.id, changed.approval)
    if permissions.SEND in key.permissions and permissions.SEND not in changed.permissions:
        stop.look_at_what_waits(tx, key, now)
    before, after = ApiKey.of(key), ApiKey.of(changed)
    audit.record_by(tx, caller, "key.changed", key.id, now, within=key.scope, before=before, after=after)
    return after


def apply(key: Key, body: KeyChange, allowed: AccountLimits, now: int) -> Key:
    if body.name is not UNSET:
        key = replace(key, name=body.name)
    if body.permissions is not UNSET:
        key = replace(key, permissions=fewer(key, body.permissions))
    if body.expires_at is not UNSET:
        key = replace(key, expires_at=sooner(key, to_moment(body.expires_at), now))
    return key_rules.bind(key, body.approval, body.limits, allowed, body.origin_guard)


def binds(body: KeyChange | NewKey) -> bool:
    return any(each is not UNSET for each in (body.approval, body.limits, body.origin_guard))


def fewer(key: Key, asked: Sequence[str]) -> tuple[str, ...]:
    wanted = permissions.read(asked, key.inbox_id is not None)
    if not set(wanted) <= set(key.permissions):
        raise BadRequest("permissions can only be removed. Create a new key for more.", field="permissions")
    return wanted


def sooner(key: Key, ends_at: int | None, now: int) -> int:
    if ends_at is None or ends_at <= now:
        raise BadRequest("expiresAt must be in the future. To end a key now, revoke it.", field="expiresAt")
    if key.expires_at is not None and ends_at > key.expires_at:
        raise BadRequest(
            "A key can only expire sooner. Create a new one that lasts longer.", field="expiresAt"
        )
    return ends_at


def create(tx: Tx, caller: Caller, within: Scope, body: NewKey, config: Config, now: int) -> Struct:
    accounts.lock(tx, caller.account_id)  # concurrent requests are counted one after the other
    keys.require_room(tx, within)
    token = keys.new_token()
    ends_at = to_moment(body.expires_at)
    key = key_rules.make(tx, caller, within, body.name, token, body.permissions, ends_at, now)
    if binds(body):
        key_rules.require_may_bind(caller)
        allowed = limits.in_force(config, caller.account_limits)
        key = key_rules.bind(key, body.approval, body.limits, allowed, body.origin_guard)
        keys.put(tx, key)
    if key.approval is not None:  # inherited, or its own
        address_uses.record_reviewers(tx, key.account_id, key.id, key.approval)
    audit.record_by(tx, caller, "key.created", key.id, now, within=within, after=ApiKey.of(key))
    return created_key(key, token)


def list_keys(tx: Tx, within: Scope, query: PageQuery) -> ApiKeyPage:
    found, total = keys.list_of(tx, within, query.limit, query.offset)
    return ApiKeyPage([ApiKey.of(key) for key in found], total)


def revoke(tx: Tx, caller: Caller, key: Key, now: int) -> None:
    accounts.lock(tx, caller.account_id)
    key_rules.require_another_manager(tx, key, now)
    end(tx, caller, key, now)


def end(tx: Tx, caller: Caller, key: Key, now: int) -> None:
    keys.remove(tx, key.id)
    stop.look_at_what_waits(tx, key, now)
    audit.record_by(tx, caller, "key.revoked", key.id, now, within=key.scope, before=ApiKey.of(key))
