"""Text of rich text files, read once from front to back: groups as a stack, bytes by the font's charset."""

import re
from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from postroom_mail.html.markup import names
from postroom_mail.mime.charset import codec_for

START = b"{\\rtf"
MAX_DEPTH = 500
MAX_TOKENS = 1_000_000
# Charsets of fonts (Rich Text Format 1.9.1, "Font Table") that are not the document's.
FONT_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
# Groups whose words are not part of the text. So is any group that begins with \*.
APART = names(
    "annotation author buptim colortbl comment company creatim doccomm fldinst filetbl footer footerf "
    "footerl footerr header headerf headerl headerr info keywords nonshppict objdata operator pict printim "
    "private revtim rxe stylesheet subject tc template title txe xe"
)
MARKS = {
    **dict.fromkeys(("par", "line", "row", "nestrow"), "\n"),
    **dict.fromkeys(("sect", "page"), "\n\n"),
    **dict.fromkeys(("tab", "cell", "nestcell"), "\t"),
    **dict.fromkeys(("emspace", "enspace", "qmspace"), " "),
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
}
SYMBOLS = {b"\\": "\\", b"{": "{", b"}": "}", b"~": "\xa0", b"_": "-", b"\n": "\n", b"\r": "\n", b"\t": "\t"}

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)


def is_rtf(content: bytes) -> bool:
    return content[:100].lstrip().startswith(START)


def rtf_text(content: bytes) -> Iterator[str]:
    reader = _RtfReader()
    place = 0
    for _ in range(MAX_TOKENS):
        token = _TOKEN.match(content, place)
        if token is None:
            break
        place = token.end() + reader.read(token)
        if len(reader.units) > 4096:
            yield reader.taken()
        if reader.is_ended:
            break
    yield reader.taken()


class _Group(Struct, frozen=True):
    """What a group inherits from the one around it."""

    is_apart: bool = False
    is_font_table: bool = False
    is_hidden: bool = False
    is_markup: bool = False
    font: int = -1
    fallback: int = 1


class _RtfReader(Struct):
    group: _Group = field(default_factory=_Group)
    outer: list[_Group] = field(default_factory=list)
    overflow: int = 0
    codec: str = "cp1252"
    fonts: dict[int, str] = field(default_factory=dict)
    raw: bytearray = field(default_factory=bytearray)
    units: list[str] = field(default_factory=list)
    skipped: int = 0
    is_cell: bool = False
    is_ended: bool = False

    def read(self, token: re.Match[bytes]) -> int:
        """Takes one token; returns how many bytes of binary data follow it."""
        word, number, code, symbol, brace, plain = token.groups()
        if word:
            return self._word(word.decode().lower(), int(number) if number else None)
        if code:
            self._bytes(bytes.fromhex(code.decode()))
        elif symbol:
            self._symbol(symbol)
        elif brace:
            self._brace(brace)
        elif plain:
            self._bytes(plain)
        return 0

    def taken(self) -> str:
        """Return the text so far.

        Characters outside the basic plane come as two numbers, each half of one.
        """
        self._decode()
        text = "".join(self.units)
        self.units.clear()
        return (
            text
            if text.isascii()
            else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )

    def _brace(self, brace: bytes) -> None:
        self._decode()
        self.skipped = 0
        if brace == b"{" and len(self.outer) < MAX_DEPTH:
            self.outer.append(self.group)
        elif brace == b"{":
            self.overflow += 1
        elif self.overflow:
            self.overflow -= 1
        elif self.outer:
            self.group = self.outer.pop()
            self.is_ended = not self.outer

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self.group = replace(self.group, is_apart=True)
        else:
            self._write(SYMBOLS.get(symbol, ""))

    def _bytes(self, plain: bytes) -> None:
        skip = min(self.skipped, len(plain))
        self.skipped -= skip
        if self._is_shown():
            self.raw += plain[skip:]

    def _write(self, text: str) -> None:
        self._decode()
        self.skipped = 0
        if text and self._is_shown():
            self.units.append(text)

    def _is_shown(self) -> bool:
        group = self.group
        return not (group.is_apart or group.is_font_table or group.is_hidden or group.is_markup)

    def _decode(self) -> None:
        if self.raw:
            codec = self.fonts.get(self.group.font, self.codec)
            self.units.append(self.raw.decode(codec, "replace"))
            self.raw.clear()

    def _word(self, word: str, number: int | None) -> int:
        self._decode()
        if word == "bin":
            return max(0, number or 0)
        if word == "u" and number is not None:
            self._write(chr(number & 0xFFFF))
            self.skipped = self.group.fallback
        elif word in MARKS:
            self._write(" " if word == "par" and self.is_cell else MARKS[word])
        elif word in APART:
            self.group = replace(self.group, is_apart=True)
        else:
            self._property(word, number)
        return 0

    def _property(self, word: str, number: int | None) -> None:
        if word in ("v", "deleted"):
            self.group = replace(self.group, is_hidden=number != 0)
        elif word == "plain":
            self.group = replace(self.group, is_hidden=False)
        elif word == "htmlrtf":
            self.group = replace(self.group, is_markup=number != 0)
        elif word == "fonttbl":
            self.group = replace(self.group, is_font_table=True)
        elif word == "f" and number is not None:
            self.group = replace(self.group, font=number)
        elif word == "uc" and number is not None:
            self.group = replace(self.group, fallback=min(max(number, 0), 10))
        elif word in ("intbl", "pard"):
            self.is_cell = word == "intbl"
        else:
            self._charset(word, number)

    def _charset(self, word: str, number: int | None) -> None:
        if word == "fcharset" and self.group.is_font_table and number in FONT_CHARSETS:
            if len(self.fonts) < 10_000:
                self.fonts[self.group.font] = FONT_CHARSETS[number]
        elif word == "ansicpg":
            self.codec = codec_for(f"cp{number}") or codec_for("utf-8" if number == 65001 else "cp1252")
        elif word in ("mac", "pc", "pca"):
            self.codec = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
