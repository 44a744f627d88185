"""The signed mark of the server's own letters and notices to people, by which it recognizes them later.

Their links sign a person in, or decide for one: they go into no inbox. Only this server can make a mark, so
nobody makes the email of others disappear by pretending to be a letter.
"""

import base64
import hashlib
import hmac
import re
import secrets

from postroom import log
from postroom.accounts import secret_values
from postroom.accounts.keys import hash_token
from postroom.mail import headers
from postroom.mail.writing import review_path
from postroom.mail.writing.compose import ascii_domain
from postroom.storage.database import Tx, insert_new

FIELD = "X-Postroom-Letter"
CONTEXT = b"postroom letter\x00"  # nothing else is signed with the same secret and this prefix
UNIQUE_BYTES, SIGNATURE_BYTES = 16, 14  # 30 bytes are 48 letters, without padding
HEAD_BYTES = 64 * 1024  # relays add fields above ours, seldom more than a few kB
MOST_MARKS = 4

# Some relays replace the Message-ID, others remove unknown fields: either is enough.
_MARK = re.compile(r"[a-z2-7]{48}")
_MESSAGE_ID = re.compile(r"<letter\.([a-z2-7]{48})@")

MOST_LINKS = 20
# Also as rewritten by a service that puts its own address before each link.
_SIGN_IN = re.compile(r"sign-in(?:\?|%3[Ff])(?:invitation|mail)(?:=|%3[Dd])([\w-]{43})(?![\w-])", re.ASCII)
_REVIEW = re.compile(r"/review(?:/|%2[Ff])([a-z2-7]{56})", re.ASCII)


def new_mark(tx: Tx) -> str:
    unique = secrets.token_bytes(UNIQUE_BYTES)
    return base64.b32encode(unique + _sign(_secret(tx), unique)).decode().lower()


def message_id(mark: str, domain: str) -> str:
    return f"<letter.{mark}@{ascii_domain('domain', domain)}>"


def find_marks(raw: bytes) -> tuple[str, ...]:
    """Return what looks like a mark in the email's own header; most email has none."""
    head = raw[:HEAD_BYTES].lower()
    if FIELD.lower().encode() not in head and b"<letter." not in head:
        return ()
    fields = headers.split(raw, 0).headers
    named = [*_MESSAGE_ID.findall(fields.joined("message-id")), *_MARK.findall(fields.joined(FIELD.lower()))]
    return tuple(named[:MOST_MARKS])


def is_own(tx: Tx, marks: tuple[str, ...]) -> bool:
    """Whether this server signed one of these marks."""
    if not marks:
        return False
    secret = _secret(tx)
    return any(_is_genuine(secret, base64.b32decode(mark.upper())) for mark in marks)


def _is_genuine(secret: bytes, mark: bytes) -> bool:
    return hmac.compare_digest(mark[UNIQUE_BYTES:], _sign(secret, mark[:UNIQUE_BYTES]))


def _secret(tx: Tx) -> bytes:
    return secret_values.get(tx, secret_values.LETTER)


def _sign(secret: bytes, unique: bytes) -> bytes:
    return hmac.digest(secret, CONTEXT + unique, hashlib.sha256)[:SIGNATURE_BYTES]


def end_shown_links(tx: Tx, inbox_id: str, texts: tuple[str, ...], now: int) -> None:
    """Ends links to people that came into an inbox, in the text that a person or a mail rule forwarded.

    The email itself is kept. A stranger ends nothing: nobody can guess a link.
    """
    for text in texts:
        if "sign-in" not in text and "review" not in text:
            continue
        for token in set(_SIGN_IN.findall(text)[:MOST_LINKS]):
            if tx.run("delete from mail_links where token_hash = :hash", hash=hash_token(token)):
                log.get().error("a sign-in link came into an inbox and was ended", inbox=inbox_id)
        for token in set(_REVIEW.findall(text)[:MOST_LINKS]):
            if review_path.decode(secret_values.get(tx, secret_values.REVIEW), token) is not None:
                insert_new(tx, "shown_links", token_hash=hash_token(token), shown_at=now)
                log.get().error("a review link came into an inbox and was ended", inbox=inbox_id)


def is_shown(tx: Tx, token: str) -> bool:
    """Whether agents may have read this link of a reviewer."""
    shown = "select 1 as found from shown_links where token_hash = :hash"
    return tx.one(shown, hash=hash_token(token.lower())) is not None
