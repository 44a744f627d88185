"""Feedback: the operator sees the newest first, of every account."""

from postroom.accounts.scope import Scope
from postroom.events import feedback
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import make_caller
from tests.stored import make_inbox


async def test_the_newest_of_all_accounts_is_first_and_of_one_moment_the_later(db: Database) -> None:
    def run(tx: Tx) -> None:
        one, two = (make_caller(tx, Scope(make_inbox(tx, name).account_id)) for name in ("one", "two"))
        made = [
            feedback.add(tx, who, kind, "text", None, now).id
            for who, kind, now in (
                (one, "bug", START + 5),
                (two, "bug", START),
                (one, "friction", START + 9),
                (two, "bug", START + 9),
            )
        ]
        newest = [made[place] for place in (3, 2, 0, 1)]
        assert [each.id for each in feedback.list_newest(tx, None, 10)] == newest
        assert [each.id for each in feedback.list_newest(tx, None, 2)] == newest[:2]
        assert [each.id for each in feedback.list_newest(tx, "bug", 10)] == [made[3], made[0], made[1]]

    await db.write(run)
