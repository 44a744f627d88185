"""Escape control and direction characters, which make untrusted text harmful in a terminal."""

import re

# C0 and C1 controls and DEL move the cursor or recolour; the rest reorder or hide what is read (UTS 55).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_LINE_END = re.compile("\r\n|\r|\n")


def one_line(text: str) -> str:
    """Return the text for a field: nothing in it can end the line."""
    return _UNSAFE.sub(_escape, text)


def many_lines(text: str) -> str:
    """Return the text for a body: line ends and tabs stay."""
    return "\n".join("\t".join(map(one_line, line.split("\t"))) for line in _LINE_END.split(text))


def json_text(text: str) -> str:
    """Return the same JSON value, with unsafe characters that JSON allows written as \\u escapes."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
