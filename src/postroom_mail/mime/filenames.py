"""File names of attachments: harmless on every disk and in every URL, unique inside a message."""

import re
import unicodedata
from collections.abc import Iterable

from postroom_mail.html.text import visible
from postroom_mail.languages.read import word_pairs
from postroom_mail.mime import charset

MAX_BYTES = 200
MAX_EXTENSION_BYTES = 20
# Normalising sorts runs of combining marks in quadratic time, so the length is cut before.
_MAX_READ = 1_000

# Removed too, besides invisible characters, which could reorder or hide parts of a name (exe.fdp).
_LINE_BREAKS = re.compile("[\t\n\r\u2028\u2029]")
_EDGES = re.compile(r"\A[\s.]+|[\s.]+\Z")

_EXTENSIONS = word_pairs("postroom_mail.mime", "extensions.txt")


def clean(name: str) -> str:
    """Return the last path part without unseen characters or leading dots, at most 200 bytes; may be ""."""
    name = name.replace("\\", "/").rstrip("/ ").rpartition("/")[2]
    name = charset.clean(name[:_MAX_READ] + name[_MAX_READ:][-MAX_BYTES:])
    name = _LINE_BREAKS.sub("", visible(name))
    return _fitted(_EDGES.sub("", unicodedata.normalize("NFC", name)), "")


def default(number: int, content_type: str) -> str:
    """Return the name of a part that has none; `number` is its place among the attachments, from 1."""
    return f"attachment-{number}.{_EXTENSIONS.get(content_type, 'bin')}"


def unique(names: Iterable[str]) -> list[str]:
    """Return the names in order, later duplicates numbered: a.pdf, a (2).pdf. Case makes no difference."""
    taken: set[str] = set()
    last_numbers: dict[str, int] = {}
    result = []
    for name in names:
        candidate = name
        while candidate.casefold() in taken:
            number = last_numbers.get(name.casefold(), 1) + 1
            last_numbers[name.casefold()] = number
            candidate = _fitted(name, f" ({number})")
        taken.add(candidate.casefold())
        result.append(candidate)
    return result


def _fitted(name: str, suffix: str) -> str:
    """Return the name with the suffix before its extension, its stem cut so that all of it fits."""
    stem, extension = _split_extension(name)
    tail = suffix + extension
    if not suffix and len(name.encode()) <= MAX_BYTES:
        return name
    room = MAX_BYTES - len(tail.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(". ") + tail


def _split_extension(name: str) -> tuple[str, str]:
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension.encode()) > MAX_EXTENSION_BYTES:
        return name, ""
    return stem, dot + extension
