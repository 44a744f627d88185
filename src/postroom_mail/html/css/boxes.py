"""How much of a box is visible: True: nothing; False: something; None: unknown."""

import math
import re

from postroom_mail.html.css import colors
from postroom_mail.html.css.declarations import UNDECIDED, Style
from postroom_mail.html.css.values import (
    VIEWPORT_HEIGHT_PX,
    VIEWPORT_WIDTH_PX,
    degrees,
    divided,
    four_sides,
    number,
    pixels,
    words,
)
from postroom_mail.languages.read import word_lists

PROPERTIES = frozenset(word_lists("postroom_mail.html.css", "words.txt")["of boxes"])
SUSPECT_PX = -400.0
FAR_PX = 5_000.0
OWN_WIDTH_PX, OWN_HEIGHT_PX = 600.0, 20.0
SMALLEST_READABLE_PX = 1.5
LEAST_OPAQUE = 0.05

Answer = bool | None

_CALL = re.compile(r"([a-z0-9-]++)\(")
_CLIPPING = ("hidden", "clip", "scroll", "auto", "overlay")
_GRADIENT = re.compile(r"[a-z-]*gradient\((.*)\)", re.DOTALL)


def _measure(style: Style, name: str, font_px: float, whole: float = VIEWPORT_WIDTH_PX) -> float | None:
    value = style.get(name)
    return None if value is None or value == UNDECIDED else pixels(value, font_px, whole)


def calls(value: str) -> list[tuple[str, list[str]]]:
    """Return the functions of a value, each with its arguments."""
    found = []
    for word in words(value):
        if called := _CALL.match(word):
            inside = word[called.end() :].removesuffix(")")
            given = divided(inside, ",") if "," in inside else words(inside)
            found.append((called[1], given))
    return found


def is_squeezed(style: Style, font_px: float) -> Answer:
    """Return whether a box has no size and clips its overflow."""
    x, y = style.get("overflow-x", "visible"), style.get("overflow-y", "visible")
    if x not in _CLIPPING and y not in _CLIPPING:
        return False
    only_clips = "clip" in (x, y) and "visible" in (x, y)
    is_narrow = (not only_clips or x == "clip") and _is_small(style, "width", font_px)
    is_flat = (not only_clips or y == "clip") and _is_flat(style, font_px)
    return is_narrow or is_flat


def _is_small(style: Style, side: str, font_px: float) -> bool:
    least = _measure(style, f"min-{side}", font_px)
    if least is not None and least > 1:
        return False
    sizes = [_measure(style, name, font_px) for name in (side, f"max-{side}")]
    return any(size is not None and size <= 1 for size in sizes)


def _is_flat(style: Style, font_px: float) -> bool:
    """Return whether a box has no height. A percentage of an unknown height counts as none."""
    own = {
        name: value for name, value in style.items() if not (name.endswith("height") and value.endswith("%"))
    }
    padding = sum(_measure(own, name, font_px) or 0.0 for name in ("padding-top", "padding-bottom"))
    if padding >= 6:
        return False
    if _is_small(own, "height", font_px):
        return True
    line = style.get("line-height", "normal")
    amount = pixels(line, font_px, font_px) if line not in ("normal", UNDECIDED) else None
    return amount is not None and amount <= (0.05 if number(line) is not None else 1) and "height" not in own


def is_moved_away(style: Style, font_px: float, is_inline: bool) -> Answer:
    answers = [] if is_inline else [
        _is_left(_measure(style, "margin-left", font_px), -VIEWPORT_WIDTH_PX),
        _is_left(_measure(style, "margin-top", font_px), -FAR_PX),
    ]  # fmt: skip
    position = style.get("position", "static")
    if position not in ("static", "initial", "unset", "inherit", "revert"):
        answers += _offsets(style, font_px, position)
    return _any(answers)


def _any(answers: list[Answer]) -> Answer:
    return True if True in answers else (None if None in answers else False)


def _is_left(offset: float | None, surely: float) -> Answer:
    if offset is None or offset > SUSPECT_PX:
        return False
    return True if offset <= surely else None


def _offsets(style: Style, font_px: float, position: str) -> list[Answer]:
    left, right = _measure(style, "left", font_px), _measure(style, "right", font_px)
    top = _measure(style, "top", font_px, VIEWPORT_HEIGHT_PX)
    bottom = _measure(style, "bottom", font_px, VIEWPORT_HEIGHT_PX)
    surely_above = -FAR_PX if position == "relative" else -2_000.0
    far_x, far_y = (VIEWPORT_WIDTH_PX, VIEWPORT_HEIGHT_PX) if position == "fixed" else (FAR_PX, FAR_PX)
    answers = [_is_left(left, -VIEWPORT_WIDTH_PX), _is_left(top, surely_above)]
    answers += [_is_far(left, far_x), _is_far(top, far_y)]
    if left is None:
        answers += [_is_far(right, VIEWPORT_WIDTH_PX), _is_left(right, -VIEWPORT_WIDTH_PX)]
    if top is None:
        answers += [_is_far(bottom, FAR_PX), _is_left(bottom, -VIEWPORT_HEIGHT_PX)]
    return answers


def _is_far(offset: float | None, far: float) -> Answer:
    return offset is not None and offset >= far


def is_laid_over(style: Style, font_px: float) -> bool:
    """Return whether a box lies over all of the one that it is placed in, and not behind it."""
    if style.get("position") not in ("absolute", "fixed") or (number(style.get("z-index", "0")) or 0.0) < 0:
        return False
    sizes = (("left", "right", "width", VIEWPORT_WIDTH_PX), ("top", "bottom", "height", VIEWPORT_HEIGHT_PX))
    for start, end, size, whole in sizes:
        edges = [_measure(style, side, font_px, whole) for side in (start, end)]
        reached = [edge is not None and edge <= 0 for edge in edges]
        is_whole = (_measure(style, size, font_px, whole) or 0.0) >= whole
        if not (all(reached) or (any(reached) and is_whole)):
            return False
    return True


def is_clipped(style: Style) -> Answer:
    shape = style.get("clip-path", "none")
    if shape == UNDECIDED:
        return None
    if "(" in shape:
        return _is_empty_shape(shape)
    is_placed = style.get("position") in ("absolute", "fixed")
    if is_placed and "(" in style.get("clip", "auto"):
        found = calls(style["clip"])
        sides = [pixels(side) for side in found[0][1]] if found else []
        if len(sides) == 4:
            top, right, bottom, left = sides
            return _is_thin(top, bottom) or _is_thin(left, right)
    return False


def _is_thin(start: float | None, end: float | None) -> bool:
    return end is not None and end - (start or 0.0) <= 1


def _is_empty_shape(shape: str) -> Answer:
    name, given = calls(shape)[0]
    if name == "inset":
        given = given[: given.index("round")] if "round" in given else given
        return _is_inset_away(given)
    if name in ("circle", "ellipse"):
        given = given[: given.index("at")] if "at" in given else given
        sizes = [pixels(size, whole=OWN_WIDTH_PX) for size in given]
        return any(size is not None and size <= 1 for size in sizes)
    if name == "polygon":
        return _is_empty_polygon(given)
    if name == "rect":
        top, right, bottom, left = ([*map(_side, given), None, None, None, None])[:4]
        return _is_thin(top, bottom) or _is_thin(left, right)
    return None


def _side(value: str) -> float | None:
    return pixels(value, whole=OWN_WIDTH_PX)


def _is_inset_away(given: list[str]) -> Answer:
    if not given:
        return False
    top, right, bottom, left = four_sides(given)
    for one, other in ((top, bottom), (right, left)):
        if one.endswith("%") and other.endswith("%"):
            if (number(one) or 0.0) + (number(other) or 0.0) >= 0.99:
                return True
        else:
            total = (pixels(one, whole=OWN_HEIGHT_PX) or 0.0) + (pixels(other, whole=OWN_HEIGHT_PX) or 0.0)
            if total >= OWN_WIDTH_PX:
                return True
            if total >= OWN_HEIGHT_PX:
                return None
    return False


def _is_empty_polygon(given: list[str]) -> Answer:
    points = []
    for point in given:
        places = [pixels(place, whole=OWN_WIDTH_PX) for place in point.split()]
        if len(places) != 2 or places[0] is None or places[1] is None:
            if point in ("nonzero", "evenodd"):
                continue
            return None
        points.append((places[0], places[1]))
    area = sum(
        one[0] * other[1] - other[0] * one[1]
        for one, other in zip(points, points[1:] + points[:1], strict=True)
    )
    if abs(area) / 2 <= 4 or all(x < 0 for x, _ in points) or all(y < 0 for _, y in points):
        return True
    return None if any(x > 2 * OWN_WIDTH_PX for x, _ in points) else False


def is_transformed_away(style: Style, font_px: float) -> Answer:
    found: list[tuple[str, list[str]]] = []
    for name in ("translate", "scale", "rotate", "transform"):
        value = style.get(name, "none")
        if value == UNDECIDED:
            return None
        if value in ("none", "initial", "unset", "inherit", "revert"):
            continue
        found += calls(value) if name == "transform" else [_as_call(name, value)]
    answers = [_moves_away(name, given, font_px) for name, given in found[:20]]
    return _any(answers)


def _as_call(name: str, value: str) -> tuple[str, list[str]]:
    given = words(value)
    if name == "rotate" and len(given) == 2 and given[0] in ("x", "y"):
        return f"rotate{given[0]}", given[1:]
    return name, given


def _moves_away(name: str, given: list[str], font_px: float) -> Answer:
    if name.startswith("translate"):
        return _is_translated_away(name, given, font_px)
    if name.startswith("scale"):
        factors = [abs(found) for each in given[:2] if (found := number(each)) is not None]
        return name != "scalez" and any(factor * font_px < SMALLEST_READABLE_PX for factor in factors)
    if name in ("rotatex", "rotatey"):
        angle = degrees(given[0]) if given else None
        return None if angle is None else abs(math.cos(math.radians(angle))) < 0.03
    if name == "matrix":
        return _is_matrix_away([number(each) for each in given], font_px)
    if name == "skew" or name.startswith("skew"):
        angles = [found for each in given if (found := degrees(each)) is not None]
        return None if any(abs(math.cos(math.radians(angle))) < 0.1 for angle in angles) else False
    return None if name in ("matrix3d", "rotate3d", "perspective") else False


def _is_translated_away(name: str, given: list[str], font_px: float) -> Answer:
    x = given[0] if given and name not in ("translatey", "translatez") else "0"
    y = given[1] if len(given) > 1 else (given[0] if name == "translatey" and given else "0")
    across = pixels(x, font_px, OWN_WIDTH_PX)
    down = pixels(y, font_px, OWN_HEIGHT_PX)
    answers = [_is_left(across, -VIEWPORT_WIDTH_PX), _is_left(down, -FAR_PX)]
    answers += [_is_far(across, FAR_PX), _is_far(down, FAR_PX)]
    return _any(answers)


def _is_matrix_away(given: list[float | None], font_px: float) -> Answer:
    if len(given) != 6 or None in given:
        return None
    a, b, c, d, across, down = (each or 0.0 for each in given)
    if abs(a * d - b * c) ** 0.5 * font_px < SMALLEST_READABLE_PX:
        return True
    return (
        _is_left(across, -VIEWPORT_WIDTH_PX) or _is_left(down, -FAR_PX) or _is_far(max(across, down), FAR_PX)
    )


def is_masked(style: Style) -> Answer:
    """Return whether a mask hides everything.

    One of only transparent colours does; the effect of a picture is unknown.
    """
    value = style.get("mask-image", "none")
    if value.partition(" ")[0] in ("none", "initial", "unset", "inherit", "revert"):
        return False
    gradient = _GRADIENT.match(value)
    if gradient is None:
        return None
    stops = [colors.parse_color(word) for stop in divided(gradient[1], ",") for word in words(stop)]
    found = [color for color in stops if color is not None]
    return True if found and all(color[3] <= LEAST_OPAQUE for color in found) else None


def is_filtered(style: Style, font_px: float) -> Answer:
    value = style.get("filter", "none")
    if style.get("mix-blend-mode", "normal") not in ("normal", "initial", "unset", "inherit", "revert"):
        return None
    if "(" not in value:
        return False
    answer: Answer = False
    for name, given in calls(value):
        if name == "opacity":
            amount = number(given[0]) if given else 1.0
            if amount is not None and amount <= LEAST_OPAQUE:
                return True
        elif name == "blur":
            radius = pixels(given[0]) if given else 0.0
            answer = None if radius is None or radius > font_px / 2 else answer
        elif name in ("invert", "brightness", "contrast", "url"):
            neutral = "0" if name == "invert" else "1"
            answer = answer if given[:1] in ([neutral], ["0%" if name == "invert" else "100%"]) else None
    return answer


def is_too_tight(style: Style, font_px: float) -> Answer:
    """Return None if letters overlap: then the text may be unreadable."""
    spacing = _measure(style, "letter-spacing", font_px, font_px)
    return None if spacing is not None and spacing <= -font_px / 2 else False
