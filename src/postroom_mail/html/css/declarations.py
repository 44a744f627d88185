"""CSS declarations that can hide or show text: the valid ones, split into single properties."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct, field

from postroom_mail.html.css import colors
from postroom_mail.html.css.values import (
    Undecided,
    divided,
    four_sides,
    is_bare_number,
    number,
    pixels,
    words,
)
from postroom_mail.html.markup import names
from postroom_mail.languages.read import word_lists, word_pairs

MAX_STYLE_CHARS = 10_000
MAX_CUSTOM_CHARS = 1_000
# Most styles are in many emails.
REMEMBERED_STYLES = 1_024
MAX_REMEMBERED_CHARS = 300
UNDECIDED = "?"  # a value that is unknown here and that a browser may know

Style = dict[str, str]
Parts = tuple[tuple[str, str], ...]

_LISTS = {
    section: frozenset(found) for section, found in word_lists("postroom_mail.html.css", "words.txt").items()
}
_ALIASES = word_pairs("postroom_mail.html.css", "aliases.txt")
EVERYWHERE = names("initial inherit unset revert revert-layer")
FONT_SIZES: Mapping[str, float] = {
    "xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32,
    "xxx-large": 48, "math": 16,
}  # fmt: skip
_PICTURES = ("url(", "gradient(", "image-set(", "image(", "cross-fade(", "element(", "paint(")
_KEYWORDS = names("visibility content-visibility position text-security float background-clip mix-blend-mode")
_SIDES = ("top", "right", "bottom", "left")
_REFERENCE_BOXES = names("border-box padding-box content-box margin-box fill-box stroke-box view-box")
_BOXES = names("width height max-width max-height min-width min-height")
_KEPT_SIDES = names("margin-left margin-top padding-top padding-bottom top right bottom left")

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_NEEDS_CARE = re.compile(r"[\"'(\[{\\]|/\*")
_CALLS = re.compile(r"(?<![a-z0-9-])([a-z0-9-]++)\(")
_SHAPE = re.compile(r"(?:rect|inset|circle|ellipse|polygon|xywh)\(")


class StyleBlock(Struct):
    """The declarations of one rule, or of one element's style."""

    normal: Style = field(default_factory=dict)
    important: Style = field(default_factory=dict)


def without_comments(css: str) -> str:
    return _COMMENT.sub(" ", css) if "/*" in css else css


def unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[2]
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def set_all(style: Style, parts: Iterable[tuple[str, str]]) -> None:
    """Set the parts. Later ones win, and come after the others."""
    for name, value in parts:
        if name == "all":
            for known in [known for known in style if not known.startswith("--")]:
                del style[known]
        else:
            style.pop(name, None)
        style[name] = value


class DeclarationReader:
    """Caches what it has read: many elements of an email have the same styles."""

    def __init__(self, is_old_page: bool) -> None:
        self._is_old_page = is_old_page
        self._known: dict[str, Parts] = {}

    def read(self, text: str) -> StyleBlock:
        """Read a block, which is shared and must not be changed."""
        if len(text) <= MAX_REMEMBERED_CHARS:
            return _remembered(text, self._is_old_page)
        return self.read_anew(text)

    def read_anew(self, text: str) -> StyleBlock:
        block = StyleBlock()
        text = text[:MAX_STYLE_CHARS]
        needs_care = _NEEDS_CARE.search(text) is not None
        for declaration in divided(without_comments(text), ";") if needs_care else text.split(";"):
            self._add(block, declaration)
        return block

    def _add(self, block: StyleBlock, declaration: str) -> None:
        name, colon, value = declaration.partition(":")
        name = name.strip()
        if not colon or not name:
            return
        if "\\" in declaration:
            name, value = unescaped(name), unescaped(value)
        if name.startswith("--"):
            self._add_custom(block, name, value)
            return
        name = name.lower()
        name = _ALIASES.get(name, name)
        if name not in DECLARED:
            return
        value, bang, priority = value.partition("!")
        if bang and priority.strip().lower() != "important":
            return
        value = value.strip()
        if "(--" not in value and "( --" not in value:  # names of custom properties are case-sensitive
            value = value.lower()
        key = f"{name}:{value}"
        parts = self._known.get(key)
        if parts is None:
            parts = self._known[key] = declared(name, value, self._is_old_page)
        if parts:
            set_all(block.important if bang else block.normal, parts)

    def _add_custom(self, block: StyleBlock, name: str, value: str) -> None:
        value, bang, _ = value.partition("!")
        set_all(block.important if bang else block.normal, ((name, value.strip()[:MAX_CUSTOM_CHARS]),))


@lru_cache(REMEMBERED_STYLES)
def _remembered(text: str, is_old_page: bool) -> StyleBlock:
    return DeclarationReader(is_old_page).read_anew(text)


def declared(name: str, value: str, is_old_page: bool) -> Parts:
    """Return the single properties that a declaration sets; none if a browser would ignore it."""
    if not value:
        return ()
    if "var(" in value.lower():
        return ((name, value),)
    if value in EVERYWHERE:
        return tuple((part, value) for part in _PARTS.get(name, (name,)))
    try:
        return DECLARED[name](name, value, is_old_page)
    except Undecided:
        return tuple((part, UNDECIDED) for part in _PARTS.get(name, (name,)))


def _length(name: str, value: str, is_old_page: bool) -> Parts:
    if value in ("auto", "normal"):
        return ((name, value),)
    first = value.partition(" ")[0] if name == "text-indent" else value
    return ((name, first),) if _is_length(first, is_old_page) else ()


def _is_length(value: str, is_old_page: bool) -> bool:
    if not is_old_page and is_bare_number(value):
        return False
    return pixels(value) is not None


def _box(name: str, value: str, is_old_page: bool) -> Parts:
    is_valid = value in _LISTS["size"] or value.startswith("fit-content(") or _is_length(value, is_old_page)
    is_negative = is_valid and value.startswith("-") and value not in _LISTS["size"]
    return ((name, value),) if is_valid and not is_negative else ()


def _sides(name: str, value: str, is_old_page: bool) -> Parts:
    """Return top, right, bottom and left, from one to four values."""
    given = words(value)
    if not 1 <= len(given) <= 4 or not all(each == "auto" or _is_length(each, is_old_page) for each in given):
        return ()
    prefix = "" if name == "inset" else f"{name}-"
    parts = zip(_SIDES, four_sides(given), strict=True)
    return tuple((prefix + side, each) for side, each in parts if prefix + side in _KEPT_SIDES)


def _keyword(name: str, value: str, is_old_page: bool) -> Parts:
    if "," in value and name == "background-clip":
        value = value.partition(",")[0].strip()
    return ((name, value),) if value in _LISTS[name] else ()


def _display(name: str, value: str, is_old_page: bool) -> Parts:
    return ((name, value),) if all(word in _LISTS["display"] for word in value.split()) else ()


def _number(name: str, value: str, is_old_page: bool) -> Parts:
    if name == "zoom" and value in ("normal", "reset"):
        return ((name, "1"),)
    if name == "line-height":
        return ((name, value),) if value == "normal" or pixels(value) is not None else ()
    return ((name, value),) if number(value) is not None else ()


def _overflow(name: str, value: str, is_old_page: bool) -> Parts:
    given = value.split()
    if len(given) > 2 or not all(word in _LISTS["overflow"] for word in given):
        return ()
    if name != "overflow":
        return ((name, value),)
    return ("overflow-x", given[0]), ("overflow-y", given[-1])


def _color(name: str, value: str, is_old_page: bool) -> Parts:
    if is_old_page and len(value) in (3, 6) and colors.parse_color(f"#{value}") and value not in colors.NAMED:
        value = f"#{value}"
    return ((name, value),) if colors.parse_color(value) is not None else ()


def _background(name: str, value: str, is_old_page: bool) -> Parts:
    color, picture, clip = "transparent", "none", "border-box"
    for layer in divided(value, ","):
        for word in words(layer.replace("/", " / ") if "(" not in layer else layer):
            if word in _LISTS["background"]:
                clip = "text" if word == "text" else clip
            elif any(kind in word for kind in _PICTURES):
                picture = word
            elif colors.parse_color(word) is not None:
                color = word
            elif pixels(word.partition("/")[0]) is None:
                return ()
    return ("background-color", color), ("background-image", picture), ("background-clip", clip)


def _anything(name: str, value: str, is_old_page: bool) -> Parts:
    return ((name, value),)


def _font_size(name: str, value: str, is_old_page: bool) -> Parts:
    if value in FONT_SIZES or value in ("smaller", "larger"):
        return ((name, value),)
    is_valid = _is_length(value, is_old_page) and not value.startswith("-")
    return ((name, value),) if is_valid else ()


def _font(name: str, value: str, is_old_page: bool) -> Parts:
    """Return the font. In `italic bold 12px/30px Georgia` the first length or size name is the size."""
    if value in _LISTS["system font"]:
        return ("font-size", "13px"), ("line-height", "normal")
    given = words(value)
    for place, word in enumerate(given[:-1]):
        size, slash, height = word.partition("/")
        is_size = size in FONT_SIZES or size in ("smaller", "larger") or size == "0"
        if is_size or (not is_bare_number(size) and pixels(size) is not None):
            if not slash and given[place + 1].startswith("/"):
                height = given[place + 1][1:]
            return ("font-size", size), ("line-height", height or "normal")
    return ()


def _calls(name: str, value: str, is_old_page: bool) -> Parts:
    """Return a list of functions, all of which must be known."""
    if value == "none":
        return ((name, value),)
    called = _CALLS.findall(value)
    if not called or not value.endswith(")") or "=" in value or ":" in value.partition("(")[0]:
        return ()
    known = _LISTS["filter"] if name == "filter" else _LISTS["transform"]
    inner = frozenset(("calc", "min", "max", "clamp"))
    if not all(each in known or each in inner or each in ("rgb", "rgba", "hsl", "hsla") for each in called):
        raise Undecided(value)
    return ((name, value),)


def _clip(name: str, value: str, is_old_page: bool) -> Parts:
    if value in ("auto", "none") or _SHAPE.search(value):
        return ((name, value),)
    if value in _REFERENCE_BOXES:
        return ((name, "none"),)
    if "(" in value:
        raise Undecided(value)
    return ()


def _mask(name: str, value: str, is_old_page: bool) -> Parts:
    return (("mask-image", value),)


def _animation(name: str, value: str, is_old_page: bool) -> Parts:
    return (("animation-name", value),)


_PARTS: Mapping[str, tuple[str, ...]] = {
    "overflow": ("overflow-x", "overflow-y"),
    "background": ("background-color", "background-image", "background-clip"),
    "font": ("font-size", "line-height"),
    "margin": ("margin-top", "margin-left"),
    "padding": ("padding-top", "padding-bottom"),
    "inset": ("top", "right", "bottom", "left"),
    "mask": ("mask-image",),
    "animation": ("animation-name",),
}
DECLARED: Mapping[str, Callable[[str, str, bool], Parts]] = {
    "display": _display, "opacity": _number, "zoom": _number, "line-height": _number, "font": _font,
    "font-size": _font_size, "color": _color, "fill": _color, "background-color": _color,
    "background": _background, "background-image": _anything, "overflow": _overflow,
    "overflow-x": _overflow, "overflow-y": _overflow, "inset": _sides, "margin": _sides, "padding": _sides,
    "clip": _clip, "clip-path": _clip, "transform": _calls, "filter": _calls, "translate": _anything,
    "scale": _anything, "rotate": _anything, "mask": _mask, "mask-image": _mask,
    "text-shadow": _anything, "text-stroke": _anything, "z-index": _anything,
    "animation": _animation, "animation-name": _animation, "all": _anything,
    **dict.fromkeys(_KEYWORDS, _keyword), **dict.fromkeys(_LISTS["length"], _length),
    **dict.fromkeys(_BOXES, _box),
}  # fmt: skip
