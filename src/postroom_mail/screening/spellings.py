"""Undoes in an outgoing text what a writer can do by hand or in one step: numbers of letters, base32, pieces.

Each way is tried only where a sign of it is found. What comes out is read like the text itself.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, filterfalse, islice
from urllib.parse import unquote

from postroom_mail.screening.said import Said

MOST_FORMS = 500  # of a text
MOST_BYTES = 100_000  # that compressed letters become
SHORTEST = 16  # letters of base32, or of a part of a link
SHORTEST_HEX = 12
LONGEST_LINK = 20_000
LONGEST_ITEM = 120  # letters of a line of a list with a piece of a value
SHORTEST_ENCODED = 6  # letters of a one-time code in base64
_HEAD = re.compile(r"0[xX](?=[0-9a-fA-F]{2})|\b[uU]\+(?:00)?(?=[0-9a-fA-F]{2})")
_NUMBERS = re.compile(r"(?<![\w.])\d{2,3}(?>(?:[\s,;]{1,2}\d{2,3}){3,})(?![\w.])")
FEWEST_BYTES = 3  # of hexadecimal letters
_HEX_WORD = re.compile(r"(?<!\w)(?:0[xX])?[0-9a-fA-F]{2}")
_FEW = 8  # numbers of letters that stand for digits alone: more than these may be any text
_BITS = re.compile(r"(?<!\w)(?:[01]{8}[\s,]{0,2}){4,}+")
_OCTAL = re.compile(r"\\([0-7]{3})")
_CSS = re.compile(r"\\0{0,4}([0-9a-fA-F]{2}) ?")
_HEX_WORDS = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2,16}[\s,:]{1,2}){2,}[0-9a-fA-F]{2,16}(?!\w)")
_BASE32 = re.compile(r"[A-Z2-7]{8,}=*|[a-z2-7]{16,}=*")
_ENCODED = re.compile(r"[0-9]|[a-z][A-Z]|[A-Z]{2}")
_FEW_LETTERS = re.compile(r"(?=.{0,9}(?:[0-9]|[a-z][A-Z]|[A-Z]{2}))[A-Za-z0-9+/]{6,11}={0,2}")  # of base64
_LINK_PART = re.compile(r"[A-Za-z0-9_+-]{8,}")
_EQUAL_WORDS = re.compile(rb"([\x02-\x0c])\1{2,}[\x01-\x0c]?", re.DOTALL)
_NO_CHANGES = re.compile(rb"\0\0+")
_SHORT_WORDS = re.compile(rb"[\x01-\x05]{6,}")
_ENUMERATED = re.compile(
    r"^\s*(?:[-*+>\u2022]\s+)?(?:\w{1,12} )?\(?(?:\d{1,3}|[a-z])[.):]\s+|^\s*[-*+>\u2022]\s+"
)
_LONGEST_NUMBER = 21  # letters of what _ENUMERATED finds, with single blanks
_JOINT = re.compile(r"[\"'`]\s{0,2}[+.&,|]?\s{0,2}[\"'`]")
_PARAMETER = re.compile(r"[?&][^=&]{0,20}=([^&]{1,500})")
_BETWEEN = ".-_,;:|*~"
_EDGES = "\"'`,;+|()[]{}<>"
_MARKED = re.compile(r"[0-9@./:]")
_DOTTED = re.compile(r"\.[a-zA-Z]")
_NAMED = re.compile(r"@|://|\w\.[a-zA-Z]")
_SIGN_WORDS = re.compile(r"([-_<~/|]) ?(at|dot) ?[-_>~/|]", re.IGNORECASE)
_SPACED_SIGN = re.compile(r" {1,2}([.@/]|: ?//) {1,2}")
_BEHIND_A_BLANK = re.compile(r"(?<= )(?:[.@/]|: ?//) ")  # which is found where _SPACED_SIGN is
_BEFORE_WORDS = re.compile(rb"[-_<~/|]")
_SIGN_SHAPES = bytes.maketrans(b"_<~/|ADOT", b"-----adot")
# Blanks in a text, and what may be one outside of ASCII; a sign for all that joins, and for all quotes.
_JOINT_SHAPES = bytes.maketrans(
    b"\t\n\v\f\r\x1c\x1d\x1e\x1f?" + bytes(range(128, 256)) + b".&,|'`", b" " * 138 + b"++++" + b'""'
)
_JOINT_SHAPE = re.compile(rb'" {0,2}\+? {0,2}"')
_NUMBER_WORD = re.compile(r"[\"'(\[]?(?:0[xX]|[uU]\+)?[0-9a-fA-F][0-9a-fA-FxX,;:]+[\])'\"]?")
_NUMBER_SIGN = re.compile(r"[,;:]")
_SIGN = re.compile(r"[./@]\w|\w/")
_SOFT_BREAK = "=\n"
_EMPHASIS = re.compile(r"\*\*|~~|`")
_INNER_EMPHASIS = re.compile(r"(?<=\w)(?:\*\*|~~|`)\w")
_SHORT_RUN = b"\x01" * 6
_ONE_FOR_SHORT = bytes.maketrans(b"\x02\x03\x04\x05", b"\x01\x01\x01\x01")
_IS_OF_FEW = bytes(SHORTEST_ENCODED <= size < SHORTEST + 2 for size in range(256))
_ONE_FOR_THREE = bytes.maketrans(b"\x02\x03", b"\x01\x01")
LONGEST_ORDINARY = 300
_PLAIN = r"[A-Za-z][a-z]{0,10}+|[A-Za-z0-9]{1,5}+|[a-z]{1,11}+\.[a-z]{1,11}+"
_ORDINARY = re.compile(rf"(?>(?:(?:(?:{_PLAIN})[.,:;!?]?|\|(?:0\|)?)(?: |\Z))*)")
_HEX_PART = re.compile(r"[0-9a-fA-F]+")


def spelled(said: Said) -> Iterator[str]:
    """Yield what the numbers, signs and pieces of a text stand for."""
    forms: list[Iterable[str]] = []
    if said.has_digits:
        forms.append(_of_numbers(said))
    if said.signs or " . " in said.text:
        forms.append(_of_signs(said))
    forms.append(_of_words(said))
    if "\n" in said.text:
        forms.append(_of_lines(said.text))
    return islice(chain.from_iterable(forms), MOST_FORMS)


def is_ordinary(said: Said) -> bool:
    """Return whether no value can be hidden in a text: short plain words, one with a dot, and few numbers."""
    text = said.text
    if len(text) > LONGEST_ORDINARY or not _ORDINARY.fullmatch(text):
        return False
    small = text.lower()
    return (
        ("." not in text or len(_DOTTED.findall(text)) < 2)
        and (not said.has_digits or len(_HEX_WORD.findall(text)) < FEWEST_BYTES)
        and "dot" not in small
        and "hxxp" not in small
        and _SHORT_RUN not in said.sizes.translate(_ONE_FOR_THREE)
        and not any(True for _ in _runs_of_equals(said.sizes))
    )


def _of_numbers(said: Said) -> Iterator[str]:
    """Most texts have no words of digits that stand together, or a long one with signs between them."""
    for text in map(" ".join, _runs_of_numbers(said.words, said.digits)):
        if (plain := _HEAD.sub(" ", text)) != text:
            yield from _from_hex(plain)
        yield from _from_hex(text)
        for run in _NUMBERS.finditer(text):
            numbers = [int(each) for each in re.findall(r"\d+", run[0])]
            if len(numbers) >= _FEW or all(ord("0") <= each <= ord("9") for each in numbers):
                yield from read_bytes(bytes(each for each in numbers if each < 256))
        for run in _BITS.finditer(text):
            digits = "".join(filter(str.isdigit, run[0]))
            yield from read_bytes(int(digits, 2).to_bytes(len(digits) // 8, "big"))


def _runs_of_numbers(words: Sequence[str], places: Iterable[int]) -> Iterator[Sequence[str]]:
    """Yield words that stand together and may be numbers of letters, with the word on each side.

    One of these has a digit: hexadecimal bytes of letters alone are no letters of a value.
    """
    is_number = _NUMBER_WORD.fullmatch
    last = len(words)
    end = 0
    for at in (at for place in places for at in (place - 1, place, place + 1)):
        if not end <= at < last or not is_number(words[at]):
            continue
        start, end = at, at + 1
        while start and is_number(words[start - 1]):
            start -= 1
        while end < last and is_number(words[end]):
            end += 1
        run = words[start:end]
        if len(run) > 1 or len(run[0]) >= SHORTEST_HEX or _NUMBER_SIGN.search(run[0]):
            yield words[max(0, start - 1) : end + 1]


def _of_signs(said: Said) -> Iterator[str]:
    """Only the lines with a sign are read again."""
    text, signs = said.text, said.signs
    if b"\\" in signs:
        yield _OCTAL.sub(lambda found: chr(int(found[1], 8)), _lines_with(_OCTAL, text))
        yield _CSS.sub(lambda found: chr(int(found[1], 16)), _lines_with(_CSS, text))
    if b"=" in signs and _SOFT_BREAK in text:
        yield text.replace(_SOFT_BREAK, "")
    if b"`" in signs or (b"**" in signs and "**" in text) or (b"~~" in signs and "~~" in text):
        yield _EMPHASIS.sub("", _lines_with(_INNER_EMPHASIS, text))
    if (b'"' in signs or b"'" in signs or b"`" in signs) and _may_be_joined(said.letters):
        yield _JOINT.sub("", _lines_with(_JOINT, text))
    if _has_spaced_sign(text, signs):
        yield _SPACED_SIGN.sub(r"\1", _lines_with(_BEHIND_A_BLANK, text))
    if b"%" in signs and "%2" in text:
        yield from (
            unquote(word.replace("+", " "), errors="replace") for word in text.split() if "%2" in word
        )
    if _BEFORE_WORDS.search(signs) and _has_sign_words(said.letters):
        yield _SIGN_WORDS.sub(_sign_of, _lines_with(_SIGN_WORDS, text))


def _has_spaced_sign(text: str, signs: bytes) -> bool:
    if " . " in text or (b"@" in signs and " @ " in text):
        return True
    return b"/" in signs and (" / " in text or "// " in text)


def _has_sign_words(letters: bytes) -> bool:
    shapes = letters.translate(_SIGN_SHAPES)
    return b"-at" in shapes or b"-dot" in shapes


def _may_be_joined(letters: bytes) -> bool:
    return _JOINT_SHAPE.search(letters.translate(_JOINT_SHAPES)) is not None


def _lines_with(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.search(text):
        return ""
    return "\n".join(filter(pattern.search, text.split("\n")))


def _sign_of(found: re.Match[str]) -> str:
    return "@" if found[2].lower() == "at" else "."


def _from_hex(text: str) -> Iterator[str]:
    for run in _HEX_WORDS.finditer(text):
        digits = "".join(filter(str.isalnum, run[0]))
        yield from read_bytes(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _of_words(said: Said) -> Iterator[str]:
    words, sizes = said.words, said.sizes
    for at in said.places_from(SHORTEST):
        yield from _of_word(words[at].strip(_EDGES))
    few = dict.fromkeys(compress(words, sizes.translate(_IS_OF_FEW)))
    for word in filterfalse(str.istitle, filterfalse(str.islower, few)):
        if _ENCODED.search(word):
            yield from _of_few_letters(word.strip(_EDGES))
    if b"@" in said.signs or b"://" in said.signs or _DOTTED.search(said.text):
        yield from _with_neighbours(said)
    for start, end in _runs_of_equals(sizes) if len(words) > 2 else ():
        yield from _joined(words[start:end])
    if _SHORT_RUN in sizes.translate(_ONE_FOR_SHORT):  # many times as fast as the pattern
        for run in _SHORT_WORDS.finditer(sizes):
            short = words[run.start() : run.end()]
            if all(len(word.strip(_EDGES)) < 2 for word in short):
                yield "".join(word.strip(_EDGES) or word[len(word) // 2] for word in short)


def _runs_of_equals(sizes: bytes) -> Iterator[tuple[int, int]]:
    """Yield where three or more words of one length begin and end, with the shorter one behind them."""
    number = int.from_bytes(sizes, "big")
    changes = (number ^ number >> 8).to_bytes(
        len(sizes), "big"
    )  # zero where a word is as long as the one before
    end = 0
    for same in _NO_CHANGES.finditer(changes):
        if run := _EQUAL_WORDS.match(sizes, max(same.start() - 1, end)):
            end = run.end()
            yield run.span()


def _is_plain(word: str) -> bool:
    return word.islower() or word.istitle()


def _of_few_letters(core: str) -> Iterator[str]:
    if _FEW_LETTERS.fullmatch(core):
        yield from _from_base64(core)
    if core.isupper() and _BASE32.fullmatch(core):
        yield from _from_base32(core)


def _with_neighbours(said: Said) -> Iterator[str]:
    """Yield an address or a link that a blank splits: both of its pieces have signs."""
    words = said.words
    named = set(filter(_NAMED.search, said.odd))
    pairs = (
        words[at] + words[at + 1]
        for at in said.places_of(named)
        if at + 1 < len(words) and _SIGN.search(words[at + 1])
    )
    return islice(pairs, MOST_FORMS)


def _of_word(core: str) -> Iterator[str]:
    if core.isalnum():
        if _BASE32.fullmatch(core):
            yield from _from_base32(core)
        return
    if len(core) > 1 and not core[1].isalnum() and len(set(core[1::2])) == 1:
        yield core[::2]
    for sign in filter(core.__contains__, _BETWEEN):
        parts = core.split(sign)
        size = len(parts[0])
        if len(parts) > 2 and size == len(parts[1]) > 1 and all(len(part) == size for part in parts[2:-1]):
            yield "".join(parts)
    if "?" in core and "&" in core:
        yield "".join(_PARAMETER.findall(core))
    for part in _LINK_PART.findall(core) if len(core) < LONGEST_LINK else ():
        if len(part) >= SHORTEST_HEX and _HEX_PART.fullmatch(part):
            yield from read_bytes(bytes.fromhex(part[: len(part) // 2 * 2]))
        elif not _is_plain(part):
            yield from _from_base64(part)
            if _BASE32.fullmatch(part):
                yield from _from_base32(part)
        elif len(part) >= SHORTEST and _BASE32.fullmatch(part):
            yield from _from_base32(part)


def _from_base64(part: str) -> Iterator[str]:
    letters = part.rstrip("=").replace("-", "+").replace("_", "/")
    if len(letters) % 4 != 1:
        try:
            content = binascii.a2b_base64(letters + "=" * (-len(letters) % 4))
        except binascii.Error:
            return
        yield from read_bytes(content)


def _from_base32(letters: str) -> Iterator[str]:
    letters = letters.rstrip("=").upper()
    letters = letters[: len(letters) - (0, 1, 0, 1, 0, 0, 1, 0)[len(letters) % 8]]
    try:
        yield from read_bytes(base64.b32decode(letters + "=" * (-len(letters) % 8)))
    except binascii.Error:
        return


def _of_lines(text: str) -> Iterator[str]:
    """Yield neighbouring lines of one word each as one word, also of a numbered list."""
    run: list[str] = []
    for line in map(str.strip, (*text.splitlines(), "an end")):
        if not line:
            continue
        word = line if _is_sentence(line) else _ENUMERATED.sub("", line).strip()
        if " " not in word or (len(word) <= SHORTEST and word != line):
            run.append(word.strip(_EDGES.replace("+", "")))
            continue
        if len(run) > 1:
            yield "".join(run)
        run = []


def _is_sentence(line: str) -> bool:
    """Return whether it is a long line, or has a blank behind all that could be its number in a list."""
    if len(line) > LONGEST_ITEM:
        return " " in line
    head = line[: _LONGEST_NUMBER + 1]
    return (
        len(line) > _LONGEST_NUMBER + SHORTEST
        and " " in line[_LONGEST_NUMBER:]
        and "  " not in head
        and head.isprintable()
    )


def _joined(words: Iterable[str]) -> Iterator[str]:
    word = "".join(words)
    if _MARKED.search(word) or not (word.islower() or word.istitle()):
        yield word


def read_bytes(content: bytes) -> Iterator[str]:
    """Yield the text that bytes are, also compressed or in UTF-16."""
    if content[:2] == b"\x1f\x8b" or (content[:1] == b"\x78" and content[1:2] in b"\x01\x5e\x9c\xda"):
        try:
            content = zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(content, MOST_BYTES)
        except zlib.error:
            return
    encoding = "utf-8"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif b"\0" in content[:2]:
        encoding = "utf-16-be" if content[:1] == b"\0" else "utf-16-le"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return
    if len(text) > 3 and "".join(text.split()).isprintable():
        yield text
