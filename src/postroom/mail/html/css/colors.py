"""Colours of CSS and of old attributes, as red, green, blue and how opaque they are."""

import colorsys
import math
import re
from collections.abc import Callable, Mapping

from postroom.mail.html.css.values import Undecided, degrees, divided, number, words

Color = tuple[float, float, float, float]

BLACK: Color = (0, 0, 0, 1)
WHITE: Color = (255, 255, 255, 1)
CLEAR: Color = (0, 0, 0, 0)
LINK: Color = (0, 0, 238, 1)
# Colours closer than this in every channel cannot be told apart by eye.
SAME_COLOR_DISTANCE = 12
MAX_MIXES = 4

_NAMES = """
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue 6495ed
cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod b8860b
darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b darkmagenta 8b008b
darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a
darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1
darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff
firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff
gold ffd700 goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0
hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa
lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080
lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3
lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899
lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6
magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3
mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a
mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa mistyrose ffe4e1
moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500
orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee
palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd
powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1
saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d
silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa
springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0
violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32 canvas ffffff
canvastext 000000 linktext 0000ee visitedtext 551a8b field ffffff fieldtext 000000 mark ffff00
marktext 000000 buttonface f0f0f0 buttontext 000000 graytext 808080 window ffffff windowtext 000000
background ffffff highlighttext 000000 infobackground ffffff infotext 000000 menu ffffff menutext 000000
"""
_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_CALL = re.compile(r"([a-z-]+)\((.{0,280})\)", re.DOTALL)
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")


def _of_digits(digits: str) -> Color:
    if len(digits) < 5:
        digits = "".join(digit * 2 for digit in digits)
    opaque = int(digits[6:8], 16) / 255 if len(digits) == 8 else 1
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16), opaque


_written = _NAMES.split()
NAMED: Mapping[str, Color] = {
    **{name: _of_digits(digits) for name, digits in zip(_written[::2], _written[1::2], strict=True)},
    "transparent": CLEAR,
}


def parse_color(value: str, current: Color = BLACK) -> Color | None:
    """Of lower-case CSS; None: it is no colour. Raises Undecided for functions that are not known."""
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
    """Of an attribute such as bgcolor: anything but nothing is a colour (HTML standard, 2.3.6)."""
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
    """What is seen of a colour on a ground that lets nothing through."""
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
    """The channels, and how opaque; with commas, or with spaces and a slash."""
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
    """A number as it is, a percentage as a part of so much."""
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
    """Near enough: white, black and greys are the same in all of these."""
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
    """In sRGB, whatever space is asked for: near enough to tell whether it can be seen."""
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
