"""Pods: the tenants of an account, each with inboxes, domains and keys of its own."""

from postroom.storage.database import Tx


def change_inbox_count(tx: Tx, pod_id: str, by: int) -> None:
    """Also makes changes to one pod's inboxes wait for each other."""
    tx.run("update pods set inbox_count = inbox_count + :by where id = :id", by=by, id=pod_id)
