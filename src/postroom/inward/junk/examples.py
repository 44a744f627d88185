"""What people called junk or wanted: one row a message, learned in the background."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from postroom.storage.database import Tx, item_from_row
from postroom_mail.junk import model

BELL = "junk-examples"
REPEATED = 300  # of junk and of wanted email each: a teacher's newest, learned again with what is new


class TaughtExample(Struct, frozen=True):
    message_id: str
    account_id: str
    teacher: str
    is_junk: bool
    features: bytes | None = None  # of one that is no message here, or that was learned before


def record_all(
    tx: Tx, account_id: str, teacher: str, message_ids: Sequence[str], is_junk: bool, now: int
) -> None:
    """Record the examples. The latest decision on a message counts. Notifies after the commit."""
    tx.many(
        "insert into junk_examples (message_id, account_id, teacher, is_junk, taught_at)"
        " values :rows"
        " on conflict (message_id) do update set teacher = excluded.teacher, is_junk = excluded.is_junk,"
        " taught_at = excluded.taught_at, learned_at = null",
        [(message_id, account_id, teacher, int(is_junk), now) for message_id in message_ids],
    )
    if message_ids:
        tx.ring(BELL)


class Lesson(Struct, frozen=True):
    """An example that is no message here, by its features alone."""

    id: str
    features: bytes


def to_lesson(account_id: str, raw: bytes, features: Sequence[int]) -> Lesson:
    """Return a lesson, the same for the same email."""
    digest = hashlib.sha256(account_id.encode() + b"\0" + raw).hexdigest()[:32]
    return Lesson(f"lesson {digest}", model.encode_features(features))


def record_lessons(
    tx: Tx, account_id: str, teacher: str, lessons: Sequence[Lesson], is_junk: bool, now: int
) -> None:
    rows = {each.id: each.features for each in lessons}
    tx.many(
        "insert into junk_examples (message_id, features, account_id, teacher, is_junk, taught_at)"
        " values :rows on conflict (message_id) do update set features = excluded.features,"
        " teacher = excluded.teacher,"
        " is_junk = excluded.is_junk, taught_at = excluded.taught_at, learned_at = null"
        " where junk_examples.is_junk <> excluded.is_junk",
        [(key, features, account_id, teacher, int(is_junk), now) for key, features in rows.items()],
    )
    tx.ring(BELL)


def find_teacher(tx: Tx) -> tuple[str, str] | None:
    """Return the account and the teacher of the oldest example that waits to be learned."""
    row = tx.one(
        "select account_id, teacher from junk_examples where learned_at is null"
        " order by taught_at, message_id limit 1"
    )
    return None if row is None else (row["account_id"], row["teacher"])


def list_to_learn(tx: Tx, account_id: str, teacher: str, limit: int) -> list[TaughtExample]:
    rows = tx.all(
        "select message_id, account_id, teacher, is_junk, features from junk_examples"
        " where learned_at is null and account_id = :account_id and teacher = :teacher"
        " order by taught_at, message_id limit :limit",
        account_id=account_id,
        teacher=teacher,
        limit=limit,
    )
    return [item_from_row(TaughtExample, row, is_junk=bool(row["is_junk"])) for row in rows]


def list_to_repeat(tx: Tx, account_id: str, teacher: str) -> list[TaughtExample]:
    """Return the newest examples of a teacher that were learned: new ones alone would displace them."""
    rows = tx.all(
        "select message_id, account_id, teacher, is_junk, features from junk_examples"
        " where account_id = :account_id and teacher = :teacher"
        " and learned_at is not null and features is not null order by is_junk, taught_at, message_id",
        account_id=account_id,
        teacher=teacher,
    )
    return [item_from_row(TaughtExample, row, is_junk=bool(row["is_junk"])) for row in rows]


def mark_learned(
    tx: Tx, account_id: str, teacher: str, learned: Sequence[tuple[TaughtExample, bytes]], now: int
) -> bool:
    """Mark examples, with their features. Those that were taught otherwise meanwhile wait on.

    False if none of them is there as it was.
    """
    marked = 0
    for each, features in learned:
        marked += tx.run(
            "update junk_examples set learned_at = :now, features = :features"
            " where message_id = :id and is_junk = :is_junk and teacher = :teacher",
            now=now,
            features=features,
            id=each.message_id,
            is_junk=int(each.is_junk),
            teacher=teacher,
        )
    for is_junk in (0, 1):
        tx.run(
            "update junk_examples set features = null where message_id in"
            " (select message_id from junk_examples where account_id = :account_id and teacher = :teacher"
            " and is_junk = :is_junk and learned_at is not null and features is not null"
            " order by taught_at desc, message_id desc limit 1000 offset :most)",
            account_id=account_id,
            teacher=teacher,
            is_junk=is_junk,
            most=REPEATED,
        )
    return marked > 0


def forget(tx: Tx, account_id: str) -> None:
    tx.run("delete from junk_examples where account_id = :account_id", account_id=account_id)


def count(tx: Tx, account_id: str) -> dict[str, int]:
    """Return how many of an account's examples are junk, wanted, and not learned yet."""
    row = tx.one(
        "select coalesce(sum(is_junk), 0) as junk, count(*) as number,"
        " coalesce(sum(case when learned_at is null then 1 else 0 end), 0) as waiting"
        " from junk_examples where account_id = :account_id",
        account_id=account_id,
    )
    assert row is not None
    return {
        "junk": int(row["junk"]),
        "wanted": int(row["number"] - row["junk"]),
        "waiting": int(row["waiting"]),
    }
