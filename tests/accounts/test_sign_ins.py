"""What lets a person in: each works once, for whom it is, and until its end."""

import pytest
from msgspec.structs import replace

from postroom.accounts import keys, pods, sessions
from postroom.accounts.keys import Caller
from postroom.accounts.people import challenges, mail_links, passkeys, users
from postroom.accounts.people.users import ADMIN, APPROVER, VIEWER
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInGrant, SignInOrigin
from postroom.clock import HOUR
from postroom.errors import BadRequest, NotFound, Unauthorized
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DelayedAction
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import caller_of_key, make_caller, make_user
from tests.refusals import refuses
from tests.stored import make_inbox

ORIGIN = SignInOrigin("192.0.2.7", "browser")


@pytest.fixture
async def account_id(db: Database) -> str:
    return (await db.write(make_inbox)).account_id


def open_session(tx: Tx, grant: SignInGrant) -> str:
    token = sessions.new_token()
    sessions.add(tx, grant, "Ann", ORIGIN, token, START)
    return token


def of_key(caller: Caller, *, by_key: bool = True) -> SignInGrant:
    return SignInGrant(caller.account_id, caller.key_id, is_operator=False, by_key=by_key)


async def test_a_session_is_good_until_its_end_and_with_its_key(db: Database, account_id: str) -> None:
    def run(tx: Tx) -> None:
        caller = make_caller(tx, Scope(account_id))
        tokens = [open_session(tx, of_key(caller, by_key=by_key)) for by_key in (True, False)]
        end = START + sessions.LIFETIME
        found = [sessions.find(tx, token, end - 1) for token in tokens]
        assert [each and each[1].is_person for each in found] == [False, True]
        session_ids = [each[0].id for each in found if each]
        assert sessions.find_valid(tx, session_ids, end - 1) == set(session_ids)
        assert sessions.find_valid(tx, session_ids, end) == set()
        assert [sessions.find(tx, token, end) for token in tokens] == [None, None]
        assert sessions.list_within(tx, Scope(account_id), end) == []
        keys.put(tx, replace(keys.get(tx, account_id, caller.key_id), expires_at=START + 5))
        assert len(sessions.find_valid(tx, session_ids, START + 4)) == 2
        assert sessions.find_valid(tx, session_ids, START + 5) == set()
        assert sessions.find(tx, tokens[0], START + 5) is None

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_session_is_ended_within_reach_alone(db: Database, account_id: str) -> None:
    def run(tx: Tx) -> None:
        one, two = (pods.add(tx, account_id, None, name, START).id for name in ("one", "two"))
        token = open_session(tx, of_key(make_caller(tx, Scope(account_id, one))))
        found = sessions.find(tx, token, START)
        assert found is not None
        for elsewhere in (Scope(account_id, two), Scope(make_inbox(tx, "other").account_id)):
            with refuses(NotFound):
                sessions.remove(tx, elsewhere, found[0].id)
        sessions.remove(tx, Scope(account_id, one), found[0].id)
        assert sessions.find(tx, token, START) is None

    await db.write(run)


async def test_a_session_of_a_user_is_of_an_active_one_in_one_of_the_pods(
    db: Database, account_id: str
) -> None:
    def run(tx: Tx) -> None:
        one, two = (pods.add(tx, account_id, None, name, START).id for name in ("one", "two"))
        user, _ = make_user(tx, account_id, "ann", APPROVER, one, two)
        tokens = [open_session(tx, users.sign_in_grant(user)) for _ in range(3)]
        found = sessions.find(tx, tokens[0], START)
        assert found is not None
        session, who = found
        assert (who.scope, who.role, who.user_id) == (Scope(account_id, one), APPROVER, user.id)
        for other in (
            replace(user, pod_ids=(two,)),
            replace(user, pod_ids=()),
            replace(user, state=users.INVITED),
        ):
            users.put(tx, other)
            assert sessions.find(tx, tokens[0], START) is None, other
        users.put(tx, user)
        sessions.mark_used(tx, session.id, START + 7)
        assert users.get(tx, account_id, user.id).last_seen_at == START + 7
        assert sessions.remove_others(tx, user.id, session.id) == 2
        assert [sessions.find(tx, token, START) is not None for token in tokens] == [True, False, False]

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_link_is_for_a_whole_key_of_a_program_and_good_once_until_its_end(
    db: Database, account_id: str
) -> None:
    def run(tx: Tx) -> None:
        whole = Scope(account_id)
        make_user(tx, account_id, "ann", ADMIN)
        make_caller(tx, whole, "read", "manage")
        make_caller(tx, Scope(account_id, pods.add(tx, account_id, None, "one", START).id))
        ended = keys.add(tx, account_id, None, "x", keys.new_token(), START, expires_at=START + 1)
        with refuses(NotFound):
            sessions.add_link(tx, account_id, False, "first", START + 1)
        sessions.add_link(tx, account_id, False, "first", START)
        link = sessions.find_link(tx, "first", START)
        assert link is not None
        assert (link.key_id, link.is_operator) == (ended.id, False)
        assert sessions.take_link(tx, "first", START + 1) is None  # its key has ended
        full = make_caller(tx, whole)
        end = START + 1 + sessions.LINK_LIFETIME
        for token in ("second", "third"):
            sessions.add_link(tx, account_id, True, token, START + 1)
        assert sessions.find_link(tx, "second", end) is None
        assert sessions.take_link(tx, "second", end) is None
        taken = sessions.take_link(tx, "third", end - 1)
        assert taken == SignInGrant(account_id, full.key_id, is_operator=True, by_key=False)
        assert sessions.take_link(tx, "third", START) is None

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_link_by_mail_is_for_its_browser_and_not_sent_too_often(
    db: Database, account_id: str
) -> None:
    def run(tx: Tx) -> None:
        user, _ = make_user(tx, account_id, "ann", VIEWER)
        mail_links.invite(tx, user, "first", START)
        mail_links.invite(tx, user, "second", START)
        assert mail_links.find(tx, "first", START) is None
        end = START + mail_links.INVITATION_LIFETIME
        assert mail_links.find(tx, "second", end - 1) is not None
        assert mail_links.find(tx, "second", end) is None
        for number in range(mail_links.SIGN_IN_LINKS_AN_HOUR):  # the invitation does not count
            assert mail_links.ask(tx, user, "browser", f"link {number}", START)
        assert not mail_links.ask(tx, user, "browser", "too many", START)
        assert mail_links.ask(tx, user, "browser", "later", START + HOUR)
        with refuses(Unauthorized):
            mail_links.take(tx, "link 0", "another", START)
        assert mail_links.take(tx, "link 0", "browser", START).id == user.id
        with refuses(Unauthorized):
            mail_links.take(tx, "link 0", "browser", START)
        with refuses(Unauthorized):
            mail_links.take(tx, "link 1", "browser", START + mail_links.SIGN_IN_LIFETIME)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_challenge_comes_back_once_from_its_holder_for_its_purpose(db: Database) -> None:
    def run(tx: Tx) -> None:
        end = START + challenges.LIFETIME
        for token in ("one", "two", "three"):
            challenges.add(tx, challenges.ADD_PASSKEY, token, "holder", START, "more words")
        with refuses(Unauthorized):
            challenges.take(tx, challenges.USE_PASSKEY, "one", "holder", START)
        assert challenges.take(tx, challenges.ADD_PASSKEY, "one", "holder", end - 1) == "more words"
        for token, holder, now in (
            ("one", "holder", START),
            ("two", "another", START),
            ("three", "holder", end),
        ):
            with refuses(Unauthorized):
                challenges.take(tx, challenges.ADD_PASSKEY, token, holder, now)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_passkey_is_of_its_user_and_no_copy_of_it_signs_in(db: Database, account_id: str) -> None:
    def run(tx: Tx) -> None:
        user, _ = make_user(tx, account_id, "ann", VIEWER)
        other, _ = make_user(tx, account_id, "ben", VIEWER)
        known = passkeys.add(tx, user, "credential", b"key", 1, "", START)
        assert known.name == passkeys.DEFAULT_NAME
        with refuses(BadRequest):
            passkeys.add(tx, other, "credential", b"key", 1, "", START)
        with refuses(NotFound):
            passkeys.get(tx, other.id, known.id)
        passkeys.mark_used(tx, known, 2, START)
        with refuses(Unauthorized):
            passkeys.mark_used(tx, known, 2, START)
        for number in range(passkeys.PASSKEYS_OF_A_USER - 1):
            passkeys.add(tx, user, f"credential {number}", b"key", 0, "", START)
        with refuses(BadRequest):
            passkeys.add(tx, user, "one more", b"key", 0, "", START)

    await db.write(run)


async def test_what_is_delayed_is_taken_back_by_its_session_until_somebody_does_it(
    db: Database, account_id: str
) -> None:
    def add(tx: Tx, number: int) -> str:
        action = DelayedAction(
            *(f"dly_{number}", account_id, "ses_1", "x", "[]"),
            *(("msg_1", "msg_2"), "said", "", START + number),
        )
        delayed_actions.add(tx, action)
        return action.id

    def run(tx: Tx) -> None:
        back, claimed, refused = (add(tx, number) for number in range(3))
        assert delayed_actions.list_due(tx, 10, START + 1) == [back, claimed]
        assert not delayed_actions.take_back(tx, "ses_2", back)
        assert delayed_actions.take_back(tx, "ses_1", back)
        assert delayed_actions.claim(tx, back, START) is None
        assert delayed_actions.claim(tx, claimed, START) is not None
        assert not delayed_actions.take_back(tx, "ses_1", claimed)
        lost = START + delayed_actions.LEASE
        assert delayed_actions.claim(tx, claimed, lost - 1) is None
        assert delayed_actions.claim(tx, claimed, lost) is not None
        assert delayed_actions.targets_of(tx, "ses_1") == {"msg_1", "msg_2"}
        delayed_actions.remove(tx, claimed)

        delayed_actions.dismiss(tx, "ses_1", refused)  # nothing was refused yet
        delayed_actions.mark_refused(tx, refused, ["No.", "Never."])
        [shown] = delayed_actions.list_of_session(tx, "ses_1")
        assert (shown.refused, shown.targets) == ("No. Never.", ())
        assert delayed_actions.targets_of(tx, "ses_1") == set()
        assert delayed_actions.list_due(tx, 10, lost) == []
        assert delayed_actions.claim(tx, refused, lost) is None
        delayed_actions.dismiss(tx, "ses_2", refused)
        assert delayed_actions.list_of_session(tx, "ses_1") == [shown]
        delayed_actions.dismiss(tx, "ses_1", refused)
        assert delayed_actions.list_of_session(tx, "ses_1") == []

    await db.write(run)


async def test_who_can_sign_in_is_found_before_who_was_invited_earlier(db: Database, account_id: str) -> None:
    def run(tx: Tx) -> None:
        email = "ann@elsewhere.example"
        other = make_inbox(tx, "other").account_id
        users.add(tx, account_id, email, "", VIEWER, (), users.INVITED, START)
        active = users.add(tx, other, email, "", VIEWER, (), users.ACTIVE, START + 1)
        assert users.find_of_address(tx, email) == active
        assert users.list_active_of_address(tx, email, 10) == [active]
        users.put(tx, replace(active, role=ADMIN))
        assert caller_of_key(tx, active.key_id).permissions == set(users.PERMISSIONS[ADMIN])

    await db.write(run)
