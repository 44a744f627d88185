"""CSS values that are measures: numbers, lengths, angles and results of calc(), in pixels."""

import math
import re
from collections.abc import Sequence

ROOT_FONT_PX = 16.0
VIEWPORT_WIDTH_PX = 1024.0
VIEWPORT_HEIGHT_PX = 768.0
MAX_TERMS = 200
MAX_DEPTH = 16
MOST = 1e9

_NUMBER = r"[-+]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:e[-+]?\d{1,3})?"
_MEASURE = re.compile(rf"({_NUMBER})([a-z]{{1,5}}|%)?")
_TERM = re.compile(rf"\s*(?:({_NUMBER})([a-z]{{1,5}}|%)?|([a-z][a-z0-9-]*)?(\()|([-+*/,)])|([a-z-]+))")
_FUNCTION = re.compile(r"(?<![a-z0-9-])[0-9]*+([a-z-][a-z0-9-]*+)\(")
_PIXELS = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "cm": 96 / 2.54, "mm": 9.6 / 2.54, "q": 2.4 / 2.54, "in": 96.0,
    "rem": ROOT_FONT_PX, "rex": 8.0, "rch": 8.0, "rlh": 20.0, "vw": VIEWPORT_WIDTH_PX / 100,
    "svw": VIEWPORT_WIDTH_PX / 100, "lvw": VIEWPORT_WIDTH_PX / 100, "dvw": VIEWPORT_WIDTH_PX / 100,
    "vi": VIEWPORT_WIDTH_PX / 100, "vh": VIEWPORT_HEIGHT_PX / 100, "svh": VIEWPORT_HEIGHT_PX / 100,
    "lvh": VIEWPORT_HEIGHT_PX / 100, "dvh": VIEWPORT_HEIGHT_PX / 100, "vb": VIEWPORT_HEIGHT_PX / 100,
    "vmin": VIEWPORT_HEIGHT_PX / 100, "vmax": VIEWPORT_WIDTH_PX / 100, "cqw": 10.0, "cqh": 7.0,
    "cqi": 10.0, "cqb": 7.0, "cqmin": 7.0, "cqmax": 10.0,
}  # fmt: skip
_EMS = {"em": 1.0, "ex": 0.5, "ch": 0.5, "cap": 0.7, "ic": 1.0, "lh": 1.2}
_DEGREES = {"deg": 1.0, "grad": 0.9, "rad": 180 / math.pi, "turn": 360.0}
_CALCULATIONS = frozenset(("calc", "-webkit-calc", "min", "max", "clamp", "abs"))
_CONSTANTS = {"pi": math.pi, "e": math.e, "infinity": MOST, "-infinity": -MOST}


class Undecided(Exception):
    """A value unknown here that a browser may know."""


def number(value: str) -> float | None:
    """Return a number, or a percentage as a fraction."""
    found = _MEASURE.fullmatch(value)
    if found is None:
        return _calculated(value, 1.0, 1.0) if "(" in value else None
    if not found[2]:
        return _bounded(float(found[1]))
    return _bounded(float(found[1])) / 100 if found[2] == "%" else None


def pixels(value: str, em: float = ROOT_FONT_PX, whole: float = VIEWPORT_WIDTH_PX) -> float | None:
    """Return a length; a bare number counts as pixels. None if it is no length. Raises Undecided."""
    found = _MEASURE.fullmatch(value)
    if found is None:
        return _calculated(value, em, whole) if "(" in value else None
    return _scaled(float(found[1]), found[2], em, whole)


def is_bare_number(value: str) -> bool:
    """Return whether it is a number without a unit, other than zero: a length only in quirks mode."""
    found = _MEASURE.fullmatch(value)
    return found is not None and not found[2] and float(found[1]) != 0


def degrees(value: str) -> float | None:
    found = _MEASURE.fullmatch(value)
    if found is None:
        return None
    amount = _bounded(float(found[1]))
    if not found[2]:
        return amount if amount == 0 else None
    return amount * _DEGREES[found[2]] if found[2] in _DEGREES else None


def functions(value: str) -> list[str]:
    return _FUNCTION.findall(value)


def words(value: str) -> list[str]:
    """Split at spaces outside brackets."""
    if "(" not in value:
        return value.split()
    return [word for word in divided(value, " ") if word]


def divided(value: str, mark: str) -> list[str]:
    """Return the parts between separators outside brackets and quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for found in _DIVIDERS[mark].finditer(value):
        sign = found[0]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif depth == 0:
            parts.append(value[start : found.start()].strip())
            start = found.end()
    parts.append(value[start:].strip())
    return parts


_DIVIDERS = {mark: re.compile(rf"""["'()\[\]{{}}]|{mark}""") for mark in (" ", ",", ";", "/")}


def _bounded(amount: float) -> float:
    return min(MOST, max(-MOST, amount))


def _scaled(amount: float, unit: str | None, em: float, whole: float) -> float | None:
    amount = _bounded(amount)
    if not unit:
        return amount
    if unit == "%":
        return amount * whole / 100
    scale = _PIXELS.get(unit)
    if scale is not None:
        return amount * scale
    return amount * _EMS[unit] * em if unit in _EMS else None


def _calculated(value: str, em: float, whole: float) -> float | None:
    called = _FUNCTION.match(value)
    if called is None:
        return None
    if called[1] not in _CALCULATIONS:
        raise Undecided(value)
    terms = _terms(value, em, whole)
    result, place = _sum(terms, 0, 0)
    return _bounded(result) if place >= len(terms) else None


_Term = float | str


def _terms(value: str, em: float, whole: float) -> list[_Term]:
    found: list[_Term] = []
    place = 0
    while place < len(value):
        term = _TERM.match(value, place)
        if term is None or len(found) > MAX_TERMS:
            raise Undecided(value)
        place = term.end()
        if term[1]:
            amount = _scaled(float(term[1]), term[2], em, whole)
            if amount is None:
                raise Undecided(value)
            if found and isinstance(found[-1], float):
                raise Undecided(value)
            found.append(amount)
        elif term[4]:
            found.append(f"{term[3] or ''}(")
        elif term[6]:
            if term[6] not in _CONSTANTS:
                raise Undecided(value)
            found.append(_CONSTANTS[term[6]])
        else:
            found.append(term[5])
    return found


def _sum(terms: list[_Term], place: int, depth: int) -> tuple[float, int]:
    total, place = _product(terms, place, depth)
    while place < len(terms) and terms[place] in ("+", "-"):
        more, behind = _product(terms, place + 1, depth)
        total = total + more if terms[place] == "+" else total - more
        place = behind
    return total, place


def _product(terms: list[_Term], place: int, depth: int) -> tuple[float, int]:
    total, place = _single(terms, place, depth)
    while place < len(terms) and terms[place] in ("*", "/"):
        other, behind = _single(terms, place + 1, depth)
        if terms[place] == "*":
            total *= other
        else:
            total = total / other if other else math.copysign(MOST, total)
        place = behind
    return _bounded(total), place


def _single(terms: list[_Term], place: int, depth: int) -> tuple[float, int]:
    if place >= len(terms) or depth > MAX_DEPTH:
        raise Undecided
    term = terms[place]
    if isinstance(term, float):
        return term, place + 1
    if term == "-":
        amount, behind = _single(terms, place + 1, depth + 1)
        return -amount, behind
    if not term.endswith("("):
        raise Undecided
    given, place = _arguments(terms, place + 1, depth + 1)
    return _called(term[:-1], given), place


def _arguments(terms: list[_Term], place: int, depth: int) -> tuple[list[float], int]:
    given: list[float] = []
    while True:
        amount, place = _sum(terms, place, depth)
        given.append(amount)
        if place < len(terms) and terms[place] == ",":
            place += 1
        else:
            break
    return given, place + 1  # a missing end counts as written


def _called(name: str, given: list[float]) -> float:
    if name == "min":
        return min(given)
    if name == "max":
        return max(given)
    if name == "clamp" and len(given) == 3:
        return max(given[0], min(given[1], given[2]))
    if name == "abs":
        return abs(given[0])
    if name in ("", "calc", "-webkit-calc") and len(given) == 1:
        return given[0]
    raise Undecided


def four_sides(given: Sequence[str]) -> tuple[str, str, str, str]:
    """Return top, right, bottom and left from one to four values, as in CSS shorthand."""
    right = given[1] if len(given) > 1 else given[0]
    return given[0], right, given[2] if len(given) > 2 else given[0], given[3] if len(given) > 3 else right
