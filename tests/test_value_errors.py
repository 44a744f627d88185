"""Errors about values are in our words: a library's text never reaches a caller."""

import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from postroom.errors import ApiError
from postroom.value_errors import describe
from postroom.web.agentmail.routes import ROUTES as AGENTMAIL_ROUTES
from postroom.web.requests.request_body import decode, decode_query
from postroom.web.routes import ROUTES
from tests.samples import samples

# Words of the library, and the marks that it puts around types and places.
FOREIGN = ("Expected", "`", "Invalid", "missing required", "regex", "str ", "got ")
KINDS = sorted({route.body for route in (*ROUTES, *AGENTMAIL_ROUTES) if route.body}, key=str)
QUERIES = sorted({route.query for route in (*ROUTES, *AGENTMAIL_ROUTES) if route.query}, key=str)
WRONG: tuple[Any, ...] = (None, 7, 1.5, -1, 10**30, "", "\0", "x" * 200_000, True, [], [7], {}, {"a": []})


class Item(Struct):
    number: int
    way: Literal["in", "out"] = "in"


class Body(Struct):
    name: Annotated[str, Meta(min_length=2, max_length=1000)] = "aa"
    count: Annotated[int, Meta(ge=1, le=5)] = 1
    order: Annotated[Literal["asc", "desc"], Meta(description="q")] | None = None
    items: Annotated[list[Item], Meta(max_length=2)] = []
    to: str | list[str] = ""
    at: Annotated[datetime.datetime, Meta(tz=True)] | None = None
    named: dict[Annotated[str, Meta(max_length=2)], str] = {}
    pair: tuple[int, int] = (1, 1)


@samples(
    ("body", "field", "told"),
    [
        ("[]", "", "The body must be an object, not a list."),
        ('{"name": 1}', "name", "name must be text, not a whole number."),
        ('{"name": "x"}', "name", "name must have at least 2 characters."),
        (f'{{"name": "{"x" * 1001}"}}', "name", "name must have at most 1,000 characters."),
        ('{"count": 9}', "count", "count must be at most 5."),
        ('{"count": 1.5}', "count", "count must be a whole number, not one with a fraction."),
        ('{"order": "up"}', "order", "order is not a known value: 'up'. Use asc or desc."),
        ('{"items": [{}]}', "items", "items[0].number is missing."),
        (
            '{"items": [{"number": 1, "way": "up"}]}',
            "items",
            "items[0].way is not a known value: 'up'. Use in or out.",
        ),
        ('{"to": 1}', "to", "to must be text or a list, not a whole number."),
        ('{"at": "soon"}', "at", "at must be a time with its zone, such as 2026-11-14T10:05:00Z."),
        ('{"named": {"long": ""}}', "named", "a name in named must have at most 2 characters."),
        ('{"pair": [1]}', "pair", "pair must have 2 entries."),
    ],
)
def test_an_error_names_the_field_and_what_it_must_be(body: str, field: str, told: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(body, type=Body)
    assert describe(raised.value, Body) == (field, told)


@samples("kind", [*KINDS, *QUERIES])
def test_no_word_of_the_library_is_in_an_error_of_any_field(kind: type[Struct]) -> None:
    fields = [each.encode_name for each in msgspec.structs.fields(kind)]
    bodies = [{name: wrong} for name in fields for wrong in WRONG]
    told = [explained(kind, body) for body in bodies]
    assert not [each for each in told if any(word in each for word in FOREIGN)]


def explained(kind: type[Struct], body: dict[str, Any]) -> str:
    try:
        decode(msgspec.json.encode(body), kind)
        if kind in QUERIES:
            decode_query(f"{next(iter(body))}=%00x".encode(), kind)
    except ApiError as error:
        return error.message
    return ""
