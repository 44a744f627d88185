"""People: who gives and takes a role, and what ends when somebody has less or goes."""

from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from postroom.accounts import keys, pods, sessions
from postroom.accounts.keys import Caller
from postroom.accounts.oauth import device_codes, grants
from postroom.accounts.oauth.grants import Allowed
from postroom.accounts.people import mail_links, passkeys, users
from postroom.accounts.people.users import ADMIN, APPROVER, OWNER, VIEWER, User
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInOrigin
from postroom.errors import ApiError, BadRequest, Forbidden, LastOwner, NotFound
from postroom.events import push_subscriptions
from postroom.mailbox.inboxes import Inbox
from postroom.operations.people import users as verbs
from postroom.operations.people.users import NewUser, UserChange
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.doubles import START
from tests.operations.callers import ADDRESS, make_caller, make_user, recorded
from tests.refusals import refuses
from tests.stored import make_inbox

CONFIG = settings(Path("nowhere"))


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def sign_in(tx: Tx, user: User, now: int = START) -> str:
    """The token of a new session."""
    token = sessions.new_token()
    sessions.add(tx, users.sign_in_grant(user), "", SignInOrigin(ADDRESS, "browser"), token, now)
    return token


def are_in(tx: Tx, *tokens: str) -> list[bool]:
    return [sessions.find(tx, token, START) is not None for token in tokens]


def are_keys(tx: Tx, *callers: Caller) -> list[bool]:
    return [keys.find(tx, caller.account_id, caller.key_id) is not None for caller in callers]


@pytest.mark.sqlite_alone
async def test_an_admin_does_nothing_to_owners_by_himself_or_by_a_key(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        owner, _ = make_user(tx, account_id, "olga", OWNER)
        make_user(tx, account_id, "otto", OWNER)
        viewer, _ = make_user(tx, account_id, "vera", VIEWER)
        invited = users.add(tx, account_id, "ines@elsewhere.example", "", OWNER, (), users.INVITED, START)
        _, admin = make_user(tx, account_id, "ann", ADMIN)
        new = NewUser("new@elsewhere.example", "owner")
        for caller in (admin, make_caller(tx, Scope(account_id), creator=admin)):
            for attempt in (
                lambda who=caller: verbs.create_user(tx, who, new, CONFIG, START),
                lambda who=caller: verbs.change_user(tx, who, owner.id, UserChange(role="viewer"), START),
                lambda who=caller: verbs.change_user(tx, who, viewer.id, UserChange(role="owner"), START),
                lambda who=caller: verbs.delete_user(tx, who, owner.id, START),
                lambda who=caller: verbs.invite_user(tx, who, invited.id, CONFIG, START),
            ):
                with refuses(Forbidden):
                    attempt()
        few = make_caller(tx, Scope(account_id), "read", "manage")
        with refuses(Forbidden):
            verbs.change_user(tx, few, viewer.id, UserChange(role="approver"), START)

    await db.write(run)
    assert await db.read(recorded, inbox.account_id) == []


async def test_the_last_owner_who_can_sign_in_stays_one(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        caller = make_caller(tx, Scope(account_id))
        last, _ = make_user(tx, account_id, "olga", OWNER)
        invited = users.add(tx, account_id, "ines@elsewhere.example", "", OWNER, (), users.INVITED, START)
        with refuses(LastOwner):
            verbs.change_user(tx, caller, last.id, UserChange(role="admin"), START)
        with refuses(LastOwner):
            verbs.delete_user(tx, caller, last.id, START)
        verbs.change_user(tx, caller, last.id, UserChange(name="Olga"), START)
        verbs.delete_user(tx, caller, invited.id, START)
        second, _ = make_user(tx, account_id, "otto", OWNER)
        verbs.change_user(tx, caller, last.id, UserChange(role="viewer"), START)
        with refuses(LastOwner):
            verbs.delete_user(tx, caller, second.id, START)

    await db.write(run)
    assert [line[0] for line in await db.read(recorded, inbox.account_id)] == [
        "user.changed",
        "user.removed",
        "user.changed",
    ]


async def test_with_other_pods_or_less_to_do_sessions_and_keys_beyond_them_end(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        caller = make_caller(tx, Scope(account_id))
        one, two = (pods.add(tx, account_id, None, name, START) for name in ("one", "two"))
        user, person = make_user(tx, account_id, "ann", ADMIN)
        made = [
            make_caller(tx, scope, "read", creator=person)
            for scope in (Scope(account_id), Scope(account_id, one.id), inbox.scope)
        ]
        made.append(make_caller(tx, Scope(account_id, one.id), "read", "approve", creator=person))
        signed_in = sign_in(tx, user)
        verbs.change_user(tx, caller, user.id, UserChange(name="Ann"), START)
        assert are_in(tx, signed_in) == [True]
        verbs.change_user(tx, caller, user.id, UserChange(pod_ids=[one.id]), START)
        assert are_in(tx, signed_in) == [False]
        assert are_keys(tx, *made) == [False, True, False, True]
        signed_in = sign_in(tx, users.get(tx, account_id, user.id))
        assert are_in(tx, signed_in) == [True]
        verbs.change_user(tx, caller, user.id, UserChange(role="viewer"), START)
        assert are_in(tx, signed_in) == [False]
        assert are_keys(tx, *made) == [False, True, False, False]
        with refuses(BadRequest):  # an owner has no pods of his own
            verbs.change_user(tx, caller, user.id, UserChange(role="owner", pod_ids=[two.id]), START)

    await db.write(run)


async def test_an_inbox_in_a_pod_of_the_user_keeps_its_key(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        user, person = make_user(tx, account_id, "ann", APPROVER)
        within = keys.add(
            tx, account_id, inbox.id, "agent", keys.new_token(), START, asked=["read"], creator=person
        )
        users.end_what_exceeds(tx, replace(user, pod_ids=(inbox.pod_id,)))
        assert keys.find(tx, account_id, within.id) is not None
        users.end_what_exceeds(tx, replace(user, pod_ids=("pod_other",)))
        assert keys.find(tx, account_id, within.id) is None

    await db.write(run)


async def test_with_a_user_goes_all_that_let_the_user_in(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        user, person = make_user(tx, account_id, "ann", ADMIN)
        made = make_caller(tx, Scope(account_id), creator=person)
        child = make_caller(tx, inbox.scope, creator=made)
        by_key = sessions.new_token()
        origin = SignInOrigin(ADDRESS, "browser")
        grant = sessions.SignInGrant(account_id, made.key_id, is_operator=False, by_key=True)
        sessions.add(tx, grant, "", origin, by_key, START)
        signed_in = sign_in(tx, user)
        passkeys.add(tx, user, "credential", b"key", 0, "phone", START)
        assert mail_links.ask(tx, user, "browser", "by mail", START)
        sessions.put_link(tx, users.sign_in_grant(user), "printed", START)
        push_subscriptions.add(tx, user, "https://push.example/1", "p", "a", "phone", START)
        allowed = Allowed("prc_1", "x", "y", "z", user.key_id, user.id, inbox.scope, ("read",))
        grants.add_code(tx, allowed, START)
        code = device_codes.add(tx, "request", ADDRESS, START)
        device_codes.allow(tx, code, user.key_id, inbox.scope, ("read",))
        verbs.delete_user(tx, make_caller(tx, Scope(account_id)), user.id, START)
        assert are_keys(tx, person, made, child) == [False, False, False]
        assert are_in(tx, signed_in, by_key) == [False, False]
        assert passkeys.find_by_credential(tx, "credential") is None
        assert sessions.find_link(tx, "printed", START) is None
        for table in (
            *("mail_links", "login_links", "sessions", "oauth_codes", "push_subscriptions", "device_codes"),
        ):
            assert tx.all(f"select 1 as one from {table}") == [], table

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_what_was_done_to_people_is_in_the_log(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> str:
        caller = make_caller(tx, Scope(inbox.account_id))
        new = NewUser("ann@elsewhere.example", "viewer")
        user = verbs.create_user(tx, caller, new, CONFIG, START)
        verbs.invite_user(tx, caller, user.id, CONFIG, START)
        verbs.change_user(tx, caller, user.id, UserChange(role="admin"), START)
        verbs.delete_user(tx, caller, user.id, START)
        return user.id

    user_id = await db.write(run)
    assert await db.read(recorded, inbox.account_id) == [
        (action, user_id, ADDRESS, None, None)
        for action in ("user.invited", "user.invited", "user.changed", "user.removed")
    ]


@pytest.mark.sqlite_alone
async def test_a_link_that_lets_somebody_in_is_shown_only_where_no_mail_leaves(
    db: Database, inbox: Inbox
) -> None:
    capturing = settings(Path("nowhere"), OUTBOUND="capture")

    def run(tx: Tx) -> None:
        caller = make_caller(tx, Scope(inbox.account_id))
        for config, name in ((CONFIG, "ann"), (capturing, "ben")):
            made = verbs.create_user(
                tx, caller, NewUser(f"{name}@elsewhere.example", "viewer"), config, START
            )
            again = verbs.invite_user(tx, caller, made.id, config, START)
            for shown in (made, again):
                assert (shown.invitation_url is not UNSET) == (config is capturing)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_people_are_of_their_account_and_live_elsewhere(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        caller = make_caller(tx, Scope(inbox.account_id))
        stranger, _ = make_user(tx, make_inbox(tx, "other").account_id, "ann", VIEWER)
        attempts = (
            lambda: verbs.get_user(tx, caller, stranger.id),
            lambda: verbs.change_user(tx, caller, stranger.id, UserChange(name="x"), START),
            lambda: verbs.delete_user(tx, caller, stranger.id, START),
            lambda: verbs.invite_user(tx, caller, stranger.id, CONFIG, START),
        )
        for attempt in attempts:
            with refuses(NotFound):
                attempt()
        here = NewUser("ann@postroom.localhost", "viewer")
        with refuses(BadRequest):
            verbs.create_user(tx, caller, here, CONFIG, START)
        active, _ = make_user(tx, inbox.account_id, "bea", VIEWER)
        with refuses(ApiError):
            verbs.invite_user(tx, caller, active.id, CONFIG, START)

    await db.write(run)
