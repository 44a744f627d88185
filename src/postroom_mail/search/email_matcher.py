"""Which of many searches one email may match: looked up by its words, so that most cost nothing.

A search with a group of words that must be there whole is found by one of them. All others are tried.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from postroom_mail.search import tokens
from postroom_mail.search.index_entry import MAX_READ_CHARS, Searchable
from postroom_mail.search.query import Field, Query, Term
from postroom_mail.search.tokens import MAX_TOKEN_CHARS

LOOKED_FOR_EACH = 50
NARROWEST: tuple[Field, ...] = ("from", "to", "subject", "")  # fields with few words come first

_TEXTS: dict[str, Callable[[Searchable], Iterable[str]]] = {
    "from": lambda mail: (mail.sender,),
    "to": lambda mail: mail.recipients,
    "subject": lambda mail: (mail.subject,),
    "": lambda mail: (
        mail.text,
        mail.subject,
        mail.sender,
        *mail.recipients,
        *mail.filenames,
        *mail.file_texts,
    ),
}


class Searches(Struct, frozen=True):
    """Searches by number: those with a word that must be there, and those without."""

    by_word: dict[Field, dict[str, list[int]]]
    others: list[int]

    def candidates(self, mail: Searchable) -> list[int]:
        """Return, in order, the numbers of those that the email may match."""
        found = set(self.others)
        for field, numbers in self.by_word.items():
            for word in words_of(mail, field, numbers):
                found.update(numbers[word])
        return sorted(found)


def words_of(mail: Searchable, field: Field, asked: Collection[str]) -> Iterable[str]:
    """Return those of the words that the email has there, each of its parts cut as a search cuts it.

    To look for a few takes a fifth of the time of splitting the text.
    """
    folded = tokens.fold("\n".join([text[:MAX_READ_CHARS] for text in _TEXTS[field](mail)]))
    if len(asked) > LOOKED_FOR_EACH or not tokens.is_spaced(folded):
        return set(tokens.split_folded(folded)).intersection(asked)
    spaced = f" {folded} "
    return [word for word in asked if f" {word}{'' if len(word) == MAX_TOKEN_CHARS else ' '}" in spaced]


def prepare(queries: Sequence[Query]) -> Searches:
    by_word: dict[Field, dict[str, list[int]]] = {}
    others = []
    for number, query in enumerate(queries):
        needed = min(filter(None, map(_needed, query.terms)), key=_cost, default=None)
        if needed is None:
            others.append(number)
        for field, word in needed or ():
            numbers = by_word.setdefault(field, {}).setdefault(word, [])
            if number not in numbers:
                numbers.append(number)
    return Searches(by_word, others)


def _needed(group: Sequence[Term]) -> list[tuple[Field, str]] | None:
    """Return a word of each member of a group, one of which must be there; None if a member has none."""
    found: list[tuple[Field, str]] = []
    for term in group:
        whole = term.tokens[:-1] if term.is_beginning else term.tokens
        if term.is_negated or not whole:
            return None
        found.append((term.field, max(whole, key=len)))
    return found


def _cost(needed: Sequence[tuple[Field, str]]) -> tuple[int, int, int]:
    """Return the cost: words of narrow fields first, then few words, then long ones, which are rare."""
    return (
        max(NARROWEST.index(field) for field, _ in needed),
        len(needed),
        -min(len(word) for _, word in needed),
    )
