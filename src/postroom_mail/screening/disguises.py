"""Undoes what hides a value in an email: encodings, entities, spaced letters, words for signs, archives."""

import binascii
import codecs
import contextlib
import html
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import unquote

from postroom_mail.languages.folding import NO_WIDTH, TO_LATIN
from postroom_mail.screening.hosts import is_top_level
from postroom_mail.screening.said import Said
from postroom_mail.screening.spellings import read_bytes

_GZIP = b"\x1f\x8b\x08"
MAX_ZIP_MEMBERS = 500  # names and contents count alike in nested ones
MAX_ZIP_BYTES = 20_000_000
MOST_RUNS = 50  # that are decoded
MOST_WORDS = 50_000
MOST_PLACES = 1_000  # of long words
MOST_BEFORE = 4
DEPTH = 2  # an encoded text may be encoded again
MOST_CHARACTERS_TWICE = 5_000

LONGEST_LETTER = 4  # bytes, in UTF-8
MOST_CONTROLS = 0.02  # of the bytes of a text in an old charset; a picture has 0.1
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\f\r"))
_RUN = re.compile(rb"[\t\r\n\x20-\x7e]{6,}|[0-9]{4,}|(?:[\t\r\n\x20-\x7e]\0){6,}")
_ENTITY = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}));?")
# Two encoded letters, or a sign that a value needs: a blank in a link is neither.
_PERCENT = re.compile(
    r"%(?:25[0-9a-fA-F]{2}|40|2[eEfF]|3[0-9aA]|[4-7][0-9a-fA-F]|[0-9a-fA-F]{2}%[0-9a-fA-F]{2})"
)
_QUOTED = re.compile(r"=(?:40|2[eEfF]|[0-9A-Fa-f]{2}=[0-9A-Fa-f]{2})")
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
# Letters that may be base64, also in several lines or groups, and hexadecimal bytes.
_BASE64_WORD = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_LETTERS = re.compile(r"[^\W_]{4}")
_BASE64_END = re.compile(r"[A-Za-z0-9+/_-]{1,7}={0,2}")
_HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}[ \t\r\n:,]?){6,}+")
# A word of base64 has a digit, or large letters behind small ones; one of dashed letters has many dashes.
_MIXED = re.compile(r"[0-9]|[a-z][A-Z]|(?:[-_|*.]\w){4}")
_AROUND = "\"'<>().,;:[]{}"
_BETWEEN = "-_|*."
_WITHOUT_BETWEEN = str.maketrans("", "", _BETWEEN)
_BRACKETED = re.compile(r"[\[({<] ?(dot|at|[.@:]) ?[\])}>]", re.IGNORECASE)
_AT = re.compile(r"(?<=\w) at (?=[\w-]+\.)", re.IGNORECASE)
# What a spelling holds, with a sign of it: most texts have few of the signs.
_DOTS = (" dot ", "dot)", "dot]", "dot}", "dot )", "dot ]")
_AROUND_SIGNS = re.compile(rb"[(\[{*]")
_SPELLED = (
    (b"(", re.compile(r"\((?:\.\)|at\)| at |@)")),
    (b"[", re.compile(r"\[(?:\.|at\]| at |@)")),
    (b"{", re.compile(r"\{(?:\.|at\}|@)")),
    (b"*", re.compile(r"h\*\*p")),
)
_COMMA_FOR_DOT = re.compile(r"(@[\w-]{1,63}+),(?=([A-Za-z]{2,24})(?![\w.@-]))")  # drop@collect,com
_FULL_STOP = re.compile(r"(?<=[A-Za-z0-9])\u3002(?=[A-Za-z0-9])")  # which browsers read as a dot
# Letters that only programs see, digits of other scripts, and words of ASCII with Greek or Cyrillic letters.
_TAGS = re.compile(r"[\U000e0020-\U000e007e]")
_FROM_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u2c00-\U0010ffff]")  # no Latin letter, and no sign of typography
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_MIXED_SCRIPTS = re.compile(
    r"(?<![\w@.-])(?=[^\s\u0370-\u052f]{0,64}[\u0370-\u052f])(?=[^\sA-Za-z0-9]{0,64}[A-Za-z0-9])\S{2,500}"
)
_GREEK_OR_CYRILLIC = re.compile("[\u0370-\u052f]")
_ALIKE = TO_LATIN | str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0405\u0408"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "ABEKMHOPCTXISJABEZHIKMNOPTYX",
)
_DEFANGED = re.compile(r"h(?:xx|\*\*)p(s?)(?=:)", re.IGNORECASE)
_SMALL = "abcdefghijklmnopqrstuvwxyz"
_ROTATED = str.maketrans(
    _SMALL + _SMALL.upper(), f"{_SMALL[13:]}{_SMALL[:13]}{_SMALL[13:].upper()}{_SMALL[:13].upper()}"
)
_SHORTEST_ENCODED = 12
_SINGLES = 6  # letters or bytes that stand alone, one behind the other
_SINGLE_LETTERS = re.compile(rb"\x01{%d,}" % _SINGLES)
_SHORT_WORDS = re.compile(rb"[\x01\x02]{%d,}" % _SINGLES)
_ONE_FOR_SHORT = bytes.maketrans(b"\x02", b"\x01")
_SHORT_RUN = b"\x01" * _SINGLES


def readable(text: str) -> str:
    """Return the text without invisible characters, its compatible letters and signs as ASCII has them."""
    if "@" in text:
        text = _COMMA_FOR_DOT.sub(_with_dot, text)
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", NO_WIDTH.sub("", text))
    if plain.isascii() or not _OTHER_SCRIPT.search(plain):
        return plain
    if _OTHER_DIGIT.search(plain):
        plain = _OTHER_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), plain)
    if _GREEK_OR_CYRILLIC.search(plain) and _MIXED_SCRIPTS.search(plain):
        plain = _MIXED_SCRIPTS.sub(lambda found: found[0].translate(_ALIKE), plain)
    return _FULL_STOP.sub(".", plain) if "\u3002" in plain else plain


def _with_dot(found: re.Match[str]) -> str:
    return f"{found[1]}." if is_top_level(found[2]) else found[0]


def hidden_in(text: str) -> str:
    """Return letters of a text that only programs see (Unicode's tags)."""
    return "" if text.isascii() else "".join(_TAGS.findall(text)).translate(_FROM_TAGS)


def undone(said: Said, depth: int = DEPTH) -> Iterator[str]:
    """Yield what the encodings and spellings in a text stand for; nothing for most texts."""
    found = list(_decoded(said))
    yield from found
    if depth > 1:
        for each in (each for each in found if len(each) <= MOST_CHARACTERS_TWICE):
            yield from undone(Said(each), depth - 1)


def turned(text: str, marked: Sequence[str]) -> Iterator[str]:
    """Yield words that have marks of a value backwards and with rotated letters, and joined lines."""
    if "\n" in text:
        lines = list(filter(None, map(str.strip, text.splitlines())))
        ends = (line.rsplit(None, 1)[-1].rstrip("=") for line in lines)
        starts = (line.split(None, 1)[0].lstrip(">") for line in lines[1:])
        yield " ".join(map(str.__add__, ends, starts))
    some = " ".join(marked)
    yield some[::-1]
    yield some.translate(_ROTATED)


def _decoded(said: Said) -> Iterator[str]:
    """Each way is tried only where a sign of it is found, which most texts have none of."""
    text, words, sizes, signs = said.text, said.words, said.sizes, said.signs
    if b"%" in signs and _PERCENT.search(text):
        yield unquote(text, errors="replace")
    if b"&" in signs and (plain := html.unescape(text)) != text:
        yield plain
    if b"=" in signs and _QUOTED.search(text):
        yield binascii.a2b_qp(text.encode(errors="replace")).decode(errors="replace")
    if b"\\" in signs and _ESCAPED.search(text):
        yield _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
    if _is_spelled(text.lower(), signs):
        plain = _with_signs(text)
        yield from (plain,) if plain != text else ()
    if said.long:
        yield from _from_words(words, said.places_from(_SHORTEST_ENCODED)[:MOST_PLACES])
    if _SHORT_RUN in sizes.translate(_ONE_FOR_SHORT):  # many times as fast as the pattern
        yield from _from_pieces(text, words, sizes)


def _is_spelled(small: str, signs: bytes) -> bool:
    if "hxxp" in small or ("dot" in small and any(map(small.__contains__, _DOTS))):
        return True
    return _AROUND_SIGNS.search(signs) is not None and any(
        form.search(small) for sign, form in _SPELLED if sign in signs
    )


def _with_signs(text: str) -> str:
    """A text with the signs of an address in place of words for them."""
    plain = _BRACKETED.sub(lambda found: {"dot": ".", "at": "@"}.get(found[1].lower(), found[1]), text)
    for blank, sign in (
        (" @", "@"),
        ("@ ", "@"),
        (" . ", "."),
        (" dot ", "."),
        (" Dot ", "."),
        (" DOT ", "."),
    ):
        plain = plain.replace(blank, sign)
    return _DEFANGED.sub(r"http\1", _AT.sub("@", plain))


def _from_words(words: Sequence[str], places: Sequence[int]) -> Iterator[str]:
    """Of base64, hexadecimal bytes or dashed letters: each long word, and base64 with its neighbours."""
    end = 0
    for at in places:
        word = words[at]
        if word.isalpha() and word.islower():
            continue
        core = word.strip(_AROUND)
        if not _MIXED.search(core):
            continue
        is_dashed = len(core) - len(core.translate(_WITHOUT_BETWEEN)) >= len(core) // 2
        if "://" in core and not is_dashed:
            continue
        if _HEX.fullmatch(core):
            yield from _from_hex(core)
        if is_dashed:
            yield core.translate(_WITHOUT_BETWEEN)
        if at >= end and _BASE64_WORD.fullmatch(core):
            yield from _from_base64(core)
            start, end = _run_around(words, at)
            if end - start > 1:
                run = [word.strip(_AROUND) for word in words[start:end]]
                for first in range(at - start + 1):  # words of the sentence may stand before it
                    yield from _from_base64("".join(run[first:]))


def _run_around(words: Sequence[str], at: int) -> tuple[int, int]:
    """Return where the words that may be of the same base64 begin and end; the last one may be short."""
    start = end = at
    while start > max(0, at - MOST_BEFORE) and _BASE64_WORD.fullmatch(words[start - 1]):
        start -= 1
    while end < len(words) and _BASE64_WORD.fullmatch(words[end].strip(_AROUND)):
        end += 1
    if end < len(words) and _BASE64_END.fullmatch(words[end].strip(_AROUND)):
        end += 1
    return start, end


def _from_pieces(text: str, words: Sequence[str], sizes: bytes) -> Iterator[str]:
    """Of hexadecimal bytes, and of letters with a blank behind each."""
    for run in islice(_HEX.finditer(text), MOST_RUNS):
        yield from _from_hex(run[0])
    yield from _joined(words, sizes, _SINGLE_LETTERS)
    yield from _joined(words, sizes, _SHORT_WORDS)


def _joined(words: Sequence[str], sizes: bytes, run_of: re.Pattern[bytes]) -> Iterator[str]:
    for run in run_of.finditer(sizes, 0, MOST_WORDS):
        yield from filter(_LETTERS.search, ("".join(words[run.start() : run.end()]),))


def _from_base64(run: str) -> Iterator[str]:
    letters = run.replace("-", "+").replace("_", "/").replace("=", "")
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    yield from read_bytes(binascii.a2b_base64(letters + "=" * (-len(letters) % 4)))


def _from_hex(run: str) -> Iterator[str]:
    digits = "".join(letter for letter in run if letter.isalnum())
    yield from read_bytes(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def without_entities(data: bytes) -> bytes:
    """Return the bytes with a letter in place of each number of one."""
    return _ENTITY.sub(_to_letter, data)


def _to_letter(found: re.Match[bytes]) -> bytes:
    number = int(found[1], 16) if found[1] else int(found[2])
    return chr(number).encode(errors="replace") if number < 0x110000 else b""


def text_in(content: bytes) -> str:
    """Return the text of a file; of one that is no text its runs of characters, as `strings` prints them."""
    if content.startswith(_UTF_16):  # or it only says so
        return f"{content.decode('utf-16', 'ignore')}\n{_runs_in(content)}"
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if error.start > len(content) - LONGEST_LETTER:  # cut off
            return content[: error.start].decode()
    controls = len(content) - len(content.translate(None, _CONTROLS))
    if controls <= len(content) * MOST_CONTROLS:
        return content.decode(errors="ignore")
    return _runs_in(content)


def _runs_in(content: bytes) -> str:
    return "\n".join(run.replace(b"\0", b"").decode() for run in _RUN.findall(content))


def unpacked(content: bytes) -> Iterator[bytes]:
    """Yield names and contents of an archive or a compressed file, and of those inside it."""
    left, members = MAX_ZIP_BYTES, MAX_ZIP_MEMBERS
    waiting = [(content, DEPTH)]
    for packed, depth in waiting:
        for inner in _inflated(packed, left) if packed.startswith(_GZIP) else unzipped(packed, left):
            if left <= 0 or members <= 0:
                return
            left, members = left - len(inner), members - 1
            yield inner
            if depth > 1 and inner.startswith((b"PK", _GZIP)):
                waiting.append((inner, depth - 1))


def _inflated(content: bytes, most: int) -> Iterator[bytes]:
    with contextlib.suppress(zlib.error):
        yield zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content, most)


def unzipped(content: bytes, most: int | None = None) -> Iterator[bytes]:
    """Yield names and contents of an archive. Office documents are zip files too. An error ends it."""
    if not content.startswith(b"PK"):
        return
    left = MAX_ZIP_BYTES if most is None else most
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist()[:MAX_ZIP_MEMBERS]:
                yield member.filename.encode(errors="replace")
                with archive.open(member) as file:
                    unpacked = file.read(left)
                left -= len(unpacked)
                yield unpacked
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zlib.error):
        return
