"""Selects for lists of threads: each kind of list by its own index, so that nothing is sorted."""

from postroom.mailbox.inboxes import IS_THERE
from postroom.mailbox.thread_work import DONE, OPEN, SNOOZED, Work, condition

HIDDEN = 0  # the last message of a thread whose messages are all in Trash
IS_LISTED = f"last_message_at > {HIDDEN}"
NEWEST_FIRST = "order by last_message_at desc, id desc"
KEYS = "threads.id, threads.last_message_at"


def with_label(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    flag = ("" if is_read is None else " and is_read = :is_read") + condition(work)
    return (
        f"select {columns} from labels join threads on threads.id = labels.thread_id"
        f" where {owner} = :owner_id and label = :label{flag} and threads.{IS_THERE}"
        f" and labels.{IS_LISTED}"
        " order by labels.last_message_at desc, labels.thread_id desc limit :shown"
    )


def with_work(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    """Return the SQL: one part for each state and read flag, by its index and no longer than the page.

    Threads of one person have an index without the read flag: `+is_read` keeps the planner to it.
    """
    assigned = condition(Work(None, work.assignee_id))
    if work.assignee_id:
        flags = [""] if is_read is None else [f" and +is_read = {int(is_read)}"]
    else:
        flags = [f" and is_read = {flag}" for flag in flags_of(is_read)]
    return " union all ".join(
        f"select * from (select {columns} from threads where {owner} = :owner_id"
        f"{assigned}{flag} and state = {state} and {IS_THERE} and {IS_LISTED} {NEWEST_FIRST} limit :shown)"
        f" as part_{state}_{number}"
        for state in states_of(work)
        for number, flag in enumerate(flags)
    )


def with_first_page(found: str, shown: int, offset: int) -> str:
    """Return the SQL with the limit of a first page written into it.

    With a parameter, PostgreSQL expects many rows and plans each request anew, which takes a millisecond.
    """
    return found if offset else found.replace(":shown", str(shown))


def states_of(work: Work) -> tuple[int, ...]:
    return (OPEN, SNOOZED, DONE) if work.state is None else (work.state,)


def flags_of(is_read: bool | None) -> tuple[int, ...]:
    return (0, 1) if is_read is None else (int(is_read),)


def with_answer_expected(owner: str, is_read: bool | None, columns: str, work: Work) -> str:
    """Return the SQL of threads that expect an answer. They are few and have their own index."""
    flag = ("" if is_read is None else " and is_read = :is_read") + condition(work)
    return (
        f"select {columns} from threads where {owner} = :owner_id{flag} and {IS_THERE} and {IS_LISTED}"
        f" {NEWEST_FIRST} limit :shown"
    )
