"""Sessions of people: each sees those of the own pod, and a link of the operator opens one."""

import pytest

from postroom.accounts import audit, keys, pods, sessions
from postroom.accounts.actors import THE_OPERATOR
from postroom.accounts.audit_entries import Entry
from postroom.accounts.people import users
from postroom.accounts.people.users import ACTIVE, OWNER
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SESSIONS_LISTED, SignInGrant, SignInOrigin
from postroom.errors import NotFound
from postroom.operations import operator
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox


async def test_a_pod_sees_its_sessions_behind_a_crowd_of_others(db: Database) -> None:
    def fill(tx: Tx) -> tuple[str, str, str]:
        account_id = make_inbox(tx).account_id
        pod = pods.add(tx, account_id, None, "tenant", START)
        whole = keys.add(tx, account_id, None, "whole", keys.new_token(), START)
        narrow = keys.add(tx, account_id, None, "narrow", keys.new_token(), START, pod_id=pod.id)
        own = add(tx, account_id, narrow.id, START)
        for number in range(SESSIONS_LISTED):
            add(tx, account_id, whole.id, START + 1 + number)
        return account_id, pod.id, own

    def add(tx: Tx, account_id: str, key_id: str, now: int) -> str:
        grant = SignInGrant(account_id, key_id, is_operator=False, by_key=True)
        return sessions.add(tx, grant, "x", SignInOrigin("192.0.2.1", "y"), sessions.new_token(), now).id

    account_id, pod_id, own = await db.write(fill)
    listed = await db.read(sessions.list_within, Scope(account_id, pod_id), START)
    assert [session.id for session in listed] == [own]
    everybody = await db.read(sessions.list_within, Scope(account_id), START)
    assert len(everybody) == SESSIONS_LISTED


@pytest.mark.sqlite_alone
async def test_the_operator_lets_a_user_in_who_lost_every_other_way(db: Database) -> None:
    account_id = (await db.write(make_inbox)).account_id

    def let_in(tx: Tx, address: str) -> tuple[SignInGrant | None, list[Entry]]:
        operator.add_login_link_of_user(tx, operator.by_command(tx), account_id, address, "link", START)
        found, _ = audit.list_within(tx, Scope(account_id), None, None, None, None, 9, 0)
        return sessions.take_link(tx, "link", START), found

    user = await db.write(users.add, account_id, "ann@x.example", "", OWNER, (), ACTIVE, START)
    grant, [entry] = await db.write(let_in, "Ann@x.example")
    assert grant is not None
    assert (grant.user_id, grant.is_operator) == (user.id, False)
    assert (entry.actor, entry.action, entry.target) == (THE_OPERATOR, "login_link.created", user.id)
    with pytest.raises(NotFound, match="postroom users list"):
        await db.write(let_in, "ben@x.example")
