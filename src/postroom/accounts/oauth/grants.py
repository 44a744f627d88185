"""Grants: what a person lets a program do. Each is a key, whose token a refresh token renews."""

import base64
import hashlib
import hmac
import secrets

from msgspec import Struct

from postroom.accounts import keys, permissions
from postroom.accounts.keys import Caller, Key, hash_token
from postroom.accounts.oauth.oauth_error import OauthError
from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR, SECOND
from postroom.storage.database import Row, Tx, insert

CODE_LIFETIME = 60 * SECOND
ACCESS_LIFETIME = HOUR
REFRESH_LIFETIME = 30 * DAY
# What a person may choose from, the safest useful one first.
LEVELS: dict[str, tuple[str, ...]] = {
    "draft": (permissions.READ, permissions.DRAFT),
    "read": permissions.READING,
    "send": permissions.OF_AN_INBOX,
}
INVALID_GRANT = "invalid_grant"


class Allowed(Struct, frozen=True):
    """What was allowed, and to whom. The maker is the key that stands for the person."""

    client_id: str
    redirect_uri: str
    challenge: str
    resource: str
    maker_id: str
    user_id: str | None
    within: Scope
    permissions: tuple[str, ...]


class Tokens(Struct, frozen=True):
    access: str
    refresh: str
    permissions: tuple[str, ...]


def add_code(tx: Tx, allowed: Allowed, now: int) -> str:
    code = secrets.token_urlsafe(32)
    insert(
        tx,
        "oauth_codes",
        code_hash=hash_token(code),
        client_id=allowed.client_id,
        redirect_uri=allowed.redirect_uri,
        challenge=allowed.challenge,
        resource=allowed.resource,
        account_id=allowed.within.account_id,
        user_id=allowed.user_id,
        maker_id=allowed.maker_id,
        pod_id=allowed.within.pod_id,
        inbox_id=allowed.within.inbox_id,
        permissions=" ".join(allowed.permissions),
        expires_at=now + CODE_LIFETIME,
    )
    return code


def exchange(
    tx: Tx,
    code: str,
    client_id: str,
    redirect_uri: str,
    verifier: str,
    resource: str | None,
    name: str,
    now: int,
) -> Tokens | None:
    """Return None if the code was used before: its grant has then ended, which must be committed."""
    row = tx.one("select * from oauth_codes where code_hash = :code_hash", code_hash=hash_token(code))
    if row is None:
        raise OauthError("This code is unknown.", oauth=INVALID_GRANT)
    if row["key_id"] is not None:
        end(tx, row["key_id"])
        return None
    _require_fitting(row, client_id, redirect_uri, verifier, resource, now)
    maker = keys.find_caller_by_id(tx, row["maker_id"], now)
    if maker is None or not set(row["permissions"].split()) <= maker.permissions:
        raise OauthError("The person who allowed it may no longer do that.", oauth=INVALID_GRANT)
    tokens = Tokens(keys.new_token(), new_refresh_token(), tuple(row["permissions"].split()))
    key = keys.add(
        tx,
        row["account_id"],
        row["inbox_id"],
        name,
        tokens.access,
        now,
        pod_id=row["pod_id"],
        asked=tokens.permissions,
        expires_at=_access_ends(maker, now),
        creator=maker,
        kind=keys.OAUTH,
        resource=row["resource"],
    )
    used = "update oauth_codes set key_id = :key_id where code_hash = :code_hash"
    tx.run(used, key_id=key.id, code_hash=hash_token(code))
    _keep_grant(tx, row, key, client_id, tokens, now)
    return tokens


def _access_ends(maker: Caller, now: int) -> int:
    """Return when the access token expires: never later than the key of the person who allowed it."""
    ends = now + ACCESS_LIFETIME
    return ends if maker.expires_at is None else min(ends, maker.expires_at)


def _keep_grant(tx: Tx, row: Row, key: Key, client_id: str, tokens: Tokens, now: int) -> None:
    insert(
        tx,
        "oauth_grants",
        key_id=key.id,
        account_id=row["account_id"],
        user_id=row["user_id"],
        client_id=client_id,
        resource=row["resource"],
        refresh_hash=hash_token(tokens.refresh),
        expires_at=now + REFRESH_LIFETIME,
        created_at=now,
    )


def _require_fitting(
    row: Row, client_id: str, redirect_uri: str, verifier: str, resource: str | None, now: int
) -> None:
    if row["expires_at"] <= now:
        raise OauthError("This code has expired.", oauth=INVALID_GRANT)
    if row["client_id"] != client_id or row["redirect_uri"] != redirect_uri:
        raise OauthError("This code was given to another program or redirect.", oauth=INVALID_GRANT)
    if not hmac.compare_digest(row["challenge"], challenge_of(verifier)):
        raise OauthError("code_verifier does not match the challenge.", oauth=INVALID_GRANT)
    if resource is not None and row["resource"] != resource:
        raise OauthError("The code is for another resource.", oauth="invalid_target")


def refresh(tx: Tx, token: str, client_id: str, resource: str | None, now: int) -> Tokens | None:
    """Return None if the token was used before, or its maker has ended: then so has the grant, which
    must be committed.
    """
    old = hash_token(token)
    row = tx.one("select * from oauth_grants where refresh_hash = :old", old=old)
    if row is None:
        used = tx.one("select key_id from oauth_used_tokens where token_hash = :old", old=old)
        if used is None:
            raise OauthError("This refresh token is unknown, revoked or expired.", oauth=INVALID_GRANT)
        end(tx, used["key_id"])
        return None
    key = keys.find(tx, row["account_id"], row["key_id"])
    if row["client_id"] != client_id or row["expires_at"] <= now or key is None:
        raise OauthError("This refresh token is unknown, revoked or expired.", oauth=INVALID_GRANT)
    if resource is not None and row["resource"] != resource:
        raise OauthError("The grant is for another resource.", oauth="invalid_target")
    maker = keys.find_caller_by_id(tx, key.created_by or "", now)
    if maker is None:
        end(tx, key.id)
        return None
    tokens = Tokens(keys.new_token(), new_refresh_token(), key.permissions)
    changed = tx.run(
        "update oauth_grants set refresh_hash = :new, expires_at = :expires_at where refresh_hash = :old",
        new=hash_token(tokens.refresh),
        expires_at=now + REFRESH_LIFETIME,
        old=old,
    )
    if not changed:  # another request was faster with the same token
        end(tx, key.id)
        return None
    insert(tx, "oauth_used_tokens", token_hash=old, key_id=key.id, expires_at=row["expires_at"])
    keys.renew(tx, key.id, tokens.access, _access_ends(maker, now))
    return tokens


def revoke(tx: Tx, token: str) -> str | None:
    """Revoke a grant by either of its tokens. Return the key that was revoked."""
    hashed = hash_token(token)
    row = tx.one(
        "select oauth_grants.key_id from oauth_grants join keys on keys.id = oauth_grants.key_id"
        " where oauth_grants.refresh_hash = :hashed or keys.token_hash = :hashed",
        hashed=hashed,
    )
    if row is None:
        return None
    end(tx, row["key_id"])
    return str(row["key_id"])


def end(tx: Tx, key_id: str) -> None:
    tx.run("delete from oauth_grants where key_id = :id", id=key_id)
    tx.run("delete from keys where id = :id", id=key_id)


def remove_expired(tx: Tx, now: int, rows: int) -> int:
    """Grants with an expired refresh token, with their keys; and grants whose key was revoked."""
    found = tx.all(
        "select key_id from oauth_grants where expires_at <= :now order by expires_at limit :rows",
        now=now,
        rows=rows,
    )
    for row in found:
        end(tx, row["key_id"])
    orphans = tx.run(
        "delete from oauth_grants where key_id in (select oauth_grants.key_id from oauth_grants"
        " left join keys on keys.id = oauth_grants.key_id where keys.id is null limit :rows)",
        rows=rows,
    )
    return len(found) + orphans


def new_refresh_token() -> str:
    return "prr_" + secrets.token_urlsafe(32)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636, 4.2)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
