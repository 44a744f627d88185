"""Plain text files: which bytes are text at all, in which charset, and tables."""

import codecs
import csv
import io
import re
from collections.abc import Iterator

MAX_DECODED_BYTES = 4_000_000
SNIFFED_BYTES = 8_192
# Codecs of the standard library that take more than linear time.
SLOW_CODECS = frozenset({"idna", "punycode"})

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"""charset\s{0,5}=\s{0,5}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


def is_binary(content: bytes) -> bool:
    head = content[:SNIFFED_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        return False
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    return b"\0" in head or controls * 20 > len(head)


def is_utf8(content: bytes) -> bool:
    return _decoded(content[:MAX_DECODED_BYTES], "utf-8") is not None


def decode(content: bytes, content_type: str) -> str:
    """Decode by the byte order mark, as UTF-8, as declared, else as Windows-1252."""
    head = content[:MAX_DECODED_BYTES]
    for mark, charset in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return head.decode(charset, "replace")
    declared = _CHARSET.search(content_type)
    for charset in ("utf-8", *([declared[1]] if declared else [])):
        text = _decoded(head, charset)
        if text is not None:
            return text
    return head.decode("cp1252", "replace")


def _decoded(head: bytes, charset: str) -> str | None:
    try:
        codec = codecs.lookup(charset)
        if codec.name in SLOW_CODECS:
            return None
        # Not final: the cut may go through a character.
        decoded = codecs.getincrementaldecoder(codec.name)().decode(head)
    except (LookupError, ValueError):
        return None
    return decoded if isinstance(decoded, str) else None


def table_text(text: str, *, has_tabs: bool) -> Iterator[str]:
    delimiter = "\t" if has_tabs else _delimiter(text[:SNIFFED_BYTES])
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        yield "\t".join(" ".join(cell.split()) for cell in row) + "\n"


def _delimiter(head: str) -> str:
    return max(",;\t|", key=head.count)
