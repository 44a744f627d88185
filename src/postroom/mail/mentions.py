"""Whether a text that is about to leave names a place of the network: a URL, mailto: or a bare domain."""

import re

from postroom.mail.html.text import html_to_text

_SCHEME = re.compile(r"(?i)[a-z0-9+.-]:[/\\]{2}|mailto:|www\.")
# A dot between two labels, of which the second could be a top-level domain. Rather too many than too few.
_DOT_OF_A_NAME = re.compile(r"(?i)[\w-]\.[^\W\d_]\w|[a-z0-9-][\u3002\uff0e\uff61][a-z]{2}")
_SPACES_AND_SIGNS = re.compile(r"[^\w.@\u3002\uff0e\uff61-]+")
_TARGET = re.compile(r"(?i)\b(?:href|src|action|background|cite|poster|srcset|formaction)\s*=|url\s*\(")
_INVISIBLE = re.compile("[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# What programs read as ASCII: letters of full width and other dots, but none that ends a sentence in Chinese.
_LOOKS_LIKE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != 0xFF0E}
_LOOKS_LIKE |= {0x2024: ord("."), 0xFE52: ord(".")}


def mentions_a_link(text: str, html: str | None) -> bool:
    """Over the text, and the HTML as written and as read, so that none can hide one from the others."""
    if html is not None and (
        _TARGET.search(html) or _names_a_place(html) or _names_a_place(html_to_text(html))
    ):
        return True
    return _names_a_place(text)


def _names_a_place(text: str) -> bool:
    seen = _INVISIBLE.sub("", text).translate(_LOOKS_LIKE)
    if _SCHEME.search(seen):
        return True
    words = (word for word in _SPACES_AND_SIGNS.split(seen) if "@" not in word.strip("@"))
    return any(_DOT_OF_A_NAME.search(word) for word in words)
