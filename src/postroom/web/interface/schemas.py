"""The schemas of the description: those of msgspec, made exact where it cannot know more."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

REF = "#/components/schemas/{name}"
BINARY = {"type": "string", "format": "binary"}
FORM = "Form"  # behind the name of a body, its form as multipart
MOMENT = re.compile(r"(_at|At)$")

Json = dict[str, Any]


def ref(kind: Any) -> Json:
    return {"$ref": REF.format(name=kind.__name__)}


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def components(bodies: set[Any], answers: set[Any], with_files: set[Any]) -> Json:
    """Of all that requests and answers carry; `with_files` are bodies that may also come as multipart."""
    kinds = sorted(bodies | answers, key=lambda kind: str(kind.__name__))
    made = msgspec.json.schema_components(kinds, ref_template=REF)[1]
    for kind in set(_with_parts(kinds)):
        made[kind.__name__]["properties"] |= dict(_stored_json(kind))
    asked = _reachable(made, (kind.__name__ for kind in bodies))
    for name, schema in made.items():
        _settle_defaults(schema, is_answer=name not in asked)
    made |= {f"{kind.__name__}{FORM}": _form_of(made[kind.__name__]) for kind in with_files}
    return made


def plain(schema: Json) -> Json:
    """Without its default; a choice between anything and something else is no choice."""
    dropped = {"default", "anyOf"} if {} in schema.get("anyOf", ()) else {"default"}
    return {name: value for name, value in schema.items() if name not in dropped}


def _exact(name: str, schema: Json) -> Json:
    """What is named as a moment is one: every moment of the interface is written as RFC 3339 says."""
    if not MOMENT.search(name):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [_exact(name, choice) for choice in schema["anyOf"]]}
    return {"format": "date-time", **schema} if schema.get("type") == "string" else schema


def _with_parts(kinds: Iterable[Any]) -> Iterator[type[Struct]]:
    """Structs, and those that they are made of."""
    for kind in kinds:
        if is_struct(kind):
            yield kind
            yield from _with_parts(field.type for field in msgspec.structs.fields(kind))
        else:
            yield from _with_parts(get_args(kind))


def _stored_json(kind: type[Struct]) -> Iterator[tuple[str, Json]]:
    """Fields that are passed on as stored bytes, `Annotated[Raw, Kind or list]`, described by their kind."""
    for field in msgspec.structs.fields(kind):
        described = _described(field.type)
        if described is not None:
            yield field.encode_name, described


def _described(hint: Any) -> Json | None:
    if get_origin(hint) is list:
        item = _described(get_args(hint)[0])
        return None if item is None else {"type": "array", "items": item}
    kinds = getattr(hint, "__metadata__", ()) if getattr(hint, "__origin__", None) is Raw else ()
    described = (ref(kind) if is_struct(kind) else _described(kind) for kind in kinds)
    return next((found for found in described if found is not None), None)


def _reachable(made: Json, names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each.rpartition("/")[2] for each in _refs(made[name])]
    return found


def _refs(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _refs(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _refs(value)


def _settle_defaults(schema: Json, *, is_answer: bool) -> None:
    """An answer always has a field that has a default. In a request it may be left out, which a generator
    that sees the default takes for a promise that it is there."""
    properties = schema.get("properties", {})
    always = [name for name, value in properties.items() if is_answer and "default" in value]
    if properties:
        schema["properties"] = {
            name: _exact(name, plain(value)) | _known_default(value, is_answer=is_answer)
            for name, value in properties.items()
        }
        schema["required"] = [*schema.get("required", []), *always]
        if not schema["required"]:
            del schema["required"]


def _known_default(schema: Json, *, is_answer: bool) -> Json:
    """What counts where a request says nothing, in a word that generators leave alone. A field that has
    none may be left out all the same: then it stays as it is, and null clears it."""
    return {} if is_answer or "default" not in schema else {"x-default": schema["default"]}


def _form_of(body: Json) -> Json:
    """Parts of a form are texts and files; an object is a part that holds its JSON."""
    parts = {name: _part_of(value) for name, value in body["properties"].items()}
    return {**body, "title": f"{body['title']}{FORM}", "properties": parts}


def _part_of(schema: Json) -> Json:
    if "SentFile" in str(schema):
        return {"type": "array", "items": BINARY, "description": "Files, one part each."}
    return schema
