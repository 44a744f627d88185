"""Readable text of HTML mail, without what a reader would not see, and HTML that is safe to show."""

import re

from postroom_mail.html.markup import names

HTML_NAMES = names(
    "a abbr address article aside b big blockquote body br button caption center cite code col dd del div "
    "dl dt em fieldset figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i img input ins kbd "
    "label li link main mark meta nav ol p pre q s samp section small span strike strong style sub sup "
    "table tbody td tfoot th thead title tr tt u ul var video"
)

_TAG = re.compile(r"<(?:/?([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)|!(doctype)\s++html[^<>]*+)>", re.IGNORECASE)
# Line breaks and tabs stay.
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
# A single joiner between two letters shapes words in Persian or Hindi, and holds emoji together.
_JOINED = r"(?<=[^\x00-\x7f" + _INVISIBLE + r"])[\u200c\u200d](?=[^\x00-\x7f" + _INVISIBLE + r"])"
_HIDDEN_CHARACTER = re.compile(rf"({_JOINED})|[{_INVISIBLE}]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]")


def visible(text: str) -> str:
    """Return plain text without invisible characters: controls, zero width, tags, direction marks."""
    if text.isascii():
        return text.encode().translate(None, _CONTROLS).decode()
    return _HIDDEN_CHARACTER.sub(lambda match: match[1] or "", text)


def revealed(text: str) -> str:
    """Show invisible characters as visible marks: ⟨U+200B⟩."""
    if text.isascii():
        return text
    return _HIDDEN_CHARACTER.sub(lambda match: match[1] or f"⟨U+{ord(match[0]):04X}⟩", text)


def looks_like_html(text: str) -> bool:
    """Return True for at least one real tag; `a <b and c> d` or `<someone@example.com>` is plain text."""
    for tag in _TAG.finditer(text):
        if tag[3]:
            return True
        if tag[1].lower() in HTML_NAMES and (tag[2].strip() in ("", "/") or "=" in tag[2]):
            return True
    return False


def html_to_text(html: str) -> str:
    from postroom_mail.html.page import read_page

    return visible(read_page(html).text)
