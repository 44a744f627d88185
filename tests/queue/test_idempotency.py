"""One key, one mail: the first answer is given again for a day, and another request is refused."""

import pytest
from msgspec.structs import replace

from postroom.clock import HOUR
from postroom.errors import BadRequest, IdempotencyKeyReused, MissingIdempotencyKey
from postroom.queue import idempotency
from postroom.queue.idempotency import Claim
from postroom.storage.database import Database
from tests.doubles import START

LIFETIME = 24 * HOUR
CLAIM = Claim("acc_1", "key", "hash", b"first", START)


async def test_the_first_claim_wins_and_its_answer_is_given_again(db: Database) -> None:
    assert await db.write(idempotency.claim_all, [CLAIM]) == [None]
    again = replace(CLAIM, answer=b"second", now=START + LIFETIME - 1)
    assert await db.write(idempotency.claim_all, [again]) == [b"first"]
    assert await db.read(idempotency.find_answer, "acc_1", "key", "hash", START + 1) == b"first"


async def test_another_request_under_the_same_key_is_refused(db: Database) -> None:
    await db.write(idempotency.claim_all, [CLAIM])
    with pytest.raises(IdempotencyKeyReused):
        await db.write(idempotency.claim_all, [replace(CLAIM, request_hash="other")])
    with pytest.raises(IdempotencyKeyReused):
        await db.read(idempotency.find_answer, "acc_1", "key", "other", START)


async def test_a_key_is_free_again_after_a_day_and_for_other_accounts_at_once(db: Database) -> None:
    await db.write(idempotency.claim_all, [CLAIM])
    other = replace(CLAIM, account_id="acc_2", answer=b"theirs")
    assert await db.write(idempotency.claim_all, [other]) == [None]
    assert await db.read(idempotency.find_answer, "acc_1", "key", "hash", START + LIFETIME) is None
    late = replace(CLAIM, request_hash="new", answer=b"late", now=START + LIFETIME)
    assert await db.write(idempotency.claim_all, [late]) == [None]
    assert await db.read(idempotency.find_answer, "acc_1", "key", "new", START + LIFETIME + 1) == b"late"
    assert await db.read(idempotency.find_answer, "acc_2", "key", "hash", START + 1) == b"theirs"


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
