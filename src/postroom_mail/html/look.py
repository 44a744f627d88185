"""How text looks in an element, from its declarations and its parent's look: is it visible?"""

from collections.abc import Mapping

from postroom_mail.html.css import boxes, colors
from postroom_mail.html.css.colors import Color
from postroom_mail.html.css.declarations import FONT_SIZES, UNDECIDED, Style
from postroom_mail.html.css.values import ROOT_FONT_PX, Undecided, divided, number, pixels, words
from postroom_mail.html.markup import names

SMALLEST_READABLE_PX = 1.5
SMALLEST_RELATIVE_PX = 6.0  # some browsers do not shrink text further that is sized relative to its parent
LEAST_OPAQUE, MOST_OPAQUE = 0.05, 0.95
FAR_OFF_PX = -400

# A child inherits these from its parent, unless declared otherwise.
_BACK_TO_PARENT = ("inherit", "unset", "revert", "revert-layer")
_BLOCKS = names(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre "
    "search "
    "section summary ul button input select textarea img marquee"
)
_PARTS_OF_TABLES = names("table tbody thead tfoot tr td th")
_PARTS_OF_PARENT = ("%", "em", "ex", "ch")
_INLINE = ("inline", "contents", "ruby", "ruby-text", "ruby-base")

NO_PICTURE, GRADIENT, PICTURE = 0, 1, 2


class Look:
    """Equal looks are one object, so that the steps that lead to one can be cached."""

    __slots__ = (
        "background", "color", "custom", "doubt", "fill", "folded", "font_px", "indent_px", "inside",
        "invisible",
        "is_cover", "is_flex", "is_painted", "is_placed", "is_seen",
        "opacity", "outline", "pictured", "removed",
    )  # fmt: skip

    def __init__(self, parent: "Look | None" = None) -> None:
        if parent is None:
            self.removed = self.invisible = self.doubt = self.is_painted = False
            self.font_px, self.indent_px, self.opacity = ROOT_FONT_PX, 0.0, 1.0
            self.color: Color = colors.BLACK
            self.fill: Color | None = None
            self.outline: Color | None = None  # of a shadow or a stroke
            self.background: Color = colors.WHITE
            self.pictured = NO_PICTURE
            self.custom: Mapping[str, str] = {}
        else:
            self.removed, self.invisible, self.doubt = parent.removed, parent.invisible, parent.doubt
            self.font_px, self.indent_px, self.opacity = parent.font_px, parent.indent_px, parent.opacity
            self.color, self.fill, self.outline = parent.color, parent.fill, parent.outline
            self.background, self.pictured, self.custom = parent.background, parent.pictured, parent.custom
            self.is_painted = parent.is_painted
        self.is_flex = False
        self.is_placed = False  # positioned: it is drawn above those that are not
        self.is_cover = False  # nothing of the box that it is placed in is visible behind it
        self.folded: Look | None = None  # how the summary of closed details looks
        self.is_seen = True
        self.inside: Look = self  # the look of an element in here without declarations

    def same(self) -> tuple[object, ...]:
        """Return a key that is equal for looks that cannot be distinguished."""
        return (
            self.removed, self.invisible, self.doubt, self.font_px, self.indent_px, self.opacity, self.color,
            self.fill, self.outline, self.background, self.pictured, self.is_flex, self.is_painted,
            self.is_placed, self.is_cover, id(self.custom), self.folded,
        )  # fmt: skip

    def evaluate(self) -> None:
        """Decides whether text is visible here; in doubt it is, and that is noted."""
        self.is_seen = not (
            self.removed
            or self.invisible
            or self.folded is not None
            or self.font_px < SMALLEST_READABLE_PX
            or self.indent_px <= FAR_OFF_PX
            or self.opacity <= LEAST_OPAQUE
        )
        if self.is_seen and not self.is_painted and not self._stands_out():
            if self.pictured == PICTURE and self._shown()[3] > LEAST_OPAQUE:
                self.doubt = True
            else:
                self.is_seen = self.pictured == GRADIENT and self._shown()[3] > LEAST_OPAQUE
        if self.is_flex or self.is_placed or self.folded is not None:
            self.inside = removed(self) if self.folded is not None else Look(self)
            self.inside.evaluate()

    def _shown(self) -> Color:
        color = self.color if self.fill is None else self.fill
        return (*color[:3], color[3] * self.opacity)

    def _stands_out(self) -> bool:
        if _differs(self._shown(), self.background):
            return True
        return self.outline is not None and _differs(self.outline, self.background)


def _differs(color: Color, background: Color) -> bool:
    return color[3] > LEAST_OPAQUE and not colors.are_alike(colors.over(color, background), background)


def removed(parent: Look) -> Look:
    look = Look(parent)
    look.removed = True
    look.evaluate()
    return look


def changed(parent: Look, name: str, style: Style) -> Look:
    """Return the look of an element inside its parent, with all its declarations."""
    look = Look(parent)
    if parent.folded is not None:
        look.removed = True
    if style.get("all") == "initial":
        fresh = Look()
        look.color, look.fill, look.outline, look.font_px = fresh.color, None, None, fresh.font_px
        look.invisible, look.indent_px = False, 0.0
    try:
        _apply(look, parent, name, style)
    except Undecided:
        look.doubt = True
    if UNDECIDED in style.values():
        look.doubt = True
    look.evaluate()
    return look


def _apply(look: Look, parent: Look, name: str, style: Style) -> None:
    display = style.get("display", "")
    look.is_flex = "flex" in display or "grid" in display
    _size_text(look, parent, style)
    _color_text(look, parent, style)
    _color_ground(look, parent, style)
    _set_visibility(look, style)
    if display == "none" or style.get("content-visibility") == "hidden":
        look.removed = True
    if "opacity" in style:
        opacity = number(style["opacity"])
        look.opacity *= min(1.0, max(0.0, 1.0 if opacity is None else opacity))
    if style.get("text-security", "none") in ("disc", "circle", "square"):
        look.removed = True
    if not style.keys().isdisjoint(boxes.PROPERTIES):
        _place(look, parent, name, style)


def _place(look: Look, parent: Look, name: str, style: Style) -> None:
    is_inline = _is_inline(name, style, parent)
    if "text-indent" in style and not is_inline:
        look.indent_px = pixels(style["text-indent"], look.font_px) or 0.0
    verdicts = [
        boxes.is_moved_away(style, look.font_px, is_inline),
        boxes.is_clipped(style),
        boxes.is_transformed_away(style, look.font_px) if not is_inline else False,
        boxes.is_masked(style),
        boxes.is_filtered(style, look.font_px),
        boxes.is_too_tight(style, look.font_px),
    ]
    if not is_inline and name not in _PARTS_OF_TABLES and not style.get("display", "").startswith("table"):
        verdicts.append(boxes.is_squeezed(style, look.font_px))
    if True in verdicts:
        look.removed = True
    elif None in verdicts:
        look.doubt = True
    if style.get("position") in ("relative", "absolute", "fixed", "sticky") and not look.removed:
        look.is_placed = True
        look.is_cover = _is_opaque(look, style) and boxes.is_laid_over(style, look.font_px)


def _is_opaque(look: Look, style: Style) -> bool:
    opacity = number(style.get("opacity", "1"))
    if look.invisible or (opacity is not None and opacity < MOST_OPAQUE):
        return False
    color = _parsed(style.get("background-color", "transparent"), look.color)
    picture = style.get("background-image", "none")
    if color is not None and color[3] >= MOST_OPAQUE:
        return True
    found = [
        colors.parse_color(word, look.color)
        for word in words(picture.partition("(")[2][:-1].replace(",", " "))
    ]
    stops = [each for each in found if each is not None]
    return "gradient(" in picture and bool(stops) and all(each[3] >= MOST_OPAQUE for each in stops)


def _is_inline(name: str, style: Style, parent: Look) -> bool:
    """Return whether a box is inline: such boxes have no own size, indent or position."""
    if (
        style.get("position") in ("absolute", "fixed")
        or style.get("float", "none") != "none"
        or parent.is_flex
    ):
        return False
    display = style.get("display", "")
    if display in ("", "inherit", *_BACK_TO_PARENT):
        return name not in _BLOCKS and name not in _PARTS_OF_TABLES
    return display in _INLINE or display == "initial"


def _size_text(look: Look, parent: Look, style: Style) -> None:
    size = style.get("font-size")
    if size is not None and size not in _BACK_TO_PARENT:
        if size in FONT_SIZES or size == "initial":
            look.font_px = FONT_SIZES.get(size, ROOT_FONT_PX)
        elif size in ("smaller", "larger"):
            look.font_px = parent.font_px * (0.83 if size == "smaller" else 1.2)
        elif (found := pixels(size, parent.font_px, parent.font_px)) is not None:
            look.font_px = max(0.0, found)
            if 0 < found < SMALLEST_READABLE_PX and size.endswith(_PARTS_OF_PARENT):
                look.font_px, look.doubt = SMALLEST_RELATIVE_PX, True
    if "zoom" in style:
        zoom = number(style["zoom"])
        look.font_px *= zoom if zoom else 1.0


def _color_text(look: Look, parent: Look, style: Style) -> None:
    color = style.get("color")
    if color is not None and color not in _BACK_TO_PARENT:
        look.color = colors.BLACK if color == "initial" else _parsed(color, parent.color) or look.color
    fill = style.get("fill")
    if fill is not None and fill not in _BACK_TO_PARENT:
        look.fill = None if fill in ("initial", "currentcolor") else _parsed(fill, look.color)
    for name in ("text-shadow", "text-stroke"):
        if name in style and style[name] not in _BACK_TO_PARENT:
            look.outline = _outline(style[name], look.color, is_shadow=name == "text-shadow")


def _parsed(value: str, current: Color) -> Color | None:
    return None if value == UNDECIDED else colors.parse_color(value, current)


def _outline(value: str, current: Color, is_shadow: bool) -> Color | None:
    """Return the colour of a shadow near the text, or of an outline around it."""
    if value in ("none", "initial"):
        return None
    given = words(divided(value, ",")[0])
    measures = [length for word in given if (length := pixels(word)) is not None]
    color = next((found for word in given if (found := colors.parse_color(word)) is not None), current)
    if is_shadow:
        is_near = len(measures) >= 2 and max(map(abs, measures)) <= 12
        return color if is_near else None
    return color if measures and measures[0] >= 0.3 else None


def _color_ground(look: Look, parent: Look, style: Style) -> None:
    color = _parsed(style.get("background-color", "transparent"), look.color)
    picture = style.get("background-image", "none")
    if style.get("background-clip") == "text":
        look.is_painted = picture not in ("none", "initial") or bool(
            color and _differs(color, look.background)
        )
        return
    if color is not None and color[3] > 0:
        look.background = colors.over(color, parent.background)
        if color[3] >= 1:
            look.pictured = NO_PICTURE
    if "gradient(" in picture and "url(" not in picture:
        _draw_gradient(look, picture)
    elif "(" in picture and not picture.startswith("url()"):
        look.pictured = PICTURE


def _draw_gradient(look: Look, picture: str) -> None:
    """Draw a gradient of a single colour as a background of that colour."""
    inside = picture.partition("(")[2].rpartition(")")[0]
    found = []
    for stop in divided(inside, ","):
        for word in words(stop):
            if (
                color := colors.parse_color(word, look.color) if not word[:1].isdigit() else None
            ) is not None:
                found.append(colors.over(color, look.background))
    if found and all(colors.are_alike(found[0], other) for other in found):
        look.background = found[0]
    else:
        look.pictured = GRADIENT


def _set_visibility(look: Look, style: Style) -> None:
    value = style.get("visibility")
    if value in ("hidden", "collapse"):
        look.invisible = True
    elif value in ("visible", "initial"):
        look.invisible = False
