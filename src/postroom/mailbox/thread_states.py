"""What people do with a thread: assigned, snoozed until a time, done. An inbound message opens it."""

from collections.abc import Sequence

from msgspec.structs import replace

from postroom.accounts.people.users import User
from postroom.mailbox.thread_work import DONE, OPEN, SNOOZED
from postroom.mailbox.threads import Thread
from postroom.storage.database import SKIP_LOCKED, Tx, one_of, update

NAMES = {"open": OPEN, "snoozed": SNOOZED, "done": DONE}
BELL = "snoozed-threads"
WOKEN_TOGETHER = 50


def may_see(user: User, thread: Thread) -> bool:
    """Return whether the inbox of the thread is one of those that the user sees."""
    return user.account_id == thread.account_id and (not user.pod_ids or thread.pod_id in user.pod_ids)


def assign(tx: Tx, thread: Thread, user_id: str | None) -> Thread:
    update(tx, "threads", thread.id, assignee_id=user_id)
    return replace(thread, assignee_id=user_id)


def put(tx: Tx, thread: Thread, state: int, snoozed_until: int | None = None) -> Thread:
    update(tx, "threads", thread.id, state=state, snoozed_until=snoozed_until)
    return replace(thread, state=state, snoozed_until=snoozed_until)


def unassign_all(tx: Tx, account_id: str, user_id: str, pods_left: Sequence[str] = ()) -> None:
    """Takes away the threads of a user who is removed, or who now sees only the pods that are left."""
    outside, left = "", dict[str, object]()
    if pods_left:
        is_left, left = one_of("pod_id", pods_left)
        outside = f" and not {is_left}"
    tx.run(
        "update threads set assignee_id = null where assignee_id = :user_id and account_id = :account_id"
        + outside,
        user_id=user_id,
        account_id=account_id,
        **left,
    )


def is_any_due(tx: Tx, now: int) -> bool:
    due = "select 1 as found from threads where snoozed_until <= :now limit 1"
    return tx.one(due, now=now) is not None


def wake_due(tx: Tx, now: int) -> list[Thread]:
    """Opens threads whose time has come. Of several nodes, one wakes each."""
    rows = tx.all(
        "update threads set state = 0, snoozed_until = null where id in (select id from threads"
        f" where snoozed_until <= :now order by snoozed_until limit :most {SKIP_LOCKED})"
        " and snoozed_until <= :now returning *",
        now=now,
        most=WOKEN_TOGETHER,
    )
    return [Thread.from_row(row) for row in rows]
