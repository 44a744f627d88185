"""Conditions of @media and @supports, for a screen of 1024 by 768, in light colours. None: unknown."""

import re
from collections.abc import Callable, Iterable

from postroom_mail.html.css.declarations import DECLARED, declared
from postroom_mail.html.css.values import (
    VIEWPORT_HEIGHT_PX,
    VIEWPORT_WIDTH_PX,
    Undecided,
    divided,
    pixels,
    words,
)

MAX_DEPTH = 8
MAX_CHARS = 2_000

Answer = bool | None

_MEASURED = {
    "width": VIEWPORT_WIDTH_PX, "device-width": VIEWPORT_WIDTH_PX, "height": VIEWPORT_HEIGHT_PX,
    "device-height": VIEWPORT_HEIGHT_PX, "inline-size": VIEWPORT_WIDTH_PX, "block-size": VIEWPORT_HEIGHT_PX,
    "resolution": 1.0, "device-pixel-ratio": 1.0, "color": 8.0, "monochrome": 0.0, "color-index": 0.0,
    "aspect-ratio": 4 / 3, "device-aspect-ratio": 4 / 3, "grid": 0.0,
}  # fmt: skip
_CHOSEN = {
    "orientation": ("landscape",), "prefers-color-scheme": ("light",), "hover": ("hover",),
    "any-hover": ("hover",),
    "pointer": ("fine",), "any-pointer": ("fine",), "prefers-reduced-motion": ("no-preference",),
    "prefers-contrast": ("no-preference",), "prefers-reduced-transparency": ("no-preference",),
    "forced-colors": ("none",), "inverted-colors": ("none",), "scripting": ("none",), "update": ("fast",),
    "overflow-block": ("scroll",), "display-mode": ("browser",), "color-gamut": ("srgb",), "scan": (),
    "prefers-reduced-data": ("no-preference",), "dynamic-range": ("standard",),
}  # fmt: skip
_FOREIGN = ("-ms-", "-moz-", "-o-", "mso-")
_RATIO = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")
_RESOLUTION = re.compile(r"(\d{1,6}\.?\d{0,6})(dppx|x|dpi|dpcm)")
_COMPARISON = re.compile(r"(<=|>=|<|>|=)")


def holds_media(written: str) -> Answer:
    """Return whether a list of media queries holds; an empty one does."""
    written = " ".join(written[:MAX_CHARS].lower().split())
    return either(_query(query) for query in divided(written, ",")) if written else True


def holds_support(written: str) -> Answer:
    return _expression(" ".join(written[:MAX_CHARS].lower().split()), _support, 0)


def either(answers: Iterable[Answer]) -> Answer:
    found = list(answers)
    return True if True in found else (None if None in found else False)


def both(answers: Iterable[Answer]) -> Answer:
    found = list(answers)
    return False if False in found else (None if None in found else True)


def opposite(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _query(query: str) -> Answer:
    parts = words(query)
    if not parts or parts[0].startswith("(") or (parts[:1] == ["not"] and parts[1:2] and parts[1][0] == "("):
        return _expression(query, _feature, 0)
    is_negated = parts[0] == "not"
    if parts[0] in ("not", "only"):
        parts = parts[1:]
    if not parts or (len(parts) > 1 and parts[1] != "and"):
        return False
    answer: Answer = parts[0] in ("all", "screen")
    if len(parts) > 2:
        answer = both((answer, _expression(" ".join(parts[2:]), _feature, 0)))
    return opposite(answer) if is_negated else answer


def _expression(written: str, evaluate: Callable[[str], Answer], depth: int) -> Answer:
    parts = words(written)
    if not parts or depth > MAX_DEPTH:
        return None
    if parts[0] == "not":
        return opposite(_expression(" ".join(parts[1:]), evaluate, depth + 1))
    if len(parts) == 1:
        return _single(parts[0], evaluate, depth)
    operands, signs = parts[::2], set(parts[1::2])
    if len(parts) % 2 == 0 or signs not in ({"and"}, {"or"}):
        return None
    answers = [_single(operand, evaluate, depth) for operand in operands]
    return both(answers) if signs == {"and"} else either(answers)


def _single(written: str, evaluate: Callable[[str], Answer], depth: int) -> Answer:
    if not written.startswith("("):
        return None
    inside = written.removeprefix("(").removesuffix(")").strip()
    if inside.startswith(("(", "not ")):
        return _expression(inside, evaluate, depth + 1)
    return evaluate(inside)


def _feature(written: str) -> Answer:
    name, colon, value = (part.strip() for part in written.partition(":"))
    if not colon:
        return _range(written)
    if name.startswith(_FOREIGN):
        return False
    name = name.removeprefix("-webkit-")
    if name in _CHOSEN:
        return value in _CHOSEN[name]
    for prefix, sign in (("min-", ">="), ("max-", "<="), ("", "=")):
        if name.startswith(prefix) and (measured := _MEASURED.get(name.removeprefix(prefix))) is not None:
            return _compared(measured, sign, _measure(value))
    return None


def _range(written: str) -> Answer:
    """Return whether `width >= 600px`, `400px <= width <= 700px`, or a feature alone holds."""
    parts = [part.strip() for part in _COMPARISON.split(written)]
    if len(parts) == 1:
        if parts[0].startswith(_FOREIGN):
            return False
        name = parts[0].removeprefix("-webkit-")
        if name in _MEASURED:
            return _MEASURED[name] != 0
        return bool(_CHOSEN[name]) and _CHOSEN[name] != ("none",) if name in _CHOSEN else None
    place = next((place for place, part in enumerate(parts) if part in _MEASURED), None)
    if place is None or place % 2:
        return None
    measured = _MEASURED[parts[place]]
    before = _compared(_measure(parts[0]), parts[1], measured) if place == 2 else True
    behind = (
        _compared(measured, parts[place + 1], _measure(parts[place + 2])) if len(parts) > place + 2 else True
    )
    return both((before, behind))


def _measure(value: str) -> float | None:
    if ratio := _RATIO.fullmatch(value):
        return int(ratio[1]) / max(1, int(ratio[2]))
    if resolution := _RESOLUTION.fullmatch(value):
        return float(resolution[1]) / {"dpi": 96, "dpcm": 37.8}.get(resolution[2], 1)
    try:
        return pixels(value)
    except Undecided:
        return None


def _compared(one: float | None, sign: str, other: float | None) -> Answer:
    if one is None or other is None:
        return None
    return {"<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other}.get(
        sign, one == other
    )


def _support(written: str) -> Answer:
    name, colon, value = (part.strip() for part in written.partition(":"))
    if name.startswith("--"):
        return bool(value)
    if not colon or name.startswith(_FOREIGN):
        return None if "(" in written else False
    if name not in DECLARED:
        return None
    return bool(declared(name, value, is_old_page=False))
