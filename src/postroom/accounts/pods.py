"""Pods: the tenants of an account, each with its own inboxes, domains and keys."""

import re

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import names
from postroom.accounts.scope import Scope, default_pod
from postroom.errors import (
    BadRequest,
    ClientIdTaken,
    DefaultPod,
    PodHasDomains,
    PodNotEmpty,
    no_such,
)
from postroom.fields import Span
from postroom.limits import VISIBLE_CHARACTERS
from postroom.storage import pages
from postroom.storage.database import LOCK_ROWS, Row, Tx, count, insert_item, item_from_row, update

CLIENT_ID = rf"^(?!pod_)[!-.0-~]{{1,{VISIBLE_CHARACTERS}}}$"  # visible characters without a slash

_client_id = re.compile(CLIENT_ID[1:-1])


class Pod(Struct, frozen=True):
    id: str
    account_id: str
    client_id: str | None
    name: str | None
    is_default: bool
    created_at: int
    approval: str | None = None
    outbound: str | None = None  # its relays, with their passwords
    junk: str | None = None
    origin_guard: str | None = None
    trusted_values: str | None = None
    disclosure: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Pod":
        return item_from_row(cls, row, is_default=bool(row["is_default"]))


def add(tx: Tx, account_id: str, client_id: str | None, name: str | None, now: int) -> Pod:
    require_client_id(client_id)
    names.require_clean(name or "", "name")
    pod = Pod(ids.new(ids.POD, now), account_id, client_id, name, False, now)
    _count(tx, account_id, +1)
    _require_free(tx, account_id, client_id)
    insert_item(tx, "pods", pod, is_default=0)
    return pod


def _count(tx: Tx, account_id: str, by: int) -> None:
    """Locks the account, so that changes to its pods wait for each other."""
    tx.run("update accounts set pod_count = pod_count + :by where id = :id", by=by, id=account_id)


def require_client_id(client_id: str | None) -> None:
    if client_id is not None and not _client_id.fullmatch(client_id):
        raise BadRequest(
            f"clientId must be 1 to {VISIBLE_CHARACTERS} visible characters without a slash,"
            " and not begin with pod_.",
            field="clientId",
        )


def _require_free(tx: Tx, account_id: str, client_id: str | None) -> None:
    if client_id is not None and find(tx, Scope(account_id), client_id) is not None:
        raise ClientIdTaken(f"A pod of this account already has the clientId {client_id}. Choose another.")


def get(tx: Tx, scope: Scope, id_or_client_id: str) -> Pod:
    pod = find(tx, scope, id_or_client_id)
    if pod is None:
        raise no_such("pod")
    return pod


def find(tx: Tx, scope: Scope, id_or_client_id: str) -> Pod | None:
    """Return a pod in scope. One query decides, so a pod out of scope looks like one that does not exist."""
    if ids.is_id(ids.POD, id_or_client_id):
        column = "id"
    elif _client_id.fullmatch(id_or_client_id):
        column = "client_id"
    else:
        return None
    row = tx.one(
        f"select * from pods where account_id = :account_id and {column} = :it",
        account_id=scope.account_id,
        it=id_or_client_id,
    )
    return Pod.from_row(row) if row is not None and scope.pod_id in (None, row["id"]) else None


def choose(tx: Tx, scope: Scope, id_or_client_id: str | None) -> str:
    """Return the pod for something new: the named one, else the key's own, else the default."""
    if id_or_client_id is None:
        return scope.pod_id or default_pod(scope.account_id)
    pod = find(tx, scope, id_or_client_id)
    if pod is None:
        raise BadRequest("podId is not a pod of this key. GET /v1/pods lists them.", field="podId")
    return pod.id


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[Pod], int]:
    """List the pods in scope, newest first."""
    if scope.pod_id is not None:
        only = find(tx, scope, scope.pod_id)
        found = [] if only is None else [only]
        return found[offset : offset + limit], len(found)
    rows = tx.all(
        "select * from pods where account_id = :account_id"
        " order by created_at desc, id desc limit :limit offset :offset",
        account_id=scope.account_id,
        limit=limit,
        offset=offset,
    )
    total = count(tx, "select pod_count as number from accounts where id = :id", id=scope.account_id)
    return [Pod.from_row(row) for row in rows], total


def list_span(tx: Tx, scope: Scope, span: Span) -> list[Pod]:
    of_pod = "" if scope.pod_id is None else " and id = :pod_id"
    rows = pages.rows_of(
        tx,
        f"select * from pods where account_id = :account_id{of_pod}",
        span,
        account_id=scope.account_id,
        **({} if scope.pod_id is None else {"pod_id": scope.pod_id}),
    )
    return [Pod.from_row(row) for row in rows]


def set_client_id(tx: Tx, pod: Pod, client_id: str | None) -> Pod:
    """Set the client id. An unchanged one needs no check against other pods."""
    require_client_id(client_id)
    _count(tx, pod.account_id, 0)
    if client_id != pod.client_id:
        _require_free(tx, pod.account_id, client_id)
    update(tx, "pods", pod.id, client_id=client_id)
    return replace(pod, client_id=client_id)


def change(tx: Tx, pod: Pod, **fields: str | None) -> Pod:
    """Changes its name, approval rules or relays."""
    names.require_clean(fields.get("name") or "", "name")
    update(tx, "pods", pod.id, **fields)
    return replace(pod, **fields)


def remove(tx: Tx, scope: Scope, id_or_client_id: str) -> Pod:
    """Remove a pod and its keys. It must be empty."""
    _count(tx, scope.account_id, -1)
    pod = get(tx, scope, id_or_client_id)
    if pod.is_default:
        raise DefaultPod("The default pod of an account cannot be deleted.")
    lock(tx, pod.id)
    row = tx.one("select inbox_count from pods where id = :id", id=pod.id)
    if row is not None and row["inbox_count"]:
        raise PodNotEmpty("Inboxes are still in this pod. Delete them first.")
    if tx.one("select 1 as found from domains where pod_id = :id limit 1", id=pod.id):
        raise PodHasDomains("Domains are still in this pod. Delete them first.")
    tx.run("delete from keys where pod_id = :id", id=pod.id)
    for table in ("pauses", "policies", "policy_rules"):
        tx.run(f"delete from {table} where scope_id = :id", id=pod.id)
    tx.run("delete from rules where owner = :id", id=pod.id)
    tx.run("delete from pods where id = :id", id=pod.id)
    return pod


def lock(tx: Tx, pod_id: str) -> None:
    """Makes changes to a pod's inboxes and domains wait for each other, and for its deletion."""
    if tx.one(f"select 1 as found from pods where id = :id {LOCK_ROWS}", id=pod_id) is None:
        raise no_such("pod")


def change_inbox_count(tx: Tx, pod_id: str, by: int) -> None:
    """Locks the pod."""
    changed = tx.run("update pods set inbox_count = inbox_count + :by where id = :id", by=by, id=pod_id)
    if not changed:
        raise no_such("pod")
