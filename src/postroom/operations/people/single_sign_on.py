"""Single sign-on: an OpenID Connect provider proves a person's address, and the user of it is signed in."""

import secrets
from typing import NamedTuple

import msgspec
from msgspec import Struct

from postroom.accounts import accounts, audit, sessions
from postroom.accounts.actors import USER, Actor
from postroom.accounts.people import challenges, users
from postroom.accounts.people.users import ACTIVE, User
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInOrigin
from postroom.config import Config
from postroom.errors import Unauthorized
from postroom.external_mailboxes import address_uses
from postroom.limits import SIGN_IN_NAME_CHARACTERS
from postroom.operations.people.sign_in import Authenticated, NewSession, accept, by, of_user, open_session
from postroom.operations.people.users import require_elsewhere
from postroom.storage.database import Tx


class Attempt(Struct, frozen=True):
    """Stored until the provider's answer comes. The verifier is known only to this server."""

    nonce: str
    verifier: str
    next: str


class ProvenAddress(NamedTuple):
    email: str
    name: str


def is_offered(config: Config) -> bool:
    return bool(config.oidc_issuer)


def begin_attempt(tx: Tx, state: str, browser: str, wanted: str, now: int) -> Attempt:
    attempt = Attempt(secrets.token_urlsafe(32), secrets.token_urlsafe(48), wanted)
    stored = msgspec.json.encode(attempt).decode()
    challenges.add(tx, challenges.SINGLE_SIGN_ON, state, browser, now, stored)
    return attempt


def take_attempt(tx: Tx, state: str, browser: str, now: int) -> Attempt:
    """Take a sign-in attempt: once, and only in the browser that began it."""
    stored = challenges.take(tx, challenges.SINGLE_SIGN_ON, state, browser, now)
    return msgspec.json.decode(stored, type=Attempt)


def begin_with_address(tx: Tx, proven: ProvenAddress, new: NewSession, config: Config, now: int) -> None:
    proved = find_or_make(tx, proven, new.visitor, config, now)
    open_session(tx, by(sessions.OPENID, proved), new, now)


def find_or_make(
    tx: Tx, proven: ProvenAddress, visitor: SignInOrigin, config: Config, now: int
) -> Authenticated:
    """Return the user of this address (active first, then oldest), or a new one if that is set up."""
    email = users.require_email(proven.email)
    user = users.find_of_address(tx, email)
    if user is None:
        user = make_user(tx, email, proven.name, config, now)
    return of_user(user) if user.state == ACTIVE else accept(tx, user, clean(proven.name), visitor, now)


def make_user(tx: Tx, email: str, name: str, config: Config, now: int) -> User:
    account = accounts.find_first(tx) if config.oidc_role else None
    if account is None:
        raise Unauthorized(
            "No user here has the address that you signed in with. Ask an owner to invite you."
        )
    accounts.lock(tx, account.id)
    found = users.find_by_email(tx, account.id, require_elsewhere(tx, account.id, email, config))
    if found is not None:
        return found  # created by another node a moment ago
    user = users.add(tx, account.id, email, clean(name), config.oidc_role, (), ACTIVE, now)
    address_uses.record(tx, user.account_id, user.id, [email])
    actor = Actor(USER, user.id, user.name or user.email)
    audit.record(tx, actor, "user.joined", user.id, Scope(account.id), now)
    return user


def clean(name: str) -> str:
    """Return the provider's name for the user, shortened and without characters that a name may not have."""
    printable = "".join(character for character in name if character.isprintable())
    return printable.strip()[:SIGN_IN_NAME_CHARACTERS]
