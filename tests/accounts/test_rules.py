"""Rules add up over all levels: the strictest counts, and what is not understood holds."""

import pytest

from postroom.accounts.actors import THE_SERVER
from postroom.accounts.rules import approval, limits, pauses, policy
from postroom.accounts.rules.approval import ALWAYS, LINKS, Approval, Conditions, OverPerDay
from postroom.accounts.rules.limits import AccountLimits, Budget
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import BadRequest, ColdOutreachLimit, NotFound
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.refusals import refuses
from tests.stored import make_inbox, put_delivery, put_mail

FRIEND, STRANGER = "ann@friend.example", "bob@stranger.example"


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def test_of_several_levels_of_approval_the_strictest_counts() -> None:
    stored = [
        approval.encode(each)
        for each in (
            Approval([LINKS, OverPerDay(5)], 10, ["a@example.com"], 2),
            Approval([OverPerDay(3)], 20, ["b@example.com", "a@example.com"]),
            Approval([], 1, [], 1),  # it holds nothing, and so ends nothing sooner
        )
    ]
    wanted = Conditions(frozenset({LINKS}), 3, 10, ("a@example.com", "b@example.com"), 2)
    assert approval.add_up([None, *stored]) == wanted
    assert approval.add_up([None, None]) == approval.NONE
    for damaged in ("{", '{"when":["of a later version"]}'):
        assert approval.add_up([damaged]).words == {ALWAYS}


@pytest.mark.sqlite_alone
async def test_a_policy_of_each_level_must_allow_and_any_may_block(db: Database, inbox: Inbox) -> None:
    whole, pod = Scope(inbox.account_id), Scope(inbox.account_id, inbox.pod_id)

    def refused(tx: Tx, direction: str = policy.OUTBOUND, *, is_genuine: bool = True) -> list[str]:
        found = policy.find_refusals(
            tx, direction, [(inbox.scope, (FRIEND, STRANGER))], meets_allow=is_genuine
        )
        return [each.address for each in found]

    def run(tx: Tx) -> None:
        assert refused(tx) == []
        policy.replace(tx, whole, policy.OUTBOUND, policy.ALLOWLIST, [(policy.ALLOW, FRIEND)], START)
        assert refused(tx) == [STRANGER]
        assert refused(tx, policy.INBOUND) == []
        assert refused(tx, is_genuine=False) == [FRIEND, STRANGER]
        policy.replace(tx, inbox.scope, policy.OUTBOUND, policy.ALLOWLIST, [(policy.ALLOW, STRANGER)], START)
        assert refused(tx) == [FRIEND, STRANGER]
        policy.replace(tx, inbox.scope, policy.OUTBOUND, policy.INHERIT, [], START)
        policy.add_rule(tx, pod, policy.OUTBOUND, policy.BLOCK, "friend.example", START)
        assert refused(tx) == [FRIEND, STRANGER]

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_rule_is_there_once_counted_once_and_removed_from_its_level(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        first, again = (
            policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.BLOCK, "Evil.example", START + at)
            for at in (0, 1)
        )
        assert first == again
        assert inboxes.find_under_policy(tx, [inbox.id]) == {inbox.id}
        with refuses(NotFound):
            policy.remove_rule(tx, Scope(inbox.account_id), first.id)
        policy.remove_rule(tx, inbox.scope, first.id)
        assert inboxes.find_under_policy(tx, [inbox.id]) == set()  # no level is left that restricts
        for scope in (Scope(inbox.account_id, inbox.pod_id), Scope(inbox.account_id)):
            rule = policy.add_rule(tx, scope, policy.INBOUND, policy.BLOCK, "evil.example", START)
            assert inboxes.find_under_policy(tx, [inbox.id]) == {inbox.id}, scope
            policy.remove_rule(tx, scope, rule.id)
        with refuses(BadRequest):
            policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.TRUST, FRIEND, START)

    await db.write(run)


async def test_a_level_has_a_thousand_rules_and_no_more(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.BLOCK, "one.example", START)
        tx.run("update policies set rule_count = :count", count=policy.RULES_LIMIT - 1)
        policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.BLOCK, "last.example", START)
        with refuses(BadRequest):
            policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.BLOCK, "more.example", START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_mail_is_for_trusted_people_only_if_each_of_them_is(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        policy.add_rule(tx, Scope(inbox.account_id), policy.OUTBOUND, policy.TRUST, FRIEND, START)
        assert policy.are_trusted(tx, inbox.scope, [FRIEND])
        assert not policy.are_trusted(tx, inbox.scope, [FRIEND, STRANGER])
        assert not policy.are_trusted(tx, inbox.scope, [])
        other = make_inbox(tx, "other")
        assert not policy.are_trusted(tx, other.scope, [FRIEND])

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_what_a_policy_stopped_is_listed_where_it_happened(db: Database, inbox: Inbox) -> None:
    def count(tx: Tx, within: Scope) -> int:
        return policy.list_stops(tx, within, None, None, None, None, 10, 0)[1]

    def run(tx: Tx) -> None:
        refusal = policy.PolicyRefusal(inbox.scope, f"{'a' * 400}@x.example", None)
        policy.record_stop(tx, policy.REFUSED, policy.OUTBOUND, refusal, START)
        whole = Scope(inbox.account_id)
        for within, found in ((whole, 1), (Scope(inbox.account_id, inbox.pod_id), 1), (inbox.scope, 1)):
            assert count(tx, within) == found
        for within in (Scope("acc_2"), Scope(inbox.account_id, "pod_2"), make_inbox(tx, "other").scope):
            assert count(tx, within) == 0
        [stop], _ = policy.list_stops(tx, whole, None, None, None, None, 10, 0)
        assert len(stop.address) == 320

    await db.write(run)


async def test_a_pause_of_any_level_above_holds_an_inbox(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        other = make_inbox(tx, "other")
        for scope_id in (inbox.id, inbox.pod_id, inbox.account_id):
            pauses.add(tx, inbox.account_id, scope_id, THE_SERVER, START)
            held = tx.all(f"select id from inboxes where {pauses.IS_PAUSED}")
            assert [row["id"] for row in held] == [inbox.id], scope_id
            assert pauses.is_inbox_paused(tx, inbox.id)
            assert not pauses.is_inbox_paused(tx, other.id)
            assert pauses.remove(tx, scope_id)
        assert not pauses.is_inbox_paused(tx, inbox.id)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_strangers_count_once_a_day_and_a_budget_holds_also_for_old_inboxes(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        put_delivery(tx, put_mail(tx, inbox), STRANGER, is_cold=1)
        two, none = Budget(cold_per_day=2), Budget()
        allowed = AccountLimits(cold_per_day=2)
        old = START - limits.COLD_LIMIT_ENDS_AFTER
        for budget, made_at, more in ((two, old, AccountLimits()), (none, old + 1, allowed)):
            limits.require_cold_limit(tx, inbox.id, made_at, budget, [STRANGER, FRIEND], START, more)
            with refuses(ColdOutreachLimit):
                limits.require_cold_limit(
                    tx, inbox.id, made_at, budget, [FRIEND, "carol@x.example"], START, more
                )
        limits.require_cold_limit(tx, inbox.id, old, none, [FRIEND, "carol@x.example"], START, allowed)
        tomorrow = START + DAY
        limits.require_cold_limit(tx, inbox.id, tomorrow, two, [FRIEND, "carol@x.example"], tomorrow)

    await db.write(run)
