"""A return path says which recipient bounced, and only we can have written it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.writing.return_path import BouncePath, decode, encode
from tests.samples import samples

SECRET = b"k" * 32
MESSAGE = "msg_0199f0a1b2c37d4e8f00112233445566"
DAY = 20_771


def test_a_return_path_fits_a_local_part_and_names_the_recipient() -> None:
    local = encode(SECRET, MESSAGE, 49, DAY)
    assert local.startswith("bounces+")
    assert len(local) == 64
    assert decode(SECRET, local, DAY, 7) == BouncePath(MESSAGE, 49, DAY)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 255), st.integers(0, 65_535))
def test_every_recipient_of_every_message_reads_back(raw_id: bytes, index: int, day: int) -> None:
    path = BouncePath(f"msg_{raw_id.hex()}", index, day)
    local = encode(SECRET, path.message_id, index, day)
    assert decode(SECRET, local, day, 0) == path
    assert decode(SECRET, local.upper(), day, 0) == path


@samples(("age", "is_read"), [(-2, False), (-1, True), (0, True), (7, True), (8, False)])
def test_a_return_path_is_read_for_as_long_as_it_may_be(age: int, is_read: bool) -> None:
    assert (decode(SECRET, encode(SECRET, MESSAGE, 0, DAY), DAY + age, 7) is not None) is is_read


def test_another_secret_reads_nothing() -> None:
    assert decode(b"x" * 32, encode(SECRET, MESSAGE, 0, DAY), DAY, 7) is None


def test_a_change_of_any_letter_is_noticed() -> None:
    local = encode(SECRET, MESSAGE, 0, DAY)
    for place in range(len("bounces+"), len(local)):
        changed = local[:place] + ("a" if local[place] != "a" else "b") + local[place + 1 :]
        assert decode(SECRET, changed, DAY, 7) is None


@given(st.text(max_size=80) | st.text("abcdefgh234567", min_size=56, max_size=56).map("bounces+".__add__))
def test_no_other_text_is_a_return_path(local_part: str) -> None:
    assert decode(SECRET, local_part, DAY, 7) is None


@samples("bad", ["", "msg_", "msg_xyz", "thr_" + "0" * 32, MESSAGE.upper(), MESSAGE + "\n"])
def test_only_a_message_id_can_be_encoded(bad: str) -> None:
    with pytest.raises(ValueError, match="not an id of the kind msg"):
        encode(SECRET, bad, 0, DAY)
