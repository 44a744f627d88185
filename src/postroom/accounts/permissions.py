"""Permissions: what a key may do, wherever it reaches."""

from collections.abc import Iterable

from postroom.errors import BadRequest, Forbidden

READ, DRAFT, SEND, APPROVE, MANAGE = "read", "draft", "send", "approve", "manage"
ALL = (READ, DRAFT, SEND, APPROVE, MANAGE)
OF_AN_INBOX = (READ, DRAFT, SEND)  # an inbox key has these at most

NOTHING: tuple[str, ...] = ()
READING = (READ,)
DRAFTING = (DRAFT,)
WRITING = (DRAFT, SEND)  # either will do
SENDING = (SEND,)
APPROVING = (APPROVE,)
MANAGING = (MANAGE,)


def require_any(held: frozenset[str], needed: Iterable[str]) -> None:
    """Checked before any row is read."""
    wanted = tuple(needed)
    if wanted and held.isdisjoint(wanted):
        raise Forbidden(f"This key may not do that: it needs the permission {' or '.join(wanted)}.")


def require_word(words: frozenset[str] | None, word: str) -> None:
    """Checks a key that has permissions of the /v0 interface."""
    if words is not None and word and word not in words:
        raise Forbidden(f"This key may not do that: it needs the permission {word}.")


def read(asked: Iterable[str] | None, is_of_an_inbox: bool) -> tuple[str, ...]:
    """The permissions of a new key, in their usual order; by default the usual ones."""
    possible = OF_AN_INBOX if is_of_an_inbox else ALL
    if asked is None:
        return possible
    wanted = set(asked)
    if not wanted or not wanted <= set(possible):
        kind = "a key of one inbox" if is_of_an_inbox else "a key"
        raise BadRequest(
            f"permissions of {kind} are one or more of {', '.join(possible)}.", field="permissions"
        )
    return tuple(word for word in possible if word in wanted)
