"""People who share a thread: whose it is, snoozed, done, internal notes, and who writes a reply now."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.people import users
from postroom.accounts.people.users import ACTIVE, User
from postroom.clock import HOUR
from postroom.errors import BadRequest
from postroom.fields import PageQuery
from postroom.limits import NOTES_OF_A_THREAD
from postroom.mailbox import thread_states, writers
from postroom.mailbox.threads import Thread
from postroom.operations import notes as note_operations
from postroom.operations.notes import NewNote, Note, may_note
from postroom.operations.threads import ThreadChange, change_thread
from postroom.operations.writers import write_reply
from postroom.web.call import Tx
from postroom.web.dashboard.display import note_lines
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.mail import list_before, place_before

PEOPLE = 200
SNOOZES = (("In 3 hours", 3), ("In 1 day", 24), ("In 3 days", 72), ("In 1 week", 168))


class Team(Struct, frozen=True):
    """Who can have a thread, who has it, and who writes to it besides this person."""

    people: list[User]
    assignee: User | None
    writing: list[str]


class AssignForm(Struct, rename="camel", frozen=True):
    assignee_id: str = ""


class SnoozeForm(Struct, rename="camel", frozen=True):
    """`until` is UTC, unless the page's script gave the same time in `until_utc`."""

    hours: int = 0
    until: str = ""
    until_utc: str = ""


class LegalHoldForm(Struct, rename="camel", frozen=True):
    is_held: bool = False


class NoteForm(Struct, frozen=True):
    body: str = ""


def read_team(tx: Tx, context: PageContext, thread: Thread) -> Team:
    account_id = context.call.scope.account_id
    people = [
        user
        for user in users.list_of_account(tx, account_id, PEOPLE, 0)
        if user.state == ACTIVE and thread_states.may_see(user, thread)
    ]
    assignee = None if thread.assignee_id is None else users.find(tx, thread.assignee_id)
    writing = writers.list_others(tx, thread.id, person_of(context), context.call.now())
    return Team(people, assignee, writing)


async def read_notes(context: PageContext, thread_id: str) -> list[Note]:
    """Return the notes; none for a caller who may not see notes."""
    if not may_note(context.call.caller):
        return []
    query = PageQuery(limit=NOTES_OF_A_THREAD)
    return (await context.run(note_operations.list_notes, thread_id=thread_id, query=query)).data


async def assign(context: PageContext, thread_id: str, body: AssignForm) -> Response:
    await context.run(
        change_thread, thread_id=thread_id, body=ThreadChange(assignee_id=body.assignee_id or None)
    )
    user = await context.read(users.find, body.assignee_id) if body.assignee_id else None
    return back(context, thread_id, f"Assigned to {user.name or user.email}." if user else "Unassigned.")


async def snooze(context: PageContext, thread_id: str, body: SnoozeForm) -> Response:
    until = moment_of(body, context.call.now())
    await context.run(change_thread, thread_id=thread_id, body=ThreadChange(snoozed_until=until))
    return go(list_before(context), "Snoozed. An answer ends it.", undo=f"/app/mail/{thread_id}/reopen")


def moment_of(form: SnoozeForm, now: int) -> datetime:
    if form.hours:
        return datetime.fromtimestamp((now + form.hours * HOUR) / 1000, UTC)
    try:
        return msgspec.convert(form.until_utc or f"{form.until}:00Z", datetime)
    except msgspec.ValidationError:
        raise BadRequest("Choose a time, or one of the buttons.", field="until") from None


async def finish(context: PageContext, thread_id: str) -> Response:
    await context.run(change_thread, thread_id=thread_id, body=ThreadChange(is_done=True))
    return go(list_before(context), "Done. An answer opens it again.", undo=f"/app/mail/{thread_id}/reopen")


async def reopen(context: PageContext, thread_id: str) -> Response:
    change = ThreadChange(is_done=False, snoozed_until=None)
    await context.run(change_thread, thread_id=thread_id, body=change)
    return back(context, thread_id, "Open again.")


async def hold(context: PageContext, thread_id: str, body: LegalHoldForm) -> Response:
    await context.run(change_thread, thread_id=thread_id, body=ThreadChange(legal_hold=body.is_held))
    said = "Held. Nothing in this thread is deleted." if body.is_held else "The legal hold is lifted."
    return back(context, thread_id, said)


async def add_note(context: PageContext, thread_id: str, body: NoteForm) -> Response:
    if not body.body.strip():
        raise BadRequest("Write the note first.", field="body")
    await context.run(note_operations.create_note, thread_id=thread_id, body=NewNote(body.body))
    return back(context, thread_id, "Note added.")


async def remove_note(context: PageContext, thread_id: str, note_id: str) -> Response:
    await context.run(note_operations.delete_note, thread_id=thread_id, note_id=note_id)
    return back(context, thread_id, "Note deleted.")


def back(context: PageContext, thread_id: str, said: str) -> Response:
    return go(link(f"/app/mail/{thread_id}", **place_before(context)), said)


# --- who writes now


def person_of(context: PageContext) -> str:
    """Return who acts. Without a user, people are distinguished by the name that they gave at sign-in."""
    return context.session.user_id or context.session.name or context.session.id


async def write(context: PageContext, thread_id: str) -> Response:
    """Record that a reply is open, as the page reports from time to time, and show who else writes."""
    name = context.session.name or "Someone"
    names = await context.decide(write_reply, thread_id, person_of(context), name)
    return context.renderer.page("writers.html", writing=names)  # a notice is left to the next whole page


def shown_note(note: Note) -> dict[str, Any]:
    return {"id": note.id, "lines": note_lines.read(note.body), "author": note.author, "at": note.created_at}
