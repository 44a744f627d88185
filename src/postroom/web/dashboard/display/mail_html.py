"""Turns HTML of a stranger into a separate page that runs and loads nothing."""

import base64
from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import unquote

import nh3

from postroom.processes.analysis import Analysis
from postroom.web.dashboard.display import colours
from postroom_mail.html import nesting
from postroom_mail.html.markup import VOID, Close
from postroom_mail.mime.parse import ParsedAttachment

HTML_CHARACTERS = 1_000_000
EMBEDDED_CHARACTERS = 8_000_000  # of pictures in a page, counted each time they are shown
PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"))
DEPTH = 100
# An email may choose its colours and sizes, and nothing that could overlay something else.
STYLES = set(
    """
    color background-color font font-family font-size font-style font-weight line-height
    letter-spacing text-align text-decoration text-transform white-space width max-width
    min-width height max-height margin margin-top margin-bottom margin-left margin-right
    padding padding-top padding-bottom padding-left padding-right border border-top
    border-bottom border-left border-right border-color border-style border-width
    border-radius border-collapse border-spacing vertical-align display list-style-type
    table-layout
    """.split()
)
LAYOUT = {
    "align",
    "valign",
    "width",
    "height",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "dir",
    "style",
}
ATTRIBUTES = {
    "*": LAYOUT | {"title", "lang"},
    "a": {"href"},
    "img": {"src", "alt"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "font": {"color", "size", "face"},
    "ol": {"start", "type"},
}


def _cleaner(with_pictures: bool) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=(nh3.ALLOWED_TAGS - {"map", "area", "bdo"}) | {"font", "big"},
        clean_content_tags={
            "script",
            "style",
            "title",
            "noscript",
            "template",
            "svg",
            "math",
            "iframe",
            "object",
        },
        attributes=ATTRIBUTES,
        filter_style_properties=STYLES,
        url_schemes={"http", "https", "mailto", "tel", "data"},
        url_relative="deny",
        attribute_filter=lambda tag, name, value: _keep(tag, name, value, with_pictures),
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


_WITHOUT_PICTURES, _WITH_PICTURES = _cleaner(False), _cleaner(True)
# Tables of a newsletter, mostly 600 pixels wide: on a phone the whole email is made smaller.
_FIXED = 'body:has(table:is([width]:not([width$="%"]), [style*="width:6"]:not([style*="%"])))'
PAGE = """<!doctype html><html lang="und"><head><meta charset="utf-8"><title>Message</title><style>
:root { color-scheme: light }
body { margin: 12px; font: 15px/1.5 system-ui, sans-serif; background: #fff; color: #222;
 overflow-wrap: anywhere }
img { max-width: 100%; height: auto }
table { max-width: none }
@media (max-width: 640px) { FIXED { zoom: .8 } }
@media (max-width: 520px) { FIXED { zoom: .65 } }
@media (max-width: 400px) { FIXED { zoom: .54 } }
@media (max-width: 340px) { FIXED { zoom: .47 } }
a[href]:hover::after, a[href]:focus::after { content: attr(href); position: fixed; left: 0; bottom: 0;
 max-width: 100%; padding: 2px 8px; background: #222; color: #fff; font: 13px/1.5 monospace;
 white-space: nowrap; overflow: hidden }
</style></head><body>""".replace("FIXED", _FIXED)


def _keep(tag: str, name: str, value: str, with_pictures: bool) -> str | None:
    """Return the value to keep, if any.

    `data:` only for pictures, no address in a style, external pictures only on request.
    """
    start = value.strip().lower()
    is_inside = tag == "img" and start.startswith("data:image/")
    if start.startswith("data:") and not is_inside:
        return None
    if tag == "img" and name == "src" and not is_inside and not with_pictures:
        return None
    return None if name == "style" and ("url(" in start or "\\" in start) else value


class Embedded:
    """The pictures in an email, by the name its HTML uses for them."""

    def __init__(self, files: Iterable[ParsedAttachment] = ()) -> None:
        self._by_name = {
            file.content_id.strip("<>"): file
            for file in files
            if file.content_id and file.content_type in PICTURES
        }
        self._room = EMBEDDED_CHARACTERS

    def source(self, source: str) -> str:
        """Return `cid:name` as the picture itself, within a size limit."""
        scheme, _, name = source.strip().partition(":")
        file = self._by_name.get(unquote(name)) if scheme.lower() == "cid" else None
        if file is None or len(file.content) * 4 // 3 > self._room:
            return source
        self._room -= len(file.content) * 4 // 3
        return f"data:{file.content_type};base64,{base64.b64encode(file.content).decode()}"


def to_page(html: str, with_pictures: bool, embedded: Embedded | None = None) -> str:
    """Return the page. HTML that cannot be read is shown as its source."""
    cleaner = _WITH_PICTURES if with_pictures else _WITHOUT_PICTURES
    given = html[:HTML_CHARACTERS]
    shown = Analysis().run(
        "page", f"<pre>{escape(given)}</pre>", lambda: cleaner.clean(nested(given, embedded or Embedded()))
    )
    return f"{PAGE}{shown}</body></html>"


def nested(html: str, embedded: Embedded) -> str:
    """Return the same HTML, properly nested and not too deep.

    Parsing other markup into a tree can take minutes.
    """
    written: list[str] = []
    grounds = [False]  # whether something around the piece has its own background
    for piece in nesting.nested(html):
        if isinstance(piece, str):
            written.append(escape(piece))
        elif isinstance(piece, Close):
            written.append(f"</{shown_as(piece.name)}>" if len(grounds) - 1 <= DEPTH else "")
            if len(grounds) > 1:
                grounds.pop()
        else:
            attributes = colours.readable(piece.attributes, grounds[-1])
            if piece.name not in VOID:
                grounds.append(grounds[-1] or colours.has_background(attributes))
            written.append(start_tag(piece.name, attributes, embedded) if len(grounds) - 1 <= DEPTH else "")
    return "".join(written)


def shown_as(name: str) -> str:
    """Return the tag to show.

    The body carries the background of the whole email, but our page has its own body.
    """
    return "div" if name == "body" else name


def start_tag(name: str, attributes: Mapping[str, str], embedded: Embedded) -> str:
    if name == "img" and "src" in attributes:
        attributes = {**attributes, "src": embedded.source(attributes["src"])}
    given = "".join(f' {escape(key)}="{escape(value)}"' for key, value in attributes.items())
    return f"<{shown_as(name)}{given}>"


def headers(with_pictures: bool) -> dict[str, str]:
    pictures = "data: https: http:" if with_pictures else "data:"
    policy = (
        "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline';"
        f" img-src {pictures}; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
