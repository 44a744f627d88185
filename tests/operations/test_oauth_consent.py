"""Programs that people let in: never more than the person may, once, in time, and written down."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.accounts import keys, pods
from postroom.accounts.keys import Caller, Key
from postroom.accounts.oauth import device_codes, grants, oauth_clients
from postroom.accounts.oauth.grants import Allowed, Tokens
from postroom.accounts.oauth.oauth_error import OauthError
from postroom.accounts.people import users
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import (
    ApiKeyLimitReached,
    BadRequest,
    Forbidden,
    NotFound,
    RateLimitExceeded,
    Unauthorized,
)
from postroom.limits import KEYS_OF_AN_INBOX
from postroom.mailbox.inboxes import Inbox
from postroom.operations.people import oauth_consent
from postroom.operations.people.oauth_consent import Asked, Choice
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.doubles import START
from tests.operations.callers import ADDRESS, caller_of_key, make_caller, make_user, recorded
from tests.refusals import refuses
from tests.stored import make_inbox

CONFIG = settings(Path("nowhere"))
ELSEWHERE = "198.51.100.9"
APPROVAL = '{"when":["always"]}'
LIMITS = '{"perDay":3}'
VERIFIER = "v" * 43
BACK = "http://127.0.0.1/back"
RESOURCE = "http://x/mcp"


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def ask(tx: Tx, now: int = START) -> tuple[str, str]:
    request_id, code = oauth_consent.start_device(tx, ELSEWHERE, now)
    return request_id, code.user_code


def ask_for_code(tx: Tx) -> Asked:
    """By a program that has a browser."""
    client = oauth_clients.add(tx, "helper", [BACK], ELSEWHERE, START)
    challenge = grants.challenge_of(VERIFIER)
    return Asked(client.id, BACK, "code", "", challenge, "S256", f"{CONFIG.base_url}/mcp")


def key_of(tx: Tx, token: str, now: int = START) -> Key:
    caller = keys.find_caller(tx, token, now)
    assert caller is not None
    key = keys.find(tx, caller.account_id, caller.key_id)
    assert key is not None
    return key


# --- programs without a browser


async def test_the_key_of_a_device_is_bound_as_its_maker_and_comes_from_it(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> tuple[Caller, str, Key]:
        maker = make_caller(tx, Scope(inbox.account_id))
        bound = {"approval": APPROVAL, "limits": LIMITS, "expires_at": START + DAY}
        keys.put(tx, replace(keys.get(tx, inbox.account_id, maker.key_id), **bound))
        request_id, user_code = ask(tx)
        assert oauth_consent.poll_device(tx, request_id, START) is None
        oauth_consent.allow_device(tx, maker, f" {user_code.lower()} ", Choice("send", inbox.id), START)
        token = oauth_consent.poll_device(tx, request_id, START)
        assert token is not None
        with refuses(NotFound):
            oauth_consent.poll_device(tx, request_id, START)
        return maker, user_code, key_of(tx, token)

    maker, user_code, key = await db.write(run)
    assert (key.created_by, key.lineage) == (maker.key_id, (maker.key_id,))
    assert (key.approval, key.limits, key.expires_at) == (APPROVAL, LIMITS, START + DAY)
    assert (key.budget_id, key.permissions) == (maker.key_id, ("read", "draft", "send"))
    where = (inbox.pod_id, inbox.id)
    assert await db.read(recorded, inbox.account_id) == [
        ("program.allowed", user_code, ADDRESS, *where),
        ("key.created", key.id, ELSEWHERE, *where),
    ]


async def test_a_device_gets_no_more_than_its_maker_has_by_then(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        reader = make_caller(tx, Scope(inbox.account_id), "read", "manage")
        request_id, user_code = ask(tx)
        with refuses(Forbidden):
            oauth_consent.allow_device(tx, reader, user_code, Choice("send", inbox.id), START)
        oauth_consent.allow_device(tx, reader, user_code, Choice("everything", ""), START)
        with refuses(NotFound):  # it was decided already
            oauth_consent.allow_device(tx, reader, user_code, Choice("read", ""), START)
        kept = replace(keys.get(tx, inbox.account_id, reader.key_id), permissions=("read",))
        keys.put(tx, kept)
        token = oauth_consent.poll_device(tx, request_id, START)
        assert token is not None
        assert key_of(tx, token).permissions == ("read",)

        request_id, user_code = ask(tx)
        oauth_consent.allow_device(tx, caller_of_key(tx, reader.key_id), user_code, Choice("read", ""), START)
        keys.remove(tx, reader.key_id)
        with refuses(NotFound):
            oauth_consent.poll_device(tx, request_id, START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_code_is_refused_once_and_forgotten_in_time(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> str:
        person = make_caller(tx, Scope(inbox.account_id))
        request_id, user_code = ask(tx)
        oauth_consent.refuse_device(tx, person, user_code, START)
        with refuses(NotFound):
            oauth_consent.poll_device(tx, request_id, START)
        request_id, late = ask(tx)
        end = START + device_codes.LIFETIME
        assert oauth_consent.poll_device(tx, request_id, end - 1) is None
        for now in (end, end + 1):
            with refuses(NotFound):
                oauth_consent.allow_device(tx, person, late, Choice("read", ""), now)
            with refuses(NotFound):
                oauth_consent.poll_device(tx, request_id, now)
        for _ in range(device_codes.WAITING_AN_ADDRESS - 1):
            ask(tx)
        with refuses(RateLimitExceeded):
            ask(tx)
        ask(tx, end)  # those before wait no longer
        return user_code

    refused = await db.write(run)
    assert await db.read(recorded, inbox.account_id) == [("program.refused", refused, ADDRESS, None, None)]


async def test_who_has_lost_the_role_or_the_pod_lets_nothing_in(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        pod, other = (pods.add(tx, account_id, None, name, START) for name in ("one", "two"))
        user, person = make_user(tx, account_id, "ann", users.APPROVER, pod.id)
        users.require_still(tx, person, "approve")
        _, user_code = ask(tx)
        asked = ask_for_code(tx)
        for changed in (
            replace(user, pod_ids=(other.id,)),
            replace(user, state=users.INVITED),
        ):
            users.put(tx, changed)
            with refuses(Forbidden, Unauthorized):
                oauth_consent.allow_device(tx, person, user_code, Choice("read", ""), START)
            with refuses(Forbidden, Unauthorized):
                oauth_consent.allow(tx, person, asked, Choice("read", ""), CONFIG, START)
        users.put(tx, replace(user, role=users.VIEWER))
        with refuses(Forbidden):
            users.require_still(tx, person, "approve")
        users.require_still(tx, person, "read")
        oauth_consent.allow(tx, person, asked, Choice("read", ""), CONFIG, START)

    await db.write(run)


# --- programs that came by OAuth


def give_code(tx: Tx, maker: Caller, within: Scope, *held: str) -> tuple[str, str]:
    """A program, and a code for it."""
    client = oauth_clients.add(tx, "helper", [BACK], ELSEWHERE, START)
    challenge = grants.challenge_of(VERIFIER)
    allowed = Allowed(client.id, BACK, challenge, RESOURCE, maker.key_id, None, within, held)
    return client.id, grants.add_code(tx, allowed, START)


def exchange(
    tx: Tx,
    code: str,
    client_id: str,
    *,
    back: str = BACK,
    verifier: str = VERIFIER,
    resource: str | None = RESOURCE,
    now: int = START,
) -> Tokens | None:
    return grants.exchange(tx, code, client_id, back, verifier, resource, "helper", now)


@pytest.mark.sqlite_alone
async def test_a_code_is_good_for_its_program_its_redirect_and_its_minute(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        maker = make_caller(tx, Scope(inbox.account_id), "read", "draft", "manage")
        client_id, code = give_code(tx, maker, inbox.scope, "read", "draft")
        end = START + grants.CODE_LIFETIME
        for wrong in (
            {"client_id": "prc_other"},
            {"back": f"{BACK}/other"},
            {"verifier": "w" * 43},
            {"resource": f"{RESOURCE}/readonly"},
            {"now": end},
        ):
            with refuses(OauthError):
                exchange(tx, code, **{"client_id": client_id, **wrong})  # type: ignore[arg-type]
        tokens = exchange(tx, code, client_id, now=end - 1)
        assert tokens is not None
        assert keys.find_caller(tx, tokens.access, START) is None  # it is bound to its address
        caller = keys.find_caller(tx, tokens.access, START, may_be_bound=True)
        assert caller is not None
        assert (caller.scope, caller.permissions) == (inbox.scope, frozenset({"read", "draft"}))
        assert caller.lineage == (maker.key_id,)
        assert exchange(tx, code, client_id) is None  # a second time ends what it gave
        assert keys.find_caller(tx, tokens.access, START, may_be_bound=True) is None
        with refuses(OauthError):
            grants.refresh(tx, tokens.refresh, client_id, None, START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_code_gives_nothing_that_its_maker_may_no_longer(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        maker = make_caller(tx, Scope(inbox.account_id))
        client_id, code = give_code(tx, maker, inbox.scope, "read", "send")
        keys.put(tx, replace(keys.get(tx, inbox.account_id, maker.key_id), permissions=("read", "manage")))
        with refuses(OauthError):
            exchange(tx, code, client_id)
        keys.remove(tx, maker.key_id)
        with refuses(OauthError):
            exchange(tx, code, client_id)

    await db.write(run)


async def test_a_refresh_token_is_good_once_for_its_program_and_as_long_as_it_says(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        client_id, code = give_code(tx, make_caller(tx, Scope(inbox.account_id)), inbox.scope, "read")
        first = exchange(tx, code, client_id)
        assert first is not None
        end = START + grants.REFRESH_LIFETIME
        for other, resource, now in (
            ("prc_other", None, START),
            (client_id, f"{RESOURCE}/readonly", START),
            (client_id, None, end),
        ):
            with refuses(OauthError):
                grants.refresh(tx, first.refresh, other, resource, now)
        second = grants.refresh(tx, first.refresh, client_id, RESOURCE, START)
        assert second is not None
        assert keys.find_caller(tx, first.access, START, may_be_bound=True) is None
        good_until = START + grants.ACCESS_LIFETIME
        assert keys.find_caller(tx, second.access, good_until - 1, may_be_bound=True) is not None
        assert keys.find_caller(tx, second.access, good_until, may_be_bound=True) is None
        assert grants.refresh(tx, first.refresh, client_id, None, START) is None  # used: all of it ends
        assert keys.find_caller(tx, second.access, START, may_be_bound=True) is None

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_either_token_revokes_a_grant(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        maker = make_caller(tx, Scope(inbox.account_id))
        for which in ("access", "refresh"):
            client_id, code = give_code(tx, maker, inbox.scope, "read")
            tokens = exchange(tx, code, client_id)
            assert tokens is not None
            assert grants.revoke(tx, "prr_unknown") is None
            assert grants.revoke(tx, getattr(tokens, which)) is not None
            assert keys.find_caller(tx, tokens.access, START, may_be_bound=True) is None
            with refuses(OauthError):
                grants.refresh(tx, tokens.refresh, client_id, None, START)

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_person_allows_no_more_than_the_person_may_and_that_is_recorded(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> str:
        asked = ask_for_code(tx)
        whole = make_caller(tx, Scope(inbox.account_id))
        reader = make_caller(tx, Scope(inbox.account_id), "read", "manage")
        readonly = replace(asked, resource=f"{asked.resource}/readonly")
        for caller, wanted, level in (
            (reader, asked, "send"),
            (reader, asked, "draft"),
            (whole, readonly, "send"),
            (whole, asked, "everything"),
        ):
            with refuses(Forbidden):
                oauth_consent.allow(tx, caller, wanted, Choice(level, ""), CONFIG, START)
        for wrong in (
            replace(asked, redirect_uri=f"{BACK}/other"),
            replace(asked, code_challenge_method="plain"),
            replace(asked, resource="https://elsewhere.example/mcp"),
            replace(asked, resource=f"{asked.resource}/inbox/inb_1/more"),
        ):
            with refuses(BadRequest, OauthError):
                oauth_consent.allow(tx, whole, wrong, Choice("read", ""), CONFIG, START)
        oauth_consent.allow(tx, whole, asked, Choice("send", inbox.id), CONFIG, START)
        return asked.client_id

    client_id = await db.write(run)
    assert await db.read(recorded, inbox.account_id) == [
        ("program.allowed", client_id, ADDRESS, inbox.pod_id, inbox.id)
    ]


@pytest.mark.sqlite_alone
async def test_only_so_many_keys_of_programs_reach_one_inbox(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        asked = ask_for_code(tx)
        whole = make_caller(tx, Scope(inbox.account_id))
        for _ in range(KEYS_OF_AN_INBOX):
            make_caller(tx, inbox.scope)
        with refuses(ApiKeyLimitReached):
            oauth_consent.allow(tx, whole, asked, Choice("read", inbox.id), CONFIG, START)

    await db.write(run)


async def test_a_grant_ends_with_the_key_of_its_maker(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account = Scope(inbox.account_id)
        for end in ("revoked", "expired"):
            maker = make_caller(tx, account)
            key = keys.get(tx, account.account_id, maker.key_id)
            keys.put(tx, replace(key, expires_at=START + DAY // 48))
            client_id, code = give_code(tx, caller_of_key(tx, key.id), account, "read")
            tokens = exchange(tx, code, client_id)
            assert tokens is not None
            granted = keys.find_caller(tx, tokens.access, START, may_be_bound=True)
            assert granted is not None
            assert granted.expires_at == START + DAY // 48
            later = START + 1
            if end == "revoked":
                tx.run("delete from keys where id = :id", id=key.id)
            else:
                later = START + DAY // 48
            assert keys.find_caller(tx, tokens.access, later, may_be_bound=True) is None, end
            assert grants.refresh(tx, tokens.refresh, client_id, None, later) is None, end
            assert keys.find(tx, account.account_id, granted.key_id) is None, end

    await db.write(run)


def test_an_ipv6_network_counts_as_one_address() -> None:
    assert oauth_clients.network_of("2001:db8:1:2:3::4") == "2001:db8:1:2::/64"
    assert oauth_clients.network_of("2001:db8:1:2:9::9") == "2001:db8:1:2::/64"
    assert oauth_clients.network_of("198.51.100.7") == "198.51.100.7"
    assert oauth_clients.network_of("unknown") == "unknown"


def test_a_redirect_to_a_host_that_only_begins_like_loopback_is_none() -> None:
    client = oauth_clients.OauthClient("prc_1", "x", ("http://[::1]/back", "http://127.0.0.1/back"), START)
    assert client.takes("http://[::1]:8080/back")
    assert client.takes("http://127.0.0.1:99/back")
    for other in ("http://[::1].evil.com/back", "http://[::1]evil.com/back", "http://x@[::1]/back"):
        assert not client.takes(other), other
        assert not oauth_clients.is_allowed_redirect(other), other
