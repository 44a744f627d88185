"""Lists of threads from before their indexes were merged: the same threads in the same order."""

import itertools
from pathlib import Path

import pytest

from postroom.accounts.scope import Scope
from postroom.fields import Span
from postroom.mailbox import keyset_listing, threads
from postroom.mailbox.thread_work import Work
from postroom.storage.database import Tx
from postroom.storage.migrate import migrate
from tests.doubles import START
from tests.storage.test_migrate import open_session, postgres_url

__all__ = ["postgres_url"]

BEFORE = 180
SCOPES = (Scope("acc_1"), Scope("acc_1", "pod_1"), Scope("acc_1", "pod_1", "inb_1"))
EACH = 3  # of a kind
KINDS = list(itertools.product(("inb_1", "inb_2"), (0, 1), (0, 1, 2), (None, "usr_1")))


def fill(tx: Tx) -> None:
    """The newest of each kind lie between those of others; one is in Trash whole."""
    tx.run("insert into accounts (id, name, plan, created_at) values ('acc_1', 'x', 'free', 1)")
    tx.run("insert into pods (id, account_id, is_default, created_at) values ('pod_1', 'acc_1', 1, 1)")
    for inbox_id in ("inb_1", "inb_2"):
        tx.run(
            "insert into inboxes (id, account_id, pod_id, address, domain, created_at)"
            " values (:id, 'acc_1', 'pod_1', :address, 'here.example', 1)",
            id=inbox_id,
            address=f"{inbox_id}@here.example",
        )
    for number, (inbox_id, is_read, state, assignee) in enumerate(KINDS * EACH):
        tx.run(
            "insert into threads (id, account_id, pod_id, inbox_id, subject, is_read, message_count,"
            " last_message_at, created_at, state, assignee_id)"
            " values (:id, 'acc_1', 'pod_1', :inbox_id, 'Hello', :is_read, 1, :at, 1, :state, :assignee)",
            id=f"thr_{number:03}",
            inbox_id=inbox_id,
            is_read=is_read,
            state=state,
            assignee=assignee,
            at=1_000 + number * 7 % 50 if number else 0,
        )


def expected(
    tx: Tx, scope: Scope, is_read: bool | None, state: int | None, assignee: str | None
) -> list[str]:
    column, owner_id = scope.owner
    rows = tx.all(
        f"select * from threads where {column} = :owner_id and last_message_at > 0"
        " order by last_message_at desc, id desc",
        owner_id=owner_id,
    )
    return [
        row["id"]
        for row in rows
        if is_read in (None, bool(row["is_read"]))
        and state in (None, row["state"])
        and assignee in (None, row["assignee_id"] or "")
    ]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_list_of_threads_is_as_before(engine: str, postgres_url: str, tmp_path: Path) -> None:
    session = open_session(postgres_url if engine == "postgres" else "", tmp_path)
    migrate(session, START, BEFORE)
    session.begin()
    fill(session.tx)
    session.commit()
    migrate(session, START)
    session.begin()
    asked = itertools.product(SCOPES, (None, False, True), (None, 0, 1, 2), (None, "", "usr_1"))
    for scope, is_read, state, assignee in asked:
        work = Work(state, assignee)
        wanted = expected(session.tx, scope, is_read, state, assignee)
        pages = [threads.list_within(session.tx, scope, is_read, None, 5, at, work)[0] for at in (0, 5, 10)]
        assert [each.id for page in pages for each in page] == wanted[:15], (scope, is_read, state, assignee)
        if work == Work():
            page = keyset_listing.list_threads(session.tx, scope, [], False, is_read, Span(7))
            assert [each.id for each in page] == wanted[:7]
    session.rollback()
    session.close()
