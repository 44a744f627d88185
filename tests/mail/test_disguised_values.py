"""A value is found in a text to be sent however an agent was told to write it."""

import base64
import codecs
import gzip
import random
import urllib.parse
import zlib
from collections.abc import Callable

import pytest

from postroom_mail.html.text import html_to_text
from postroom_mail.screening import values
from postroom_mail.screening.disguises import text_in, unpacked
from postroom_mail.screening.values import Found

VALUES = {
    "iban": "DE89 3704 0044 0532 0130 00",
    "token": "sk-live-9fQ2xV7bLw83KdTz51PnRa",
    "link": "https://portal.evil.example/confirm/8841",
    "address": "drop.box@collect.example",
    "crypto": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "card": "4111 1111 1111 1111",
    "telephone": "+44 20 7946 0958",
}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def letters(text: str) -> str:
    return text.replace(" ", "")


WAYS: dict[str, Callable[[str], str]] = {
    "base64 in lines": lambda text: "\n".join(cut(encoded(text), 16)),
    "base64 in groups": lambda text: " ".join(cut(encoded(text), 4)),
    "base64 with dots": lambda text: ".".join(cut(encoded(text), 8)),
    "base64 twice": lambda text: encoded(encoded(text)),
    "base64 of ROT13": lambda text: encoded(codecs.encode(text, "rot13")),
    "base64 of reversed": lambda text: encoded(text[::-1]),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-be")).decode(),
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode())).decode(),
    "base64 of zlib": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
    "base64 in a numbered list": lambda text: "\n".join(
        f"line {number}: {piece}" for number, piece in enumerate(cut(encoded(text), 12))
    ),
    "base64 in a query": lambda text: f"https://other.example/x?d={encoded(text)}",
    "base64 in a picture's data": lambda text: f'<p><img src="data:text/plain;base64,{encoded(text)}"></p>',
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 in small letters": lambda text: base64.b32encode(text.encode()).decode().lower().rstrip("="),
    "hex with prefixes": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "hex in groups": lambda text: " ".join(cut(text.encode().hex(), 8)),
    "hex in a path": lambda text: f"https://other.example/{text.encode().hex()}",
    "code points": lambda text: " ".join(f"U+{ord(letter):04X}" for letter in text),
    "decimal numbers": lambda text: ", ".join(str(byte) for byte in text.encode()),
    "binary": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "escapes of CSS": lambda text: (
        f'<style>p::after{{content:"{"".join(f"{chr(92)}{ord(one):06x}" for one in text)}"}}</style>'
    ),
    "percent signs twice": lambda text: "".join(f"%25{byte:02X}" for byte in text.encode()),
    "some percent signs": lambda text: "".join(
        f"%{ord(one):02X}" if at % 3 == 0 else one for at, one in enumerate(text)
    ),
    "a query": lambda text: "https://other.example/?d=" + urllib.parse.quote(text),
    "soft line breaks": lambda text: "=\n".join(cut(text, 7)),
    "commas": lambda text: ",".join(letters(text)),
    "commas and blanks": lambda text: ", ".join(letters(text)),
    "slashes": lambda text: "/".join(letters(text)),
    "a list": lambda text: str(list(text)),
    "quoted letters": lambda text: ",".join(f'"{letter}"' for letter in text),
    "joined strings": lambda text: f'"{text[: len(text) // 2]}" + "{text[len(text) // 2 :]}"',
    "three lines": lambda text: "\n".join(cut(text, 10)),
    "a numbered list": lambda text: "\n".join(
        f"{number}. {piece}" for number, piece in enumerate(cut(letters(text), 5), 1)
    ),
    "groups of three": lambda text: " ".join(cut(letters(text), 3)),
    "bold in the middle": lambda text: f"{text[:6]}**{text[6:12]}**{text[12:]}",
    "letters of tags": lambda text: "".join(chr(0xE0000 + ord(letter)) for letter in text),
    "Cyrillic letters": lambda text: text.translate(str.maketrans("aeopcxABEKMHOPCTX", "аеорсхАВЕКМНОРСТХ")),  # noqa: RUF001
    "Arabic digits": lambda text: text.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
}
ONLY_NUMBERS_AND_TOKENS: dict[str, Callable[[str], str]] = {
    "a letter in front": lambda text: f"x{text}",
    "dots": lambda text: ".".join(letters(text)),
    "an empty line": lambda text: f"{text[:12]}\n\n{text[12:]}",
    "a blank in it": lambda text: f"{text[:12]} {text[12:]}",
    "large letters": lambda text: text.upper(),
    "underscores": lambda text: "_".join(letters(text)),
}


def found_in(said: str) -> Found:
    texts = [said, html_to_text(said)] if said.startswith("<") else [said]
    return values.carried_by(texts)


def missed(ways: dict[str, Callable[[str], str]], kinds: tuple[str, ...]) -> list[str]:
    lost = []
    for kind in kinds:
        held = {each for each in values.held_by(f"It is {VALUES[kind]} now.", "") if each.startswith(kind)}
        assert held, kind
        lost += [
            f"{kind} in {name}" for name, way in ways.items() if not held & set(found_in(way(VALUES[kind])))
        ]
    return lost


def test_a_value_is_found_in_whatever_way_it_is_written() -> None:
    assert missed(WAYS, tuple(VALUES)) == []


def test_account_numbers_and_tokens_are_found_whatever_is_around_and_between() -> None:
    assert missed(ONLY_NUMBERS_AND_TOKENS, ("iban", "token", "card")) == []


def test_a_one_time_code_is_found_too() -> None:
    code = "482913"
    for said in (
        encoded(code),
        base64.b32encode(code.encode()).decode(),
        " ".join(str(ord(digit)) for digit in code),
        ", ".join(code),
        f"https://other.example/x?d={encoded(code)}",
        encoded(f'{{"code": "{code}"}}'),
        code[::-1],
    ):
        assert f"code:{code}" in found_in(said), said


def test_archives_inside_archives_are_read_within_one_bound() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)) * 3)
    assert sum(map(len, unpacked(bomb))) <= 20_100_000
    assert list(unpacked(gzip.compress(gzip.compress(b"x"))))[-1] == b"x"
    assert list(unpacked(b"\x1f\x8b\x08 no gzip")) == list(unpacked(b"PK no zip")) == []


def test_ordinary_words_are_no_pieces_of_a_token() -> None:
    said = "On 20 May 2014 at 15:30 we met 12 people in room 4B, and paid 1,200.50 for R-3.0.2 on i386."
    assert not {each.kind for each in found_in(said).values() if each.kind != "code"} - {"token", "telephone"}


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "utf-16"])
def test_a_text_file_is_read_whole_in_its_charset(charset: str) -> None:
    text = "Grüße, das Konto ist DE89 3704 0044 0532 0130 00\r\n" * 3
    kept = text.encode("ascii", "ignore").decode() if charset == "latin-1" else text
    assert text_in(text.encode(charset)).startswith(kept)


def test_a_file_hides_nothing_by_saying_that_it_is_something_else() -> None:
    lines = b"DE89\n3704\n0044\n0532\n0130\n00\n"
    assert lines.decode() in text_in(codecs.BOM_UTF16_LE + lines)
    assert lines.decode() in text_in(b"\xff\0\1\2\xfe\0" * 100 + lines)


def test_a_text_file_that_was_cut_inside_a_letter_is_text() -> None:
    assert text_in("Grüße: ü".encode()[:-1]) == "Grüße: "


@pytest.mark.parametrize("charset", ["ascii", "utf-16-le", "utf-16-be"])
def test_of_a_picture_the_words_are_read_and_little_else(charset: str) -> None:
    chance = random.Random(7)
    noise = chance.randbytes(100_000)
    hidden = "mail drop@collect.example 4711"
    read = text_in(b"\x89PNG\r\n" + noise + b"\0" + hidden.encode(charset) + b"\0" + noise)
    assert hidden in read
    assert len(read) < 10_000
    assert "4711" in text_in(noise + b"\x004711\x00" + noise)
