"""What only who runs the server may do, and what the log of an account says of it."""

from collections.abc import Callable
from contextlib import closing

import pytest

from postroom.accounts import accounts, keys, pods, sessions
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden
from postroom.mailbox import inboxes
from postroom.operations import feedback, operator
from postroom.operations.operator import AccountChange
from postroom.queue import deliveries
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import ADDRESS, make_caller, make_user, recorded
from tests.refusals import refuses
from tests.stored import find_delivery, make_inbox, put_delivery, put_mail

Verb = Callable[[Tx, Caller], object]
NOBODY = "acc_1"
# Each is refused before anything is looked up: what it names is not there.
VERBS: dict[str, Verb] = {
    "create_account": lambda tx, who: operator.create_account(tx, who, "new", "free", None, "pr_x", START),
    "change_account": lambda tx, who: operator.change_account(tx, who, NOBODY, AccountChange("new"), START),
    "delete_account": lambda tx, who: operator.delete_account(tx, who, NOBODY, "new", START),
    "add_login_link": lambda tx, who: operator.add_login_link(tx, who, NOBODY, "token", True, START),
    "add_login_link_of_user": lambda tx, who: operator.add_login_link_of_user(
        tx, who, NOBODY, "ann@x.example", "token", START
    ),
    "change_limits": lambda tx, who: operator.change_limits(tx, who, NOBODY, {}, START),
    "create_key": lambda tx, who: operator.create_key(tx, who, NOBODY, "new", "pr_x", START),
    "revoke_key": lambda tx, who: operator.revoke_key(tx, who, NOBODY, "key_1", START),
    "pause_account": lambda tx, who: operator.pause_account(tx, who, NOBODY, "http://x", START),
    "resume_account": lambda tx, who: operator.resume_account(tx, who, NOBODY, START),
    "retry_lane": lambda tx, who: operator.retry_lane(tx, who, "there.example", START),
    "retry_deliveries": lambda tx, who: operator.retry_deliveries(tx, who, ["whd_1"], START),
    "list_of_lane": lambda tx, who: operator.list_messages_of_lane(tx, who, "there.example", 10),
    "list_of_deliveries": lambda tx, who: operator.list_messages_of_deliveries(tx, who, ["whd_1"]),
    "cancel_message": lambda tx, who: operator.cancel_message(tx, who, NOBODY, "msg_1", "http://x", START),
    "list_feedback": lambda tx, who: feedback.list_feedback(tx, who, None, 10),
    "remove_feedback": lambda tx, who: feedback.remove_feedback(tx, who, "fbk_1", START),
}


@pytest.fixture
async def owner(db: Database) -> Caller:
    """By a key of the first account."""

    def make(tx: Tx) -> Caller:
        return make_caller(tx, Scope(accounts.add(tx, "first", "free", START).id))

    return await db.write(make)


def find_others(tx: Tx, owner: Caller) -> dict[str, Caller]:
    """Who is close to running the server, and does not."""
    second = accounts.add(tx, "second", "free", START + 1)
    pod = pods.add(tx, owner.account_id, None, "tenant", START)
    _, admin = make_user(tx, owner.account_id, "ann", users.ADMIN)
    return {
        "a key of another account": make_caller(tx, Scope(second.id)),
        "a key of a pod": make_caller(tx, Scope(owner.account_id, pod.id)),
        "a key that may not manage": make_caller(tx, owner.scope, "read", "draft", "send", "approve"),
        "an admin": admin,
        "a key that an admin made": make_caller(tx, owner.scope, creator=admin),
    }


@pytest.mark.sqlite_alone
async def test_nobody_else_may_do_any_of_it(db: Database, owner: Caller) -> None:
    def try_all(tx: Tx) -> list[str]:
        let_in = []
        for who, caller in find_others(tx, owner).items():
            assert not operator.is_operator(tx, caller), who
            for name, verb in VERBS.items():
                try:
                    verb(tx, caller)
                    let_in.append(f"{who}: {name}")
                except Forbidden:
                    pass
                except Exception as error:
                    let_in.append(f"{who}: {name}: {error!r}")
        return let_in

    assert await db.write(try_all) == []
    assert await db.read(operator.is_operator, owner)


@pytest.mark.sqlite_alone
async def test_the_log_of_an_account_tells_what_its_operator_did(db: Database, owner: Caller) -> None:
    def act(tx: Tx) -> str:
        made = operator.create_account(tx, owner, "tenant", "free", None, "pr_first", START).id
        operator.change_account(
            tx, owner, made, AccountChange("tenant", "free", None), START
        )  # nothing is another
        operator.change_account(tx, owner, made, AccountChange("renamed"), START)
        operator.change_account(tx, owner, made, AccountChange("renamed", "business", 10), START)
        operator.pause_account(tx, owner, made, "http://x", START)
        assert pauses.find(tx, made) is not None
        operator.resume_account(tx, owner, made, START)
        assert pauses.find(tx, made) is None
        operator.add_login_link(tx, owner, made, "token", False, START)
        return made

    made = await db.write(act)
    [key] = await db.read(keys.list_of_account, made)
    account = await db.read(accounts.get, made)
    assert (account.name, account.plan, account.storage_limit_bytes) == ("renamed", "business", 10)
    assert await db.read(recorded, made) == [
        ("account.created", made, ADDRESS, None, None),
        ("key.created", key.id, ADDRESS, None, None),
        ("account.renamed", made, ADDRESS, None, None),
        ("account.plan_changed", made, ADDRESS, None, None),
        ("pause.begun", made, ADDRESS, None, None),
        ("pause.ended", made, ADDRESS, None, None),
        ("login_link.created", made, ADDRESS, None, None),
    ]
    link = await db.read(sessions.find_link, "token", START)
    assert link is not None
    assert (link.account_id, link.is_operator) == (made, False)
    assert await db.read(recorded, owner.account_id) == []


async def test_an_account_goes_only_by_its_name_and_the_operators_own_log_keeps_that(
    db: Database, owner: Caller
) -> None:
    made = await db.write(operator.create_account, owner, "tenant", "free", None, "pr_first", START)
    with closing(db.listen(inboxes.GONE)) as subscription:
        with refuses(BadRequest):
            await db.write(operator.delete_account, owner, made.id, "tenants", START)
        assert await db.write(operator.delete_account, owner, made.id, " tenant ", START) == "tenant"
        assert await subscription.wait(120)
    assert await db.read(recorded, owner.account_id) == [("account.deleted", made.id, ADDRESS, None, None)]
    assert await db.read(accounts.list_all) == [await db.read(accounts.get, owner.account_id)]
    assert await db.read(accounts.find, made.id) is None


async def test_what_waits_is_due_at_once_and_a_bell_tells_it(db: Database, owner: Caller) -> None:
    def put(tx: Tx) -> list[str]:
        message = put_mail(tx, make_inbox(tx))
        return [
            put_delivery(tx, message, f"bob@{lane}", lane=lane, due_at=START + 60_000, position=place)
            for place, lane in enumerate(("one.example", "two.example", "three.example"))
        ]

    ids = await db.write(put)
    with closing(db.listen(deliveries.BELL)) as subscription:
        assert await db.write(operator.retry_lane, owner, "one.example", START) == 1
        assert await subscription.wait(120)
        assert await db.write(operator.retry_deliveries, owner, ids[1:2], START) == 1
        assert await subscription.wait(120)
    due = [(await db.read(find_delivery, each)).due_at for each in ids]
    assert due == [START, START, START + 60_000]
