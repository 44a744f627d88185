"""Permissions: what a key may do, wherever it reaches."""

from collections.abc import Iterable

from postroom.errors import BadRequest, Forbidden

READ, DRAFT, SEND, APPROVE, MANAGE = "read", "draft", "send", "approve", "manage"
NOTES = "notes"  # of one inbox, or of an OAuth program; other keys see notes with read and draft
ALL = (READ, DRAFT, SEND, APPROVE, MANAGE)
KNOWN = (*ALL, NOTES)
OF_AN_INBOX = (READ, DRAFT, SEND)  # by default; an inbox key may also have notes, and nothing else

NOTHING: tuple[str, ...] = ()
READING = (READ,)
DRAFTING = (DRAFT,)
WRITING = (DRAFT, SEND)  # either will do
SENDING = (SEND,)
APPROVING = (APPROVE,)
MANAGING = (MANAGE,)
TEACHING = (SEND, MANAGE)  # what is junk
ON_THREADS = (DRAFT, SEND, MANAGE)  # a legal hold needs manage, everything else draft or send


def with_notes(held: Iterable[str]) -> set[str]:
    """Return the permissions of a key that sees several inboxes: with read and draft it also has notes."""
    return {*held, NOTES} if {READ, DRAFT} <= set(held) else set(held)


def require_any(held: frozenset[str], needed: Iterable[str]) -> None:
    """Require any of the permissions. Checked before any row is read."""
    wanted = tuple(needed)
    if wanted and held.isdisjoint(wanted):
        raise Forbidden(
            f"This key may not do that: it needs the permission {' or '.join(wanted)}. Use a key that has it."
        )


def require_word(words: frozenset[str] | None, word: str) -> None:
    """Checks a key that has permissions of the /v0 interface."""
    if words is not None and word and word not in words:
        raise Forbidden(f"This key may not do that: it needs the permission {word}. Use a key that has it.")


def read(asked: Iterable[str] | None, is_of_an_inbox: bool) -> tuple[str, ...]:
    """Return the permissions of a new key in their usual order; by default the usual ones without notes."""
    usual = OF_AN_INBOX if is_of_an_inbox else ALL
    if asked is None:
        return usual
    possible, wanted = (*usual, NOTES), set(asked)
    if not wanted or not wanted <= set(possible):
        kind = "a key of one inbox" if is_of_an_inbox else "a key"
        raise BadRequest(
            f"permissions of {kind} are one or more of {', '.join(possible)}.", field="permissions"
        )
    return tuple(word for word in possible if word in wanted)
