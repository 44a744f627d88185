"""Where a found mail matches: the parts that hold a wanted term, and the first place in its own words."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from postroom.mail import tokens
from postroom.mail.index_entry import MAX_READ_CHARS, Searchable
from postroom.mail.query import Query, Term

MAX_CHARS = 200
CHARS_BEFORE = 60


@dataclass(frozen=True, slots=True)
class Snippet:
    """Part of a text on one line; the match stands from `start` to `end`, both 0 if there is none."""

    text: str
    start: int = 0
    end: int = 0


def matched_fields(query: Query, mail: Searchable) -> list[str]:
    """Names of the parts, as Searchable has them, in which a wanted term is found."""
    parts: Mapping[str, tuple[str, Iterable[str]]] = {
        "subject": ("subject", [mail.subject]),
        "sender": ("from", [mail.sender]),
        "recipients": ("to", mail.recipients),
        "text": ("", [mail.text]),
        "filenames": ("", mail.filenames),
        "file_texts": ("", mail.file_texts),
    }
    return [
        name
        for name, (field, texts) in parts.items()
        if (wanted := _wanted(query, field)) and any(_find(wanted, _joined(text)) for text in texts)
    ]


def holds(query: Query, mail: Searchable) -> bool:
    """Whether a mail has what the terms ask for, read without an index."""
    return all(any(_holds(term, mail) != term.is_negated for term in group) for group in query.terms)


def _holds(term: Term, mail: Searchable) -> bool:
    parts: Mapping[str, Iterable[str]] = {
        "subject": [mail.subject],
        "from": [mail.sender],
        "to": mail.recipients,
        "": [mail.text, *mail.filenames, *mail.file_texts],
    }
    looked_in = [part for name, part in parts.items() if term.field in ("", name)]
    return any(_find([term], _joined(text)) for texts in looked_in for text in texts)


def snippet(text: str, query: Query, field: str = "") -> Snippet:
    """The first match of a term that looks in this field and what is around it; else how the text begins."""
    composed = tokens.compose(text[:MAX_READ_CHARS])
    found = _find(_wanted(query, field), _joined(composed))
    if found is None:
        return Snippet(_first_words(composed[: MAX_CHARS * 2].lstrip(), MAX_CHARS))
    first, count = found
    places = list(islice(tokens.locate(composed), first, first + count))
    return _cut(composed, places[0][1], places[-1][2])


def _cut(text: str, start: int, end: int) -> Snippet:
    match = _one_line(text[start:end])[: MAX_CHARS // 2]
    before = _last_words(text[max(0, start - CHARS_BEFORE * 2) : start])
    after = _first_words(text[end : end + MAX_CHARS * 2], MAX_CHARS - len(before) - len(match))
    return Snippet(before + match + after, len(before), len(before) + len(match))


def _last_words(text: str) -> str:
    line = _one_line(text + "|")[:-1]  # the sign keeps a space at the end
    if len(line) < CHARS_BEFORE:
        return line
    cut = line[-CHARS_BEFORE:]
    return "…" + (cut[cut.find(" ") + 1 :] or cut[1:])


def _first_words(text: str, room: int) -> str:
    line = _one_line("|" + text)[1:]
    if len(line) <= room:
        return line
    cut = line[: room - 1]
    return (cut[: cut.rfind(" ")] if " " in cut else cut) + "…"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if line.isprintable():  # as most are; the rest is read character by character
        return line
    return " ".join("".join(map(_shown, text)).split())


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return "" if unicodedata.category(character) == "Cf" else " "


def _wanted(query: Query, field: str) -> list[Term]:
    return [
        term for group in query.terms for term in group if not term.is_negated and term.field in ("", field)
    ]


@lru_cache(maxsize=8)  # a found text is looked in for the match, and again for the piece to show
def _joined(text: str) -> str:
    return f" {' '.join(tokens.split(text[:MAX_READ_CHARS]))} "


def _find(terms: list[Term], joined: str) -> tuple[int, int] | None:
    """The number of the first token of the first match, and how many it has."""
    found = [
        (at, len(term.tokens))
        for term in terms
        if (at := joined.find(f" {' '.join(term.tokens)}" + ("" if term.is_beginning else " "))) >= 0
    ]
    if not found:
        return None
    at, count = min(found)
    return joined.count(" ", 0, at), count
