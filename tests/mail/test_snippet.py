"""What is shown of a found mail."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.search.index_entry import Searchable
from postroom_mail.search.query import parse
from postroom_mail.search.snippet import MAX_CHARS, Snippet, matched_fields, snippet
from tests.samples import samples

MAIL = Searchable(
    subject="Invoice 42",
    sender="Bob <bob@example.com>",
    recipients=["sales@example.com", "Eve <eve@example.org>"],
    text="Dear all, the invoice is attached.",
    filenames=["invoice-42.pdf"],
    file_texts=["Total 1,234.56"],
)


@samples(
    ("q", "fields"),
    [
        ("invoice", ["subject", "text", "filenames"]),
        ("example.com", ["sender", "recipients"]),
        ("subject:invoice", ["subject"]),
        ("from:bob OR to:eve", ["sender", "recipients"]),
        ("1,234.56 -invoice", ["file_texts"]),
        ('"invoice 42"', ["subject", "filenames"]),
        ("att*", ["text"]),
        ("is:unread", []),
    ],
)
def test_the_fields_that_match_are_named(q: str, fields: list[str]) -> None:
    assert matched_fields(parse(q), MAIL) == fields


def match_in(found: Snippet) -> str:
    return found.text[found.start : found.end]


@samples(
    ("text", "q", "match"),
    [
        ("Der Weg  zur\r\nStraße ist lang", "strasse", "Straße"),
        ("Der Weg  zur\r\nStraße ist lang", '"zur strasse"', "zur Straße"),
        ("Ich zahle 1,234.56 Euro", "1.234,56", "1,234.56"),
        ("明日東京タワーへ行く", "タワー", "タワー"),
        ("明日東京タワーへ行く", "京", "京タ"),
        ("Cafe\u0301 e\u0301te\u0301 in Paris", "ete", "e\u0301te\u0301"),
        ("one two three", "three OR two", "two"),
        ("subscription", "sub*", "subscription"),
        ("two  one\t -- two!", '"one two"', "one -- two"),
        ("lone one ones", "one", "one"),
        ("a " + "x" * 100 + " b", "x" * 70, "x" * 100),
        ("a " + "x" * 80 + " - b", f'"{"x" * 70} b"', "x" * 80 + " - b"),
    ],
)
def test_the_first_match_is_marked_in_its_own_words(text: str, q: str, match: str) -> None:
    found = snippet(text, parse(q))
    assert match_in(found) == match
    assert found.text.replace(" ", "") == "".join(text.split())


def test_a_long_text_is_cut_at_words_around_the_match() -> None:
    found = snippet("before " * 100 + "Needle " + "after " * 100, parse("needle"))
    assert match_in(found) == "Needle"
    assert found.text.startswith("…before ")
    assert found.text.endswith(" after…")
    assert len(found.text) <= MAX_CHARS


def test_without_a_match_a_snippet_is_how_the_text_begins() -> None:
    assert snippet("one\ntwo", parse("is:unread")) == Snippet("one two")
    assert snippet("one\ntwo", parse("subject:two")) == Snippet("one two")
    assert match_in(snippet("one\ntwo", parse("subject:two"), "subject")) == "two"


@given(
    st.text(st.characters(), max_size=600),
    st.text(st.characters(), max_size=600),
    st.sampled_from(["a", "a b", "東"]),
)
def test_any_text_gives_a_short_line_that_can_be_sent(before: str, after: str, word: str) -> None:
    found = snippet(f"{before} {word} {after}", parse(f'"{word}"'))
    assert len(found.text) <= MAX_CHARS
    assert found.text.isprintable()
    assert found.text.encode()
    assert match_in(found)
