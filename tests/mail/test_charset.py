"""Charset labels as mail uses them, and format=flowed."""

from postroom_mail.mime import charset, flowed
from tests.samples import samples


@samples("label", ["zip", "base64", "rot13", "idna", "punycode", "unicode_escape", "../os", "x" * 900])
def test_a_codec_that_is_no_charset_is_never_used(label: str) -> None:
    assert charset.codec_for(label) == charset.UNDECLARED
    assert charset.decode("grün".encode(), label) == "grün"


@samples(
    ("label", "codec"),
    [
        ("UTF-8", "utf_8"),
        (' "utf8" ', "utf_8"),
        ("ISO_8859-1", "cp1252"),
        ("latin1", "cp1252"),
        ("GB2312", "gb18030"),
        ("ks_c_5601-1987", "cp949"),
        ("Shift_JIS", "cp932"),
        ("iso-8859-15", "iso8859_15"),
        ("us-ascii", charset.UNDECLARED),
    ],
)
def test_a_label_means_what_senders_mean_by_it(label: str, codec: str) -> None:
    assert charset.codec_for(label) == codec


def test_text_can_be_stored_after_cleaning() -> None:
    assert charset.clean("\ufeffa\0b\ud800c") == "ab?c"
    assert charset.clean_line("a\r\n\tb\u2028c ") == "a b c"


def test_a_large_text_that_is_not_what_its_label_says_is_guessed() -> None:
    assert charset.decode(b"a" * 1_048_577, "utf-16") == "a" * 1_048_577


@samples(
    ("text", "unwrapped"),
    [
        ("one \ntwo\nthree", "one two\nthree"),
        (">> deep \n>> er\n> up", ">> deep er\n> up"),
        ("> quote \nanswer", "> quote \nanswer"),
        ("text \n-- \nname", "text \n-- \nname"),
        (" >not a quote", ">not a quote"),
        ("ends open ", "ends open "),
        ("", ""),
    ],
)
def test_flowed_lines_are_joined_at_the_same_depth(text: str, unwrapped: str) -> None:
    assert flowed.unwrap(text, deletes_space=False) == unwrapped


@samples(
    ("data", "neighbour", "text"),
    [
        ("Grüße".encode(), "koi8-r", "Grüße"),
        ("Привет".encode("koi8-r"), "koi8-r", "Привет"),
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        ("Grüße".encode("latin-1"), "utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), "", "Grüße"),
        ("会議".encode("iso2022_jp"), "iso-2022-jp", "会議"),
        (b"plain", "utf-16", "plain"),
    ],
)
def test_bytes_without_a_label_are_utf8_or_like_the_text_beside(
    data: bytes, neighbour: str, text: str
) -> None:
    assert charset.decode_unlabelled(data, neighbour) == text
