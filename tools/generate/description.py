"""The OpenAPI document as operations and shapes, in terms that no language of a client owns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from postroom.web.interface import openapi
from postroom.web.routes import ROUTES

BASE_URL = "http://127.0.0.1:8025"
VERSIONED = "If-Match"

Json = dict[str, Any]
KindName = Literal[
    "text",
    "integer",
    "number",
    "boolean",
    "moment",
    "day",
    "binary",
    "anything",
    "choice",
    "list",
    "map",
    "shape",
    "union",
]


@dataclass(frozen=True)
class Kind:
    """The type of a value. `parts` are the items of a list, the values of a map or what a union is of."""

    name: KindName
    parts: tuple["Kind", ...] = ()
    shape: str = ""
    choices: tuple[str, ...] = ()
    is_nullable: bool = False


@dataclass(frozen=True)
class Field:
    """A property of a shape, or a parameter. Without a default it may be left out only where it is not
    required, and then stays as it is."""

    name: str
    kind: Kind
    is_required: bool
    description: str = ""
    has_default: bool = False
    default: Any = None
    separator: str = ""
    limits: Json = field(default_factory=dict)
    example: Any = None


@dataclass(frozen=True)
class Shape:
    name: str
    description: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Error:
    name: str
    code: str
    status: int
    description: str


@dataclass(frozen=True)
class Operation:
    """`result` is the shape of the answer, "" where there is none; `is_binary` says that it is bytes."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    tag: str
    scope: str
    permissions: tuple[str, ...]
    path_fields: tuple[Field, ...]
    query: tuple[Field, ...]
    body: tuple[Field, ...]
    body_shape: str
    takes_files: bool
    header: str
    may_lack_header: bool
    is_versioned: bool  # takes If-Match; `version` in a body says the same, and is left to it
    status: int
    result: str
    is_binary: bool
    statuses: tuple[int, ...]
    error_codes: tuple[str, ...]


@dataclass(frozen=True, eq=False)  # each is itself alone, so that what follows from one can be kept
class Description:
    version: str
    operations: tuple[Operation, ...]
    shapes: dict[str, Shape]
    errors: tuple[Error, ...]
    tags: dict[str, str]

    def operation(self, wanted: str) -> Operation:
        return next(each for each in self.operations if each.id == wanted)


def load() -> Description:
    document = openapi.document(ROUTES, BASE_URL)
    return Description(
        version=document["info"]["version"],
        operations=tuple(_operations(document)),
        shapes={name: _shape(name, schema) for name, schema in document["components"]["schemas"].items()},
        errors=tuple(Error(**row) for row in document["x-errors"]),
        tags={tag["name"]: tag["description"] for tag in document["tags"]},
    )


def _operations(document: Json) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield _operation(document, path, method.upper(), operation)


def _operation(document: Json, path: str, method: str, operation: Json) -> Operation:
    parameters = operation.get("parameters", ())
    content = operation.get("requestBody", {}).get("content", {})
    named = [each["name"] for each in parameters if each["in"] == "header"]
    body_shape = _ref_name(content["application/json"]["schema"]) if content else ""
    body = _fields(document["components"]["schemas"][body_shape]) if body_shape else ()
    if VERSIONED in named:
        body = tuple(each for each in body if each.name != "version")
    status = next(iter(operation["responses"]))
    answer = operation["responses"][status].get("content", {})
    return Operation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=operation["description"],
        tag=operation["tags"][0],
        scope=operation["x-scope"],
        permissions=tuple(operation["x-permissions"]),
        path_fields=tuple(_parameters(parameters, "path")),
        query=tuple(_parameters(parameters, "query")),
        body=body,
        body_shape=body_shape if body else "",
        takes_files="multipart/form-data" in content,
        header=next((each for each in named if each != VERSIONED), ""),
        may_lack_header=not all(
            each.get("required") for each in parameters if each["name"] == "Idempotency-Key"
        ),
        is_versioned=VERSIONED in named,
        status=int(status),
        result=_ref_name(answer.get("application/json", {}).get("schema", {})),
        is_binary=any(each["schema"].get("format") == "binary" for each in answer.values()),
        statuses=tuple(int(each) for each in operation["responses"]),
        error_codes=tuple(
            code for response in operation["responses"].values() for code in response.get("x-codes", ())
        ),
    )


def _parameters(parameters: Sequence[Json], place: str) -> Iterator[Field]:
    seen: set[str] = set()
    for each in parameters:
        if each["in"] == place and snake(each["name"]) not in seen:
            seen.add(snake(each["name"]))
            said = {name: each[name] for name in ("description",) if name in each}
            yield _field(
                each["name"], {**each["schema"], **said}, is_required=each["required"], default_word="default"
            )


def _shape(name: str, schema: Json) -> Shape:
    return Shape(name, schema.get("description", ""), _fields(schema))


def _fields(schema: Json) -> tuple[Field, ...]:
    """Of a name in two spellings, which the server takes both, the first one counts."""
    required = schema.get("required", ())
    found: dict[str, Field] = {}
    for name, each in schema.get("properties", {}).items():
        if each.get("type") == "null":
            continue  # it is there to be refused
        found.setdefault(
            snake(name), _field(name, each, is_required=name in required, default_word="x-default")
        )
    return tuple(found.values())


LIMITS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties")


def _field(name: str, schema: Json, *, is_required: bool, default_word: str) -> Field:
    told = _told(schema)
    return Field(
        name=name,
        kind=kind_of(schema),
        is_required=is_required,
        description=told.get("description", ""),
        has_default=default_word in schema,
        default=schema.get(default_word),
        separator=told.get("x-separator", ""),
        limits={word: told[word] for word in LIMITS if word in told},
        example=next(iter(told.get("examples", ())), None),
    )


def _told(schema: Json) -> Json:
    """With what is said of the one choice beside null."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return {**choices[0], **schema} if len(choices) == 1 else schema


def kind_of(schema: Json) -> Kind:
    if "anyOf" in schema:
        return _choice_of(schema["anyOf"])
    if "$ref" in schema:
        return Kind("shape", shape=_ref_name(schema))
    if "enum" in schema:
        return Kind("choice", choices=tuple(schema["enum"]))
    match schema.get("type"):
        case "array":
            return Kind("list", (kind_of(schema["items"]),))
        case "object":
            return Kind("map", (kind_of(schema["additionalProperties"]),))
        case "string":
            return Kind(_text_name(schema))
        case "integer" | "number" | "boolean" as name:
            return Kind(name)
        case None:
            return Kind("anything")
        case other:
            raise ValueError(f"no client knows the type {other!r}")


def _text_name(schema: Json) -> KindName:
    if schema.get("contentEncoding") == "base64":
        return "binary"
    names: dict[str, KindName] = {"date-time": "moment", "date": "day", "binary": "binary"}
    return names.get(schema.get("format", ""), "text")


def _choice_of(choices: Sequence[Json]) -> Kind:
    kinds = [kind_of(each) for each in choices if each.get("type") != "null"]
    is_nullable = len(kinds) < len(choices)
    if len(kinds) > 1:
        return Kind("union", tuple(kinds), is_nullable=is_nullable)
    only = kinds[0]
    return Kind(only.name, only.parts, only.shape, only.choices, is_nullable or only.is_nullable)


def _ref_name(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("-", "_")).lower()


def is_addresses(kind: Kind) -> bool:
    """A text, or a list of texts."""
    return kind.name == "union" and {part.name for part in kind.parts} == {"text", "list"}


def shapes_in(kind: Kind) -> Iterator[str]:
    if kind.shape:
        yield kind.shape
    for part in kind.parts:
        yield from shapes_in(part)
