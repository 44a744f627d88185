"""Challenges: random values that must come back once, from the browser they were given to."""

import hmac

from postroom.accounts.keys import hash_token
from postroom.clock import MINUTE
from postroom.errors import Unauthorized
from postroom.storage.database import Tx, insert

LIFETIME = 10 * MINUTE
ADD_PASSKEY, USE_PASSKEY, SINGLE_SIGN_ON = "add_passkey", "use_passkey", "single_sign_on"
MAILBOX_CONSENT = "mailbox_consent"
REFUSED = "This attempt has expired, was already used, or began in another browser. Try again."


def add(tx: Tx, purpose: str, token: str, holder: str, now: int, more: str = "") -> None:
    """Store a challenge. `holder` is a secret of its browser or session; `more` is returned with it."""
    insert(
        tx,
        "challenges",
        token_hash=hash_token(token),
        purpose=purpose,
        value=f"{hash_token(holder)} {more}",
        expires_at=now + LIFETIME,
    )


def take(tx: Tx, purpose: str, token: str, holder: str, now: int) -> str:
    """Returns what was stored with it. It can be used only once."""
    row = tx.one(
        "delete from challenges where token_hash = :token_hash and purpose = :purpose"
        " returning value, expires_at",
        token_hash=hash_token(token),
        purpose=purpose,
    )
    if row is None or row["expires_at"] <= now:
        raise Unauthorized(REFUSED)
    of_holder, _, more = str(row["value"]).partition(" ")
    if not hmac.compare_digest(of_holder, hash_token(holder)):
        raise Unauthorized(REFUSED)
    return more
