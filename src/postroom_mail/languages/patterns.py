"""One regular expression for many words, which reads each letter of a text about once."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, cast

_Tree = dict[str, "_Tree"]


class _Late:
    def __init__(self, pattern: str | Callable[[], str], flags: int) -> None:
        self._pattern, self._flags = pattern, flags
        _made.append(self)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        pattern = self._pattern if isinstance(self._pattern, str) else self._pattern()
        return re.compile(pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)  # from now on it is found without us
        return found


_made: list[_Late] = []


def compile_one() -> bool:
    """Compiles one more of the late patterns, unless it was used already; False if none is left."""
    if not _made:
        return False
    _made.pop()._compiled  # noqa: B018 (made by asking for it)
    return True


def late(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """Compile on first use: few emails need the rare ones, and a start should not wait for them."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


def one_of(words: Iterable[str]) -> str:
    """Matches the longest of the words; a space in a word matches any short run of white space."""
    tree: _Tree = {}
    for word in words:
        branch = tree
        for letter in word:
            branch = branch.setdefault(letter, {})
        branch[""] = {}
    return _pattern(tree)


def by_first_letter(words: Iterable[str], outside: str = "") -> str:
    """Return the same as branches by first character, so that a search skips all others.

    With `outside`, a pattern of one character, words inside longer words do not count.
    """
    endings: dict[str, list[str]] = {}
    for word in words:
        endings.setdefault(word[0], []).append(word[1:])
    branches = "|".join(_branch(re.escape(first), one_of(rest), outside) for first, rest in endings.items())
    return rf"(?:{branches})(?!{outside})" if outside else branches


def _branch(first: str, rest: str, outside: str) -> str:
    return rf"{first}(?<!{outside}{first}){rest}" if outside else first + rest


def _pattern(tree: _Tree) -> str:
    """Return a pattern in which words share their beginnings: no position is tried once per word."""
    branches = [_letter(letter) + _pattern(rest) for letter, rest in tree.items() if letter]
    if not branches:
        return ""
    joined = f"(?:{'|'.join(branches)})" if len(branches) > 1 or "" in tree else branches[0]
    return joined + "?" if "" in tree else joined


def _letter(letter: str) -> str:
    return r"\s{1,3}" if letter == " " else re.escape(letter)
