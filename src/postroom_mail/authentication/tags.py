"""The `name=value; name=value` lists that DKIM and DMARC share (RFC 6376 section 3.2)."""

import re
from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SPACE = " \t\r\n"
_NO_SPACE = str.maketrans("", "", _SPACE)


class BadTags(Exception):
    """The bytes are not a tag list."""


def parse_tags(text: bytes) -> dict[str, str]:
    """Parse the tags. A repeated or malformed one makes the whole list invalid, as DKIM demands."""
    tags: dict[str, str] = {}
    for name, value in _pairs(text):
        if value is None or name in tags:
            raise BadTags(name)
        tags[name] = value
    return tags


def readable_tags(text: bytes) -> dict[str, str]:
    """Return the tags that can be read, the first of a name, as DMARC demands (RFC 9989, 4.7)."""
    tags: dict[str, str] = {}
    for name, value in _pairs(text):
        if value is not None:
            tags.setdefault(name, value)
    return tags


def without_space(value: str) -> str:
    """Remove the white space of a header (RFC 6376, 2.8). Other controls make a value invalid."""
    return value.translate(_NO_SPACE)


def _pairs(text: bytes) -> Iterator[tuple[str, str | None]]:
    """Name and value of each tag; the value is None if it is no tag."""
    # Latin-1 keeps every byte, so that a foreign character fails where it is used and not here.
    for part in text.decode("latin-1").split(";"):
        if part.strip(_SPACE):
            name, equals, value = part.partition("=")
            name = name.strip(_SPACE)
            yield name, value.strip(_SPACE) if equals and _NAME.fullmatch(name) else None
