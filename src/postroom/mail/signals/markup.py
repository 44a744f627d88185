"""What HTML holds beside the text it shows: all of its words, hidden elements, and links that mislead."""

import re
from collections.abc import Iterator

from postroom.mail.html.markup import Open, unescape
from postroom.mail.html.styles import MAX_STYLE_CHARS
from postroom.mail.html.visibility import Look, Wardrobe
from postroom.mail.proof.organization import ascii_domain

MAX_READ_CHARS = 150_000
MAX_HTML_CHARS = 30_000
MAX_TAGS = 2_000
MAX_LINKS = 60
MAX_LINK_TEXT_CHARS = 600
MAX_CANDIDATES = 30
MAX_COMPARED = 100
MAX_COMPARED_CHARS = 20_000
PREVIEW_CHARS = 250
FEWEST_HIDDEN_CHARS = 40

_UNSPOKEN = ("style", "script", "title", "STYLE", "SCRIPT", "TITLE")
_TAG = re.compile(r"<[^<>]*+>")
_BREAKS = frozenset(
    ("p", "/p", "br", "br/", "div", "/div", "td", "/td", "tr", "/tr", "li", "/li", "h1", "/h1", "h2", "/h2")
)
_SPOKEN_ATTRIBUTE = re.compile(r"\b(?:alt|title|aria-label|content)=[\"']([^\"']{12,1000}+)")
_STYLED = re.compile(
    r"(div|span|p|td|font|section|small|b|i|em|strong|h\d)\b([^>]{1,2000}+)>(.{40,})",
    re.IGNORECASE | re.DOTALL,
)
_STYLE = re.compile(r"\bstyle\s?=\s?(?:\"([^\"]{1,2000})\"|'([^']{1,2000})')", re.IGNORECASE)
_COLOR = re.compile(r"\bcolor\s?=\s?[\"']?([#\w]{1,20})", re.IGNORECASE)
_CAN_HIDE = re.compile(
    r"none|hidden|opacity|size|color|indent|position|clip|height|width|margin|scale", re.IGNORECASE
)
_LINK_TARGET = re.compile(r"\bhref\s?=\s?[\"']?\s?https?://([^/\"'\s<>?#]{1,255})", re.IGNORECASE)
_LINK_START = re.compile(r"<a\s", re.IGNORECASE)
_SHOWN_DOMAIN = re.compile(
    r"(?:https?://)?(?:www\.)?((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,18}+)(?![\w@.-])[^\s]{0,200}", re.IGNORECASE
)


def words_beside(html: str, body_text: str) -> str:
    """The words of the HTML that are not in the text: what it hides, its comments and descriptions."""
    text = body_text[:MAX_COMPARED_CHARS]
    lines = {" ".join(line.split()) for line in text.split("\n")}
    paragraphs = dict.fromkeys(" ".join(paragraph.split()) for paragraph in all_words(html).split("\n\n"))
    beside = [paragraph for paragraph in paragraphs if paragraph not in lines]
    joined = " ".join(text.split())
    # A text that is wrapped otherwise than the HTML has the same words in other lines.
    first = [paragraph for paragraph in beside[:MAX_COMPARED] if paragraph not in joined]
    return "\n\n".join(first + beside[MAX_COMPARED:])


def all_words(html: str) -> str:
    html, comments = _without(html[:MAX_READ_CHARS], "<!--", "-->")
    for name in _UNSPOKEN:
        html = _without(html, f"<{name}", f"</{name}")[0]
    html = html[:MAX_HTML_CHARS]
    return unescape(f"{_text(html)}\n\n{comments}")


def _without(html: str, start: str, end: str) -> tuple[str, str]:
    """The HTML without what stands between the two marks, and that."""
    first, *rest = html.split(start, MAX_TAGS)
    pieces = [piece.partition(end) for piece in rest]
    return first + "".join(piece[2] for piece in pieces), "\n\n".join(piece[0] for piece in pieces)


def _text(html: str) -> str:
    """What stands between tags, and the descriptions inside of them."""
    first, *rest = html.split("<", MAX_TAGS)
    parts, said = [first], []
    for piece in rest:
        tag, _, text = piece.partition(">")
        name = tag.partition(" ")[0].lower()
        parts.append(f"\n\n{text}" if name in _BREAKS else text)
        if "alt=" in tag or "title=" in tag or "label=" in tag or "content=" in tag:
            said += _SPOKEN_ATTRIBUTE.findall(tag[:2_000])
    return "\n\n".join(["".join(parts), *said])


def hidden_text(html: str) -> str:
    """The first long text of an element that hides it itself; a preview line at the top is usual."""
    wardrobe, candidates, chars_before = Wardrobe(), 0, 0
    for piece in html[:MAX_HTML_CHARS].split("<", MAX_TAGS):
        found = _STYLED.match(piece) if len(piece) > FEWEST_HIDDEN_CHARS else None
        if found and _CAN_HIDE.search(found[2]):
            candidates += 1
            fewest = FEWEST_HIDDEN_CHARS if chars_before > PREVIEW_CHARS else PREVIEW_CHARS
            text = " ".join(unescape(found[3]).split())
            if sum(map(str.isalpha, text[:1_000])) >= fewest and _is_hidden(wardrobe, found):
                return text
        if candidates > MAX_CANDIDATES:
            return ""
        chars_before += len(piece.rpartition(">")[2].strip())
    return ""


def _is_hidden(wardrobe: Wardrobe, found: re.Match[str]) -> bool:
    return not wardrobe.dress(_element(found[1], found[2]), Look()).is_visible


def _element(name: str, written: str) -> Open:
    attributes: dict[str, str] = {}
    if style := _STYLE.search(written):
        attributes["style"] = unescape(style[1] or style[2])[:MAX_STYLE_CHARS]
    elif color := _COLOR.search(written):
        attributes["color"] = color[1]
    if " hidden" in written.lower() and "style" not in attributes:
        attributes["hidden"] = ""
    return Open(name.lower(), attributes)


def misleading_links(html: str) -> Iterator[str]:
    """Links whose text is the name of one domain and whose target is another."""
    _, *links = _LINK_START.split(html[:MAX_HTML_CHARS], MAX_LINKS)
    for link in links:
        tag, _, rest = link.partition(">")
        text = unescape(_TAG.sub("", rest[:MAX_LINK_TEXT_CHARS].partition("</a")[0])).strip()
        target, shown = _LINK_TARGET.search(tag[:2_000]), _SHOWN_DOMAIN.fullmatch(text)
        domain = ascii_domain(target[1].rpartition("@")[2].partition(":")[0]) if target else None
        if shown and domain and not _are_related(shown[1].lower(), domain):
            yield f"{text[:80]} leads to {domain}"


def _are_related(shown: str, target: str) -> bool:
    return _organization(shown) == _organization(target)


def _organization(domain: str) -> str:
    """The last labels that a buyer chooses: three below a short second level such as co.uk."""
    labels = domain.split(".")
    count = 3 if len(labels) > 2 and len(labels[-2]) <= 3 and len(labels[-1]) == 2 else 2
    return ".".join(labels[-count:])
