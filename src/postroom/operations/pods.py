"""Operations on pods, and on the account itself."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom.accounts import accounts, audit, pods
from postroom.accounts.keys import Caller
from postroom.accounts.names import Name
from postroom.accounts.rules import approval, disclosure, junk, origin_guard
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.disclosure import Disclosure
from postroom.accounts.rules.junk import JunkRules
from postroom.accounts.rules.origin_guard import GuardStep, TrustedValues
from postroom.accounts.scope import Scope
from postroom.config import Plan
from postroom.errors import BadRequest
from postroom.external_mailboxes import address_uses
from postroom.fields import Outbound, PageQuery, RetentionDays, Timestamp, show_item
from postroom.limits import SAVED_SEARCH_NAME_CHARACTERS, SAVED_SEARCHES
from postroom.mailbox.search import message_search
from postroom.net import relay
from postroom.storage.database import Tx
from postroom_mail.search import query as grammar

PLAIN = r"^[^\x00-\x1f\x7f]*$"
ClientId = Annotated[
    str, Meta(description="Your own id, unique.", extra_json_schema={"pattern": pods.CLIENT_ID})
]
# A restriction is never silently ignored: a pod has no limits, so giving some is refused.
NoLimits = Annotated[None, Meta(description="A pod has none; its inboxes and keys do.")]


class SavedSearch(Struct, frozen=True):
    """A saved query for `/v1/search`; the dashboard shows it next to the mail."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=SAVED_SEARCH_NAME_CHARACTERS,
            pattern=PLAIN,
            description="What it is called.",
        ),
    ]
    q: Annotated[
        str, Meta(min_length=1, max_length=grammar.MAX_CHARS, pattern=PLAIN, description="The question.")
    ]


SavedSearches = Annotated[
    list[SavedSearch],
    Meta(max_length=SAVED_SEARCHES, description="Saved searches; a list replaces the previous one."),
]


ErasureApproval = Annotated[
    bool, Meta(description="true: a second person confirms each erasure of a contact.")
]


class AccountChange(Struct, rename="camel", frozen=True):
    name: Name | UnsetType = UNSET
    approval: Approval | UnsetType | None = UNSET
    retention_days: RetentionDays | UnsetType | None = UNSET
    saved_searches: SavedSearches | UnsetType = UNSET
    junk: JunkRules | UnsetType | None = UNSET
    erasure_approval: ErasureApproval | UnsetType = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    trusted_values: TrustedValues | UnsetType | None = UNSET
    disclosure: Disclosure | UnsetType | None = UNSET


class NewPod(Struct, rename="camel", frozen=True):
    client_id: ClientId | None = None
    name: Name | None = None
    approval: Approval | UnsetType | None = UNSET
    limits: NoLimits | UnsetType = UNSET
    outbound: Outbound | UnsetType | None = UNSET
    junk: JunkRules | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    trusted_values: TrustedValues | UnsetType | None = UNSET
    disclosure: Disclosure | UnsetType | None = UNSET


class PodChange(Struct, rename="camel", frozen=True):
    client_id: ClientId | UnsetType | None = UNSET
    name: Name | UnsetType | None = UNSET
    approval: Approval | UnsetType | None = UNSET
    limits: NoLimits | UnsetType = UNSET
    outbound: Outbound | UnsetType | None = UNSET
    junk: JunkRules | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    trusted_values: TrustedValues | UnsetType | None = UNSET
    disclosure: Disclosure | UnsetType | None = UNSET


class Pod(Struct, rename="camel", frozen=True):
    id: str
    client_id: str | None
    name: str | None
    is_default: bool
    created_at: Timestamp
    approval: Approval | None
    outbound: str | None
    junk: JunkRules | None
    origin_guard: str | None
    trusted_values: list[str]
    disclosure: Disclosure | None

    @classmethod
    def of(cls, pod: pods.Pod) -> "Pod":
        return show_item(
            cls,
            pod,
            approval=approval.decode(pod.approval),
            outbound=relay.mask(pod.outbound),
            junk=junk.decode(pod.junk),
            trusted_values=origin_guard.decode(pod.trusted_values),
            disclosure=disclosure.decode(pod.disclosure),
        )


class PodPage(Struct, rename="camel", frozen=True):
    data: list[Pod]
    total: int


class Account(Struct, rename="camel", frozen=True):
    id: str
    name: str
    plan: Plan
    approval: Approval | None
    retention_days: int | None
    stored_bytes: int
    storage_limit_bytes: int | None
    saved_searches: list[SavedSearch]
    junk: JunkRules | None
    erasure_approval: bool
    origin_guard: str | None
    trusted_values: list[str]
    disclosure: Disclosure | None
    created_at: Timestamp

    @classmethod
    def of(cls, account: accounts.Account) -> "Account":
        return show_item(
            cls,
            account,
            approval=approval.decode(account.approval),
            saved_searches=decode_searches(account.saved_searches),
            junk=junk.decode(account.junk),
            trusted_values=origin_guard.decode(account.trusted_values),
            disclosure=disclosure.decode(account.disclosure),
        )


def decode_searches(stored: str) -> list[SavedSearch]:
    return msgspec.json.decode(stored, type=list[SavedSearch])


def encode_searches(wanted: list[SavedSearch]) -> str:
    """Return saved searches to store. Raise for a query that cannot be parsed, or a name given twice."""
    for each in wanted:
        message_search.parse(each.q, "savedSearches")
    if len({each.name for each in wanted}) < len(wanted):
        raise BadRequest("Names of saved searches must be unique.", field="savedSearches")
    return msgspec.json.encode(wanted).decode()


def create_pod(tx: Tx, caller: Caller, body: NewPod, now: int) -> Pod:
    """Create a pod"""
    pod = set_rules(tx, pods.add(tx, caller.account_id, body.client_id, body.name, now), body)
    shown = Pod.of(pod)
    audit.record_by(tx, caller, "pod.created", pod.id, now, within=scope_of(caller, pod), after=shown)
    return shown


def list_pods(tx: Tx, caller: Caller, query: PageQuery) -> PodPage:
    """List pods, newest first"""
    found, total = pods.list_within(tx, caller.scope, query.limit, query.offset)
    return PodPage([Pod.of(pod) for pod in found], total)


def get_pod(tx: Tx, caller: Caller, pod_id: str) -> Pod:
    """Get a pod by its id or clientId"""
    return Pod.of(pods.get(tx, caller.scope, pod_id))


def change_pod(tx: Tx, caller: Caller, pod_id: str, body: PodChange, now: int) -> Pod:
    """Change a pod; null clears a field"""
    before = pod = pods.get(tx, caller.scope, pod_id)
    if body.client_id is not UNSET:
        pod = pods.set_client_id(tx, pod, body.client_id)
    if body.name is not UNSET:
        pod = pods.change(tx, pod, name=body.name)
    pod = set_rules(tx, pod, body)
    was, shown = Pod.of(before), Pod.of(pod)
    within = scope_of(caller, pod)
    audit.record_by(tx, caller, "pod.changed", pod.id, now, within=within, before=was, after=shown)
    return shown


def set_rules(tx: Tx, pod: pods.Pod, body: NewPod | PodChange) -> pods.Pod:
    if body.approval is not UNSET:
        pod = pods.change(tx, pod, approval=approval.check_and_encode(body.approval))
        address_uses.record_reviewers(tx, pod.account_id, pod.id, pod.approval)
    if body.outbound is not UNSET:
        pod = pods.change(tx, pod, outbound=relay.require_relays(body.outbound))
    if body.junk is not UNSET:
        pod = pods.change(tx, pod, junk=junk.check_and_encode(body.junk))
    if body.origin_guard is not UNSET:
        pod = pods.change(tx, pod, origin_guard=body.origin_guard)
    if body.trusted_values is not UNSET:
        pod = pods.change(tx, pod, trusted_values=origin_guard.check_and_encode(body.trusted_values))
    if body.disclosure is not UNSET:
        pod = pods.change(tx, pod, disclosure=disclosure.check_and_encode(body.disclosure))
    return pod


def delete_pod(tx: Tx, caller: Caller, pod_id: str, now: int) -> None:
    """Delete an empty pod and its keys"""
    pod = pods.remove(tx, caller.scope, pod_id)
    audit.record_by(tx, caller, "pod.deleted", pod.id, now, within=scope_of(caller, pod), before=Pod.of(pod))


def scope_of(caller: Caller, pod: pods.Pod) -> Scope:
    return Scope(caller.account_id, pod.id)


def get_account(tx: Tx, caller: Caller) -> Account:
    """Get the account"""
    return Account.of(accounts.get(tx, caller.account_id))


def change_account(tx: Tx, caller: Caller, body: AccountChange, now: int) -> Account:
    """Change the account; null clears a field"""
    before = account = accounts.get(tx, caller.account_id)
    if body.name is not UNSET:
        account = replace(account, name=body.name)
    if body.approval is not UNSET:
        account = replace(account, approval=approval.check_and_encode(body.approval))
        address_uses.record_reviewers(tx, account.id, account.id, account.approval)
    if body.retention_days is not UNSET:
        account = replace(account, retention_days=body.retention_days)
    if body.saved_searches is not UNSET:
        account = replace(account, saved_searches=encode_searches(body.saved_searches))
    if body.junk is not UNSET:
        account = replace(account, junk=junk.check_and_encode(body.junk))
    if body.erasure_approval is not UNSET:
        account = replace(account, erasure_approval=body.erasure_approval)
    if body.origin_guard is not UNSET:
        account = replace(account, origin_guard=body.origin_guard)
    if body.trusted_values is not UNSET:
        account = replace(account, trusted_values=origin_guard.check_and_encode(body.trusted_values))
    if body.disclosure is not UNSET:
        account = replace(account, disclosure=disclosure.check_and_encode(body.disclosure))
    accounts.put(tx, account)
    was, shown = Account.of(before), Account.of(account)
    audit.record_by(tx, caller, "account.changed", account.id, now, before=was, after=shown)
    return shown
