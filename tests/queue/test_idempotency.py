"""One key, one mail: the first answer is given again for a day, and another request is refused."""

from typing import cast

import msgspec
import pytest
from msgspec import Struct, structs
from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.clock import HOUR
from postroom.errors import BadRequest, IdempotencyKeyReused, MissingIdempotencyKey
from postroom.mailbox.inboxes import Inbox
from postroom.operations.sending.files import SentFile
from postroom.operations.sending.send import SendBody, hash_body
from postroom.queue import idempotency
from postroom.queue.idempotency import Claim
from postroom.storage.database import Database
from tests.doubles import START

LIFETIME = 24 * HOUR
HASH, OTHER = idempotency.hash_request(b"said"), idempotency.hash_request(b"else")
REACH, INBOX = Scope("acc_1"), Inbox("inb_1", "acc_1", "a@here.example", None, START, "pod_1")
CLAIM = Claim(REACH, INBOX, "key", HASH, b"first", START)


@pytest.mark.sqlite_alone
async def test_the_first_claim_wins_and_its_answer_is_given_again(db: Database) -> None:
    assert await db.write(idempotency.claim_all, [CLAIM]) == [None]
    again = replace(CLAIM, answer=b"second", now=START + LIFETIME - 1)
    assert await db.write(idempotency.claim_all, [again]) == [b"first"]
    assert await db.read(idempotency.find_answer, REACH, INBOX, "key", HASH, START + 1) == b"first"


@pytest.mark.sqlite_alone
async def test_another_request_under_the_same_key_is_refused(db: Database) -> None:
    await db.write(idempotency.claim_all, [CLAIM])
    with pytest.raises(IdempotencyKeyReused):
        await db.write(idempotency.claim_all, [replace(CLAIM, request_hash=OTHER)])
    with pytest.raises(IdempotencyKeyReused):
        await db.read(idempotency.find_answer, REACH, INBOX, "key", OTHER, START)


@pytest.mark.sqlite_alone
async def test_a_key_is_free_again_after_a_day_and_for_other_accounts_at_once(db: Database) -> None:
    await db.write(idempotency.claim_all, [CLAIM])
    other = replace(CLAIM, scope=Scope("acc_2"), answer=b"theirs")
    assert await db.write(idempotency.claim_all, [other]) == [None]
    assert await db.read(idempotency.find_answer, REACH, INBOX, "key", HASH, START + LIFETIME) is None
    late = replace(CLAIM, request_hash=OTHER, answer=b"late", now=START + LIFETIME)
    assert await db.write(idempotency.claim_all, [late]) == [None]
    assert await db.read(idempotency.find_answer, REACH, INBOX, "key", OTHER, START + LIFETIME + 1) == b"late"
    assert await db.read(idempotency.find_answer, Scope("acc_2"), INBOX, "key", HASH, START + 1) == b"theirs"


@pytest.mark.sqlite_alone
async def test_claims_made_together_are_answered_in_their_order(db: Database) -> None:
    await db.write(idempotency.claim_all, [replace(CLAIM, key="b", answer=b"known")])
    claims = [replace(CLAIM, key=key, answer=key.encode()) for key in ("c", "b", "a")]
    assert await db.write(idempotency.claim_all, claims) == [None, b"known", None]


def test_a_key_is_visible_characters_and_not_too_long() -> None:
    assert idempotency.require_key("x" * 255) == "x" * 255
    for wrong in ("x" * 256, "a b", "\x7f", "ü", "a\n"):
        with pytest.raises(BadRequest):
            idempotency.require_key(wrong)
    for missing in (None, ""):
        with pytest.raises(MissingIdempotencyKey):
            idempotency.require_key(missing)


def test_parts_of_a_request_cannot_be_shifted_into_each_other() -> None:
    assert idempotency.hash_request(b"ab", b"c") != idempotency.hash_request(b"a", b"bc")
    assert idempotency.hash_request(b"a") != idempotency.hash_request(b"a", b"")


@pytest.mark.sqlite_alone
async def test_a_key_used_before_an_upgrade_gets_its_answer_however_requests_were_hashed_then(
    db: Database,
) -> None:
    await db.write(idempotency.claim_all, [replace(CLAIM, request_hash="0" * 64)])
    assert await db.write(idempotency.claim_all, [replace(CLAIM, answer=b"second")]) == [b"first"]
    assert await db.read(idempotency.find_answer, REACH, INBOX, "key", HASH, START) == b"first"


class EarlierBody(Struct, rename="camel", frozen=True, omit_defaults=True):
    """The body of a send as an earlier version may have had it: fewer fields, in another order."""

    headers: dict[str, str] = {}
    attachments: list[SentFile] = []
    subject: str | None = None
    to: str | list[str] = ""
    body: str = ""


def test_a_request_keeps_its_hash_when_the_type_of_the_body_changes() -> None:
    said = {"body": "Hi", "to": ["a@x.example"], "subject": "S", "headers": {"X-B": "1", "X-A": "2"}}
    files = [SentFile("a.txt", b"content", "text/plain")]
    now = structs.replace(msgspec.convert(said, SendBody), attachments=files)
    before = structs.replace(msgspec.convert(said, EarlierBody), attachments=files)
    assert hash_body("inb_1", now) == hash_body("inb_1", cast(SendBody, before))
    other = structs.replace(now, attachments=[SentFile("a.txt", b"another", "text/plain")])
    assert hash_body("inb_1", now) != hash_body("inb_1", other)
    assert hash_body("inb_1", now) != hash_body("inb_2", now)
