"""Selects for lists of threads: each kind of list by its own index, so that nothing is sorted."""

from postroom.mailbox.inboxes import IS_THERE
from postroom.mailbox.thread_work import DONE, OPEN, SNOOZED, Work, condition

HIDDEN = 0  # the last message of a thread whose messages are all in Trash
IS_LISTED = f"last_message_at > {HIDDEN}"
NEWEST_FIRST = "order by last_message_at desc, id desc"


def with_label(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    flag = ("" if is_read is None else " and is_read = :is_read") + condition(work)
    return (
        f"select {columns} from labels join threads on threads.id = labels.thread_id"
        f" where {owner} = :owner_id and label = :label{flag} and threads.{IS_THERE}"
        f" and labels.{IS_LISTED}"
        " order by labels.last_message_at desc, labels.thread_id desc limit :shown"
    )


def with_work(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    """One part for each state, in the order of its index, so that nothing is sorted.

    Unread threads are few: `+state` keeps the planner to the index of those.
    """
    column = "+state" if is_read is False and work.assignee_id is None else "state"
    assigned = condition(Work(None, work.assignee_id))
    flag = "" if is_read is None else " and is_read = :is_read"
    states = (OPEN, SNOOZED, DONE) if work.state is None else (work.state,)
    parts = (
        f"select * from (select {columns} from threads where {owner} = :owner_id"
        f"{assigned} and {column} = {state}{flag} and {IS_THERE} and {IS_LISTED}"
        f" {NEWEST_FIRST} limit :shown) as part_{state}"
        for state in states
    )
    return " union all ".join(parts)


def with_answer_expected(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    """Few threads, by their own index."""
    flag = ("" if is_read is None else " and is_read = :is_read") + condition(work)
    return (
        f"select {columns} from threads where {owner} = :owner_id{flag} and {IS_THERE} and {IS_LISTED}"
        f" {NEWEST_FIRST} limit :shown"
    )


def with_flag(owner: str, columns: str, flag: str = ":is_read") -> str:
    return (
        f"select {columns} from threads where {owner} = :owner_id and is_read = {flag} and {IS_THERE}"
        f" and {IS_LISTED} {NEWEST_FIRST} limit :shown"
    )


def with_either_flag(owner: str, columns: str) -> str:
    """Each flag from its own part of the index, so that nothing is sorted."""
    unread, read = with_flag(owner, columns, "0"), with_flag(owner, columns, "1")
    return f"select * from ({unread}) as unread union all select * from ({read}) as already_read"
