"""Reads the word files next to it: sections of entries, in which `(a|b)c` means `ac` and `bc`."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from msgspec import Struct, field

_GROUP = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")


class Language(Struct, frozen=True):
    """`is_joined`: its words are written without spaces, or take endings; they are found inside longer ones.

    `sections` holds the entries as written.
    """

    code: str
    name: str
    is_joined: bool
    sections: dict[str, list[str]] = field(default_factory=dict)

    def words(self, section: str) -> tuple[str, ...]:
        """Return each entry expanded; those with accents also without."""
        written = [word for entry in self.sections.get(section, ()) for word in expand(entry)]
        return tuple(dict.fromkeys([*written, *map(without_accents, written)]))


@cache
def languages() -> tuple[Language, ...]:
    folder = files("postroom_mail.languages")
    found = [file for file in folder.iterdir() if file.name.endswith(".txt")]
    by_name = sorted(found, key=lambda file: file.name)
    return tuple(_read(file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in by_name)


def words(section: str, *, is_joined: bool | None = None) -> tuple[str, ...]:
    """Return words from all languages, or only those whose words are joined or separate."""
    chosen = (each for each in languages() if is_joined in (None, each.is_joined))
    return tuple(dict.fromkeys(word for each in chosen for word in each.words(section)))


def as_written(section: str) -> tuple[str, ...]:
    """Return the words without the spellings that omit accents."""
    entries = (entry for each in languages() for entry in each.sections.get(section, ()))
    return tuple(dict.fromkeys(word for entry in entries for word in expand(entry)))


def expand(entry: str) -> Iterator[str]:
    """Expand `(sign|log) in` to "sign in" and "log in". A pair of brackets without `|` is text."""
    if "|" not in entry:
        return iter((entry,))
    pieces: list[Iterable[str]] = []
    end = 0
    for group in _GROUP.finditer(entry):
        pieces.append((entry[end : group.start()],))
        pieces.append(_choices(group[1]) if "|" in group[1] else (group[0],))
        end = group.end()
    pieces.append((entry[end:],))
    return ("".join(chosen) for chosen in itertools.product(*pieces))


def _choices(group: str) -> list[str]:
    return group.split("|")


@cache
def word_lists(package: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return words of a file in a package by section; a line may have several, separated by `|`."""
    _, sections = _parted(files(package).joinpath(name).read_text("utf-8"))
    return {
        section: tuple(dict.fromkeys(word.strip() for line in lines for word in line.split("|")))
        for section, lines in sections.items()
    }


@cache
def word_pairs(package: str, name: str) -> dict[str, str]:
    """Return the lines `name = value` of a file in a package."""
    lines = files(package).joinpath(name).read_text("utf-8").splitlines()
    pairs = (line.partition(" = ") for line in lines if not line.startswith("#"))
    return {word: value for word, _, value in pairs}


def _read(code: str, text: str) -> Language:
    properties, sections = _parted(text)
    return Language(code, properties.get("name", code), properties.get("joined") == "yes", sections)


def _parted(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the properties at the top, and the lines of each section."""
    properties: dict[str, str] = {}
    sections: dict[str, list[str]] = {}
    entries: list[str] | None = None
    for line in text.split("\n"):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if entry.startswith("[") and entry.endswith("]"):
            entries = sections.setdefault(entry[1:-1], [])
        elif entries is None:
            name, _, value = entry.partition(":")
            properties[name] = value.strip()
        else:
            entries.append(entry)
    return properties, sections


def without_accents(word: str) -> str:
    if word.isascii() or _ACCENTED.search(word) is None:
        return word
    plain = unicodedata.normalize("NFD", word.replace("ł", "l").replace("đ", "d").replace("\u0131", "i"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))
