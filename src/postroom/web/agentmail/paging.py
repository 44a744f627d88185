"""Pages of /v0: a token names the row after which the next page begins."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from postroom.errors import BadRequest
from postroom.fields import Cursor, Span, read_asked

T = TypeVar("T")

TOKEN_CHARACTERS = 200
LISTS = frozenset(
    ("labels", "from", "to", "subject", "senders", "recipients", "event_types", "usage_types", "rate_types")
)


def collect(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Collect the values of a query. A list is a JSON array, or a name given several times."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        if name not in LISTS:
            named[name] = value
            continue
        named.setdefault(name, []).extend(_values(name, value))
    return named


def _values(name: str, value: str) -> list[str]:
    if not value.startswith("["):
        return [value]
    try:
        return msgspec.json.decode(value, type=list[str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise BadRequest(f"{name} must be a JSON array of strings.", field=name) from None


def span_of(query: Any) -> Span:
    """Reads one row more than asked for, to know whether there is another page."""
    return Span(
        limit=query.limit + 1,
        behind=read_token(query.page_token),
        is_ascending=bool(query.ascending),
        since=read_asked(getattr(query, "after", None), "after"),
        until=read_asked(getattr(query, "before", None), "before"),
    )


def read_token(token: str | None) -> Cursor | None:
    if token is None:
        return None
    try:
        if len(token) > TOKEN_CHARACTERS:
            raise ValueError
        place = msgspec.json.decode(
            base64.b64decode(token.encode("ascii"), b"-_", validate=True), type=Cursor
        )
        if "\0" in place.id or not 0 <= place.at < 2**53:
            raise ValueError
        return place
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        raise BadRequest("page_token is not the next_page_token of a page.", field="page_token") from None


def write_token(place: Cursor) -> str:
    return base64.b64encode(msgspec.json.encode(place), b"-_").decode()


def page(name: str, items: Sequence[Any], limit: int, next_from: Cursor | None) -> dict[str, Any]:
    token = {} if next_from is None else {"next_page_token": write_token(next_from)}
    return {"count": len(items), "limit": limit, name: items, **token}


def cut(found: Sequence[T], limit: int, place: Callable[[T], Cursor]) -> tuple[Sequence[T], Cursor | None]:
    """Return the page, and the row after which the next one begins. `found` was read one row longer."""
    if len(found) <= limit:
        return found, None
    return found[:limit], place(found[limit - 1])


def place_of(row: Any) -> Cursor:
    return Cursor(row.created_at, row.id)


def page_of(
    name: str,
    found: Sequence[T],
    query: Any,
    show: Callable[[T], Any],
    place: Callable[[T], Cursor] = place_of,
) -> dict[str, Any]:
    """Takes a list read one row longer."""
    some, behind = cut(found, query.limit, place)
    return page(name, [show(each) for each in some], query.limit, behind)


def part_of(found: Sequence[T], query: Any, place: Callable[[T], Cursor] = place_of) -> list[T]:
    """Takes from a short, complete list what a query would have read."""
    span = span_of(query)
    keyed = sorted(((place(each).at, place(each).id, each) for each in found), key=lambda row: row[:2])
    if span.behind is not None:
        behind = span.behind.at, span.behind.id
        keyed = [row for row in keyed if (row[:2] > behind if span.is_ascending else row[:2] < behind)]
    return [each for _, _, each in (keyed if span.is_ascending else reversed(keyed))]
