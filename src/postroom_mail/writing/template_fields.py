"""Texts with `{{name}}` where a value goes."""

import html
import re
from collections.abc import Iterable, Mapping


class FieldError(ValueError):
    """A template cannot be filled; the message says why."""


NAME_CHARACTERS = 64
NAME = "[A-Za-z][A-Za-z0-9_.-]{0,63}"
FIELD = re.compile(r"\{\{ ?([A-Za-z][A-Za-z0-9_.-]{0,63}) ?\}\}")


def names_in(texts: Iterable[str]) -> list[str]:
    """Return each name once, in the order of first use."""
    return list(dict.fromkeys(name for text in texts for name in FIELD.findall(text)))


def require_all(names: Iterable[str], values: Mapping[str, str]) -> None:
    missing = [name for name in names if name not in values]
    if missing:
        raise FieldError(f"fields gives no value for {', '.join(missing[:10])}.")


def fill(text: str, values: Mapping[str, str], limit: int, *, is_html: bool = False) -> str:
    """Fill in values, which are text, also in HTML.

    The length is checked before filling: a short template may name a long value often.
    """
    parts = FIELD.split(text)  # text, name, text, name, text
    if is_html:
        values = {name: as_html(value) for name, value in values.items()}
    filled = [values[part] if place % 2 else part for place, part in enumerate(parts)]
    if sum(map(len, filled)) > limit:
        raise FieldError(f"Filled in, the template is longer than {limit:,} characters.")
    return "".join(filled)


def as_html(text: str) -> str:
    return html.escape(text.replace("\r\n", "\n")).replace("\n", "<br>\n")
