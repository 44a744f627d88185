"""The states of an outgoing email, and all allowed moves between them. Every path checks here."""

from enum import StrEnum

from postroom.errors import NotHeld, NothingToDo
from postroom.mailbox import holds, messages
from postroom.mailbox.holds import Hold


class State(StrEnum):
    HELD = "held"  # waits for a person, or for the end of a pause
    SCHEDULED = "scheduled"  # waits for its time
    PENDING = "pending"  # on its way out
    SENT = "sent"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Move(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    EXPIRE = "expire"
    RELEASE = "release"  # its pause has ended
    COME_DUE = "come due"  # its time has come
    RESCHEDULE = "reschedule"
    PAUSE = "pause"
    CANCEL = "cancel"
    RETRY = "retry"
    DELIVER = "deliver"


MOVES: dict[Move, dict[State, frozenset[State]]] = {
    Move.APPROVE: {State.HELD: frozenset({State.PENDING, State.SCHEDULED, State.HELD, State.FAILED})},
    Move.REJECT: {State.HELD: frozenset({State.REJECTED})},
    Move.EXPIRE: {State.HELD: frozenset({State.EXPIRED})},
    Move.RELEASE: {State.HELD: frozenset({State.PENDING, State.SCHEDULED, State.HELD, State.FAILED})},
    Move.COME_DUE: {State.SCHEDULED: frozenset({State.PENDING, State.HELD, State.FAILED})},
    Move.RESCHEDULE: {State.SCHEDULED: frozenset({State.SCHEDULED})},
    Move.PAUSE: {
        State.PENDING: frozenset({State.HELD}),
        State.SCHEDULED: frozenset({State.HELD}),
        State.HELD: frozenset({State.HELD}),
    },
    Move.CANCEL: {
        State.HELD: frozenset({State.CANCELLED}),
        State.SCHEDULED: frozenset({State.CANCELLED}),
        State.PENDING: frozenset({State.CANCELLED}),
    },
    Move.RETRY: {
        State.PENDING: frozenset({State.PENDING}),
        State.FAILED: frozenset({State.PENDING}),
    },
    Move.DELIVER: {
        State.PENDING: frozenset({State.PENDING, State.SENT, State.FAILED}),
        State.SENT: frozenset({State.FAILED}),  # a bounce that came later
    },
}

_OF_A_HOLD = {
    holds.HELD: State.HELD,
    holds.REJECTED: State.REJECTED,
    holds.EXPIRED: State.EXPIRED,
    holds.CANCELLED: State.CANCELLED,
}


def state_of(status: str, hold: Hold | None) -> State:
    """Return the state. A hold decides while it lasts or if it ended the email; else the status does."""
    if hold is not None:
        if hold.state in _OF_A_HOLD:
            return _OF_A_HOLD[hold.state]
        if hold.state == holds.SCHEDULED and hold.let_go_at is None:
            return State.SCHEDULED
    return {messages.PENDING: State.PENDING, messages.SENT: State.SENT}.get(status, State.FAILED)


def may(move: Move, state: State) -> bool:
    return state in MOVES[move]


def require(move: Move, state: State) -> None:
    if may(move, state):
        return
    if move in (Move.APPROVE, Move.REJECT):
        raise NotHeld(f"This message is {state}: it is not waiting for a decision.")
    raise NothingToDo(f"This message is {state}: there is nothing to {move}.")
