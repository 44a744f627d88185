"""Signing in: from where somebody joined is recorded, and who joins has no more than the link."""

from pathlib import Path

import pytest

from postroom.accounts import sessions
from postroom.accounts.people import mail_links, users
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInOrigin
from postroom.operations.people import sign_in
from postroom.operations.people.sign_in import SignInInput
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.doubles import START
from tests.operations.callers import ADDRESS, make_caller, recorded
from tests.stored import make_inbox

CONFIG = settings(Path("nowhere"))
VISITOR = SignInOrigin(ADDRESS, "browser")


@pytest.fixture
async def account_id(db: Database) -> str:
    return (await db.write(make_inbox)).account_id


@pytest.mark.sqlite_alone
async def test_from_where_an_invitation_was_accepted_is_recorded(db: Database, account_id: str) -> None:
    def run(tx: Tx) -> str:
        email = "ann@elsewhere.example"
        invited = users.add(tx, account_id, email, "", users.VIEWER, (), users.INVITED, START)
        mail_links.invite(tx, invited, "token", START)
        authenticated = sign_in.prove(
            tx, SignInInput(invitation="token", name=" Ann "), VISITOR, "", CONFIG, START
        )
        assert (authenticated.name, authenticated.grant.user_id, authenticated.grant.is_operator) == (
            "Ann",
            invited.id,
            False,
        )
        return invited.id

    user_id = await db.write(run)
    assert await db.read(recorded, account_id) == [("user.joined", user_id, ADDRESS, None, None)]


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("is_operator", [True, False])
async def test_the_first_owner_runs_the_server_only_by_a_link_for_that(
    db: Database, account_id: str, is_operator: bool
) -> None:
    def run(tx: Tx) -> str:
        make_caller(tx, Scope(account_id))  # a link is for a key that may do everything
        sessions.add_link(tx, account_id, is_operator, "token", START)
        shown = SignInInput(link="token", name="Olga", email="olga@elsewhere.example")
        grant = sign_in.prove(tx, shown, VISITOR, "", CONFIG, START).grant
        assert grant.is_operator == is_operator
        assert grant.user_id is not None
        assert users.get(tx, account_id, grant.user_id).role == users.OWNER
        return grant.user_id

    user_id = await db.write(run)
    assert await db.read(recorded, account_id) == [("user.joined", user_id, ADDRESS, None, None)]
