"""The organization of /v0: its pods, its totals, and the caller."""

from postroom.accounts import accounts, domains, pods
from postroom.accounts.keys import Caller
from postroom.accounts.pods import Pod
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.mailbox import inboxes
from postroom.operations import pods as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes
from postroom.web.agentmail.setup import setup_shapes


def show_pod(pod: Pod) -> shapes.Page:
    named = {} if pod.client_id is None else {"client_id": pod.client_id}
    moment = to_iso(pod.created_at)
    return {
        "pod_id": pod.id,
        "name": pod.name or ("default" if pod.is_default else pod.id),
        **named,
        "created_at": moment,
        "updated_at": moment,
    }


def create_pod(tx: Tx, caller: Caller, body: setup_shapes.NewPod, now: int) -> shapes.Page:
    """Create a pod. The same client_id again returns the first one."""
    accounts.lock(tx, caller.account_id)
    known = None if body.client_id is None else pods.find(tx, caller.scope, body.client_id)
    if known is not None:
        return show_pod(known)
    made = verbs.create_pod(tx, caller, verbs.NewPod(client_id=body.client_id, name=body.name), now)
    return show_pod(pods.get(tx, caller.scope, made.id))


def list_pods(tx: Tx, caller: Caller, query: shapes.PageQuery) -> shapes.Page:
    found = pods.list_span(tx, caller.scope, paging.span_of(query))
    return paging.page_of("pods", found, query, show_pod)


def get_pod(tx: Tx, caller: Caller, pod_id: str) -> shapes.Page:
    return show_pod(pods.get(tx, caller.scope, pod_id))


def get_organization(tx: Tx, caller: Caller) -> shapes.Page:
    account = accounts.get(tx, caller.account_id)
    _, inbox_count = inboxes.list_within(tx, Scope(account.id), 1, 0)
    _, domain_count = domains.list_within(tx, Scope(account.id), 1, 0)
    moment = to_iso(account.created_at)
    return {
        "organization_id": account.id,
        "inbox_count": inbox_count,
        "domain_count": domain_count,
        "created_at": moment,
        "updated_at": moment,
    }


def get_identity(tx: Tx, caller: Caller) -> shapes.Page:
    inbox = None if caller.inbox_id is None else inboxes.find(tx, caller.inbox_id)
    address = None if inbox is None else inbox.address
    pod_id = caller.scope.pod_id
    scope = "inbox" if address else "pod" if pod_id else "organization"
    return {
        "scope_type": scope,
        "scope_id": address or pod_id or caller.account_id,
        "organization_id": caller.account_id,
        "pod_id": pod_id,
        "inbox_id": address,
        "api_key_id": caller.key_id,
    }
