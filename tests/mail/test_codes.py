"""One-time codes are found in many languages and forms, and other numbers are not taken for them."""

from hypothesis import example, given
from hypothesis import strategies as st

from postroom_mail.html.text import html_to_text
from postroom_mail.reading import code_words as code_words
from postroom_mail.reading.codes import _ASCII_WORD, WINDOW_AFTER_WORD, WINDOW_BEFORE_WORD, _words, codes
from postroom_mail.screening.passage import Passage
from tests.mail import code_samples
from tests.samples import samples

NOT_CODES = [
    "The code in GNOME2 is older than the code in KDE3.",
    "It needs 256MB, says the code.",
    "Notre code : 75004 Paris",
    "Bonus Code: KING1",
    "The new area code is 4155 in town.",
    "Your booking is done. Code: H4X9QP. Check-in from 15:00.",
    "We fixed bug 48213 in the login code; verify please.",
    "Please review code in branch 20251103, sign in to see.",
    "Discount code inside! Use SPRING25 for 25% off",
    "Product code: 482193",
    "Item no 482193, colour code 5512, size 42",
    "I wrote 12345 lines of code to verify this",
    "Your PO number is 482193; cost code: 7741",
    "Exit code: 1234",
    "The code word is BANANA",
    "PIN board 1200x800 mm",
    "Promo! Codes: AAA111 BBB222",
    "Error code: 0x80070005 (500123)",
    "Your password must have 8 characters. Call 482193 for help.",
    "HTTP code 4040 on login",
    "The access code of practice 2019 applies",
    "See Code § 1234 of 1985 on identity",
    "SIC code 4821",
    "Coupon 482193 expires soon, code below at checkout",
    "Use code: FALL at login for free gift",
    "The postcode is SW1A 1AA and code B12-345 for the gate",
    "Code Orange alert: 4821 people affected, verify sources",
    "Your verification code is not shown here. Order 482193.",
    "Your verification code is BELOW",
    "YOUR LOGIN CODE IS BELOW",
    "Tracking your login? Use our app. 10115 Berlin",
    "Never share your verification code.\n\nAcme Inc, 548 Market St PMB 12345, San Francisco, CA 94104",
    "connection closed with code\n1000 (OK) or 1001 (going away)",
    "write to 51 Franklin Street, Boston, MA\n02110-1301, USA",
    "code='02000', name='NO_DATA'",
    "Use 482193 rows to test it.",
    "Enter 94103 to verify that we deliver there.",
    "Use 20251103 to sign the log.",
    "We call 482193 a prime; sign in to read on.",
    "The job failed with code 482193 when signing in.",
    "Please use 482193 EUR to verify the account.",
    "Order now, use 482193 and sign in for 20% off.",
    "Stay with us\n\nUse code: SAVE-MORE at checkout",
    "Hello\n\nThe code is in blue-green-10 form",
    "Your booking\n\nBooking code: AB12CD",
    "Hello\n\nYour booking is done. PIN: 4417",
    "Mode\n\nThe code is READ-ONLY.",
    "Paging\n\nnext token: 482193",
    "Versions\n\nsource code: linux-image-42",
]


@samples(
    ("text", "code"),
    [
        ("Your verification code is 123456.", "123456"),
        ("Use 123 456 to sign in. This is your code.", "123456"),
        ("G-482910 is your Google verification code", "G-482910"),
        ("Your code: ABC-123", "ABC-123"),
        ("PIN: 2024", "2024"),
        ("Your OTP is 12-34-56", "123456"),
        ("Your one-time password is K7XQ2P", "K7XQ2P"),
        ("Enter this code:\n\n   987654\n\n© 2025 Acme, 12345 Main Street", "987654"),
        ("Ihr Bestätigungscode lautet 4711", "4711"),
        ("Su código es 445566", "445566"),
        ("Votre code de vérification : 0042 9911", "00429911"),
        ("Il tuo codice è 7788", "7788"),
        ("Код подтверждения: 5521", "5521"),
        ("您的验证码\uff1a883920\uff0c5分钟内有效", "883920"),
        ("認証コードは 102938 です", "102938"),
        ("인증번호 [123456]", "123456"),
        ("Order no. 99887: your code is 3344", "3344"),
        ("Code 551202 please", "551202"),
        ("Hello\n\ntoken: K7Q2ZP", "K7Q2ZP"),
        ("Your Booking\n\nYour PIN: 4417 opens the door", "4417"),
        ("Booking confirmed\n\nPIN: 4417\n", "4417"),
        ("A deal\n\nPIN: 4417\n", "4417"),
        ("20% off your next order\n\nYour code: K7Q2ZP\n", "K7Q2ZP"),
        ("Pair it\n\nYour pairing code is tulip-orbit-42", "tulip-orbit-42"),
        ("Pair it\n\ncode: 7-crossover-clockwork", "7-crossover-clockwork"),
        ("8842 1190 is your verification code", "88421190"),
        ("Anything\n\nUse PIN 4821 to continue", "4821"),
        ("Hello\n\nEnter the code 739201 on the page", "739201"),
    ],
)
def test_a_code_near_its_word_is_found(text: str, code: str) -> None:
    assert codes(text) == (code,)


@samples(
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


@samples(
    "unit",
    [
        *("code ", "1", "1 ", "A", "A1-", "code 123456 ", "12-", "1\n", "A B ", "pin ", "code: ", "passw"),
        *(
            "code 1234 1234 5678 ",
            "verification code ABCD EFGH ",
            "verification code A1B2 C3D4. ",
            "zip code 1234. ",
        ),
        *(
            "验证码",
            "验证码 1234。",
            "code is your is ",
            "1234 is your 1234 is your code ",
            "code use use ",
            "код ",
        ),
        *(
            "code\n\n\n1234\n\n",
            "password 1234 log in ",
            "log in code 1234x ",
            "code A1B2C3D4 X9 ",
            "code . . . . ",
        ),
    ],
)
def test_long_hostile_texts_give_few_codes(unit: str) -> None:
    assert len(codes(unit * 50_000)) <= 20


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    for code in codes(text):
        assert 4 <= len(code) <= 37
        assert all(letter in text for letter in code)


def test_letters_that_grow_in_lower_case_do_not_move_the_words_away() -> None:
    assert codes("\u0130" * 200 + " Your CODE is 493817") == ("493817",)


def test_a_word_is_found_as_far_from_its_code_as_it_reaches() -> None:
    for gap in (WINDOW_AFTER_WORD, WINDOW_AFTER_WORD + 1):
        text = "code" + " " * gap + "493817"
        assert (codes(text) == ("493817",)) is (gap <= WINDOW_AFTER_WORD)
    for gap in (WINDOW_BEFORE_WORD, WINDOW_BEFORE_WORD + 1):
        text = "493817" + " " * gap + "verification code"
        assert (codes(text) == ("493817",)) is (gap <= WINDOW_BEFORE_WORD)


def test_codes_far_apart_are_each_found_by_their_own_word() -> None:
    text = ("The pin is 4711. " + "words without end " * 50) * 2 + "Your code: AB12-CD34"
    assert codes(text) == ("4711", "AB12-CD34")


@samples(("text", "code"), code_samples.ALL)
def test_every_sample_gives_its_code_and_no_other(text: str, code: str) -> None:
    assert codes(text) == (code,)


def test_the_samples_are_many_and_in_many_languages() -> None:
    assert len(code_samples.ALL) >= 160
    assert len(code_samples.BY_LANGUAGE) >= 30


def test_every_language_proves_its_words() -> None:
    assert all(code_samples.BY_LANGUAGE.values())


@samples(("text", "code"), [each for letters in code_samples.LETTERS.values() for each in letters])
def test_a_letter_of_a_product_gives_its_code(text: str, code: str) -> None:
    assert codes(text) == (code,)


def test_most_sentences_that_no_word_was_added_for_give_their_code() -> None:
    unseen = [each for found in code_samples.UNSEEN.values() for each in found]
    assert sum(codes(text) == (code,) for text, code in unseen) >= 0.9 * len(unseen)


def test_the_letters_of_products_are_in_twenty_languages() -> None:
    assert len(code_samples.LETTERS) == 20
    assert {len(letters) for letters in code_samples.LETTERS.values()} == {5}


@samples("text", NOT_CODES)
def test_promotions_postcodes_sizes_and_products_are_no_codes(text: str) -> None:
    assert codes(text) == ()


@samples(
    "cells",
    [
        "<table><tr>{}</tr></table>".format("".join(f"<td>{digit}</td>" for digit in "482193")),
        "<table><tr>{}</tr></table>".format("".join(f"<td> <p>{digit}</p> </td>" for digit in "482193")),
        "<div>{}</div>".format(" ".join(f"<span>{digit}</span>" for digit in "482193")),
        "<div>{}</div>".format("".join(f"<b>{digit}</b>" for digit in "482193")),
        "{}".format("".join(f"<div>{digit}</div>" for digit in "482193")),
    ],
)
def test_a_digit_in_each_cell_makes_one_code(cells: str) -> None:
    html = (
        f"<p>Hello Ann,</p><p>Your sign-in code:</p>{cells}<p>It expires in 10 minutes.</p><p>© 2025 Acme</p>"
    )
    assert codes(html_to_text(html)) == ("482193",)


PLAIN_WORDS = [
    word for word in (*code_words.CERTAIN, *code_words.PLAIN, *code_words.PASSWORDS) if word.isascii()
]
fillers = st.sampled_from(["important", "codex", "x" * 90, "pass", "one time", "spin", "", "your", "_code"])
pieces = st.one_of(st.sampled_from(PLAIN_WORDS), fillers)


@example(
    [
        ("engangskode", " "),
        ("einweg-code", ""),
        ("einweg-code", "_"),
        ("codex", ", "),
        ("x" * 90, " "),
        ("einweg-code", ""),  # ends where nobody looks any farther, and a letter follows
        ("codi de seguretat", " "),
    ]
)
@given(st.lists(st.tuples(pieces, st.sampled_from([" ", "\n", ", ", "-", "", "  ", "_"])), max_size=30))
def test_looking_only_where_a_word_may_be_finds_every_word(parts: list[tuple[str, str]]) -> None:
    folded = "".join(f"{piece}{separator}" for piece, separator in parts)
    everywhere = [found.span() for found in _ASCII_WORD.finditer(folded)]
    cues = Passage(folded).cues()
    assert [found.span() for found in _words(folded, folded, cues)] == everywhere


CANDIDATES = [
    "482193",
    "G-482193",
    "LTC-OFF",
    "A B C D E",
    "4|8|2|1|9",
    "x7y8z9",
    "LTCVOFFS",
    "3 May",
    "NEWS",
]
far = st.sampled_from(["lorem ipsum " * 20, "x" * 1_990, "dolor "])


@given(st.lists(st.one_of(pieces, far, st.sampled_from(CANDIDATES)), max_size=30))
def test_looking_only_near_digits_and_capitals_finds_every_code(parts: list[str]) -> None:
    text = " ".join(parts)
    assert codes(text) == codes(text, Passage(text, limit=len(text)).cues())


@samples("word", PLAIN_WORDS)
def test_every_word_in_plain_letters_is_found_alone(word: str) -> None:
    assert [found.group() for found in _words(f"{word} 482193", f"{word} 482193", None)] == [word]
    assert [found.group() for found in _words(word, word, Passage(word).cues())] == [word]
