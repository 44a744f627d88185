"""Both databases give the answers of a slow reading, for mails and questions in many scripts."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postroom_mail.search import index_entry
from postroom_mail.search.index_entry import Searchable
from postroom_mail.search.query import InvalidQuery, parse
from tests.storage.search_engines import SCOPE, Engines, matches, opened

WORDS = [
    *("red", "apple", "Äpfel", "Straße", "invoice", "INV-2026", "1,234.56", "bob@mail.example.com", "a"),
    *(
        "счёт",
        "ёлка",
        "Ελλάδα",
        "σίσυφος",
        "שלום",
        "שָׁלוֹם",
        "مرحبا",
        "محـمد",
        "हिन्दी",
        "नमस्ते",
        "தமிழ்",
        "ქართული",
    ),
    *("東京", "東京都", "京", "請求書", "ひらがな", "カタカナ", "ｶﾞﾗｽ", "タワー", "한국어", "국어", "청구서"),
    *("สวัสดี", "สวัส", "ครับ", "ສະບາຍດີ", "ភាសាខ្មែរ", "မြန်မာ", "新iPhone発売", "٣٤٥", "345", "x" * 70),
]
SEPARATORS = st.sampled_from([" ", " ", " ", "", ", ", "-", "\n", "\x00", "\ud800", "'", '" '])
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), SEPARATORS), max_size=8).map(
    lambda pairs: "".join(word + separator for word, separator in pairs)
)
MAILS = st.builds(
    Searchable,
    subject=TEXTS,
    sender=TEXTS,
    recipients=st.lists(TEXTS, max_size=2),
    text=TEXTS,
    filenames=st.lists(TEXTS, max_size=2),
    file_texts=st.lists(TEXTS, max_size=2),
)
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).flatmap(
        lambda word: st.sampled_from([word[:end] for end in range(1, len(word))] or [word])
    ),
    TEXTS.map(lambda text: f'"{text}"'.replace('" "', " ")),
)
TERMS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", "-"]),
        st.sampled_from(["", "", "", "from:", "to:", "subject:"]),
        PIECES,
        st.sampled_from(["", "", "*"]),
    ),
)
QUERIES = st.lists(st.tuples(TERMS, st.sampled_from([" ", " ", " OR "])), min_size=1, max_size=5).map(
    lambda pairs: "".join(term + joint for term, joint in pairs)
)
SYNTAX = st.lists(
    st.sampled_from(
        [
            *"\"*:^+-(){}<>&|!\\'\x00\ud800",
            " ",
            " ",
            "a",
            "OR",
            "AND",
            "NOT",
            "NEAR(",
            "<->",
            ":*",
            "words:",
            "東",
        ]
    ),
    max_size=60,
).map("".join)


@pytest.fixture
def engines(postgres_url: str) -> Iterator[Engines]:
    with opened(postgres_url) as engines:
        yield engines


def letter(text: str, **parts: list[str]) -> Searchable:
    return Searchable(
        "", "", parts.get("recipients", []), text, parts.get("filenames", []), parts.get("files", [])
    )


one_engine_for_all = settings(
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture]
)


@one_engine_for_all
@given(st.lists(MAILS, min_size=1, max_size=5), st.lists(QUERIES, min_size=1, max_size=6))
def test_both_databases_find_what_a_slow_reading_finds(
    engines: Engines, mails: list[Searchable], queries: list[str]
) -> None:
    engines.fill(mails)
    for q in queries:
        try:
            query = parse(q)
        except InvalidQuery:
            continue
        wanted = [number for number, mail in enumerate(mails) if matches(query, mail)][::-1]
        assert engines.find_on_sqlite(query) == wanted, q
        assert engines.find_on_postgres(query) == wanted, q


@one_engine_for_all
@given(st.one_of(SYNTAX, st.text(st.characters())))
def test_any_question_is_refused_or_answered(engines: Engines, q: str) -> None:
    try:
        query = parse(q)
    except InvalidQuery:
        return
    engines.find(query)


@pytest.mark.parametrize(
    "q", ["(" * 10_000, "(" * 500 + "a", "a" + "!" * 511, "a b " * 16, "a OR -b " * 16, "a." * 256]
)
def test_long_questions_are_refused_or_answered(engines: Engines, q: str) -> None:
    engines.fill([letter("a b")])
    try:
        query = parse(q)
    except InvalidQuery:
        return
    engines.find(query)


def test_nothing_is_found_in_another_scope_or_realm(engines: Engines) -> None:
    engines.fill([letter("secret plan")])
    for q in ("secret", "-nothing", '"secret plan"', "se*", "is:unread", "secret OR -plan"):
        assert engines.find(parse(q)) == [0]
        assert engines.find(parse(q), scope=SCOPE) == [0]
        assert engines.find(parse(q), scope="inb2") == []
        assert engines.find(parse(q), "a", SCOPE) == []
        assert engines.find(parse(q), "a11") == []


def test_no_word_of_a_question_is_the_token_of_a_scope(engines: Engines) -> None:
    engines.fill([letter("plain")])
    for q in ("@inb1", "inb1", "inb*", "a1*", "=plain", "<plain", "."):
        try:
            assert engines.find(parse(q)) == ([0] if q.endswith("plain") else [])
        except InvalidQuery:
            assert q == "."


def test_a_phrase_does_not_reach_over_parts(engines: Engines) -> None:
    mail = Searchable("one two", "three", ["four", "five"], "six", ["seven", "eight"], ["nine", "ten"])
    engines.fill([mail])
    for q in ("two three", "three four", "four five", "five seven", "seven eight", "eight six", "six nine"):
        assert engines.find(parse(f'"{q}"')) == []
        assert engines.find(parse(q)) == [0]


def test_a_word_that_fills_its_places_is_found_and_the_phrases_around_it_stay(engines: Engines) -> None:
    engines.fill([letter("the red " * 300 + "the end of all")])
    assert engines.find(parse('the "red" "end of all"')) == [0]
    assert engines.find(parse('"red end"')) == []
    assert engines.find(parse('"the end"')) == []  # the last "the" has no place of its own any more


def test_words_behind_the_last_place_are_found_but_no_phrases_of_them(engines: Engines) -> None:
    many = " ".join(f"w{number}" for number in range(17_000))
    engines.fill([letter(many), letter("w16999 w5 w16998"), letter("w16997 w16998")])
    assert engines.find(parse("w16999 w16998")) == [1, 0]
    assert engines.find(parse('"w3999 w4000"')) == []
    assert engines.find(parse('"w100 w101"')) == [0]
    assert engines.find(parse('"w16997 w16998"')) == [2]
    assert engines.find(parse('"w3998 w399"*')) == [0]


def test_a_long_text_leaves_places_for_files(engines: Engines) -> None:
    engines.fill([letter("word " * 20_000 + "last", filenames=["annual report.pdf"], files=["red apple"])])
    for q in ("last", '"red apple"', '"annual report"'):
        assert engines.find(parse(q)) == [0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: " ".join(f"{number:064d}" for number in range(50_000)),
        lambda: " ".join(chr(0x10400 + number % 40) * 30 + str(number) for number in range(9_000)),
        lambda: "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(400_000)),
        lambda: "\u0301\u0327" * 200_000,
        lambda: "\ufdfa" * 400_000,
    ],
    ids=["long words", "wide letters", "han", "marks", "letters of eighteen letters"],
)
def test_a_hostile_text_stays_within_what_both_databases_hold(
    engines: Engines, make: Callable[[], str]
) -> None:
    text = make()
    entry = index_entry.of_mail(letter(text, recipients=["x@example.com"] * 1_000, files=[text]), "a1", [])
    assert len(entry.places) < index_entry.LAST_POSITION
    assert len({*entry.places, *entry.behind}) <= index_entry.MAX_DISTINCT_TOKENS + 1
    engines.put([entry])
    assert engines.find(parse("to:x@example.com")) == [0]
