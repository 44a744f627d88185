"""Reads requests from hostile bytes: limits of size and time, JSON and queries into their types."""

import asyncio
import functools
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, HTTPConnection, Request

from postroom import limits
from postroom.errors import (
    BadRequest,
    HeadersTooLarge,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)
from postroom.fields import explain
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.web import scope_filters
from postroom_mail.mime.parsing_cost import find_json_excess

BODY_SECONDS = 60.0
DECODE_IN_LOOP_BYTES = 64 * 1024
SHORT_QUERY_BYTES = 200
UNQUOTE_IN_LOOP_BYTES = 2_000
SMALL_DIGITS = 5  # of its length: less than 100 kB
HEADERS = "postroom.headers"
NONE_YET: tuple[None, dict[bytes, bytes]] = (None, {})
IS_WHOLE = "is_whole"  # set by the connection once a request is complete


def header(request: HTTPConnection, name: bytes) -> str:
    """Return the first header of that name, given in lower case; empty if there is none."""
    scope = request.scope
    source, known = scope.get(HEADERS, NONE_YET)
    if source is not scope["headers"]:  # a request derived from another one has its own
        known = dict(reversed(scope["headers"]))
        scope[HEADERS] = scope["headers"], known
    value: bytes = known.get(name, b"")
    return value.decode("latin-1")


def require_idempotency_key(request: Request) -> str:
    return idempotency.require_key(header(request, b"idempotency-key"))


def has_short_query(request: HTTPConnection) -> bool:
    """Return whether a query is short enough to be decoded in the event loop, even if it is all escapes."""
    return len(request.scope["query_string"]) <= UNQUOTE_IN_LOOP_BYTES


def require_short_query(request: HTTPConnection, most: int = UNQUOTE_IN_LOOP_BYTES) -> None:
    """Require a short query, at addresses that take no others: pages, streams."""
    if len(request.scope["query_string"]) > most:
        raise HeadersTooLarge(f"The query of this URL is longer than {most} bytes.")


async def require_scope_filters_taken(request: HTTPConnection, kind: type[Struct] | None) -> None:
    """Require the type of the query to take each filter given, on every route: none is ignored."""
    raw: bytes = request.scope["query_string"]
    if len(raw) > UNQUOTE_IN_LOOP_BYTES:
        await pools.COMPOSING.run(check_scope_filters, raw, kind)
    elif raw:
        (_recall_boundaries if len(raw) <= SHORT_QUERY_BYTES else check_scope_filters)(raw, kind)


def check_scope_filters(raw: bytes, kind: type[Struct] | None) -> None:
    named = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    scope_filters.require_taken((name for name, _ in named), kind)


_recall_boundaries = functools.lru_cache(maxsize=1_000)(check_scope_filters)


async def read_query(request: Request, kind: type[Struct]) -> Any:
    """Read the query. Short ones are cached: most are repeated."""
    raw: bytes = request.scope["query_string"]
    if len(raw) <= SHORT_QUERY_BYTES:
        return _recall_query(raw, kind)
    if len(raw) <= UNQUOTE_IN_LOOP_BYTES:
        return decode_query(raw, kind)
    return await pools.COMPOSING.run(decode_query, raw, kind)


def decode_query(raw: bytes, kind: type[Struct]) -> Any:
    """Decode a query. A page size above the limit is reduced to it."""
    collect = getattr(kind, "collect", dict)  # if a name may occur more than once
    named = collect(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))
    try:
        query = msgspec.convert(named, kind, strict=False)
    except msgspec.ValidationError as error:
        raise explain(error, kind) from None
    if getattr(query, "limit", 0) > limits.LONGEST_PAGE:
        return msgspec.structs.replace(query, limit=limits.LONGEST_PAGE)
    return query


_recall_query = functools.lru_cache(maxsize=1_000)(decode_query)


def require_json_type(request: HTTPConnection) -> None:
    content_type = header(request, b"content-type").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType("Send JSON, with the header Content-Type: application/json.")


async def read_json(
    request: Request, kind: type[Struct], limit: int = limits.REQUEST_BYTES, seconds: float = BODY_SECONDS
) -> Any:
    require_json_type(request)
    raw = await read_bytes(request, limit, seconds)
    if len(raw) > DECODE_IN_LOOP_BYTES:
        return await pools.COMPOSING.run(decode, raw, kind)
    return decode(raw, kind)


async def read_optional(request: Request, kind: type[Struct]) -> Any:
    """Read the body, which may be missing as a whole."""
    declared = header(request, b"content-length")
    if declared in ("", "0") and not header(request, b"transfer-encoding"):
        return kind()
    return await read_json(request, kind)


def decode(raw: bytes, kind: type[Struct]) -> Any:
    require_bounded(raw)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise explain(error, kind) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("The body is not valid JSON.") from None
    except RecursionError:
        raise BadRequest("The JSON is nested too deeply.") from None


def require_bounded(raw: bytes) -> None:
    """Raise BadRequest if the JSON has too many values or nests too deeply."""
    excess = find_json_excess(raw)
    if excess is not None:
        raise BadRequest(f"The JSON {excess}.")


def is_small(request: Request) -> bool:
    """Return whether a body is small enough to be read before the caller is verified."""
    declared = header(request, b"content-length")
    return declared.isdecimal() and len(declared) <= SMALL_DIGITS


async def read_bytes(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """Stops at the limit, whatever Content-Length says, and gives up on slow senders."""
    declared = header(request, b"content-length")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    if request.scope.get("state", {}).get(IS_WHOLE):  # nothing to wait for
        return await _read_up_to(request, limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read_up_to(request, limit)
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {seconds:g} seconds. Send it again.") from None


async def _read_up_to(request: Request, limit: int) -> bytes:
    chunks: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        has_more = message.get("more_body", False)
    return b"".join(chunks)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {limit} bytes. Send less in one request.")
