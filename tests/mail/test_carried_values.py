"""What lets the values of a text be found in fewer passes changes nothing of what is found."""

import re

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.screening import disguises, marks, spellings, values
from postroom_mail.screening.marks import may_be_marked
from postroom_mail.screening.said import Said, shapes_of
from postroom_mail.screening.values import apart, carried_by, held_by

PIECES = ("a", "Z", "é", "ﬁ", "٣", "0", "7", "@", ".", ":", "/", "_", "-", " ", "\n", "=", "%40", "12 34")
ENDS_OF_NUMBERS = (*"1(a.):-*+>• \t", "12", "line ", "  ")
SHORT_WORDS = (
    *(
        "Re:",
        "the",
        "Mail",
        "order",
        "4711",
        "12",
        "a",
        "be",
        "ad",
        "DE89",
        "dot",
        "hxxp:",
        "x,",
        "y.",
        "no!",
    ),
    *("a.b", "evil.com", "anna.smith", "61", "2e", "0x4", "|", "|0|", "b4", "Hello", "12345"),
)
JOINTS = ("a", '"', "'", "`", "+", ",", " ", "\t", "\u2028", "\xa0", "?", ".")
texts = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(texts)
def test_a_text_that_can_have_no_mark_has_no_word_with_one(text: str) -> None:
    assert may_be_marked(text) or not any(map(marks._MARKED.search, text.split()))


@given(texts)
def test_the_odd_words_are_all_that_have_a_mark_or_a_digit(text: str) -> None:
    said = Said(text)
    for pattern in (marks._MARKED, spellings._NAMED):
        assert set(filter(pattern.search, said.words)) <= said.odd
    assert said.digits == [at for at, word in enumerate(said.words) if values._DIGIT.search(word)]
    assert said.long == [at for at, word in enumerate(said.words) if len(word) >= 10]


@given(st.binary() | st.lists(st.sampled_from(b"\x01\x02\x03\x0c\x0d\xff"), min_size=1).map(bytes))
def test_words_of_one_length_are_found_as_the_pattern_finds_them(sizes: bytes) -> None:
    sizes = bytes(size or 1 for size in sizes)
    runs = [run.span() for run in spellings._EQUAL_WORDS.finditer(sizes)]
    assert list(spellings._runs_of_equals(sizes)) == runs


@given(st.lists(st.sampled_from("aB01 .-()/+x")).map("".join))
def test_the_numbers_that_are_looked_at_are_long_or_begin_like_an_iban(text: str) -> None:
    shapes = shapes_of(text)
    groups = [group.span() for group in re.finditer(rb"0(?:-{0,2}0)*+", shapes)]
    wanted = [
        (start, end)
        for start, end in groups
        if shapes.count(b"0", start, end) >= 8 or re.fullmatch(rb"aa00", shapes[start - 2 : start + 2])
    ]
    assert [group.span() for group in values._NUMBERS.finditer(shapes)] == wanted


@given(st.lists(st.sampled_from(ENDS_OF_NUMBERS)).map("".join), st.text("ab -.", max_size=60))
def test_a_sentence_is_no_item_of_a_list(number: str, words: str) -> None:
    line = f"{number}{words}".strip()
    without = spellings._ENUMERATED.sub("", line).strip()
    is_word = " " not in without or (len(without) <= spellings.SHORTEST and without != line)
    assert not (spellings._is_sentence(line) and is_word) or len(line) > spellings.LONGEST_ITEM


@given(st.text() | st.lists(st.sampled_from("aо٣é–。ﬁ１ 9α")).map("".join))  # noqa: RUF001
def test_letters_of_other_scripts_are_seen_before_they_are_read(text: str) -> None:
    patterns = (disguises._OTHER_DIGIT, disguises._MIXED_SCRIPTS, disguises._FULL_STOP)
    assert disguises._OTHER_SCRIPT.search(text) or not any(pattern.search(text) for pattern in patterns)


@given(texts, texts)
def test_phrases_are_those_of_the_new_words(text: str, new: str) -> None:
    assert set(values.held_by(text, text)) == set(values.held_by(text))
    phrases = {key for key in values.held_by(text, new) if key.startswith("phrase:")}
    assert phrases == {key for key in values.held_by(new) if key.startswith("phrase:")}


@given(st.lists(st.sampled_from(JOINTS)).map("".join))
def test_strings_that_are_joined_are_seen_before_they_are_searched(text: str) -> None:
    assert spellings._may_be_joined(Said(text).letters) or not spellings._JOINT.search(text)


@given(
    st.lists(st.sampled_from((*"([{.@)]}*", "at", "dot", " ", "h", "xxp", "**p", "DOT", "x"))).map("".join)
)
def test_an_address_in_words_is_seen(text: str) -> None:
    signs = ("(.)", "(at)", "( at ", "(@", "[.", "[at]", "[ at ", "[@", "{.", "{at}", "{@", "hxxp", "h**p")
    words = (" dot ", "dot)", "dot]", "dot}", "dot )", "dot ]")
    is_spelled = any(form in text.lower() for form in (*signs, *words))
    assert disguises._is_spelled(text.lower(), Said(text).signs) == is_spelled


@given(st.lists(st.sampled_from(SHORT_WORDS), max_size=12).map(" ".join))
def test_an_ordinary_text_hides_nothing(text: str) -> None:
    said = Said(text)
    forms = (*disguises.undone(said), *spellings.spelled(said), *spellings._of_numbers(said))
    assert not (spellings.is_ordinary(said) and any(map(hides_a_value, forms))), text


def hides_a_value(form: str) -> bool:
    return bool({key for key in carried_by([form]) if not key.startswith("phrase:")})


def test_subjects_and_names_are_ordinary() -> None:
    for text in (
        "Mail 4711 | Bench",
        "p123 |0| d23 example",
        "anna.smith | shop",
        "Re: Your order, please",
        "Anna | Shop Ltd.",
    ):
        assert spellings.is_ordinary(Said(text)), text
    for text in (
        "4711 4712 4713",
        "say anna dot example",
        "61 2e 64 65",
        "hello@shop",
        "a b c d e f",
        "aGVsbG8x",
    ):
        assert not spellings.is_ordinary(Said(text)), text


@given(texts, texts)
def test_texts_carry_what_each_of_them_carries(first: str, second: str) -> None:
    both = {value.key for value in carried_by([first, second]).values()}
    assert both == set(carried_by([first])) | set(carried_by([second]))


@given(
    st.lists(st.sampled_from(("4711", "88 31", "+49 30 123456", "78", "5", "evil.example", "x")), max_size=5)
)
def test_short_texts_as_one_carry_what_each_of_them_does(texts: list[str]) -> None:
    each = {value.key for text in texts for value in carried_by([text]).values()}
    assert each <= set(carried_by([apart(texts)]))


@given(st.from_regex(r"[0-9]{4,10}", fullmatch=True), st.sampled_from(["{}", "It is {}.", "a\n{}\nb"]))
def test_each_number_that_could_be_a_code_is_found(digits: str, around: str) -> None:
    is_year = len(digits) == 4 and digits[:2] in ("19", "20")
    assert (f"code:{digits}" in carried_by([around.format(digits)])) or is_year


def test_a_host_in_few_hexadecimal_letters_is_found() -> None:
    for said in ("6b 2e 6e 6f", "see 6b 2e 6e 6f now", "EFBCAA EFBC8E EFBCAE EFBCAF"):
        assert {"host:k.no", "host:j.no"} & set(carried_by([said])), said


def test_links_numbers_and_words_behind_signs_are_found_together() -> None:
    found = carried_by(
        ["Pay to DE89 3704 0044 0532 0130 00, see https://pay.example.net/x/48213 or call +49 30 1234567"]
    )
    assert {"iban:DE89370400440532013000", "host:pay.example.net", "link:pay.example.net/x/48213"} <= set(
        found
    )
    assert {"telephone:01234567", "code:48213", "code:1234567"} <= set(found)


def test_what_stands_before_a_full_stop_or_a_word_is_found() -> None:
    assert "host:pay.evil.example" in held_by("See pay.evil.example. Now.")
    assert "address:drop@collect.com" in held_by("Write to 'drop@collect,com,' now")
    assert "address:ann@shop,com" not in held_by("Write to ann@shop,com@x or ann@shop,company")
    numbers = " ".join(str(ord(sign)) for sign in "drop@collect.example")
    assert "address:drop@collect.example" in carried_by([f"Write to {numbers} now."])


def test_a_call_in_code_is_no_host_where_it_was_received_as_nothing_else() -> None:
    call, host = "What does Sys.info() say?", "See sys.info, please."
    for received, sent, is_found in (
        (call, call, False),
        (call, host, True),
        (host, call, True),
        (host, "https://sys.info/x", True),
        (call, "https://sys.info/x", True),
        (f"{call} {host}", call, True),
    ):
        assert bool(set(held_by(received)) & set(carried_by([sent]))) is is_found, (received, sent)


def test_values_turned_around_are_found() -> None:
    assert "address:eve@evil.example" in carried_by(["write to elpmaxe.live@eve"])
    assert "host:evil.example" in carried_by(["see rivy.rknzcyr"])


def test_what_a_link_names_is_found_in_whatever_form() -> None:
    for text in (
        "https://www.google.com/url?q=https://pay.example.net/x",
        "https://www.google.com/url?q=https%3A%2F%2Fpay.example.net%2Fx",
        "https://www.google.com/url?q=pay.example.net/x&sa=D",
        "https://bank.example@pay.example.net/x",
        "pay\u3002example.net/x",
    ):
        assert {"host:pay.example.net", "link:pay.example.net/x"} <= set(carried_by([text])), text
    assert "address:eve@drop.example" in carried_by(["https://shop.example/?to=eve@drop.example"])
    assert "link:93.184.216.34/x" in carried_by(["http://1572395042/x"])


def test_names_that_everybody_uses_are_no_values_without_a_path() -> None:
    said = ["See edition.cnn.com, set 192.168.10.2 with 255.255.255.0, it printed 0 0000000000"]
    assert not {value.kind for value in carried_by(said).values()} - {"code"}
    assert "link:edition.cnn.com/a" in carried_by(["edition.cnn.com/a"])
    assert "host:cnn.com.evil.example" in carried_by(["cnn.com.evil.example"])
