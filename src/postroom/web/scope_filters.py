"""Filters of a request by inboxId or podId: they only narrow the scope of the key."""

from collections.abc import Iterable

from msgspec import Struct

from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, no_such
from postroom.mailbox import inboxes
from postroom.resources import Tx

NAMES = ("podId", "inboxId", "inbox_ids", "pod_ids")  # of boundaries, in a query


def required(tx: Tx, scope: Scope, inbox_id: str | None, pod_id: str | None) -> Scope:
    """Raises for an unknown inbox or pod, which must never be ignored."""
    found = inboxes.narrow(tx, scope, inbox_id, pod_id)
    if found is None:
        raise no_such("inbox or pod")
    return found


def taken_by(query: type[Struct] | None) -> frozenset[str]:
    """Return the filters that a query of this type takes."""
    return frozenset(NAMES).intersection(() if query is None else query.__struct_encode_fields__)


def require_taken(named: Iterable[str], query: type[Struct] | None) -> None:
    """Refuses a filter that would be ignored or is given twice: ignoring it would return everything."""
    found: set[str] = set()
    for name in named:
        if name not in NAMES:
            continue
        if name not in taken_by(query):
            raise BadRequest(f"{name} is not a filter of this request. Leave it out.", field=name)
        if name in found:
            raise BadRequest(f"{name} is given more than once. Give it once.", field=name)
        found.add(name)
