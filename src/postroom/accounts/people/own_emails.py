"""The signed mark of the server's own emails and notices to people, by which it recognizes them later.

Their links sign a person in, or decide for one: they go into no inbox. Only this server can make a mark, so
nobody makes the email of others disappear by pretending to be one.
"""

import base64
import hashlib
import hmac
import re
import secrets
from itertools import islice

from postroom import log
from postroom.accounts import secret_values
from postroom.accounts.keys import hash_token
from postroom.storage.database import Tx, insert_new, one_of
from postroom_mail.mime import headers
from postroom_mail.writing import review_path
from postroom_mail.writing.compose import ascii_domain

FIELD = "X-Postroom-Letter"
CONTEXT = b"postroom letter\x00"  # nothing else is signed with the same secret and this prefix
UNIQUE_BYTES, SIGNATURE_BYTES = 16, 14  # 30 bytes are 48 letters, without padding
HEAD_BYTES = 64 * 1024  # relays add fields above ours, seldom more than a few kB
MOST_MARKS = 4

# Some relays replace the Message-ID, others remove unknown fields: either is enough.
_MARK = re.compile(r"[a-z2-7]{48}")
_MESSAGE_ID = re.compile(r"<letter\.([a-z2-7]{48})@")

# More than the text of a notice can hold: it shows the email of an agent, which may write any number of
# false links above the true one.
MOST_LINKS = 10_000
TOGETHER = 500
# Also as rewritten by a service that puts its own address before each link.
_SIGN_IN = re.compile(r"sign-in(?:\?|%3[Ff])(?:invitation|mail)(?:=|%3[Dd])([\w-]{43})(?![\w-])", re.ASCII)
# In lower case. The address that a notice is answered at has the same token as its link.
_REVIEW = re.compile(r"review(?:[/+]|%2[fb])([a-z2-7]{56})", re.ASCII)


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
    """Return whether this server signed one of these marks."""
    if not marks:
        return False
    secret = _secret(tx)
    return any(_is_genuine(secret, base64.b32decode(mark.upper())) for mark in marks)


def _is_genuine(secret: bytes, mark: bytes) -> bool:
    return hmac.compare_digest(mark[UNIQUE_BYTES:], _sign(secret, mark[:UNIQUE_BYTES]))


def _secret(tx: Tx) -> bytes:
    return secret_values.get(tx, secret_values.SYSTEM_EMAIL)


def _sign(secret: bytes, unique: bytes) -> bytes:
    return hmac.digest(secret, CONTEXT + unique, hashlib.sha256)[:SIGNATURE_BYTES]


def end_shown_links(tx: Tx, inbox_id: str, texts: tuple[str, ...], now: int) -> None:
    """Ends links to people that came into an inbox, in the text that a person or an email rule forwarded.

    The email itself is kept. A stranger ends nothing: nobody can guess a link.
    """
    for text in texts:
        if "sign-in" in text:
            _end_sign_in(tx, inbox_id, _tokens(_SIGN_IN, text))
        folded = text.lower()  # servers may change the case of an address
        if "review" in folded:
            _end_reviews(tx, inbox_id, _tokens(_REVIEW, folded), now)


def _tokens(pattern: re.Pattern[str], text: str) -> list[str]:
    return list(islice(dict.fromkeys(match[1] for match in pattern.finditer(text)), MOST_LINKS))


def _end_sign_in(tx: Tx, inbox_id: str, tokens: list[str]) -> None:
    for start in range(0, len(tokens), TOGETHER):
        is_named, named = one_of(
            "token_hash", [hash_token(each) for each in tokens[start : start + TOGETHER]]
        )
        if tx.run(f"delete from mail_links where {is_named}", **named):
            log.get().error("a sign-in link came into an inbox and was ended", inbox=inbox_id)


def _end_reviews(tx: Tx, inbox_id: str, tokens: list[str], now: int) -> None:
    if not tokens:
        return
    secret = secret_values.get(tx, secret_values.REVIEW)
    for token in tokens:
        if review_path.decode(secret, token) is not None:
            insert_new(tx, "shown_links", token_hash=hash_token(token), shown_at=now)
            log.get().error("a review link came into an inbox and was ended", inbox=inbox_id)


def is_shown(tx: Tx, token: str) -> bool:
    """Return whether agents may have read this link of a reviewer."""
    shown = "select 1 as found from shown_links where token_hash = :hash"
    return tx.one(shown, hash=hash_token(token.lower())) is not None
