"""The schemas of the description: those of msgspec, completed with what msgspec cannot know."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

REF = "#/components/schemas/{name}"
BINARY = {"type": "string", "format": "binary"}
FORM = "Form"  # appended to the name of a body for its multipart form
MOMENT = re.compile(r"(_at|At)$")
FIELDS = Path(__file__).parent / "fields.txt"
_AFTER_UNDERSCORE = re.compile(r"_([a-z0-9])")

Json = dict[str, Any]


def ref(kind: Any) -> Json:
    return {"$ref": REF.format(name=kind.__name__)}


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def components(bodies: set[Any], answers: set[Any], with_files: set[Any]) -> Json:
    """Return the schemas of all bodies and answers. `with_files` are bodies that may be multipart."""
    kinds = sorted(bodies | answers, key=lambda kind: str(kind.__name__))
    made = msgspec.json.schema_components(kinds, ref_template=REF)[1]
    for kind in set(_with_parts(kinds)):
        made[kind.__name__]["properties"] |= dict(_stored_json(kind))
    asked = _reachable(made, (kind.__name__ for kind in bodies))
    for name, schema in made.items():
        _settle_defaults(schema, is_answer=name not in asked)
    made |= {f"{kind.__name__}{FORM}": _form_of(made[kind.__name__]) for kind in with_files}
    for name, schema in made.items():
        _describe(name, schema.get("properties", {}))
    return made


def _describe(shape: str, properties: Json) -> None:
    """Describe every field: by its type, in its shape, or by its name."""
    known = field_descriptions()
    for name, schema in properties.items():
        said = known.get(f"{shape}.{name}") or known.get(camel(name))
        if said is not None and not is_described(schema):
            schema["description"] = said


def is_described(schema: Json) -> bool:
    return "description" in schema or any(map(is_described, schema.get("anyOf", ())))


@lru_cache(maxsize=1)
def field_descriptions() -> dict[str, str]:
    """Return descriptions by `name`, for a field that means the same in every shape, or by `Shape.name`."""
    lines = FIELDS.read_text().splitlines()
    pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: said for name, _, said in pairs}


def camel(name: str) -> str:
    """Return the name as requests and answers spell it: events have underscores."""
    return _AFTER_UNDERSCORE.sub(lambda found: found[1].upper(), name)


def plain(schema: Json) -> Json:
    """Return the schema without its default; a choice (`anyOf`) that allows anything is left out."""
    dropped = {"default", "anyOf"} if {} in schema.get("anyOf", ()) else {"default"}
    return {name: value for name, value in schema.items() if name not in dropped}


def _exact(name: str, schema: Json) -> Json:
    """Add the format to a field named like a time: every time is written as in RFC 3339."""
    if not MOMENT.search(name):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [_exact(name, choice) for choice in schema["anyOf"]]}
    return {"format": "date-time", **schema} if schema.get("type") == "string" else schema


def _with_parts(kinds: Iterable[Any]) -> Iterator[type[Struct]]:
    """Yield the structs, and the structs in their fields."""
    for kind in kinds:
        if is_struct(kind):
            yield kind
            yield from _with_parts(field.type for field in msgspec.structs.fields(kind))
        else:
            yield from _with_parts(get_args(kind))


def _stored_json(kind: type[Struct]) -> Iterator[tuple[str, Json]]:
    """Yield fields passed on as stored bytes, `Annotated[Raw, Kind or list]`, described by their kind."""
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
    """Settle defaults. In an answer, a field with a default is always present, and therefore required.

    In a request it may be left out, but generators would take a default as a promise that it is present.
    """
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
    """Return the default of a request's field, under a name that generators ignore.

    An optional field without a default keeps its value if it is left out, and null clears it.
    """
    return {} if is_answer or "default" not in schema else {"x-default": schema["default"]}


def _form_of(body: Json) -> Json:
    """Return the schema as a form.

    Its parts are texts and files; an object is a part that contains its JSON.
    """
    parts = {name: _part_of(value) for name, value in body["properties"].items()}
    return {**body, "title": f"{body['title']}{FORM}", "properties": parts}


def _part_of(schema: Json) -> Json:
    if "SentFile" in str(schema):
        return {"type": "array", "items": BINARY, "description": "Files, one part each."}
    return schema
