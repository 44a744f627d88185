"""Where a found mail matches: the parts with a wanted term, and the first position in its text."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from postroom_mail.search import tokens
from postroom_mail.search.index_entry import MAX_READ_CHARS, Searchable
from postroom_mail.search.query import Query, Term

MAX_CHARS = 200
CHARS_BEFORE = 60


class Snippet(Struct, frozen=True):
    """Part of a text on one line; the match is from `start` to `end`, both 0 if there is none."""

    text: str
    start: int = 0
    end: int = 0


def matched_fields(query: Query, mail: Searchable) -> list[str]:
    """Names of the parts, as in Searchable, in which a wanted term is found."""
    anywhere = _wanted(query, "")
    parts: list[tuple[str, list[Term], Iterable[str]]] = [
        ("subject", _wanted(query, "subject"), (mail.subject,)),
        ("sender", _wanted(query, "from"), (mail.sender,)),
        ("recipients", _wanted(query, "to"), mail.recipients),
        ("text", anywhere, (mail.text,)),
        ("filenames", anywhere, mail.filenames),
        ("file_texts", anywhere, mail.file_texts),
    ]
    return [name for name, wanted, texts in parts if wanted and any(_has(wanted, text) for text in texts)]


def holds(query: Query, mail: Searchable) -> bool:
    """Return whether an email matches the terms, checked without an index."""
    return all(any(_holds(term, mail) != term.is_negated for term in group) for group in query.terms)


def _holds(term: Term, mail: Searchable) -> bool:
    parts: Mapping[str, Iterable[str]] = {
        "subject": [mail.subject],
        "from": [mail.sender],
        "to": mail.recipients,
        "": [mail.text, *mail.filenames, *mail.file_texts],
    }
    looked_in = [part for name, part in parts.items() if term.field in ("", name)]
    return any(_has([term], text) for texts in looked_in for text in texts)


def snippet(text: str, query: Query, field: str = "") -> Snippet:
    """Return the first match of a term for this field with its context; else the beginning of the text."""
    composed = tokens.compose(text[:MAX_READ_CHARS])
    found = _find(_wanted(query, field), _read(composed))
    if found is None:
        return Snippet(_first_words(composed[: MAX_CHARS * 2].lstrip(), MAX_CHARS))
    return _cut(composed, *tokens.written(composed, *found))


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
    if line.isprintable():  # as most are; others are read character by character
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


def _has(terms: list[Term], text: str) -> bool:
    return _find(terms, _read(text)) is not None


class _Read(Struct, frozen=True):
    """A folded text between spaces; if spaces alone do not separate its tokens, also the tokens."""

    spaced: str
    tokens: str | None


@lru_cache(maxsize=8)  # a found text is searched for the match, and again for the snippet
def _read(text: str) -> _Read:
    folded = tokens.fold(text[:MAX_READ_CHARS])
    spaced = f" {folded} "
    return _Read(spaced, None if tokens.is_spaced(folded) else f" {' '.join(tokens.split_folded(folded))} ")


def _find(terms: list[Term], read: _Read) -> tuple[int, int] | None:
    """Start and end of the first match in the folded text."""
    if read.tokens is not None:
        return _find_among_tokens(terms, read.tokens, read.spaced[1:-1])
    found = [match for term in terms if (match := _pattern(term).search(read.spaced))]
    if not found:
        return None
    first = min(found, key=lambda match: match.start())
    return first.start(), first.end() - 1  # in the text itself, without the space in front of both


@lru_cache(maxsize=256)
def _pattern(term: Term) -> re.Pattern[str]:
    """Return the pattern of a term. A token cut at its maximal length is followed by the rest of its word."""
    words = [word + ("[^ ]*+" if len(word) == tokens.MAX_TOKEN_CHARS else "") for word in term.tokens]
    return re.compile(" " + " ++".join(words) + ("[^ ]*+" if term.is_beginning else "(?= )"))


def _find_among_tokens(terms: list[Term], joined: str, folded: str) -> tuple[int, int] | None:
    found = [
        (at, len(term.tokens))
        for term in terms
        if (at := joined.find(f" {' '.join(term.tokens)}" + ("" if term.is_beginning else " "))) >= 0
    ]
    if not found:
        return None
    at, count = min(found)
    return tokens.span(folded, joined.count(" ", 0, at), count)
