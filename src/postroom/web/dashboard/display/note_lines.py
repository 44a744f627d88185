"""The light markup of an internal note, as lines for a template: **bold**, lists, quotes and links."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from postroom_mail.writing.light_markup import ADDRESS, BOLD, BULLET, LINK, NUMBER, QUOTED

MARKED = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in (LINK, ADDRESS, BOLD)))


class NotePiece(NamedTuple):
    """A piece of a line; `url` where it is a link."""

    text: str
    is_strong: bool = False
    url: str = ""


class NoteLine(NamedTuple):
    kind: str
    runs: list[NotePiece]


def read(body: str) -> list[NoteLine]:
    return [NoteLine(kind, list(runs_of(text))) for kind, text in map(kind_of, body.splitlines())]


def kind_of(line: str) -> tuple[str, str]:
    for kind, pattern in (("item", BULLET), ("quote", QUOTED)):
        if found := pattern.match(line):
            return kind, found[1]
    return ("item number" if NUMBER.match(line) else "text"), line


def runs_of(line: str) -> Iterator[NotePiece]:
    end = 0
    for found in MARKED.finditer(line):
        yield from plain(line[end : found.start()])
        label, target, bold = found.groups()
        yield NotePiece(label or bold or found[0], bold is not None, target or ("" if bold else found[0]))
        end = found.end()
    yield from plain(line[end:])


def plain(text: str) -> Iterator[NotePiece]:
    if text:
        yield NotePiece(text)
