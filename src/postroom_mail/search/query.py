"""The search grammar: words, "phrases", -not, a OR b, prefixes*, fields and filters.

All parts must match; OR joins its two neighbours first.
"""

import re
from datetime import UTC, date, datetime
from typing import Literal

from msgspec import Struct

from postroom_mail.reading.category import CATEGORIES
from postroom_mail.search import tokens

MAX_CHARS = 512
MAX_TERMS = 32

Field = Literal["", "subject", "from", "to", "scope"]  # scope is internal: no query can name it
FilterName = Literal[
    "label",
    "assignee",
    "in",
    "has",
    "is",
    "category",
    "verdict",
    "auth",
    "junk_score",
    "header",
    "larger",
    "smaller",
    "before",
    "after",
]

VALUES = {
    "has": ("attachment", "file"),
    "is": tuple("unread sent failed held flagged blocked junk snoozed done awaiting overdue first".split()),
    "category": CATEGORIES,
    "verdict": ("clean", "suspicious", "malicious"),
    "junk": ("yes", "no"),
    "auth": ("pass", "fail", "none", "temperror", "permerror"),
}


_ITEM = re.compile(
    r"(?P<minus>-?)(?:(?P<name>from|to|subject|label|assignee|in|has|is|category|verdict|auth|junk|size|header"
    r"|list-id|before|after):)?"
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]*))(?P<star>\**)',
    re.IGNORECASE,
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIZE = re.compile(r"([<>])([0-9]{1,9})(|b|k|kb|m|mb)", re.IGNORECASE)
_BYTES = {"": 1, "k": 1024, "m": 1024 * 1024}
_HEADER = re.compile(r"[!-9;<>-~]{1,76}(?:=.+)?")  # RFC 5322 section 2.2: no colon in a name
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class InvalidQuery(Exception):
    """Says in a sentence what to write instead."""


class Term(Struct, frozen=True):
    """Consecutive tokens; with `is_beginning` the last is a prefix."""

    tokens: tuple[str, ...]
    field: Field = ""
    is_beginning: bool = False
    is_negated: bool = False


class Condition(Struct, frozen=True):
    """A filter, not a word. `before` and `after` hold the first millisecond of their day."""

    name: FilterName
    value: str | int
    is_negated: bool = False


class Query(Struct, frozen=True):
    """All groups must match; a group matches if any of its members does."""

    terms: tuple[tuple[Term, ...], ...] = ()
    filters: tuple[tuple[Condition, ...], ...] = ()


def parse(q: str) -> Query:
    if len(q) > MAX_CHARS:
        raise InvalidQuery(f"q may have {MAX_CHARS} characters; this one has {len(q)}.")
    if q.count('"') % 2:
        raise InvalidQuery('A quotation mark in q is not closed; write a phrase as "two words".')
    groups = [group for group in _groups(_items(q)) if group]
    if not groups:
        raise InvalidQuery(
            "q has nothing to search for; write a word, a phrase or a filter such as is:unread."
        )
    if sum(map(len, groups)) > MAX_TERMS:
        raise InvalidQuery(f"q may have {MAX_TERMS} terms; leave some out.")
    terms = [tuple(part for part in group if isinstance(part, Term)) for group in groups]
    filters = [tuple(part for part in group if isinstance(part, Condition)) for group in groups]
    if any(words and others for words, others in zip(terms, filters, strict=True)):
        raise InvalidQuery(
            "OR joins words with words, or filters with filters; search twice for a word or a filter."
        )
    return Query(tuple(filter(None, terms)), tuple(filter(None, filters)))


def _items(q: str) -> list[re.Match[str]]:
    found, at = [], 0
    while (at := len(q) - len(q[at:].lstrip())) < len(q):
        item = _ITEM.match(q, at)
        assert item is not None, "every part of the pattern may be empty"
        found.append(item)
        at = item.end()
    return found


def _groups(items: list[re.Match[str]]) -> list[list[Term | Condition]]:
    """Return the groups.

    OR between two parts joins them; at an end, or after another OR, it is a plain word.
    """
    groups: list[list[Term | Condition]] = []
    joins = False
    for number, item in enumerate(items):
        if item[0] == "OR" and not joins and 0 < number < len(items) - 1:
            joins = True
            continue
        part = _read(item)
        if not joins:
            groups.append([])
        if part is not None:
            groups[-1].append(part)
        joins = False
    return groups


def _read(item: re.Match[str]) -> Term | Condition | None:
    """Return None for punctuation alone, which matches no mail."""
    name = (item["name"] or "").lower()
    value = item["word"] if item["phrase"] is None else item["phrase"]
    is_negated = bool(item["minus"])
    match name:
        case "":
            return _term(value, "", item, is_negated)
        case "from" | "to" | "subject":
            term = _term(value, name, item, is_negated)
            if term is None:
                raise InvalidQuery(f"{name}: needs a word right after it, such as {name}:invoice.")
            return term
        case "before" | "after":
            return Condition(name, _day(name, value), is_negated)
        case "has":
            _known(name, value)
            return Condition(name, "attachment", is_negated)
        case "junk":
            return Condition("junk_score", _known(name, value), is_negated)
        case "is" | "category" | "verdict" | "auth":
            return Condition(name, _known(name, value), is_negated)
        case "size":
            return _size(value, is_negated)
        case "header":
            return Condition(name, _header(value), is_negated)
        case "list-id":
            return Condition("header", f"list-id={_storable(name, value).lower()}", is_negated)
        case "label" | "in" | "assignee":
            return Condition(name, _storable(name, value), is_negated)
    raise AssertionError(f"the pattern knows no {name}")


def _term(value: str, field: Field, item: re.Match[str], is_negated: bool) -> Term | None:
    # A word includes the stars at its end; those after a phrase are separate.
    has_star = bool(item["star"]) or (value.endswith("*") and item["phrase"] is None)
    found, is_beginning = tokens.split_sought(value)
    if not found:
        return None
    return Term(tuple(found), field, is_beginning or has_star, is_negated)


def _day(name: str, value: str) -> int:
    try:
        if not _DAY.fullmatch(value):
            raise ValueError(value)
        day = date.fromisoformat(value)
    except ValueError:
        raise InvalidQuery(f"{name}: needs a day such as {name}:2026-01-31.") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def _size(value: str, is_negated: bool) -> Condition:
    found = _SIZE.fullmatch(value)
    if found is None:
        raise InvalidQuery("size: takes more or less than a size, such as size:>5mb or size:<20kb.")
    size = int(found[2]) * _BYTES[found[3].lower()[:1].replace("b", "")]
    return Condition("larger" if found[1] == ">" else "smaller", size, is_negated)


def _header(value: str) -> str:
    """Return a field's name, and with `=` a text that it must contain."""
    found = _HEADER.fullmatch(value.strip())
    if found is None or _UNSTORABLE.search(value):
        raise InvalidQuery(
            'header: takes the name of a field, or a name and a text, such as header:"x-priority=1".'
        )
    return value.strip().lower()


def _known(name: str, value: str) -> str:
    if value.lower() not in VALUES[name]:
        choices = " or ".join(f"{name}:{choice}" for choice in VALUES[name])
        raise InvalidQuery(f"{name}: takes only {choices}; put the words into quotation marks to find them.")
    return value.lower()


def _storable(name: str, value: str) -> str:
    if not value.strip():
        raise InvalidQuery(
            f'{name}: needs a name right after it, such as {name}:sales or {name}:"two words".'
        )
    if _UNSTORABLE.search(value):
        raise InvalidQuery(f"{name}: must not have control characters.")
    return value.strip()
