"""Says in our words why a value does not fit its type: what a library writes is for programmers."""

import re
from typing import Any

import msgspec
from msgspec import inspect

_PLACE = re.compile(r"(?P<key>`key` in )?`\$(?P<path>[^`]*)`")
_STEP = re.compile(r"\.(\w+)|(\[)")
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<more>.*)", re.S)
_BOUND = re.compile(r" (?P<what>of length )?(?P<sign><=|>=|<|>) (?P<bound>-?[\d.]+)")
_EXACT = re.compile(r" of length (\d+)")
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_CHOICE = re.compile(r"Invalid (?:enum )?value (?P<value>.+)", re.S)
_UNKNOWN = re.compile(r"Object contains unknown field `(\w+)`")
SHOWN_CHARACTERS = 60
MOST_CHOICES = 40
KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a time with its zone, such as 2026-11-14T10:05:00Z",
    "bytes": "base64",
}
PATTERNS = {
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "must be a day, such as 2026-11-14",
    r"^[^\x00]*$": "must not contain a NUL character",
    r"^[^\x00-\x1f\x7f]+$": "must have no control characters, and not be empty",
    "^[A-Za-z0-9._~-]+$": "must be letters, digits and . _ ~ - only",
    "^[A-Za-z0-9.:-]+$": "must be a host name or an IP address",
}
COUNTED = {"str": "characters", "array": "entries", "object": "entries", "bytes": "bytes"}
SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def describe(error: msgspec.ValidationError, kind: Any = None) -> tuple[str, str]:
    """Return the field of the body that is wrong, empty if it is the body itself, and a sentence.

    `kind` is the type that was read, for the values that a field may have.
    """
    reason, _, place = str(error).rpartition(" - at ")
    parts = _PLACE.fullmatch(place)
    path = parts["path"] if parts else ""
    reason = reason if parts else str(error)
    missing = _MISSING.fullmatch(reason)
    if missing is not None:
        path = f"{path}.{missing[1]}"
    name = path.replace("[...]", "[]").removeprefix(".")
    field = re.split(r"[.\[]", name, maxsplit=1)[0]
    problem = "is missing" if missing is not None else _describe(reason, path, kind)
    whole = f"a name in {name}" if parts and parts["key"] else name
    return field, f"{whole or 'The body'} {problem}."


def unreadable(what: str, error: Exception, kind: Any) -> str:
    """Return why JSON that a client wrote cannot be read."""
    if isinstance(error, msgspec.ValidationError):
        return f"{what} cannot be read: {describe(error, kind)[1]}"
    reason = str(error) if not isinstance(error, msgspec.DecodeError | ValueError | RecursionError) else ""
    return f"{what} cannot be read: {reason or 'It is not valid JSON.'}"


def _describe(reason: str, path: str, kind: Any) -> str:
    if expected := _EXPECTED.match(reason):
        return _describe_expected(expected["kind"], expected["more"])
    if choice := _CHOICE.fullmatch(reason):
        return f"is not a known value: {choice['value'][:SHOWN_CHARACTERS]}{_choices(path, kind)}"
    if unknown := _UNKNOWN.fullmatch(reason):
        return f"has no field {unknown[1][:SHOWN_CHARACTERS]}"
    for part, words in (
        ("RFC3339", f"must be {KINDS['datetime']}"),
        ("base64", "must be base64"),
        ("out of range", "is too large a number"),
    ):
        if part in reason:
            return words
    return "does not have the form that the reference describes"


def _describe_expected(kind: str, more: str) -> str:
    got = re.fullmatch(r", got `(\w+)`", more)
    wanted = " or ".join(KINDS.get(each, each) for each in kind.split(" | "))
    if got is not None:
        return f"must be {wanted}, not {_short(got[1])}"
    if exact := _EXACT.fullmatch(more):
        return f"must have {exact[1]} {COUNTED.get(kind, 'entries')}"
    if bound := _BOUND.match(more):
        number = _grouped(bound["bound"])
        if bound["what"]:
            return f"must have {SIGNS[bound['sign']]} {number} {COUNTED.get(kind, 'entries')}"
        return f"must be {SIGNS[bound['sign']]} {number}"
    if "matching regex" in more:
        pattern = more.partition("regex ")[2].strip("'")
        return PATTERNS.get(pattern, f"must match {pattern[:200]}")
    return f"must be {wanted}"


def _short(kind: str) -> str:
    if kind == "float":
        return "one with a fraction"
    return KINDS.get(kind, kind).partition(",")[0].partition(" with")[0]


def _grouped(bound: str) -> str:
    whole = bound.removesuffix(".0")
    return f"{int(whole):,}" if whole.lstrip("-").isdigit() else whole


def _choices(path: str, kind: Any) -> str:
    """Return the values that are allowed at a path of a type."""
    try:
        found = _values(inspect.type_info(kind), [step[1] or "[" for step in _STEP.finditer(path)])
    except TypeError:  # a type that the library cannot describe
        return ""
    return f". Use {' or '.join(map(str, found))}" if 0 < len(found) <= MOST_CHOICES else ""


def _values(kind: Any, steps: list[str]) -> list[Any]:
    if isinstance(kind, inspect.Metadata):
        return _values(kind.type, steps)
    if isinstance(kind, inspect.UnionType):
        return [value for each in kind.types for value in _values(each, steps)]
    if not steps:
        return list(kind.values) if isinstance(kind, inspect.LiteralType) else []
    if isinstance(kind, inspect.StructType):
        if steps == ["type"] and kind.tag is not None:
            return [kind.tag]
        fields = [each.type for each in kind.fields if each.encode_name == steps[0]]
        return [value for each in fields for value in _values(each, steps[1:])]
    inner = getattr(kind, "item_type", None) or getattr(kind, "value_type", None)
    return [] if inner is None else _values(inner, steps[1:])
