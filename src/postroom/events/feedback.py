"""Feedback: messages from programs and people to the operator."""

from msgspec import Struct

from postroom import ids, limits
from postroom.accounts import accounts
from postroom.accounts.keys import Caller
from postroom.clock import DAY, seconds_until, start_of_day
from postroom.errors import NotFound, RateLimitExceeded
from postroom.storage.database import Tx, count, insert_item, item_from_row

TYPES = ("bug", "friction", "feature_request")
MESSAGE_CHARACTERS = 10_000
LIFETIME = 365 * DAY


class Feedback(Struct, frozen=True):
    id: str
    account_id: str
    key_id: str
    key_name: str
    type: str
    message: str
    context: str | None  # an object in JSON
    created_at: int


def add(tx: Tx, caller: Caller, kind: str, message: str, context: str | None, now: int) -> Feedback:
    accounts.lock(tx, caller.account_id)
    _require_room(tx, caller.key_id, now)
    made = Feedback(
        id=ids.new(ids.FEEDBACK, now),
        account_id=caller.account_id,
        key_id=caller.key_id,
        key_name=caller.key_name,
        type=kind,
        message=message,
        context=context,
        created_at=now,
    )
    insert_item(tx, "feedback", made)
    return made


def _require_room(tx: Tx, key_id: str, now: int) -> None:
    today = start_of_day(now)
    lately = "from feedback where key_id = :key_id and created_at >= :today"
    if count(tx, f"select count(*) as number {lately}", key_id=key_id, today=today) >= limits.FEEDBACK_A_DAY:
        raise RateLimitExceeded(
            f"A key can give feedback {limits.FEEDBACK_A_DAY} times a day (UTC). Try again tomorrow.",
            retry_after=seconds_until(today + DAY, now),
        )


def list_newest(tx: Tx, kind: str | None, limit: int) -> list[Feedback]:
    """List the newest feedback of all accounts, for the operator."""
    rows = tx.all(
        "select * from feedback where (:all = 1 or type = :type)"
        " order by created_at desc, id desc limit :limit",
        all=int(kind is None),
        type=kind or "",
        limit=limit,
    )
    return [item_from_row(Feedback, row) for row in rows]


def get(tx: Tx, feedback_id: str) -> Feedback:
    row = tx.one("select * from feedback where id = :id", id=feedback_id)
    if row is None:
        raise NotFound("There is no such feedback.")
    return item_from_row(Feedback, row)


def remove(tx: Tx, feedback_id: str) -> None:
    tx.run("delete from feedback where id = :id", id=feedback_id)
