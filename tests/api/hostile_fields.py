"""Every place of a request where a client puts a text, found in the route tables, and texts that cost most.

A field that is added to a body, a query or a path is found here by itself. One that a body cannot do without
needs a value in `NEEDED`, or the requests beside it would not be read to their end.
"""

import ast
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect as types
from starlette.datastructures import Headers

from postroom.limits import REQUEST_BYTES
from postroom.web.connection import URL_LIMIT_BYTES
from postroom.web.dashboard.forms import (
    COOKIE,
    EMAIL_FORM_BYTES,
    FORM,
    FORM_LIMIT_BYTES,
    read_form,
    read_upload,
)
from postroom.web.requests.files_body import read_with_files
from postroom.web.routing import Route
from tests.source_patterns import sources

HEAD_BYTES = URL_LIMIT_BYTES - 500  # without the rest of an address
AROUND_BYTES = 4_000  # of a body: its other fields
BESIDE_BYTES = 60  # of a short text in a list: its quotes, its name, what else its object needs
ESCAPES = {"%": "%25", "&": "%26", "+": "%2B", " ": "+"}
EACH, NAME, VALUE = "[]", "{name}", "{value}"  # of a list, and of an object

# Repeated until they fill a field: what opens and never closes, what separates, what a reader goes back for.
SHAPES = {
    "letters": "a",
    "angles": "<",
    "escaped quotes": '"\\',
    "nested brackets": "[{(<",
    "commas": ",",
    "dots": "a.",
    "spaces": " ",
    "lines": "\t\r\n",
    "NULs": "\0",
    "marks": "a\u0300\u0327",
    "directions": "\u202e\u2066",
    "addresses": "a@a,(a <a@a.example>,",
    "links": "http://",
    "percents": "%",
    "tags": "<p style='a:b'>",
    "terms": '"a b" OR -a* from:a ',
}

NEEDED: dict[str, Any] = {
    "actions": [{"type": "archive"}],
    "address": "someone@example.com",
    "isJunk": True,
    "messages": ["aGk="],
    "body": "Hello",
    "content": "BEGIN:VCALENDAR",
    "contentHash": "0" * 64,
    "contentType": "text/plain",
    "sizeBytes": 10,
    "direction": "outbound",
    "domain": "mail.example.com",
    "auth": "x",
    "credential": "{}",
    "data": "aGk=",
    "email": "ann@example.com",
    "filename": "a.txt",
    "endpoint": "https://push.example.com/x",
    "entry": "example.com",
    "event_types": ["message.received"],
    "inboxId": "none",
    "inboxIds": ["none"],
    "durationMinutes": 30,
    "from": "2026-11-19T00:00:00Z",
    "until": "2026-11-20T00:00:00Z",
    "start": "2026-11-19T09:00:00Z",
    "end": "2026-11-19T10:00:00Z",
    "summary": "Standup",
    "query": "subject:x",
    "position": 0,
    "calendarId": "none",
    "kind": "email",
    "lane": "example.com",
    "mailboxName": "another",
    "message": "none",
    "message_ids": ["none"],
    "mode": "inherit",
    "name": "somebody",
    "once": "1",
    "owner": "x",
    "p256dh": "x",
    "plan": "free",
    "q": "word",
    "role": "viewer",
    "sendAt": "2026-11-20T10:00:00Z",
    "target": "ann@example.com",
    "targets": [{"kind": "email", "target": "ann@example.com", "on": ["held"]}],
    "since": "2026-11-01T00:00:00Z",
    "to": "someone@example.com",
    "type": "block",
    "typed": "x",
    "url": "https://example.com/hook",
    "value": "example.com",
    "version": 1,
    "way": "raw",
    "scopeId": "all",
}
# What a body may do without, and is read further with.
WANTED: dict[str, dict[str, Any]] = {
    "SendBody": {"to": "someone@example.com", "subject": "Hello"},
    "DraftBody": {"to": "someone@example.com"},
    "WaitQuery": {"timeout": 0},
}


BODY_LIMITS: dict[Callable[..., Awaitable[Any]], int] = {
    read_form: FORM_LIMIT_BYTES,
    read_upload: EMAIL_FORM_BYTES,
}


@dataclass(frozen=True)
class Place:
    route: Route
    part: str  # body, query or path
    steps: tuple[str, ...]
    max_length: int | None = None

    def __str__(self) -> str:
        return f"{self.route.name} {self.part} {'.'.join(self.steps)}"

    @property
    def most_bytes(self) -> int:
        """Of the text as it is written into the request."""
        if self.part != "body":
            return HEAD_BYTES
        return BODY_LIMITS.get(self.route.read, REQUEST_BYTES) - AROUND_BYTES


@dataclass(frozen=True)
class Sent:
    path: str
    query: bytes = b""
    body: bytes = b""
    content_type: str = ""


def places(routes: Iterable[Route]) -> Iterator[Place]:
    for route in routes:
        for name in route.path_names:
            yield Place(route, "path", (name,))
        for part, kind in (("query", route.query), ("body", route.body)):
            if kind is not None:
                found = dict(_texts(_type_of(kind), ()))
                yield from (Place(route, part, steps, length) for steps, length in found.items())


_type_of = cache(types.type_info)


def _texts(kind: types.Type, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
    """The way to each text inside of a type, and its longest length."""
    match kind:
        case types.Metadata():
            yield from _texts(kind.type, steps)
        case types.StructType():
            for field in kind.fields:
                yield from _texts(field.type, (*steps, field.encode_name))
        case types.UnionType():
            for each in kind.types:
                yield from _texts(each, steps)
        case types.ListType():
            yield from _texts(kind.item_type, (*steps, EACH))
        case types.DictType():
            yield from _texts(kind.key_type, (*steps, NAME))
            yield from _texts(kind.value_type, (*steps, VALUE))
        case types.StrType():
            yield steps, kind.max_length
        case types.BytesType() | types.RawType():
            yield steps, None
        case (
            types.BoolType()
            | types.IntType()
            | types.FloatType()
            | types.NoneType()
            | types.LiteralType()
            | types.DateTimeType()
        ):
            return
        case _:
            raise AssertionError(f"{kind} of {'.'.join(steps)} is not known here")


def is_form(route: Route) -> bool:
    return route.read in (read_form, read_upload)


def takes_files(route: Route) -> bool:
    return route.read is read_with_files


def fill(place: Place, unit: str, share: int = 1) -> str:
    """The longest text of this kind that the place takes, or an equal part of it."""
    times = max(1, place.most_bytes // len(_written(place, unit)))
    length = min(times * len(unit), place.max_length or times * len(unit))
    return (unit * times)[: max(1, length // share)]


def spread(place: Place, unit: str, share: int = 1) -> list[str]:
    """As many short texts of this kind as a list takes."""
    items = place.most_bytes // (len(_written(place, unit)) + len(place.steps[0]) + BESIDE_BYTES)
    return [unit] * max(1, items // share)


def _written(place: Place, text: str) -> bytes:
    if place.part == "path":
        return text.encode()
    if place.part == "query" or is_form(place.route):
        return escape(text)
    return msgspec.json.encode(text)[1:-1]


def escape(text: str) -> bytes:
    """As little as can be: each escape costs the reader more than any other character."""
    for character, written in ESCAPES.items():
        text = text.replace(character, written)
    return text.encode()


def request(place: Place, given: str | list[str], ids: dict[str, str]) -> Sent:
    """`ids` are of things that are there: what is asked for them is read to its end."""
    route = place.route
    named = {name: ids.get(name, "none") for name in route.path_names}
    query = {} if route.query is None else _needed(route.query)
    body = {} if route.body is None else _needed(route.body)
    if isinstance(given, str) and place.part == "path":
        named[place.steps[0]] = given.replace("/", ":").replace("\0", ":")
    else:
        (query if place.part == "query" else body)[place.steps[0]] = _made(place.steps[1:], given)
    path = "/".join(named[segment[1:-1]] if segment[:1] == "{" else segment for segment in route.segments)
    if route.body is None:
        return Sent(f"/{path}", _pairs(query))
    if is_form(route):
        return Sent(f"/{path}", _pairs(query), _pairs(body), FORM)
    return Sent(f"/{path}", _pairs(query), msgspec.json.encode(body), "application/json")


def _needed(body: type) -> dict[str, Any]:
    kind = _type_of(body)
    assert isinstance(kind, types.StructType)
    required = {field.encode_name: _needed_value(field) for field in kind.fields if field.required}
    return required | WANTED.get(kind.cls.__name__, {})


def _needed_value(field: types.Field) -> Any:
    kind = field.type.type if isinstance(field.type, types.Metadata) else field.type
    if isinstance(kind, types.LiteralType):
        return kind.values[0]
    return NEEDED[field.encode_name]


def _made(steps: tuple[str, ...], given: str | list[str]) -> Any:
    """The text at the end of the way through objects and lists, which have what else they need.

    Texts that are given as a list are one, many times.
    """
    if not steps:
        return given if isinstance(given, str) else given[0]
    step, rest = steps[0], steps[1:]
    texts = [given] if isinstance(given, str) else given
    if step == EACH:
        return [_made(rest, texts[0])] * len(texts)
    if step == NAME:
        return {text if number == 0 else f"{text}{number}": "x" for number, text in enumerate(texts)}
    if step == VALUE:
        return {f"X-{number}": text for number, text in enumerate(texts)}
    around = {name: NEEDED[name] for name in ("filename", "data", "type", "value") if name != step}
    return around | {step: _made(rest, given)}


def _pairs(values: dict[str, Any]) -> bytes:
    return b"&".join(
        _pairs_of(name, value if isinstance(value, list) else [value]) for name, value in values.items()
    )


def _pairs_of(name: str, values: list[Any]) -> bytes:
    assert values.count(values[0]) == len(values)
    return b"&".join([name.encode() + b"=" + escape(str(values[0]))] * len(values))


def head(sent: Sent, fields: dict[str, str]) -> Headers:
    given = {"content-type": sent.content_type, "content-length": str(len(sent.body)), **fields}
    return Headers({name: value for name, value in given.items() if value})


# Before the hostile text: what makes a reader look at it at all.
BEFORE = {
    "authorization": ("", "Bearer "),
    "content-type": ("", "multipart/form-data; boundary=", 'multipart/form-data; a="', "application/json;"),
    "cookie": ("", f"{COOKIE}=", f'{COOKIE}="'),
}
ASKING_HEADERS = re.compile(r"\bheaders?\b")
HEADER_SHAPES = {
    name: unit
    for name, unit in SHAPES.items() | {"quoted octals": "\\0", "parameters": ';a="', "quoted": '\\"'}.items()
    if unit.isascii() and unit.isprintable()
}


def header_names() -> set[str]:
    """Of all fields that the source of the web asks for."""
    found: set[str] = set()
    for path, text in sources():
        if path.startswith("postroom/web/") and ASKING_HEADERS.search(text):
            found.update(name.lower() for node in ast.walk(ast.parse(text)) for name in _asked_headers(node))
    return found


def _asked_headers(node: ast.AST) -> Iterator[str]:
    """`header(request, b"…")`, `….headers.get("…")`, `….headers["…"]` and `"…" in ….headers`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "header":
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, bytes):
            yield name.value.decode()
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        yield from _texts_of(node.func.value, node.args[:1])
    elif isinstance(node, ast.Subscript):
        yield from _texts_of(node.value, [node.slice])
    elif isinstance(node, ast.Compare):
        yield from _texts_of(node.comparators[0], [node.left])


def _texts_of(value: ast.expr, names: Iterable[ast.expr]) -> Iterator[str]:
    if isinstance(value, ast.Attribute) and value.attr == "headers":
        yield from (str(name.value) for name in names if isinstance(name, ast.Constant))
