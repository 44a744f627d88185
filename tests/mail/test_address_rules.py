"""Rules about addresses: what they are, and which of them an address meets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import address_rules
from tests.samples import samples


@samples(
    ("written", "read"),
    [
        ("Alice@Example.COM", "alice@example.com"),
        ("alice@example.com.", "alice@example.com"),
        ("alice+news@example.com", "alice+news@example.com"),
        ("Example.com.", "example.com"),
        (" @Example.com", "example.com"),
        ("@bücher.example", "xn--bcher-kva.example"),
        ("*.Example.com", "*.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.BÜCHER.example", "*.xn--bcher-kva.example"),
        ("info@bücher.example", "info@xn--bcher-kva.example"),
        ("postroom.localhost", "postroom.localhost"),
    ],
)
def test_a_rule_is_read_into_the_form_that_is_compared(written: str, read: str) -> None:
    assert address_rules.read(written) == read


@samples(
    "wrong",
    ["", "*", "*.", "a b", "@", "a@", "@@a.b", "@a@b.c", "-a.example", "a..b", "*.*.example", "a/b", "\0"],
)
def test_what_is_no_rule_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        address_rules.read(wrong)


@samples(
    ("rule", "address", "is_met"),
    [
        ("alice@example.com", "ALICE@Example.com.", True),
        ("alice@example.com", "alice+tag@example.com", True),
        ("alice+tag@example.com", "alice+tag@example.com", True),
        ("alice+tag@example.com", "alice@example.com", False),
        ("alice+tag@example.com", "alice+other@example.com", False),
        ("example.com", "bob@example.com", True),
        ("example.com", "bob@mail.example.com", False),
        ("example.com", "bob@notexample.com", False),
        ("*.example.com", "bob@mail.example.com", True),
        ("*.example.com", "bob@a.b.example.com", True),
        ("*.example.com", "bob@example.com", False),
        ("bücher.example", "info@xn--bcher-kva.example", True),
        ("example.com", "bob@exаmple.com", False),  # noqa: RUF001 (a Cyrillic letter that looks alike)
        ("alice@example.com", "аlice@example.com", False),  # noqa: RUF001
        ("paypal.com", "x@paypa1.com", False),
    ],
)
def test_an_address_meets_a_rule_or_not(rule: str, address: str, is_met: bool) -> None:
    assert (address_rules.read(rule) in address_rules.met_by(address)) == is_met


@given(st.text())
def test_any_text_is_looked_up_without_an_exception(text: str) -> None:
    assert len(address_rules.met_by(text)) <= address_rules.MAX_LABELS + 3
