"""Makes `postroom_client/results.py` and `postroom_client/errors.py`."""

from dataclasses import replace
from functools import cache
from graphlib import TopologicalSorter

from tools.generate import names
from tools.generate.description import Description, Field, Kind, Shape, shapes_in, snake
from tools.generate.python_source import documented, literal, module, result_kind

IMPORTS = (
    "from datetime import datetime",
    "from typing import Any",
    "from msgspec import Struct, field",
    "from postroom_client.result_types import Judged as Judged, Page as Page",
)
RESULTS = "What calls return. What a server leaves out is empty; what this client does not know is ignored."
NEVER = Field("", Kind("anything"), is_required=False)
ERROR_IMPORTS = (
    "from postroom_client.failures import (ConnectionFailed as ConnectionFailed,"
    " InvalidAnswer as InvalidAnswer, PostroomError as PostroomError, StreamRefused as StreamRefused)",
)


def results(description: Description) -> str:
    asked = asked_shapes(description)
    parts = [_class(description, shape, is_asked=shape.name in asked) for shape in result_shapes(description)]
    return module(RESULTS, IMPORTS, parts)


def errors(description: Description) -> str:
    rows = sorted(description.errors, key=lambda error: (error.status, error.code))
    classes = [
        f"class {error.name}(PostroomError):\n    {documented(error.description)}\n\n"
        f"    code, status = {literal(error.code)}, {error.status}\n"
        for error in rows
    ]
    codes = "{kind.code: kind for kind in PostroomError.__subclasses__()}"
    table = f"BY_CODE: dict[str, type[PostroomError]] = {codes}"
    docstring = "What can go wrong, one exception per error code of the interface."
    return module(docstring, ERROR_IMPORTS, [*classes, table])


def asked_shapes(description: Description) -> set[str]:
    """Results that requests may carry as well."""
    found: set[str] = set()
    for operation in names.operations_of_clients(description):
        for each in operation.body:
            _collect(description, each.kind, found)
    return {names.result_of(name) for name in found}


@cache
def answered_shapes(description: Description) -> set[str]:
    found: set[str] = set()
    for operation in names.operations_of_clients(description):
        if operation.result:
            _collect(description, Kind("shape", shape=operation.result), found)
    return found


def _collect(description: Description, kind: Kind, found: set[str]) -> None:
    for name in shapes_in(kind):
        if name not in found:
            found.add(name)
            for each in description.shapes[name].fields:
                _collect(description, each.kind, found)


def result_shapes(description: Description) -> list[Shape]:
    """Under their names in the clients, each behind those that it is made of."""
    wanted = answered_shapes(description)
    made: dict[str, Shape] = {}
    for name, shape in description.shapes.items():
        if name in wanted and not names.is_page(shape):
            ours = names.result_of(name)
            made[ours] = _merged(made.get(ours), replace(shape, name=ours))
    needs = {
        name: sorted({names.result_of(each) for item in shape.fields for each in shapes_in(item.kind)})
        for name, shape in sorted(made.items())
    }
    return [made[name] for name in TopologicalSorter(needs).static_order()]


def _merged(before: Shape | None, shape: Shape) -> Shape:
    """A field that only one of two has may be missing."""
    if before is None:
        return shape
    theirs = {each.name: each for each in shape.fields}
    ours = {each.name: each for each in before.fields}
    both = {**ours, **theirs}
    fields = [
        replace(each, is_required=all(one.get(name, NEVER).is_required for one in (ours, theirs)))
        for name, each in both.items()
    ]
    return Shape(shape.name, before.description or shape.description, tuple(fields))


def _class(description: Description, shape: Shape, *, is_asked: bool) -> str:
    fields = [each for each in shape.fields if (shape.name, each.name) not in names.LEFT_OUT]
    is_camel = any(each.name != snake(each.name) for each in fields)
    options = 'rename="camel", frozen=True' if is_camel else "frozen=True"
    options += ", omit_defaults=True" if is_asked else ""
    base = f"{names.WITH_METHODS[shape.name]}, Struct" if shape.name in names.WITH_METHODS else "Struct"
    lines = [f"class {shape.name}({base}, {options}):"]
    lines += [f"    {documented(shape.description)}\n"] if shape.description else []
    needed = [each for each in fields if _is_needed(each, is_first=each is fields[0])]
    lines += [_field(description, shape, each, is_needed=True) for each in needed]
    lines += [_field(description, shape, each, is_needed=False) for each in fields if each not in needed]
    return "\n".join(lines) + "\n"


def _is_needed(each: Field, *, is_first: bool) -> bool:
    """Without it, an answer is not what was asked for; all else may be left out."""
    is_there = each.is_required and not each.kind.is_nullable
    return is_there and (is_first or each.kind.name == "shape" or each.name == "data")


def _field(description: Description, shape: Shape, each: Field, *, is_needed: bool) -> str:
    name = names.FIELDS.get((shape.name, each.name), snake(each.name))
    kind = result_kind(description, each.kind)
    if (shape.name, name) in names.AS_WRITTEN:
        kind = kind.replace("datetime", "str")
    renamed = f"name={literal(each.name)}" if name != snake(each.name) else ""
    if is_needed:
        return f"    {name}: {kind}" + (f" = field({renamed})" if renamed else "")
    known = names.DEFAULTS.get((shape.name, name))
    default = _default(each) if known is None else literal(known)
    kind = f"{kind} | None" if default == "None" and "None" not in kind and kind != "Any" else kind
    return f"    {name}: {kind} = " + (f"field({renamed}, default={default})" if renamed else default)


def _default(each: Field) -> str:
    if each.has_default and each.default not in (None, [], {}):
        return literal(each.default)
    if each.kind.is_nullable:
        return "None"
    if not each.is_required and each.kind.name in ("text", "choice", "integer", "number"):
        return "None"
    return _EMPTY.get(each.kind.name, "None")


_EMPTY = {
    "text": '""',
    "choice": '""',
    "union": '""',
    "integer": "0",
    "number": "0.0",
    "boolean": "False",
    "list": "[]",
    "map": "{}",
}
