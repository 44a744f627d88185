"""Boundaries that a request names by inboxId or podId: they only ever narrow what the key reaches."""

from postroom.accounts import pods
from postroom.accounts.reach import Reach
from postroom.errors import NotFound
from postroom.mailbox import inboxes
from postroom.resources import Tx


def narrowed(tx: Tx, reach: Reach, inbox_id: str | None, pod_id: str | None) -> Reach | None:
    """None when there is no such inbox or pod within reach: nothing is found there."""
    if inbox_id is not None:
        try:
            reach = inboxes.get(tx, reach, inbox_id).reach
        except NotFound:
            return None
    if pod_id is None:
        return reach
    pod = pods.find(tx, reach, pod_id)
    if pod is None:
        return None
    if reach.inbox_id is not None:
        inbox = inboxes.find(tx, reach.inbox_id)
        return reach if inbox is not None and inbox.pod_id == pod.id else None
    return Reach(reach.account_id, pod.id, None)


def required(tx: Tx, reach: Reach, inbox_id: str | None, pod_id: str | None) -> Reach:
    """For what acts on a boundary: an unknown one is never ignored."""
    found = narrowed(tx, reach, inbox_id, pod_id)
    if found is None:
        raise NotFound("No such inbox or pod.")
    return found
