"""Keys that keys make: no further, no more and no longer than their maker, and bound as it is."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from postroom.accounts import key_rules, keys, pods, scope
from postroom.accounts.keys import Caller, Key
from postroom.accounts.rules.limits import SPECIFIED, Budget
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import BadRequest, Forbidden, LastKey, Unauthorized
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import caller_of_key, make_caller
from tests.refusals import refuses
from tests.stored import make_inbox


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def make(
    tx: Tx, caller: Caller, within: Scope, *asked: str, ends_at: int | None = None, now: int = START
) -> Key:
    return key_rules.make(tx, caller, within, "made", keys.new_token(), asked or None, ends_at, now)


@pytest.mark.sqlite_alone
async def test_a_key_makes_none_that_reaches_further(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        one, two = (pods.add(tx, account_id, None, name, START).id for name in ("one", "two"))
        of_pod = make_caller(tx, Scope(account_id, one))
        make(tx, of_pod, Scope(account_id, one))
        for wider in (Scope(account_id), Scope(account_id, two), inbox.scope, Scope("acc_2", one)):
            with refuses(Forbidden):
                make(tx, of_pod, wider)
        of_inbox = make_caller(tx, inbox.scope)
        make(tx, of_inbox, inbox.scope)
        for wider in (Scope(account_id, inbox.pod_id), Scope(account_id, inbox.pod_id, "inb_other")):
            with refuses(Forbidden):
                make(tx, of_inbox, wider)

    await db.write(run)


async def test_a_key_makes_none_that_may_more_or_lives_longer(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        whole = Scope(inbox.account_id)
        maker = make_caller(tx, whole, "read", "manage")
        assert make(tx, maker, whole).permissions == ("read", "manage")
        assert make(tx, maker, inbox.scope).permissions == ("read",)
        for more in (("read", "send"), ("approve",)):
            with refuses(Forbidden):
                make(tx, maker, whole, *more)
        keys.put(tx, replace(keys.get(tx, inbox.account_id, maker.key_id), expires_at=START + DAY))
        assert make(tx, maker, whole).expires_at == START + DAY
        assert make(tx, maker, whole, ends_at=START + DAY).expires_at == START + DAY
        assert make(tx, maker, whole, ends_at=START + 1).expires_at == START + 1
        with refuses(Forbidden):
            make(tx, maker, whole, ends_at=START + DAY + 1)
        with refuses(BadRequest):
            make(tx, maker, whole, ends_at=START)
        keys.remove(tx, maker.key_id)
        with refuses(Unauthorized):
            make(tx, maker, whole)

    await db.write(run)


async def test_all_that_come_from_a_key_share_its_budget_until_one_gets_its_own(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        account_id, whole = inbox.account_id, Scope(inbox.account_id)
        first = make_caller(tx, whole)
        keys.put(tx, replace(keys.get(tx, account_id, first.key_id), limits='{"perDay":3}'))
        child = make(tx, caller_of_key(tx, first.key_id), whole)
        grandchild = make(tx, caller_of_key(tx, child.id), whole)
        assert grandchild.lineage == (first.key_id, child.id)
        assert [key.budget_id for key in (child, grandchild)] == [first.key_id] * 2
        assert caller_of_key(tx, grandchild.id).budget_id == first.key_id
        keys.put(tx, replace(keys.get(tx, account_id, first.key_id), limits='{"perDay":2}'))
        assert [keys.get(tx, account_id, key.id).limits for key in (child, grandchild)] == [
            '{"perDay":2}'
        ] * 2
        own = key_rules.bind(keys.get(tx, account_id, child.id), UNSET, Budget(per_day=1), SPECIFIED)
        assert own.budget_id is None

    await db.write(run)


async def test_only_a_key_of_the_account_that_is_good_and_may_manage_counts_as_another(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        account_id, whole = inbox.account_id, Scope(inbox.account_id)
        last = keys.get(tx, account_id, make_caller(tx, whole).key_id)
        pod_id = scope.default_pod(account_id)
        make_caller(tx, whole, "read", "approve")
        make_caller(tx, Scope(account_id, pod_id))
        add = {"name": "x", "token": "", "now": START}
        for more in (
            {"expires_at": START + 1},
            {"kind": keys.USER},
            {"kind": keys.OAUTH},
        ):
            keys.add(tx, account_id, None, **{**add, **more, "token": keys.new_token()})  # type: ignore[arg-type]
        worded = make_caller(tx, whole)
        keys.set_v0_permissions(tx, worded.key_id, ["inbox_read"])
        make_caller(tx, Scope(make_inbox(tx, "other").account_id))
        with refuses(LastKey):
            key_rules.require_another_manager(tx, last, START + 1)
        key_rules.require_another_manager(tx, last, START)  # one ends only then
        make_caller(tx, whole, "manage")
        key_rules.require_another_manager(tx, last, START + 1)

    await db.write(run)


def test_a_person_is_bound_by_no_rule_of_the_key_behind_him() -> None:
    caller = Caller("key_1", "acc_1", "first", "free", Scope("acc_1"))
    for bound in (replace(caller, approval="{}"), replace(caller, limits="{}")):
        assert bound.is_bound
        assert not replace(bound, is_person=True).is_bound
        with refuses(Forbidden):
            key_rules.require_may_bind(bound)
    key_rules.require_may_bind(caller)
