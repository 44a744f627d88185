"""Get a message now, or as soon as somebody has decided about it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

from msgspec import Meta, Raw, Struct

from postroom import limits
from postroom.errors import RateLimitExceeded
from postroom.events import event_log
from postroom.mailbox import messages
from postroom.mailbox.messages import PENDING
from postroom.operations.messages import RawMessage, show_message
from postroom.web.call import Call, Tx

LOOK_SECONDS = 5.0  # without a ring: a lost one costs no more
ALIVE_SECONDS = 1.0  # after which a caller who has gone is noticed


class DecisionQuery(Struct, frozen=True):
    wait: Annotated[
        float,
        Meta(
            ge=0,
            le=limits.DECISION_WAIT_SECONDS,
            description="Seconds to wait until `status` or `hold.state` changes, if the message is pending.",
        ),
    ] = 0


_waiting: Counter[str] = Counter()  # requests of a key that wait, in this process


async def get_message(call: Call, message_id: str, query: DecisionQuery) -> RawMessage:
    """Get a message; with `wait`, wait until a pending one changes"""
    if query.wait:
        with counted(call.caller.key_id):
            await wait_for_change(call, message_id, query.wait)
    shown: Raw = await call.resources.db.read(show_message, call.scope, message_id, call.links())
    return shown


@contextmanager
def counted(key_id: str) -> Iterator[None]:
    if _waiting[key_id] >= limits.DECISIONS_AWAITED:
        raise RateLimitExceeded(
            f"{limits.DECISIONS_AWAITED} requests of this key wait for decisions already."
            " Wait for one to end, or wait for the events of all messages: GET /v1/events?wait=60.",
            field="wait",
        )
    _waiting[key_id] += 1
    try:
        yield
    finally:
        _waiting[key_id] -= 1
        if not _waiting[key_id]:
            del _waiting[key_id]


async def wait_for_change(call: Call, message_id: str, seconds: float) -> None:
    """Wait until the message changes or the time is over. Listen before reading, to miss no decision."""
    db, loop = call.resources.db, asyncio.get_running_loop()
    ends = loop.time() + seconds
    await db.read(messages.get_outline, call.scope, message_id)  # only what the caller may see
    with closing(db.listen(event_log.bell(call.account_id))) as subscription:
        first = await db.read(state_of, message_id)
        now, looked_at = first, loop.time()
        while now == first and now is not None and now[0] == PENDING:
            left = ends - loop.time()
            if left <= 0 or await call.is_over():
                return
            is_rung = await subscription.wait(min(left, ALIVE_SECONDS))
            if is_rung or loop.time() - looked_at >= LOOK_SECONDS:
                now, looked_at = await db.read(state_of, message_id), loop.time()


def state_of(tx: Tx, message_id: str) -> tuple[str, str | None] | None:
    """Return the status of the message and the state of its hold, or None if it was deleted."""
    row = tx.one(
        "select status, holds.state from messages left join holds on holds.message_id = messages.id"
        " where messages.id = :id",
        id=message_id,
    )
    return None if row is None else (row["status"], row["state"])
