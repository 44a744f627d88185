"""Signing in: a key, a link, an invitation, an email or a passkey becomes a session."""

from typing import NamedTuple
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from postroom import log
from postroom.accounts import accounts, audit, keys, sessions
from postroom.accounts.actors import USER, Actor
from postroom.accounts.keys import Caller
from postroom.accounts.people import mail_links, users
from postroom.accounts.people.passkeys import Passkey
from postroom.accounts.people.users import ACTIVE, OWNER, User
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInGrant, SignInOrigin
from postroom.config import Config
from postroom.errors import Forbidden, Unauthorized, no_such
from postroom.external_mailboxes import address_uses
from postroom.limits import SIGN_IN_LINK_MINUTES
from postroom.operations.people import passkeys
from postroom.operations.people.users import SIGN_IN_PATH, require_elsewhere
from postroom.outward.notices import system_emails
from postroom.storage.database import Tx

ACCOUNTS_OF_AN_ADDRESS = 10


class SignInInput(Struct, frozen=True):
    """The input of the sign-in page: one of the first four fields; the first owner also gives an address."""

    key: str = ""
    link: str = ""
    invitation: str = ""
    mail: str = ""  # the token of a sign-in link that was sent by mail
    name: str = ""
    email: str = ""


class Authenticated(NamedTuple):
    grant: SignInGrant
    name: str


class NewSession(NamedTuple):
    """A session to open after authentication; the browser's earlier session ends."""

    visitor: SignInOrigin
    token: str
    old_token: str


class Offer(NamedTuple):
    """What the page of a link shows about it."""

    asks_for_owner: bool = False
    user: User | None = None


def begin(tx: Tx, shown: SignInInput, new: NewSession, browser: str, config: Config, now: int) -> None:
    open_session(tx, prove(tx, shown, new.visitor, browser, config, now), new, now)


def begin_with_passkey(tx: Tx, passkey: Passkey, sign_count: int, new: NewSession, now: int) -> None:
    """Sign in with a passkey whose signature was verified before."""
    user = passkeys.use_passkey(tx, passkey, sign_count, now)
    open_session(tx, by(sessions.PASSKEY, of_user(user)), new, now)


def by(method: str, authenticated: Authenticated) -> Authenticated:
    """Record how the person signed in: decisions name it."""
    return authenticated._replace(grant=replace(authenticated.grant, method=method))


def open_session(tx: Tx, authenticated: Authenticated, new: NewSession, now: int) -> None:
    old = sessions.find(tx, new.old_token, now) if new.old_token else None
    if old is not None:
        old_session, old_caller = old
        sessions.remove(tx, old_caller.scope, old_session.id)
    session = sessions.add(tx, authenticated.grant, authenticated.name, new.visitor, new.token, now)
    if session.user_id is not None:
        sessions.mark_used(tx, session.id, now)


def prove(
    tx: Tx, shown: SignInInput, visitor: SignInOrigin, browser: str, config: Config, now: int
) -> Authenticated:
    """Authenticate the user. Return whose session it is, and a name for it."""
    if shown.invitation:
        invited = require_own_mailbox(tx, mail_links.take(tx, shown.invitation, "", now))
        return accept(tx, invited, shown.name.strip(), visitor, now)
    if shown.mail:
        return of_user(require_own_mailbox(tx, mail_links.take(tx, shown.mail, browser, now)))
    if shown.link:
        return prove_by_link(tx, shown, visitor, config, now)
    return prove_by_key(tx, shown, now)


def require_own_mailbox(tx: Tx, user: User) -> User:
    """Return the user, or raise if an agent reads that address: a link sent there proves nothing."""
    if address_uses.is_of_inbox(tx, user.account_id, user.email):
        raise Unauthorized(
            f"{user.email} is the address of an inbox of this server, where agents read. Sign in with a"
            " passkey, or have an owner invite you with another address."
        )
    return user


def accept(tx: Tx, user: User, name: str, visitor: SignInOrigin, now: int) -> Authenticated:
    """Accept an invitation: opening its link proves that the user has the address."""
    active = users.activate(tx, user, name)
    actor = Actor(USER, active.id, active.name or active.email)
    within = Scope(active.account_id)
    audit.record(tx, actor, "user.joined", active.id, within, now, address=visitor.address)
    return of_user(active)


def of_user(user: User, is_operator: bool = False) -> Authenticated:
    if user.state != ACTIVE:
        raise Unauthorized("This user has not accepted the invitation yet.")
    return Authenticated(users.sign_in_grant(user, is_operator), user.name or user.email)


def prove_by_link(
    tx: Tx, shown: SignInInput, visitor: SignInOrigin, config: Config, now: int
) -> Authenticated:
    link = sessions.take_link(tx, shown.link, now)
    if link is None:
        raise Unauthorized(
            "This link was already used, or has expired. `postroom login-link` prints a new one."
        )
    if link.user_id is not None:
        user = users.find(tx, link.user_id)
        if user is None:
            raise Unauthorized("The user of this link was removed.")
        return of_user(replace(user, state=ACTIVE) if user.state == ACTIVE else users.activate(tx, user, ""))
    accounts.lock(tx, link.account_id)
    if shown.email.strip() and not users.has_owner(tx, link.account_id):
        return make_first_owner(tx, link, shown, visitor, config, now)
    return Authenticated(link, shown.name.strip() or "owner")


def make_first_owner(
    tx: Tx, link: SignInGrant, shown: SignInInput, visitor: SignInOrigin, config: Config, now: int
) -> Authenticated:
    email = require_elsewhere(tx, link.account_id, users.require_email(shown.email.strip()), config)
    invited = users.find_by_email(tx, link.account_id, email)
    if invited is None:
        user = users.add(tx, link.account_id, email, shown.name.strip(), OWNER, (), ACTIVE, now)
    else:
        user = replace(invited, role=OWNER, pod_ids=(), state=ACTIVE, name=shown.name.strip() or invited.name)
        users.put(tx, user)
    address_uses.record(tx, user.account_id, user.id, [email])
    actor = Actor(USER, user.id, user.name or user.email)
    audit.record(tx, actor, "user.joined", user.id, Scope(user.account_id), now, address=visitor.address)
    return of_user(user, link.is_operator)


def prove_by_key(tx: Tx, shown: SignInInput, now: int) -> Authenticated:
    caller = keys.find_caller(tx, shown.key.strip(), now)
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    if caller.inbox_id is not None:
        raise Forbidden("A key of one inbox is for programs. Sign in with a key of the account or of a pod.")
    grant = SignInGrant(caller.account_id, caller.key_id, is_operator=False, by_key=True)
    return Authenticated(grant, shown.name.strip() or caller.key_name or "owner")


def look_at(tx: Tx, shown: SignInInput, now: int) -> Offer:
    """Return what the page of a link shows, without using the link."""
    if shown.invitation or shown.mail:
        link = mail_links.find(tx, shown.invitation or shown.mail, now)
        return Offer(user=None if link is None else link.user)
    grant = sessions.find_link(tx, shown.link, now) if shown.link else None
    if grant is None:
        return Offer()
    if grant.user_id is not None:
        return Offer(user=users.find(tx, grant.user_id))
    return Offer(asks_for_owner=not users.has_owner(tx, grant.account_id))


def choose_pod(tx: Tx, caller: Caller, pod_id: str, now: int) -> None:
    """Set the pod of the session, for users with several pods."""
    user = users.find(tx, caller.user_id or "")
    if caller.session_id is None or user is None or pod_id not in user.pod_ids:
        raise no_such("pod")
    sessions.choose_pod(tx, caller.session_id, pod_id)


def sign_out(tx: Tx, caller: Caller, now: int) -> None:
    sessions.remove(tx, caller.scope, caller.session_id or "")


def end_session(tx: Tx, caller: Caller, session_id: str, now: int) -> None:
    """End any session in the caller's scope, also of other users."""
    sessions.remove(tx, caller.scope, session_id)
    audit.record_by(tx, caller, "session.ended", session_id, now)


def end_other_sessions(tx: Tx, caller: Caller, now: int) -> int:
    """Ends the user's sessions in other browsers.

    Refused for a session opened with a key or a printed link: nobody knows which others are theirs.
    """
    if caller.user_id is None or caller.session_id is None:
        raise Forbidden("This session was opened with a key or a printed link, not by a user.")
    ended = sessions.remove_others(tx, caller.user_id, caller.session_id)
    audit.record_by(tx, caller, "sessions.ended", caller.user_id, now, after={"sessions": ended})
    return ended


def ask_for_link(tx: Tx, email: str, browser: str, wanted: str, config: Config, now: int) -> None:
    """Send a sign-in link if a user has the address. `wanted` is the page that it opens."""
    for user in users.list_active_of_address(tx, email, ACCOUNTS_OF_AN_ADDRESS):
        if address_uses.is_of_inbox(tx, user.account_id, user.email):
            log.get().seldom("no sign-in link goes to the address of an inbox", user=user.id)
            continue
        token = sessions.new_token()
        if mail_links.ask(tx, user, browser, token, now):
            account = accounts.get(tx, user.account_id)
            query = urlencode({"mail": token, "next": wanted})
            url = f"{config.base_url}{SIGN_IN_PATH}?{query}"
            text = (
                f"To sign in to the account {account.name}, open this page in the browser where you asked\n"
                f"for it, and press its button. It works once, within {SIGN_IN_LINK_MINUTES} minutes:\n\n"
                f"{url}\n\n"
                "If you did not ask for it, do nothing.\n"
            )
            system_emails.add(tx, user.account_id, user.id, user.email, "Sign in to Postroom", text, now)
