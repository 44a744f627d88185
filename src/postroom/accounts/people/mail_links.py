"""Links sent by mail: an invitation, or a sign-in link, which only works in the browser that asked."""

import hmac

from msgspec import Struct

from postroom import limits
from postroom.accounts.keys import hash_token
from postroom.accounts.people import users
from postroom.accounts.people.users import User
from postroom.clock import HOUR, MINUTE
from postroom.errors import Unauthorized
from postroom.storage.database import Tx, count, insert

INVITATION, SIGN_IN = "invitation", "sign_in"
INVITATION_LIFETIME = limits.INVITATION_HOURS * HOUR
SIGN_IN_LIFETIME = limits.SIGN_IN_LINK_MINUTES * MINUTE
SIGN_IN_LINKS_AN_HOUR = 5


class MailLink(Struct, frozen=True):
    purpose: str
    user: User
    browser_hash: str | None


def invite(tx: Tx, user: User, token: str, now: int) -> None:
    """Store an invitation. It replaces an earlier one."""
    tx.run("delete from mail_links where user_id = :id and purpose = 'invitation'", id=user.id)
    _add(tx, user, INVITATION, None, token, now, now + INVITATION_LIFETIME)


def ask(tx: Tx, user: User, browser: str, token: str, now: int) -> bool:
    """Return False if this user was sent enough of them: else anyone could flood a mailbox."""
    lately = "from mail_links where user_id = :id and purpose = 'sign_in' and created_at > :since"
    asked = count(tx, f"select count(*) as number {lately}", id=user.id, since=now - HOUR)
    if asked >= SIGN_IN_LINKS_AN_HOUR:
        return False
    _add(tx, user, SIGN_IN, hash_token(browser), token, now, now + SIGN_IN_LIFETIME)
    return True


def _add(
    tx: Tx, user: User, purpose: str, browser_hash: str | None, token: str, now: int, expires_at: int
) -> None:
    insert(
        tx,
        "mail_links",
        token_hash=hash_token(token),
        account_id=user.account_id,
        user_id=user.id,
        purpose=purpose,
        browser_hash=browser_hash,
        created_at=now,
        expires_at=expires_at,
    )


def find(tx: Tx, token: str, now: int) -> MailLink | None:
    """Does not use the link up."""
    row = tx.one("select * from mail_links where token_hash = :token_hash", token_hash=hash_token(token))
    if row is None or row["expires_at"] <= now:
        return None
    user = users.find(tx, row["user_id"])
    return None if user is None else MailLink(row["purpose"], user, row["browser_hash"])


def take(tx: Tx, token: str, browser: str, now: int) -> User:
    """Works once; a sign-in link only in the browser that asked for it."""
    link = find(tx, token, now)
    if link is None:
        raise Unauthorized("This link was already used, or has expired. Ask for a new one.")
    if link.browser_hash is not None and not hmac.compare_digest(link.browser_hash, hash_token(browser)):
        raise Unauthorized("Open this link in the browser that asked for it, or ask for a new one here.")
    if not tx.run("delete from mail_links where token_hash = :token_hash", token_hash=hash_token(token)):
        raise Unauthorized("This link was already used, or has expired. Ask for a new one.")
    return link.user
