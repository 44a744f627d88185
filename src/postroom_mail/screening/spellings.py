"""Undoes in an outgoing text what a writer can do by hand or in one step: numbers of letters, base32, pieces.

Each way is tried only where a sign of it is found. What comes out is read like the text itself.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, filterfalse, islice
from urllib.parse import unquote

MOST_FORMS = 500  # of a text
MOST_BYTES = 100_000  # that compressed letters become
SHORTEST = 16  # letters of base32, or of a part of a link
SHORTEST_HEX = 12
LONGEST_LINK = 20_000
LONGEST_ITEM = 120  # letters of a line of a list with a piece of a value
SHORTEST_ENCODED = 6  # letters of a one-time code in base64
_HEAD = re.compile(r"0[xX](?=[0-9a-fA-F]{2})|\b[uU]\+(?:00)?(?=[0-9a-fA-F]{2})")
_NUMBERS = re.compile(r"(?<![\w.])\d{2,3}(?:[\s,;]{1,2}\d{2,3}){3,}+(?![\w.])")
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
_SHORT_WORDS = re.compile(rb"[\x01-\x05]{6,}")
_ENUMERATED = re.compile(
    r"^\s*(?:[-*+>\u2022]\s+)?(?:\w{1,12} )?\(?(?:\d{1,3}|[a-z])[.):]\s+|^\s*[-*+>\u2022]\s+"
)
_JOINT = re.compile(r"[\"'`]\s{0,2}[+.&,|]?\s{0,2}[\"'`]")
_PARAMETER = re.compile(r"[?&][^=&]{0,20}=([^&]{1,500})")
_BETWEEN = ".-_,;:|*~"
_EDGES = "\"'`,;+|()[]{}<>"
_MARKED = re.compile(r"[0-9@./:]")
_NAMED = re.compile(r"@|://|\w\.[a-zA-Z]")
_SIGN_WORDS = re.compile(r"([-_<~/|]) ?(at|dot) ?[-_>~/|]", re.IGNORECASE)
_SPACED_SIGN = re.compile(r" {1,2}([.@/]|: ?//) {1,2}")
_SIGN_HEADS = tuple(f"{sign}{word}" for sign in "-_<~/|" for word in ("at", "dot"))
_NUMBER_HEADS = frozenset("0123456789abcdefABCDEFuU\"'([")
_NUMBER_WORD = re.compile(r"[\"'(\[]?(?:0[xX]|[uU]\+)?[0-9a-fA-F][0-9a-fA-FxX,;:]+[\])'\"]?")
_NUMBER_SIGN = re.compile(r"[,;:]")
_DIGIT = re.compile(r"[0-9]")
_SIGN = re.compile(r"[./@]\w|\w/")
_SOFT_BREAK = "=\n"
_EMPHASIS = re.compile(r"\*\*|~~|`")
_INNER_EMPHASIS = re.compile(r"\w(?:\*\*|~~|`)\w")
_LONG_WORD = re.compile(rb"[\x10-\xff]")  # of SHORTEST letters
_HEX_PART = re.compile(r"[0-9a-fA-F]+")


def spelled(text: str, words: Sequence[str], sizes: bytes) -> Iterator[str]:
    """Yield what the numbers, signs and pieces of a text stand for."""
    return islice(
        chain(_of_numbers(text, words), _of_signs(text), _of_words(words, sizes), _of_lines(text)), MOST_FORMS
    )


def _of_numbers(said: str, words: Sequence[str]) -> Iterator[str]:
    """Most texts have no words of digits that stand together, or a long one with signs between them."""
    for text in map(" ".join, _runs_of_numbers(words) if _DIGIT.search(said) else ()):
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


def _runs_of_numbers(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield words that stand together and may be numbers of letters, with the word on each side."""
    heads = (at for at, word in enumerate(words) if word[0] in _NUMBER_HEADS)
    places = [at for at in heads if _NUMBER_WORD.fullmatch(words[at])]
    start = end = -1
    count = 0
    for at in (*places, len(words) + 1):
        if at != end:
            if count > 1:
                yield words[max(0, start - 1) : end + 1]
            start, count = at, 0
        end = at + 1
        if at < len(words):
            count += 1 + len(_NUMBER_SIGN.findall(words[at])) + len(words[at]) // SHORTEST_HEX


def _of_signs(text: str) -> Iterator[str]:
    """Only the lines with a sign are read again."""
    if "\\" in text:
        yield _OCTAL.sub(lambda found: chr(int(found[1], 8)), _lines_with(_OCTAL, text))
        yield _CSS.sub(lambda found: chr(int(found[1], 16)), _lines_with(_CSS, text))
    if _SOFT_BREAK in text:
        yield text.replace(_SOFT_BREAK, "")
    if "**" in text or "`" in text or "~~" in text:
        yield _EMPHASIS.sub("", _lines_with(_INNER_EMPHASIS, text))
    if '"' in text or "'" in text or "`" in text:
        yield _JOINT.sub("", _lines_with(_JOINT, text))
    if " . " in text or " @ " in text or "/ " in text:
        yield _SPACED_SIGN.sub(r"\1", _lines_with(_SPACED_SIGN, text))
    if "%2" in text:
        yield from (
            unquote(word.replace("+", " "), errors="replace") for word in text.split() if "%2" in word
        )
    if any(map(text.lower().__contains__, _SIGN_HEADS)):
        yield _SIGN_WORDS.sub(_sign_of, _lines_with(_SIGN_WORDS, text))


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


def _of_words(words: Sequence[str], sizes: bytes) -> Iterator[str]:
    for place in _LONG_WORD.finditer(sizes):
        yield from _of_word(words[place.start()].strip(_EDGES))
    distinct = set(words)
    for word in filterfalse(str.istitle, filterfalse(str.islower, distinct)):
        if SHORTEST_ENCODED <= len(word) < SHORTEST + 2 and _ENCODED.search(word):
            yield from _of_few_letters(word.strip(_EDGES))
    yield from _with_neighbours(words, distinct)
    for run in _EQUAL_WORDS.finditer(sizes):
        yield from _joined(words[run.start() : run.end()])
    for run in _SHORT_WORDS.finditer(sizes):
        said = words[run.start() : run.end()]
        if all(len(word.strip(_EDGES)) < 2 for word in said):
            yield "".join(word.strip(_EDGES) or word[len(word) // 2] for word in said)


def _is_plain(word: str) -> bool:
    return word.islower() or word.istitle()


def _of_few_letters(core: str) -> Iterator[str]:
    if _FEW_LETTERS.fullmatch(core):
        yield from _from_base64(core)
    if core.isupper() and _BASE32.fullmatch(core):
        yield from _from_base32(core)


def _with_neighbours(words: Sequence[str], distinct: Iterable[str]) -> Iterator[str]:
    """Yield an address or a link that a blank splits: both of its pieces have signs."""
    named = set(filter(_NAMED.search, filterfalse(str.isalpha, distinct)))
    if named:
        pairs = (
            words[at] + words[at + 1]
            for at in range(len(words) - 1)
            if words[at] in named and _SIGN.search(words[at + 1])
        )
        yield from islice(pairs, MOST_FORMS)


def _of_word(core: str) -> Iterator[str]:
    if core.isalnum():
        if _BASE32.fullmatch(core):
            yield from _from_base32(core)
        return
    if len(set(core[1::2])) == 1 and not core[1].isalnum():
        yield core[::2]
    for sign in filter(core.__contains__, _BETWEEN):
        parts = core.split(sign)
        if len(parts) > 2 and len(parts[0]) > 1 and len(set(map(len, parts[:-1]))) == 1:
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
    if "\n" not in text:
        return
    run: list[str] = []
    for line in map(str.strip, (*text.splitlines(), "an end")):
        if not line:
            continue
        is_long = " " in line and len(line) > LONGEST_ITEM
        word = line if is_long else _ENUMERATED.sub("", line).strip()
        if " " not in word or (len(word) <= SHORTEST and word != line):
            run.append(word.strip(_EDGES.replace("+", "")))
            continue
        if len(run) > 1:
            yield "".join(run)
        run = []


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
