"""What people do with a thread, as a state and an assignee, and which of it a list wants."""

from msgspec import Struct

OPEN, SNOOZED, DONE = 0, 1, 2


class Work(Struct, frozen=True):
    """Which threads a list wants. None: any; an empty assignee: nobody."""

    state: int | None = None
    assignee_id: str | None = None
    awaiting: str | None = None  # awaiting, or overdue


ANY_WORK = Work()


def condition(work: Work) -> str:
    """Take `state` and `assignee` as parameters, as far as they are given."""
    state = "" if work.state is None else " and state = :state"
    state += "" if work.awaiting is None else " and awaiting_until is not null"
    state += " and is_overdue = 1" if work.awaiting == "overdue" else ""
    if work.assignee_id is None:
        return state
    return f"{state} and assignee_id {'= :assignee' if work.assignee_id else 'is null'}"
