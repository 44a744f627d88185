"""A light markup for people who write without an editor: **bold**, lists, [links](https://…) and > quotes.

The text is sent as typed, together with HTML made from it, in which everything else is escaped.
"""

import html
import re
from collections.abc import Callable, Iterator

from postroom_mail.html import text as html_text
from postroom_mail.writing.quote import QUOTE_STYLE

DEEPEST = 5  # quotes in quotes
BULLET = re.compile(r" {0,3}[-*•] (.*)")
NUMBER = re.compile(r" {0,3}([0-9]{1,3})[.)] (.*)")
QUOTED = re.compile(r"> ?(.*)")
BOLD = re.compile(r"\*\*([^*\n]{1,500})\*\*")
LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\(((?:https?://|mailto:)[^\s()<>\"]{1,2000})\)")
ADDRESS = re.compile(r"https?://[^\s<>\"]{1,2000}")
TRAILING = ".,;:!?)]'"


def to_html(text: str) -> str | None:
    """Return None if nothing is marked: the text alone is enough. Typed HTML is left alone."""
    if html_text.looks_like_html(text) or not is_marked(text):
        return None
    return "\n".join(_blocks(text.replace("\r\n", "\n").split("\n"), DEEPEST))


def is_marked(text: str) -> bool:
    lines = text.splitlines()
    is_block = any(pattern.match(line) for line in lines for pattern in (BULLET, NUMBER, QUOTED))
    return is_block or bool(LINK.search(text)) or any(_is_bold(found) for found in BOLD.finditer(text))


def _is_bold(found: re.Match[str]) -> bool:
    return found[1] == found[1].strip()


def _blocks(lines: list[str], depth: int) -> Iterator[str]:
    """Groups lines that belong together: of a quote, a list or a paragraph."""
    start = 0
    while start < len(lines):
        kind = _kind(lines[start], depth)
        end = start + 1
        while end < len(lines) and _kind(lines[end], depth) is kind:
            end += 1
        yield kind(lines[start:end], depth)
        start = end


Block = Callable[[list[str], int], str]


def _kind(line: str, depth: int) -> Block:
    if not line.strip():
        return _nothing
    if depth and QUOTED.match(line):
        return _quote
    if BULLET.match(line):
        return _bullets
    return _numbers if NUMBER.match(line) else _paragraph


def _nothing(lines: list[str], depth: int) -> str:
    return ""


def _paragraph(lines: list[str], depth: int) -> str:
    shown = "<br>\n".join(map(_inline, lines))
    return f"<p>{shown}</p>"


def _quote(lines: list[str], depth: int) -> str:
    inner = [found[1] for found in map(QUOTED.match, lines) if found]
    shown = "\n".join(_blocks(inner, depth - 1))
    return f'<blockquote style="{QUOTE_STYLE}">\n{shown}\n</blockquote>'


def _bullets(lines: list[str], depth: int) -> str:
    items = [f"<li>{_inline(found[1])}</li>" for found in map(BULLET.match, lines) if found]
    return "<ul>" + "".join(items) + "</ul>"


def _numbers(lines: list[str], depth: int) -> str:
    found = [each for each in map(NUMBER.match, lines) if each]
    items = [f"<li>{_inline(each[2])}</li>" for each in found]
    return f'<ol start="{int(found[0][1])}">' + "".join(items) + "</ol>"


def _inline(line: str) -> str:
    return _replace(BOLD, line, _bold, lambda rest: _replace(LINK, rest, _link, _addresses))


def _replace(
    pattern: re.Pattern[str],
    line: str,
    made: Callable[[re.Match[str]], str],
    rest: Callable[[str], str],
) -> str:
    parts, start = [], 0
    for found in pattern.finditer(line):
        parts += [rest(line[start : found.start()]), made(found)]
        start = found.end()
    return "".join([*parts, rest(line[start:])])


def _bold(found: re.Match[str]) -> str:
    if not _is_bold(found):
        return html.escape(found[0])
    return f"<strong>{_replace(LINK, found[1], _link, html.escape)}</strong>"


def _link(found: re.Match[str]) -> str:
    return f'<a href="{html.escape(found[2])}">{html.escape(found[1])}</a>'


def _addresses(text: str) -> str:
    return _replace(ADDRESS, text, _address, html.escape)


def _address(found: re.Match[str]) -> str:
    """Return the link. Punctuation at the end of a sentence is no part of it."""
    target = found[0].rstrip(TRAILING)
    after = found[0][len(target) :]
    return f'<a href="{html.escape(target)}">{html.escape(target)}</a>{html.escape(after)}'
