"""Bytes to text: the codec of a label, what to do if it is wrong, and text that any database can store."""

import codecs
import re
from encodings.aliases import aliases
from functools import lru_cache

UNDECLARED = ""
# Most codecs replace bad bytes one by one, slowly; a large text full of them has a wrong label.
MAX_REPAIRED_BYTES = 1024 * 1024

# Only these are ever used: Python also knows "punycode" (quadratic time) and "unicode_escape" (surrogates).
_CODECS = frozenset(
    {"ascii", "latin_1", "utf_7", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32"}
    | {f"iso8859_{number}" for number in (*range(2, 12), *range(13, 17))}
    | {f"cp{page}" for page in (437, 850, 852, 855, 858, 862, 866, 874, 932, 949, 950, *range(1250, 1259))}
    | {"koi8_r", "koi8_u", "koi8_t", "mac_roman", "mac_cyrillic", "ptcp154", "tis_620"}
    | {"gb2312", "gbk", "gb18030", "hz", "big5", "big5hkscs", "euc_kr", "johab", "iso2022_kr"}
    | {"euc_jp", "shift_jis", "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_3", "iso2022_jp_ext"}
)

# Labels that email uses for a larger set than the one they name, as on web pages (WHATWG Encoding, 4.2).
_MEANT = {
    "ascii": UNDECLARED,
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "iso8859_11": "cp874",
    "tis_620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "cp950",
    "iso2022_jp": "iso2022_jp_ext",
    "utf_8_sig": "utf_8",
}

# All 256 bytes, so that decoding cannot fail and takes no detour through an error handler.
_WINDOWS_1252 = bytes(range(256)).decode("cp1252", "replace")

# Labels that Python's own table lacks.
_ALIASES = {
    "utf8mb4": "utf_8",
    "unicode_1_1_utf_7": "utf_7",
    "ks_c_5601_1987": "cp949",
    "ks_c_5601": "cp949",
    "x_gbk": "gb18030",
    "x_sjis": "cp932",
    "x_euc_jp": "euc_jp",
    "iso_8859_8_i": "iso8859_8",
    "iso_8859_8_e": "iso8859_8",
    "x_mac_cyrillic": "mac_cyrillic",
    "windows_874": "cp874",
    "x_cp1252": "cp1252",
    "unknown_8bit": UNDECLARED,
    "x_unknown": UNDECLARED,
    "default_charset": UNDECLARED,
    "8bit": UNDECLARED,
}

# Switches ISO-2022-JP to Kanji. Old mail software sends it without declaring it.
_JAPANESE_ESCAPE = b"\x1b$B"

_MAX_LABEL = 64
_NOT_IN_LABEL = re.compile(r"[^a-z0-9]+")
_LINE_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def decode(data: bytes, label: str) -> str:
    """Return the text of the bytes; a missing, unknown or wrong label never fails."""
    codec = codec_for(label)
    if codec == UNDECLARED:
        return clean(_decode_undeclared(data))
    try:
        return clean(data.decode(codec))
    except UnicodeDecodeError:
        return clean(_decode_damaged(data, codec))


def decode_unlabelled(data: bytes, neighbour: str) -> str:
    """Decode bytes that should be UTF-8; else with the label of the text next to them."""
    codec = codec_for(neighbour)
    if codec.startswith("iso2022") and b"\x1b" in data:
        return decode(data, neighbour)
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return decode(data, UNDECLARED if codec in ("utf_8", "utf_7") else neighbour)


@lru_cache(maxsize=256)
def codec_for(label: str) -> str:
    """Return the Python codec that a charset label means, or UNDECLARED."""
    name = _NOT_IN_LABEL.sub("_", label[:_MAX_LABEL].strip("'\" \t").lower()).strip("_")
    codec = _ALIASES.get(name, aliases.get(name, name))
    if codec not in _CODECS:
        return UNDECLARED
    return _MEANT.get(codec, codec)


def clean(text: str) -> str:
    """Return text that any database stores: no NUL, no lone surrogate, no byte order mark in front."""
    if "\0" in text:  # found sooner than replaced
        text = text.replace("\0", "")
    text = text.removeprefix("\ufeff")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def clean_line(text: str) -> str:
    """Return one clean line: control characters and line breaks become a space."""
    if text.isprintable():
        return text.strip()
    return _LINE_CONTROLS.sub(" ", clean(text)).strip()


def _decode_damaged(data: bytes, codec: str) -> str:
    if codec != "utf_8" and len(data) > MAX_REPAIRED_BYTES:
        return _decode_undeclared(data)
    return data.decode(codec, "replace")


def _decode_undeclared(data: bytes) -> str:
    if _JAPANESE_ESCAPE in data and data.isascii():
        return data.decode("iso2022_jp_ext", "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0]
