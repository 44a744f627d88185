"""What a text is found by, in a dozen scripts."""

import sys
import unicodedata
from string import ascii_lowercase, digits

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.search import tokens
from tests.samples import samples

ANY_TEXT = st.text(st.characters())  # with surrogates and NUL
RUNS_OF_PAIRS = st.text("東京都タワーひらがな한국어ไทยครับລາວខ្មែរမြန်", min_size=1, max_size=12)


@samples(
    ("text", "found"),
    [
        ("Café ÉTÉ Straße", ["cafe", "ete", "strasse"]),
        ("Łódź Ærø İstanbul \u0131s\u0131", ["lodz", "aero", "istanbul", "isi"]),
        ("ΣΊΣΥΦΟΣ Ёлка", ["σισυφοσ", "елка"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("مُحَمَّد محـــمد שָׁלוֹם", ["محمد", "محمد", "שלום"]),
        ("١٢٣ ๔๕", ["123", "45"]),
        ("\uff11\uff12 Ⅻ ﬁle ½", ["12", "xii", "file", "1", "2"]),
        ("1,234.56 ABC-123 snake_case", ["1", "234", "56", "abc", "123", "snake", "case"]),
        ("<a.b@mail.example.com>", ["a", "b", "mail", "example", "com"]),
        ("pass\u00adword zero\u200bwidth", ["password", "zerowidth"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー", "ー"]),
        ("한국", ["한국", "국"]),
        ("ไทย", ["ไท", "ทย", "ย"]),
        ("新iPhone発売", ["新", "iphone", "発売", "売"]),
        ("\ud800\x00 \U0010ffff — !?", []),
    ],
)
def test_a_text_is_found_by_these_tokens(text: str, found: list[str]) -> None:
    assert tokens.split(text) == found


@samples("text", ["Müller", "ガラス", "한국어", "Việt Nam", "क़लम", "ဦး", "ﾊﾟﾝ"])
def test_the_ways_to_write_a_letter_are_one(text: str) -> None:
    whole = tokens.split(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert tokens.split(unicodedata.normalize(form, text)) == whole


@samples(
    ("text", "sought"),
    [
        ("東京", (["東京"], False)),
        ("東京都", (["東京", "京都"], False)),
        ("京", (["京"], True)),
        ("東京 京", (["東京", "京", "京"], True)),
        ("東京tower", (["東京", "京", "tower"], False)),
        ("a", (["a"], False)),
        ("…", ([], False)),
    ],
)
def test_the_end_of_a_run_is_open_when_it_is_sought(text: str, sought: tuple[list[str], bool]) -> None:
    assert tokens.split_sought(text) == sought


@given(RUNS_OF_PAIRS, RUNS_OF_PAIRS)
def test_a_run_of_pairs_is_found_wherever_it_stands_in_another(needle: str, text: str) -> None:
    sought, is_beginning = tokens.split_sought(needle)
    row = f" {' '.join(tokens.split(text))} "
    found = f" {' '.join(sought)}{'' if is_beginning else ' '}" in row
    fold = {character: "".join(tokens.split(character)) or character for character in needle + text}
    assert found == ("".join(map(fold.__getitem__, needle)) in "".join(map(fold.__getitem__, text)))


@given(ANY_TEXT)
def test_any_text_gives_letters_and_digits_alone(text: str) -> None:
    for token in tokens.split(text):
        assert 0 < len(token) <= tokens.MAX_TOKEN_CHARS
        assert token.encode().decode() == token
        assert not set(token) & set(" '\"\\_=<>@.*:")
        assert tokens.split(token)[0] == token or len(token) == 1


@given(
    st.text(st.sampled_from("aZ 0-.\n“é№ßЁйǅΣ\u0301\u00a0東\ud800\ufdfa")) | ANY_TEXT,
    st.sampled_from([0, 200]),
)
def test_each_character_of_a_text_is_folded_by_itself(text: str, others: int) -> None:
    """Whether there are few to be replaced, or more than are replaced one by one."""
    whole = text + " " + "".join(map(chr, range(0x400, 0x400 + others)))
    one_by_one = "".join(map(tokens.fold, tokens.compose(whole)))
    assert tokens.fold(whole) == one_by_one[: 2 * len(whole) + 100]


HAN_AND_HANGUL = (
    (0x3400, 0x4DC0),
    (0x4E00, 0xA000),
    (0xAC00, 0xD7A4),
    (0x20000, 0x2F800),
    (0x30000, 0x40000),
)
WITHOUT_MEANING = ((0xE000, 0xF900), (0x40000, 0xE0000), (0xE0200, 0x110000))  # planes for later, and private


def test_every_character_there_is_gives_safe_tokens() -> None:
    """Those without a meaning, three of four, by every hundredth of them; Han and Hangul by every tenth."""
    alike = [(*each, 10) for each in HAN_AND_HANGUL] + [(*each, 100) for each in WITHOUT_MEANING]
    tried, end = list[str](), 0
    for first, last, step in sorted(alike):
        tried += map(chr, (*range(end, first), *range(first, last, step)))
        end = last
    assert end == sys.maxunicode + 1
    for start in range(0, len(tried), 0x1000):
        found = "".join(tokens.split(" ".join(tried[start : start + 0x1000])))
        assert {each for each in found if each.isascii()} <= set(ascii_lowercase + digits), tried[start]


@given(ANY_TEXT)
def test_each_token_is_located_where_it_is_written(text: str) -> None:
    composed = tokens.compose(text)
    folded = tokens.fold(composed)
    assert tokens.split(composed) == tokens.split(text)
    for number, token in enumerate(tokens.split(composed)):
        start, end = tokens.written(composed, *tokens.span(folded, number, 1))
        assert 0 <= start < end <= len(composed)
        assert token[0] in "".join(tokens.split(composed[start:end]))


def test_a_long_word_is_found_by_its_beginning() -> None:
    assert tokens.split("x" * 100_000) == ["x" * tokens.MAX_TOKEN_CHARS]


def test_characters_that_stand_for_many_do_not_swell_a_text() -> None:
    assert len(tokens.split("\ufdfa" * 10_000)) < 10_000
