"""Makes `postroom_client/calls/operations.py`: what each operation takes, as options are made of it."""

from typing import Any

from tools.generate import names
from tools.generate.description import Description, Field, Operation, is_addresses, snake
from tools.generate.python_calls import is_files
from tools.generate.python_source import literal, module

IMPORTS = ("from postroom_client.calls.parameters import Parameter",)
KINDS = {
    "text": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "flag",
    "choice": "choice",
    "moment": "moment",
    "day": "day",
    "map": "pairs",
}
OBJECTS = ("InvitationBody", "JunkRules", "Disclosure")  # given in JSON


def operations(description: Description) -> str:
    rows = [_row(description, each) for each in names.operations_of_clients(description)]
    table = "OPERATIONS: dict[str, tuple[Parameter, ...]] = {" + ", ".join(rows) + "}"
    docstring = "What each operation takes; values that are objects are left to commands made by hand."
    return module(docstring, IMPORTS, [table])


def _row(description: Description, operation: Operation) -> str:
    fields = [*operation.path_fields, *operation.query, *operation.body]
    parameters = [made for each in fields if (made := _parameter(operation, each))]
    if operation.status == 201:
        parameters += [made for each in operation.body for made in _of_shape(description, each)]
    if operation.header:
        known = "The same key sends only once in 24 hours; a new one by default."
        parameters.append(_written({"name": "idempotency_key", "kind": "text", "help": known}))
    if operation.is_versioned:
        seen = "Only if it is still at this version, which you have seen."
        parameters.append(_written({"name": "version", "kind": "integer", "minimum": 1, "help": seen}))
    return f"{literal(names.method_of(operation))}: ({' '.join(f'{each},' for each in parameters)})"


def _of_shape(description: Description, each: Field) -> list[str]:
    """What is new may have rules of approval and limits from its beginning; later they have commands."""
    if each.kind.shape == "Approval":
        when = next(item for item in description.shapes["Approval"].fields if item.name == "when")
        known = {"name": "when", "kind": "texts", "help": when.description, "part_of": each.name}
        return [_written(known)]
    if each.kind.shape == "Budget":
        return [
            _written(
                {
                    "name": snake(item.name),
                    "kind": "integer",
                    "minimum": 0,
                    "help": item.description,
                    "part_of": each.name,
                }
            )
            for item in description.shapes["Budget"].fields
        ]
    return []


def _parameter(operation: Operation, each: Field) -> str:
    kind = _kind(each)
    if not kind:
        return ""
    name = names.argument_of(operation, each.name)
    if each.kind.name == "choice" and len(each.kind.choices) == 1:
        name, kind = f"{name}_{each.kind.choices[0]}", "flag"
    if kind == "flag" and not (each.has_default or each.is_required or each.kind.is_nullable):
        kind = "switch"
    known: dict[str, Any] = {"name": name, "kind": kind, "help": _help(each)}
    known |= {"is_required": True} if each.is_required else {}
    known |= {"default": each.default} if each.default not in (None, "", [], {}) else {}
    known |= {"choices": each.kind.choices} if kind == "choice" else {}
    known |= {word: each.limits[word] for word in ("minimum", "maximum") if word in each.limits}
    known |= {"clears": True} if not each.has_default and each.kind.is_nullable else {}
    return _written(known)


def _written(known: dict[str, Any]) -> str:
    name, kind = known.pop("name"), known.pop("kind")
    more = [f"{word}={literal(value)}" for word, value in known.items() if value != ""]
    return f"Parameter({', '.join([literal(name), literal(kind), *more])})"


def _kind(each: Field) -> str:
    if is_files(each):
        return "files"
    if is_addresses(each.kind):
        return "addresses"
    if each.kind.shape in OBJECTS or _is_free(each):
        return "object"
    if each.kind.name == "list" and each.kind.parts[0].shape == "FollowUpStep":
        return "objects"
    if each.kind.name == "union" and {part.shape for part in each.kind.parts} == {"", "ReplyWithin"}:
        return "text"
    if each.kind.name == "list":
        return "texts" if each.kind.parts[0].name in ("text", "choice") else ""
    return "texts" if each.separator else KINDS.get(each.kind.name, "")


def _is_free(each: Field) -> bool:
    """An object whose values may be any JSON."""
    return each.kind.name == "map" and each.kind.parts[0].name == "anything"


def _help(each: Field) -> str:
    if each.description:
        return each.description
    return "" if each.example is None else f"Such as {each.example}."
