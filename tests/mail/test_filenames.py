"""Names of attachments: safe, at most 200 bytes, unique."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import filenames
from tests.mail.soundness import assert_names_are_safe
from tests.samples import samples


@samples(
    ("given", "cleaned"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("folder/", "folder"),
        ("../..", ""),
        ("...hidden", "hidden"),
        (" spaced . ", "spaced"),
        ("a\r\nb\0c.txt", "abc.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("zero\u200bwidth.txt", "zerowidth.txt"),
        ("tag\U000e0067\U000e006f.txt", "tag.txt"),
        ("a\u2066b\u00adc\u115fd.txt", "abcd.txt"),
        ("u\u0308.txt", "ü.txt"),
        ("lone\ud800.txt", "lone?.txt"),
        ("", ""),
        ("\u202e", ""),
    ],
)
def test_clean_leaves_a_harmless_name(given: str, cleaned: str) -> None:
    assert filenames.clean(given) == cleaned


@samples(
    ("given", "cleaned"),
    [
        ("x" * 500 + ".pdf", "x" * 196 + ".pdf"),
        ("é" * 150 + ".pdf", "é" * 98 + ".pdf"),
        ("x" * 5_000 + ".pdf", "x" * 196 + ".pdf"),
        ("x." + "y" * 500, "x." + "y" * 198),
        ("x" * 200, "x" * 200),
    ],
)
def test_clean_cuts_the_stem_and_keeps_the_extension(given: str, cleaned: str) -> None:
    assert filenames.clean(given) == cleaned
    assert len(cleaned.encode()) <= 200


@given(st.text(max_size=300))
def test_clean_is_done_after_one_time(name: str) -> None:
    cleaned = filenames.clean(name)
    assert filenames.clean(cleaned) == cleaned
    assert len(cleaned.encode()) <= 200


def test_unique_numbers_later_twins_whatever_their_case() -> None:
    assert filenames.unique(["a.pdf", "A.pdf", "b", "a.pdf", "b"]) == [
        "a.pdf",
        "A (2).pdf",
        "b",
        "a (3).pdf",
        "b (2)",
    ]


def test_unique_steps_over_a_number_that_is_taken() -> None:
    assert filenames.unique(["a (2).pdf", "a.pdf", "a.pdf"]) == ["a (2).pdf", "a.pdf", "a (3).pdf"]


def test_unique_keeps_long_names_within_the_limit() -> None:
    names = filenames.unique(["x" * 196 + ".pdf"] * 12)
    assert names[-1] == "x" * 191 + " (12).pdf"
    assert_names_are_safe(names)


def test_unique_numbers_ten_thousand_twins() -> None:
    names = filenames.unique(["a.pdf"] * 10_000)
    assert names[-1] == "a (10000).pdf"
    assert len(set(names)) == 10_000


@given(st.lists(st.text(max_size=5).map(filenames.clean).filter(bool), max_size=30))
def test_unique_names_stay_safe(names: list[str]) -> None:
    assert_names_are_safe(filenames.unique(names))


@samples(
    ("content_type", "name"),
    [
        ("application/pdf", "attachment-3.pdf"),
        ("message/rfc822", "attachment-3.eml"),
        ("application/x-unheard-of", "attachment-3.bin"),
    ],
)
def test_a_nameless_file_is_called_by_its_place_and_type(content_type: str, name: str) -> None:
    assert filenames.default(3, content_type) == name
