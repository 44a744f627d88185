"""Operations on internal notes of a thread: made, listed, deleted. They never leave the server."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts import audit
from postroom.accounts.actors import Actor
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import DRAFT, MANAGE, NOTES, READ
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden
from postroom.events import thread_events
from postroom.events.announce import announce_notice
from postroom.events.kinds import THREAD_NOTED
from postroom.fields import PageQuery, Timestamp, show_item
from postroom.limits import THREAD_NOTE_CHARACTERS
from postroom.mailbox import inboxes, legal_holds, notes, threads
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx


class NewNote(Struct, rename="camel", frozen=True):
    body: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=THREAD_NOTE_CHARACTERS,
            description="Markdown. It is never sent, quoted or exported.",
            examples=["Ann asked legal. **Wait** for their answer."],
            extra_json_schema={"pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"},
        ),
    ]


class Note(Struct, rename="camel", frozen=True):
    id: str
    body: str
    author: Actor
    created_at: Timestamp


class NotePage(Struct, frozen=True):
    data: list[Note]
    total: int


def create_note(tx: Tx, caller: Caller, thread_id: str, body: NewNote, now: int) -> Note:
    """Write an internal note on a thread; it is never sent"""
    require_may_note(caller)
    if "\0" in body.body or not body.body.strip():
        raise BadRequest("body must be text, and not empty.", field="body")
    thread = threads.get(tx, caller.scope, thread_id)
    note = notes.add(tx, thread, caller.actor, body.body, now)
    announce_notice(tx, thread_events.notice(THREAD_NOTED, thread, now, actor=caller.actor, note_id=note.id))
    audit.record_by(tx, caller, THREAD_NOTED, thread.id, now, within=scope_of(thread), after={"id": note.id})
    return show_item(Note, note)


def list_notes(tx: Tx, caller: Caller, thread_id: str, query: PageQuery) -> NotePage:
    """List the internal notes on a thread, oldest first"""
    require_may_note(caller)
    thread = threads.get(tx, caller.scope, thread_id)
    found = notes.list_of_thread(tx, thread.id, query.limit, query.offset)
    return NotePage([show_item(Note, note) for note in found], notes.count_of(tx, thread.id))


def delete_note(tx: Tx, caller: Caller, thread_id: str, note_id: str, now: int) -> None:
    """Delete an internal note: your own, or any with the permission manage"""
    require_may_note(caller)
    thread = threads.get(tx, caller.scope, thread_id)
    note = notes.get(tx, thread, note_id)
    if note.author.id != caller.actor.id and MANAGE not in caller.permissions:
        raise Forbidden("Somebody else wrote this note. Deleting it needs the permission manage.")
    legal_holds.require_free(tx, inboxes.lock(tx, thread.inbox_id), [thread.id])
    notes.remove(tx, note)
    before = {"id": note.id}
    audit.record_by(tx, caller, "note.deleted", thread.id, now, within=scope_of(thread), before=before)


def may_note(caller: Caller) -> bool:
    """Return whether the caller sees notes. Keys of one inbox or from OAuth need a permission for it."""
    is_for_an_agent = caller.inbox_id is not None or caller.resource is not None
    return {READ, DRAFT} <= caller.permissions and (not is_for_an_agent or NOTES in caller.permissions)


def require_may_note(caller: Caller) -> None:
    """Raise unless the caller may see notes. Checked before any row is read."""
    if not may_note(caller):
        raise Forbidden(
            "Notes need the permissions read and draft, and notes for a key of one inbox or an OAuth program."
        )


def scope_of(thread: Thread) -> Scope:
    return Scope(thread.account_id, thread.pod_id, thread.inbox_id)
