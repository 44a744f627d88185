"""What a reader would see: which elements of a mail hide their text by CSS or attributes."""

import colorsys
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from postroom.mail.html.markup import Open, names
from postroom.mail.html.styles import Declarations, Sheet, override

Color = tuple[int, int, int]

BLACK: Color = (0, 0, 0)
WHITE: Color = (255, 255, 255)
# Colours closer than this in every channel cannot be told apart by eye.
SAME_COLOR_DISTANCE = 12
DEFAULT_FONT_PX = 16
SMALLEST_READABLE_PX = 1.5
FAR_OFF_PX = -400
# No honest mail has more; what stands behind so many is not shown, since it might be meant to be hidden.
MAX_LOOKS = 4_000
DRESSING_ATTRIBUTES = ("style", "class", "id", "hidden", "bgcolor", "background", "color", "text")

NEVER_SHOWN = names(
    "title script style template iframe noembed noframes datalist audio video canvas object svg"
)
NAMED_COLORS: Mapping[str, Color] = {
    "white": WHITE, "black": BLACK, "snow": (255, 250, 250), "ivory": (255, 255, 240),
    "ghostwhite": (248, 248, 255), "floralwhite": (255, 250, 240), "mintcream": (245, 255, 250),
    "azure": (240, 255, 255), "aliceblue": (240, 248, 255), "whitesmoke": (245, 245, 245),
    "seashell": (255, 245, 238), "honeydew": (240, 255, 240), "red": (255, 0, 0), "green": (0, 128, 0),
    "blue": (0, 0, 255), "yellow": (255, 255, 0), "lime": (0, 255, 0), "aqua": (0, 255, 255),
    "cyan": (0, 255, 255), "magenta": (255, 0, 255), "fuchsia": (255, 0, 255), "gray": (128, 128, 128),
    "grey": (128, 128, 128), "silver": (192, 192, 192), "maroon": (128, 0, 0), "navy": (0, 0, 128),
    "olive": (128, 128, 0), "purple": (128, 0, 128), "teal": (0, 128, 128), "orange": (255, 165, 0),
    "pink": (255, 192, 203), "brown": (165, 42, 42), "gold": (255, 215, 0), "lightgray": (211, 211, 211),
    "lightgrey": (211, 211, 211), "darkgray": (169, 169, 169), "darkgrey": (169, 169, 169),
    "gainsboro": (220, 220, 220), "lightyellow": (255, 255, 224), "beige": (245, 245, 220),
    "darkblue": (0, 0, 139), "lightblue": (173, 216, 230),
}  # fmt: skip

_NUMBER = re.compile(r"[-+]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(?:e[-+]?\d{1,2})?")
_LENGTH = re.compile(rf"({_NUMBER.pattern})([a-z]{{2,4}}|%)?")
_HEX_COLOR = re.compile(r"#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_COLOR_CALL = re.compile(r"(rgb|hsl)a?\(([^()]{1,100})\)")
_WORD = re.compile(r"[a-z]+\([^()]{0,100}\)|[^\s()]+")
_CLIP = re.compile(r"(rect|inset|circle)\(([^()]{0,100})\)")
_EMPTY_SCALE = re.compile(r"scale[xy]?\(\s*0(?:\.0+)?\s*[,)]")
_PIXELS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "cm": 37.8, "mm": 3.78, "in": 96.0, "em": 16.0, "rem": 16.0,
           "ex": 8.0, "ch": 8.0, "vw": 10.0, "vh": 8.0, "%": 8.0, "": 1.0}  # fmt: skip


class Look(Struct, frozen=True, gc=False):
    """How text looks at one place. A background of None is a picture: any text may be readable on it."""

    removed: bool = False
    invisible: bool = False
    tiny: bool = False
    color: Color | None = BLACK
    background: Color | None = WHITE

    @property
    def is_visible(self) -> bool:
        return not (self.removed or self.invisible or self.tiny or self._has_one_color)

    @property
    def _has_one_color(self) -> bool:
        if self.color is None:
            return True
        return self.background is not None and _are_alike(self.color, self.background)


def _are_alike(one: Color, other: Color) -> bool:
    return all(abs(a - b) <= SAME_COLOR_DISTANCE for a, b in zip(one, other, strict=True))


@dataclass(slots=True)
class Wardrobe:
    """Looks of elements, from the style sheets read so far and the elements' own attributes."""

    sheet: Sheet = field(default_factory=Sheet)
    known: dict[tuple[object, ...], Look] = field(default_factory=dict)

    def read(self, css: str) -> None:
        self.sheet.read(css)
        self.known.clear()

    def dress(self, element: Open, parent: Look) -> Look:
        """The look of an element inside its parent; the parent's own when nothing changes."""
        attributes = element.attributes
        if parent.removed or not (attributes or self.sheet.rules or element.name in NEVER_SHOWN):
            return parent
        key = (parent, element.name, "href" in attributes, *map(attributes.get, DRESSING_ATTRIBUTES))
        if key not in self.known:
            if len(self.known) >= MAX_LOOKS:
                return replace(parent, removed=True)
            self.known[key] = self._fitted(element, parent)
        return self.known[key]

    def _fitted(self, element: Open, parent: Look) -> Look:
        if element.name in NEVER_SHOWN or "hidden" in element.attributes:
            return replace(parent, removed=True)
        declared = _attribute_style(element)
        override(declared, self.sheet.declarations(element.name, element.attributes))
        return _changed(parent, declared) if declared else parent


def _attribute_style(element: Open) -> dict[str, str]:
    """Presentational attributes and the browser's own colour of links."""
    attributes = element.attributes
    style: dict[str, str] = {}
    if element.name == "a" and "href" in attributes:
        style["color"] = "#0000ee"
    if "bgcolor" in attributes:
        style["background-color"] = attributes["bgcolor"].strip().lower()
    if attributes.get("background"):
        style["background-image"] = "url()"
    if element.name == "font" and "color" in attributes:
        style["color"] = attributes["color"].strip().lower()
    if element.name == "body" and "text" in attributes:
        style["color"] = attributes["text"].strip().lower()
    return style


def _changed(parent: Look, style: Declarations) -> Look:
    return Look(
        removed=parent.removed or _removes(style),
        invisible=_is_invisible(parent.invisible, style),
        tiny=_is_tiny(parent.tiny, style),
        color=_text_color(parent, style),
        background=_background(parent, style),
    )


def _removes(style: Declarations) -> bool:
    """Ways to hide that nothing inside can undo."""
    return (
        style.get("display") == "none"
        or style.get("content-visibility") == "hidden"
        or _is_nearly_zero(style.get("opacity"))
        or _is_squeezed(style)
        or _is_moved_away(style)
        or _EMPTY_SCALE.search(style.get("transform", "")) is not None
        or _is_clipped(style)
    )


def _is_nearly_zero(opacity: str | None) -> bool:
    number = _length(opacity or "1")
    return number is not None and number[0] / (100 if number[1] == "%" else 1) <= 0.05


def _is_clipped(style: Declarations) -> bool:
    shape = _CLIP.search(style.get("clip", "") + style.get("clip-path", ""))
    if shape is None:
        return False
    numbers = [float(number) for number in _NUMBER.findall(shape[2])]
    if shape[1] == "inset":
        return bool(numbers) and "%" in shape[2] and min(numbers) >= 50
    return bool(numbers) and max(numbers) <= 1


def _is_squeezed(style: Declarations) -> bool:
    # max-width is left out: zero with an ellipsis is a usual way to shorten table cells.
    sizes = ("width", "height", "max-height")
    squeezed = any(_is_at_most(style.get(name), 1) for name in sizes)
    return squeezed and any(
        style.get(name, "").startswith(("hidden", "clip"))
        for name in ("overflow", "overflow-x", "overflow-y")
    )


def _is_moved_away(style: Declarations) -> bool:
    if _is_at_most(style.get("text-indent"), FAR_OFF_PX) or _is_at_most(style.get("margin-left"), FAR_OFF_PX):
        return True
    if style.get("position") not in ("absolute", "fixed", "relative"):
        return False
    return any(_is_at_most(style.get(side), FAR_OFF_PX) for side in ("left", "top", "right", "bottom"))


def _is_invisible(inherited: bool, style: Declarations) -> bool:
    value = style.get("visibility")
    if value in ("hidden", "collapse"):
        return True
    return False if value in ("visible", "initial") else inherited


def _is_tiny(inherited: bool, style: Declarations) -> bool:
    size = style.get("font-size") or _size_in_shorthand(style.get("font", ""))
    length = _length(size)
    if length is None:
        return False if size and size not in ("inherit", "smaller", "larger") else inherited
    if length[1] in ("em", "%", "ex", "ch"):
        factor = length[0] / 100 if length[1] == "%" else length[0]
        return inherited or factor * DEFAULT_FONT_PX < SMALLEST_READABLE_PX
    return _pixels(length) < SMALLEST_READABLE_PX


def _size_in_shorthand(font: str) -> str:
    """The size in `italic bold 12px/30px Georgia` is the first word that is a length with a unit, or zero."""
    for word in _WORD.findall(font[:200]):
        length = _length(word.partition("/")[0])
        if length is not None and (length[1] or length[0] == 0):
            return str(word.partition("/")[0])
    return ""


def _text_color(parent: Look, style: Declarations) -> Color | None:
    value = style.get("-webkit-text-fill-color") or style.get("color", "")
    if value in ("", "inherit", "currentcolor"):
        return parent.color
    if _is_transparent(value):
        return None
    return parse_color(value) or (BLACK if value in ("initial", "unset") else parent.color)


def _background(parent: Look, style: Declarations) -> Color | None:
    written = f"{style.get('background', '')[:500]} {style.get('background-color', '')[:500]}"
    for word in reversed(_WORD.findall(written)):
        if not _is_transparent(word) and (color := parse_color(word)):
            return color
    pictured = written + style.get("background-image", "")
    return None if "url(" in pictured or "gradient(" in pictured else parent.background


def _is_transparent(value: str) -> bool:
    if value == "transparent":
        return True
    call = _COLOR_CALL.fullmatch(value)
    if call:
        parts = _NUMBER.findall(call[2])
        return len(parts) == 4 and float(parts[3]) <= 0.05
    digits = value.removeprefix("#")
    return (
        value.startswith("#") and len(digits) in (4, 8) and digits.endswith("0" if len(digits) == 4 else "00")
    )


def parse_color(value: str) -> Color | None:
    if value in NAMED_COLORS:
        return NAMED_COLORS[value]
    if digits := _HEX_COLOR.fullmatch(value):
        return _hex_color(digits[1])
    call = _COLOR_CALL.fullmatch(value)
    return _called_color(call[1], call[2]) if call else None


def _hex_color(digits: str) -> Color:
    if len(digits) < 6:
        digits = "".join(digit * 2 for digit in digits)
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _called_color(function: str, arguments: str) -> Color | None:
    numbers = [float(number) for number in _NUMBER.findall(arguments)]
    if len(numbers) < 3:
        return None
    if function == "hsl":
        hue, saturation, lightness = numbers[0] / 360, numbers[1] / 100, numbers[2] / 100
        channels = colorsys.hls_to_rgb(hue % 1, min(lightness, 1), min(saturation, 1))
        red, green, blue = (round(channel * 255) for channel in channels)
        return red, green, blue
    scale = 2.55 if "%" in arguments.partition("/")[0] else 1
    red, green, blue = (min(255, max(0, round(number * scale))) for number in numbers[:3])
    return red, green, blue


def _length(value: str | None) -> tuple[float, str] | None:
    found = _LENGTH.fullmatch(value) if value else None
    return (float(found[1]), found[2] or "") if found else None


def _pixels(length: tuple[float, str]) -> float:
    return length[0] * _PIXELS.get(length[1], 1.0)


def _is_at_most(value: str | None, pixels: float) -> bool:
    length = _length(value)
    return length is not None and _pixels(length) <= pixels
