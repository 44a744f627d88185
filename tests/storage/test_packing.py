"""Packed bytes: read as they were, whichever words they share, and known from those that are not packed."""

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.storage import packing
from postroom.storage.packing import SHARING_WORDS_BYTES, WORTH_PACKING_BYTES

LETTER = b'{"id":"msg_01","subject":"Hello","bodyText":"Thank you for your message. See you soon."}'


@pytest.mark.parametrize("count", [1, 5, 100, 2_000, 20_000])
def test_what_is_packed_is_shorter_and_read_as_it_was(count: int) -> None:
    plain = LETTER * count
    packed = packing.pack(plain)
    if len(plain) < WORTH_PACKING_BYTES:
        assert packed is None
    else:
        assert packed is not None
        assert len(packed) < len(plain) / 2
        assert packing.unpack(packed) == plain


@given(st.binary(max_size=2_000), st.integers(1, 20))
def test_any_bytes_are_read_as_they_were(plain: bytes, times: int) -> None:
    packed = packing.pack(plain * times)
    assert packed is None or packing.unpack(packed) == plain * times


@pytest.mark.parametrize("size", [SHARING_WORDS_BYTES // 2, SHARING_WORDS_BYTES * 2])
def test_what_cannot_be_made_shorter_is_not_packed(size: int) -> None:
    assert packing.pack(os.urandom(size)) is None


def test_json_is_read_packed_or_not() -> None:
    packed = packing.pack(LETTER * 9)
    assert packed is not None
    assert packing.unpack_json(packed) == LETTER * 9
    assert packing.unpack_json(LETTER) == LETTER


@pytest.mark.parametrize("damaged", [b"", LETTER, packing.MAGIC, (packing.pack(LETTER * 9) or b"")[:-3]])
def test_what_was_never_packed_or_is_damaged_is_told(damaged: bytes) -> None:
    with pytest.raises(packing.NotPacked):
        packing.unpack(damaged)


def test_the_words_stay_what_they_were() -> None:
    """Rows were packed with them. Other words need a file and a mark of their own."""
    assert (
        hashlib.sha256(packing.WORDS).hexdigest()
        == "208d3b2a5a9aa35921243570a40cc00605124bf1994e872a1ba1826158ec9ec1"
    )
