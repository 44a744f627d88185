"""The lines that calendars (RFC 5545) and cards (RFC 6350) are made of, unfolded, in linear time."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from postroom_mail.mime import charset

MAX_BYTES = 1_000_000
MAX_LINES = 50_000
MAX_PARAMETERS = 50

_FOLD = re.compile(rb"\r?\n[ \t]")
_NAME = re.compile(r"(?:[\w-]{1,60}\.)?([\w-]{1,60})(?=[;:])")
_PARAMETER = re.compile(r';([\w-]{1,60})(?:=((?:"[^"]*"|[^":;])*))?')
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class ContentLine(NamedTuple):
    """Names are in upper case. A parameter without a value has the value ""."""

    name: str
    parameters: dict[str, str]
    value: str


def content_lines(raw: bytes) -> Iterator[ContentLine]:
    unfolded = _FOLD.sub(b"", raw[:MAX_BYTES].lstrip(b"\xef\xbb\xbf"))
    lines = charset.decode(unfolded, charset.UNDECLARED).replace("\r", "").split("\n", MAX_LINES)
    for line in lines[:MAX_LINES]:
        if (read := _content_line(line)) is not None:
            yield read


def _content_line(line: str) -> ContentLine | None:
    name = _NAME.match(line)
    if name is None:
        return None
    parameters: dict[str, str] = {}
    place = name.end()
    while (parameter := _PARAMETER.match(line, place)) is not None:
        place = parameter.end()
        if len(parameters) < MAX_PARAMETERS:
            parameters.setdefault(parameter[1].upper(), (parameter[2] or "").replace('"', ""))
    return (
        ContentLine(name[1].upper(), parameters, line[place + 1 :])
        if line[place : place + 1] == ":"
        else None
    )


def unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value)


def writable(value: str) -> str:
    """Return text as a calendar file can hold it: without control characters, with one kind of line end."""
    return _CONTROL.sub("", _LINE_ENDS.sub("\n", value))
