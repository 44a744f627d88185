"""Colours of CSS and of old attributes, as red, green, blue and opacity."""

import colorsys
import math
import re
from collections.abc import Callable, Mapping

from postroom_mail.html.css.values import Undecided, degrees, divided, number, words
from postroom_mail.languages.read import word_pairs

Color = tuple[float, float, float, float]

BLACK: Color = (0, 0, 0, 1)
WHITE: Color = (255, 255, 255, 1)
CLEAR: Color = (0, 0, 0, 0)
LINK: Color = (0, 0, 238, 1)
# Colours closer than this in every channel cannot be distinguished by eye.
SAME_COLOR_DISTANCE = 12
MAX_MIXES = 4

_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_CALL = re.compile(r"([a-z-]+)\((.{0,280})\)", re.DOTALL)
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")


def _of_digits(digits: str) -> Color:
    if len(digits) < 5:
        digits = "".join(digit * 2 for digit in digits)
    opaque = int(digits[6:8], 16) / 255 if len(digits) == 8 else 1
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16), opaque


NAMED: Mapping[str, Color] = {
    **{
        name: _of_digits(digits)
        for name, digits in word_pairs("postroom_mail.html.css", "color_names.txt").items()
    },
    "transparent": CLEAR,
}


def parse_color(value: str, current: Color = BLACK) -> Color | None:
    """Parse lower-case CSS; None: no colour. Raises Undecided for unknown functions."""
    named = NAMED.get(value)
    if named is not None:
        return named
    if digits := _HEX.fullmatch(value):
        return _of_digits(digits[1])
    if value == "currentcolor":
        return current
    call = _CALL.fullmatch(value)
    return _called(call[1], call[2].strip(), current) if call else None


def parse_old_color(value: str) -> Color | None:
    """Parse an attribute such as bgcolor: any non-empty value is a colour (HTML standard, 2.3.6)."""
    value = value.strip()
    if not value or value.lower() == "transparent":
        return None
    if (named := NAMED.get(value.lower())) is not None:
        return named
    if len(value) == 4 and value[0] == "#" and not _NOT_HEX.search(value[1:]):
        return _of_digits(value[1:])
    digits = _NOT_HEX.sub("0", value[:128].removeprefix("#")) or "0"
    digits += "0" * (-len(digits) % 3)
    size = len(digits) // 3
    parts = [digits[start : start + size] for start in range(0, len(digits), size)]
    parts = [part[-8:] for part in parts]
    while len(parts[0]) > 2 and all(part[0] == "0" for part in parts):
        parts = [part[1:] for part in parts]
    red, green, blue = (int(part[:2], 16) for part in parts)
    return red, green, blue, 1


def over(color: Color, ground: Color) -> Color:
    """Return the visible colour on an opaque background."""
    opaque = color[3]
    if opaque >= 1:
        return color
    red, green, blue = (color[place] * opaque + ground[place] * (1 - opaque) for place in range(3))
    return red, green, blue, 1


def are_alike(one: Color, other: Color) -> bool:
    return (
        abs(one[0] - other[0]) <= SAME_COLOR_DISTANCE
        and abs(one[1] - other[1]) <= SAME_COLOR_DISTANCE
        and abs(one[2] - other[2]) <= SAME_COLOR_DISTANCE
    )


def _called(name: str, written: str, current: Color) -> Color | None:
    if name == "light-dark":
        return parse_color(divided(written, ",")[0], current)
    if name == "color-mix":
        return _mixed(written, current)
    if written.startswith("from ") or "var(" in written:
        raise Undecided(written)
    read = _READERS.get(name)
    if read is None:
        raise Undecided(name)
    parts, opaque = _parts(written)
    if name == "color":
        return _in_space(parts, opaque)
    if len(parts) != 3:
        return None
    channels = read(parts)
    if channels is None:
        return None
    red, green, blue = (min(255.0, max(0.0, channel)) for channel in channels)
    return red, green, blue, opaque


def _parts(written: str) -> tuple[list[str], float]:
    """Return channels and opacity, separated by commas, or by spaces and a slash."""
    if "," in written:
        parts = divided(written, ",")
        opaque = parts.pop() if len(parts) == 4 else "1"
    else:
        before, _, behind = written.partition("/")
        parts, opaque = words(before.strip()), behind.strip() or "1"
    amount = 0.0 if opaque == "none" else number(opaque)
    return parts, min(1.0, max(0.0, 1.0 if amount is None else amount))


_Channels = tuple[float, float, float]


def _amount(part: str, of_percent: float) -> float:
    """Return a number as it is, a percentage as a share of `of_percent`."""
    if part == "none":
        return 0.0
    amount = number(part)
    if amount is None:
        raise Undecided(part)
    return amount * of_percent if part.endswith("%") else amount


def _turn(part: str) -> float:
    if part == "none":
        return 0.0
    turned = degrees(part)
    if turned is None:
        turned = number(part)
    if turned is None:
        raise Undecided(part)
    return turned % 360


def _rgb(parts: list[str]) -> _Channels:
    red, green, blue = (_amount(part, 255) for part in parts)
    return red, green, blue


def _hsl(parts: list[str]) -> _Channels:
    saturation, lightness = (min(1.0, max(0.0, _amount(part, 100) / 100)) for part in parts[1:])
    red, green, blue = colorsys.hls_to_rgb(_turn(parts[0]) / 360, lightness, saturation)
    return red * 255, green * 255, blue * 255


def _hwb(parts: list[str]) -> _Channels:
    white, black = (min(1.0, max(0.0, _amount(part, 100) / 100)) for part in parts[1:])
    if white + black >= 1:
        gray = 255 * white / (white + black)
        return gray, gray, gray
    red, green, blue = colorsys.hls_to_rgb(_turn(parts[0]) / 360, 0.5, 1)
    scale = 1 - white - black
    return (red * scale + white) * 255, (green * scale + white) * 255, (blue * scale + white) * 255


def _from_linear(red: float, green: float, blue: float) -> _Channels:
    def encoded(linear: float) -> float:
        if linear <= 0.0031308:
            return 12.92 * linear * 255
        return (1.055 * math.pow(linear, 1 / 2.4) - 0.055) * 255

    return encoded(red), encoded(green), encoded(blue)


def _of_oklab(light: float, a: float, b: float) -> _Channels:
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return _from_linear(
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _small(amount: float) -> float:
    return min(400.0, max(-400.0, amount))


def _oklab(parts: list[str]) -> _Channels:
    light = min(1.0, max(0.0, _amount(parts[0], 1)))
    return _of_oklab(light, _small(_amount(parts[1], 0.4)), _small(_amount(parts[2], 0.4)))


def _oklch(parts: list[str]) -> _Channels:
    light, strength = min(1.0, max(0.0, _amount(parts[0], 1))), _small(_amount(parts[1], 0.4))
    hue = math.radians(_turn(parts[2]))
    return _of_oklab(light, strength * math.cos(hue), strength * math.sin(hue))


def _of_lab(light: float, a: float, b: float) -> _Channels:
    middle = (light + 16) / 116
    axes = (middle + a / 500, middle, middle - b / 200)
    x, y, z = (axis**3 if axis > 6 / 29 else (116 * axis - 16) / 903.3 for axis in axes)
    x, z = x * 0.96422, z * 0.82521
    return _from_linear(
        3.1341359 * x - 1.6172206 * y - 0.4906602 * z,
        -0.9787955 * x + 1.9161406 * y + 0.0334540 * z,
        0.0719453 * x - 0.2289914 * y + 1.4052427 * z,
    )


def _lab(parts: list[str]) -> _Channels:
    light = min(100.0, max(0.0, _amount(parts[0], 100)))
    return _of_lab(light, _small(_amount(parts[1], 125)), _small(_amount(parts[2], 125)))


def _lch(parts: list[str]) -> _Channels:
    light, strength = min(100.0, max(0.0, _amount(parts[0], 100))), _small(_amount(parts[1], 150))
    hue = math.radians(_turn(parts[2]))
    return _of_lab(light, strength * math.cos(hue), strength * math.sin(hue))


_READERS: Mapping[str, Callable[[list[str]], _Channels]] = {
    "rgb": _rgb, "rgba": _rgb, "hsl": _hsl, "hsla": _hsl, "hwb": _hwb, "lab": _lab, "lch": _lch,
    "oklab": _oklab, "oklch": _oklch, "color": _rgb,
}  # fmt: skip
_SPACES = frozenset(("srgb", "display-p3", "a98-rgb", "rec2020", "prophoto-rgb"))


def _in_space(parts: list[str], opaque: float) -> Color | None:
    """Return the colour approximately: white, black and greys are the same in all of these spaces."""
    if len(parts) != 4:
        return None
    channels = [min(1.0, max(0.0, _amount(part, 1))) for part in parts[1:]]
    if parts[0] == "srgb-linear":
        red, green, blue = _from_linear(channels[0], channels[1], channels[2])
        return red, green, blue, opaque
    if parts[0] not in _SPACES:
        raise Undecided(parts[0])
    return channels[0] * 255, channels[1] * 255, channels[2] * 255, opaque


def _mixed(written: str, current: Color) -> Color | None:
    """Mix in sRGB, whatever space is given: close enough to decide whether it is visible."""
    parts = divided(written, ",")
    if len(parts) != 3 or written.count("color-mix(") > MAX_MIXES:
        return None
    colors, shares = [], []
    for part in parts[1:]:
        found = words(part)
        share = next((number(word) for word in found if word.endswith("%")), None)
        color = next((parse_color(word, current) for word in found if not word.endswith("%")), None)
        if color is None:
            return None
        colors.append(color)
        shares.append(share)
    first, second = shares
    if first is None:
        first = 0.5 if second is None else 1 - second
    second = 1 - first if second is None else second
    total = first + second
    if total <= 0:
        return None
    one, other = colors
    opaque = (one[3] * first + other[3] * second) / total
    if opaque <= 0:
        return CLEAR
    red, green, blue = (
        (one[place] * one[3] * first + other[place] * other[3] * second) / total / opaque
        for place in range(3)
    )
    return red, green, blue, opaque * min(1.0, total)
