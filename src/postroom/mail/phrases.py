"""One regular expression for a list of phrases, each followed by the same pattern."""

import re
from collections.abc import Iterable


def one_of(words: Iterable[str], behind: str) -> str:
    """An alternative for each first letter, which lets the search skip all other letters."""
    endings: dict[str, list[str]] = {}
    for word in words:
        endings.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)}){behind}" for first, rest in endings.items())
