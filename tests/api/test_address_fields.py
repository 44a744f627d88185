"""The lists of recipients of a request: what is an entry, and what is refused before it is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import BadRequest
from postroom.operations.sending.address_fields import (
    LIST_LIMIT_CHARACTERS,
    LIST_LIMIT_ENTRIES,
    read_addresses,
    read_reply_to,
)
from postroom_mail.mime.address import Address
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone

LISTS: tuple[tuple[str | list[str], list[Address]], ...] = (
    ("a@b.example", [Address("", "a@b.example")]),
    (" a@b.example , , c@d.example,", [Address("", "a@b.example"), Address("", "c@d.example")]),
    ('"Ann, of <Bonn>" <a@b.example>', [Address("Ann, of <Bonn>", "a@b.example")]),
    (r'"Ann \"A, B\"" <a@b.example>', [Address('Ann "A, B"', "a@b.example")]),
    ("Ann <a@b.example>, Ben <c@d.example>", [Address("Ann", "a@b.example"), Address("Ben", "c@d.example")]),
    (
        ["a@b.example", "c@d.example, e@f.example"],
        [Address("", f"{x}.example") for x in ("a@b", "c@d", "e@f")],
    ),
    (" , ", []),
)


@samples(("given", "expected"), LISTS)
def test_a_list_is_told_apart_at_the_commas_outside_of_quotes_and_brackets(
    given: str | list[str], expected: list[Address]
) -> None:
    assert list(read_addresses("to", given)) == expected


@given(
    st.from_regex(
        r"[a-z1=?!#$%&'*+/^_`{|}~.-]{1,12}@[A-Za-z0-9.?=-]{1,12}\.(com|de|[a-z]{1,3})", fullmatch=True
    )
)
def test_an_address_alone_is_read_as_in_a_list(written: str) -> None:
    try:
        expected: object = read_addresses("to", [written])
    except BadRequest as error:
        expected = error.message
    try:
        found: object = read_addresses("to", written)
    except BadRequest as error:
        found = error.message
    assert found == expected


REFUSED = (
    ('"a@b.example', 'Its " is never closed.'),
    ("Ann <a@b.example", "Its < is never closed."),
    ('"Ann\\" <a@b.example>', 'Its " is never closed.'),
    ("<" * 49_000, "Its < is never closed."),
    ('"\\' * 12_000, 'Its " is never closed.'),
    ('"' * 49_000, "2000 characters"),
    ("<>" * 24_000, "2000 characters"),
    ("<," * 24_000, "Its < is never closed."),
    ("a@b.example," * 4_000, "50 recipients"),
    (["a@b.example"] * 51, "50 recipients"),
    ("," * (LIST_LIMIT_CHARACTERS + 1), "more than 50,000 characters"),
    ([""] * (LIST_LIMIT_CHARACTERS + 2), "more than 50,000 characters"),
    ("a" * 2_001, "2000 characters"),
    ("a@b.example\x00", "control characters"),
    ("a@b.example c@d.example", "not an email address"),
    ("nobody", "not an email address"),
)


@samples(("given", "reason"), REFUSED)
def test_what_cannot_be_read_is_refused_with_the_field_and_the_reason(
    given: str | list[str], reason: str
) -> None:
    with pytest.raises(BadRequest) as error:
        read_addresses("cc", given)
    assert reason in error.value.message
    assert error.value.extras["field"] == "cc"
    assert len(error.value.message) < 400


def test_a_list_of_nothing_but_commas_names_nobody() -> None:
    assert read_addresses("to", "," * (LIST_LIMIT_ENTRIES - 1)) == ()
    with pytest.raises(BadRequest, match="1000 entries"):
        read_addresses("to", "," * LIST_LIMIT_CHARACTERS)
    with pytest.raises(BadRequest):
        read_reply_to(",,")
