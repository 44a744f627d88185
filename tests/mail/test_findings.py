"""Codes and links are found, and numbers and strings that only look like them are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mail.findings import REACH_AFTER_WORD, REACH_BEFORE_WORD, codes, links


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Your verification code is 123456.", "123456"),
        ("Use 123 456 to sign in. This is your code.", "123 456"),
        ("G-482910 is your Google verification code", "G-482910"),
        ("Your code: ABC-123", "ABC-123"),
        ("PIN: 2024", "2024"),
        ("Your OTP is 12-34-56", "12-34-56"),
        ("Your one-time password is K7XQ2P", "K7XQ2P"),
        ("Enter this code:\n\n   987654\n\n© 2025 Acme, 12345 Main Street", "987654"),
        ("Ihr Bestätigungscode lautet 4711", "4711"),
        ("Su código es 445566", "445566"),
        ("Votre code de vérification : 0042 9911", "0042 9911"),
        ("Il tuo codice è 7788", "7788"),
        ("Код подтверждения: 5521", "5521"),
        ("您的验证码\uff1a883920\uff0c5分钟内有效", "883920"),
        ("認証コードは 102938 です", "102938"),
        ("인증번호 [123456]", "123456"),
        ("Order no. 99887: your code is 3344", "3344"),
    ],
)
def test_a_code_near_its_word_is_found(text: str, code: str) -> None:
    assert codes(text) == (code,)


@pytest.mark.parametrize(
    "text",
    [
        "The meeting is at 123456 Main Street.",
        "Use promo code SAVE20 today",
        "Your zip code 12345",
        "Copyright 2024. Keep your code safe.",
        "Call +1 555 123 4567 if the code fails",
        "The code costs $1234 or 1234 EUR",
        "code review on 2025-11-03 at 10:30",
        "Verify https://x.example/123456",
        "Order 123456: verify the parcel",
        "Source code 4.5.6000",
        "",
    ],
)
def test_other_numbers_are_not_codes(text: str) -> None:
    assert codes(text) == ()


def test_several_codes_keep_their_order_and_repeats_are_dropped() -> None:
    assert codes("code 1111\n" * 3 + "code 2222\ncode 1111") == ("1111", "2222")


def test_the_number_of_codes_is_bounded() -> None:
    assert len(codes("\n".join(f"code {number}" for number in range(1000, 1900)))) == 20


@pytest.mark.parametrize("unit", ["code ", "1", "1 ", "A", "A1-", "code 123456 ", "12-"])
def test_long_hostile_texts_give_few_codes(unit: str) -> None:
    assert len(codes(unit * 200_000)) <= 20


def test_links_come_from_targets_and_text_in_order_without_repeats() -> None:
    html = '<a href="https://a.example/?x=1&amp;y=2">a</a> <a href=" HTTP://b.example ">b</a>'
    text = "See https://a.example/?x=1&y=2, (https://c.example/x_(y)) or <http://d.example/>."
    assert links(text, html) == (
        "https://a.example/?x=1&y=2",
        "HTTP://b.example",
        "https://c.example/x_(y)",
        "http://d.example/",
    )


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "mailto:a@b.example",
        "//x.example",
        "http://",
        "http://[",
        "https:///x",
        "http://a b",
        "x",
    ],
)
def test_targets_that_are_no_web_address_are_left_out(target: str) -> None:
    assert links("", f'<a href="{target}">x</a>') == ()


def test_line_breaks_inside_a_target_are_ignored_as_browsers_do() -> None:
    assert links("", '<a href="https://x.example/\n  a">x</a><a href="ht\ntps://y.example/">y</a>') == (
        "https://y.example/",
    )


def test_the_number_and_length_of_links_are_bounded() -> None:
    assert len(links(" ".join(f"http://x{number}.example" for number in range(500)), "")) == 100
    assert links("http://x.example/" + "a" * 3_000, "") == ()


@given(st.text(max_size=200), st.text(alphabet=st.sampled_from("<a href=\"'http:/.[]>&; \n"), max_size=100))
def test_any_text_can_be_searched(text: str, html: str) -> None:
    assert all(link.lower().startswith("http") for link in links(text, html))
    assert all(code in text for code in codes(text))


def test_letters_that_grow_in_lower_case_do_not_move_the_words_away() -> None:
    assert codes("\u0130" * 200 + " Your CODE is 493817") == ("493817",)


def test_a_word_is_found_as_far_from_its_code_as_it_reaches() -> None:
    for gap in (REACH_AFTER_WORD, REACH_AFTER_WORD + 1):
        text = "code" + " " * gap + "493817"
        assert (codes(text) == ("493817",)) is (gap <= REACH_AFTER_WORD)
    for gap in (REACH_BEFORE_WORD, REACH_BEFORE_WORD + 1):
        text = "493817" + " " * gap + "mot de passe"
        assert (codes(text) == ("493817",)) is (gap <= REACH_BEFORE_WORD)


def test_codes_far_apart_are_each_found_by_their_own_word() -> None:
    text = ("The pin is 4711. " + "words without end " * 50) * 2 + "Your code: AB12-CD34"
    assert codes(text) == ("4711", "AB12-CD34")
