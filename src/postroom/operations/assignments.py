"""Assigns, snoozes and finishes threads, for the operations on threads; each change with its event."""

from datetime import datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import BadRequest
from postroom.events import thread_events
from postroom.events.announce import announce_notice
from postroom.events.kinds import THREAD_ASSIGNED, THREAD_DONE, THREAD_SNOOZED, THREAD_WOKEN
from postroom.fields import iso, to_moment
from postroom.limits import SNOOZE_DAYS
from postroom.mailbox import thread_states
from postroom.mailbox.thread_work import DONE, OPEN, SNOOZED, Work
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx
from postroom_mail.search.query import Condition, Query

ME, NOBODY = "me", "none"


def wanted(tx: Tx, caller: Caller, assignee: str | None, state: str | None) -> Work:
    """Return the filters of a list or a search."""
    of_state = None if state is None else thread_states.NAMES.get(state)
    awaiting = state if state is not None and of_state is None else None
    return Work(of_state, None if assignee is None else find_assignee(tx, caller, assignee), awaiting)


def find_assignee(tx: Tx, caller: Caller, asked: str, field: str = "assignee") -> str:
    """Return the id of a user, or "" for nobody. An unknown user has no threads."""
    if asked == NOBODY:
        return ""
    if asked != ME:
        return asked if ids.is_id(ids.USER, asked) else "unknown"
    user_id = caller.user_id or users.find_of_keys(tx, caller.account_id, (caller.key_id, *caller.lineage))
    if user_id is None:
        raise BadRequest("No person made this key: give the id of a user instead of me.", field=field)
    return user_id


def with_assignees(tx: Tx, caller: Caller, asked: Query) -> Query:
    """Return the search with each `assignee:` replaced by an id, or by nobody."""
    groups = tuple(tuple(_with_assignee(tx, caller, each) for each in group) for group in asked.filters)
    return replace(asked, filters=groups)


def _with_assignee(tx: Tx, caller: Caller, each: Condition) -> Condition:
    if each.name != "assignee":
        return each
    named = str(each.value).lower()
    user = users.find_by_email(tx, caller.account_id, named) if "@" in named else None
    return replace(each, value=user.id if user else find_assignee(tx, caller, named, field="q"))


def change(
    tx: Tx,
    caller: Caller,
    thread: Thread,
    assignee_id: str | UnsetType | None,
    snoozed_until: datetime | UnsetType | None,
    is_done: bool | UnsetType,
    now: int,
) -> Thread:
    """Change assignee and state; UNSET keeps them. Open, snoozed and done exclude each other."""
    if is_done is True and snoozed_until:
        raise BadRequest("A thread is snoozed or done, not both: send one of them.", field="isDone")
    if assignee_id is not UNSET and assignee_id != thread.assignee_id:
        thread = assign(tx, caller, thread, assignee_id, now)
    if snoozed_until is not UNSET and snoozed_until is not None:
        return put(tx, caller, thread, SNOOZED, read_moment(snoozed_until, now), now)
    if is_done is True:
        return put(tx, caller, thread, DONE, None, now)
    ended = {SNOOZED} if snoozed_until is None else set()
    ended |= {DONE} if is_done is False else set()
    return put(tx, caller, thread, OPEN, None, now) if thread.state in ended else thread


def assign(tx: Tx, caller: Caller, thread: Thread, user_id: str | None, now: int) -> Thread:
    user = None if user_id is None else users.find(tx, user_id)
    if user_id is not None and (user is None or not thread_states.may_see(user, thread)):
        raise BadRequest(
            "assigneeId is not a user who sees this inbox. GET /v1/users lists them.", field="assigneeId"
        )
    changed = thread_states.assign(tx, thread, user_id)
    announce_notice(tx, thread_events.notice(THREAD_ASSIGNED, changed, now, actor=caller.actor))
    record(tx, caller, THREAD_ASSIGNED, thread, changed, now)
    return changed


def read_moment(asked: datetime, now: int) -> int:
    moment = to_moment(asked)
    if not moment or moment <= now:
        raise BadRequest("snoozedUntil must be in the future.", field="snoozedUntil")
    if moment > now + SNOOZE_DAYS * DAY:
        raise BadRequest("snoozedUntil is at most a year away.", field="snoozedUntil")
    return moment


def put(tx: Tx, caller: Caller, thread: Thread, state: int, snoozed_until: int | None, now: int) -> Thread:
    if (state, snoozed_until) == (thread.state, thread.snoozed_until):
        return thread
    changed = thread_states.put(tx, thread, state, snoozed_until)
    kind = {OPEN: THREAD_WOKEN, SNOOZED: THREAD_SNOOZED, DONE: THREAD_DONE}[state]
    announce_notice(tx, thread_events.notice(kind, changed, now, actor=caller.actor))
    record(tx, caller, kind, thread, changed, now)
    return changed


def record(tx: Tx, caller: Caller, action: str, before: Thread, after: Thread, now: int) -> None:
    where = Scope(after.account_id, after.pod_id, after.inbox_id)
    audit.record_by(
        tx, caller, action, after.id, now, within=where, before=_shown(before), after=_shown(after)
    )


def _shown(thread: Thread) -> dict[str, object]:
    return {
        "assigneeId": thread.assignee_id,
        "snoozedUntil": iso(thread.snoozed_until),
        "isDone": thread.state == DONE,
    }
