"""The OpenAPI 3.1 description, made from the route table and the handlers' types, so that it cannot drift."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from starlette.responses import Response

from postroom import errors
from postroom.errors import ApiError
from postroom.events.payload import Payload
from postroom.web import server_shapes, shapes
from postroom.web.routing import PUBLIC, SCOPED, Route

VERSION = "1.0.0"
REF = "#/components/schemas/{name}"
ERROR_REF = {"$ref": "#/components/schemas/Error"}
UNLISTED = ("/docs/{file}",)

Json = dict[str, Any]


@lru_cache(maxsize=1)
def render(routes: Sequence[Route], base_url: str) -> bytes:
    return json.dumps(document(routes, base_url), ensure_ascii=False).encode()


def document(routes: Sequence[Route], base_url: str) -> Json:
    listed = [route for route in routes if route.path not in UNLISTED]
    paths: dict[str, Json] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Postroom",
            "version": VERSION,
            "description": "Email for software agents: inboxes, threads and messages over REST.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {
            "schemas": _schemas(listed),
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, pr_…"}
            },
        },
    }


def _operation(route: Route) -> Json:
    operation: Json = {
        "operationId": route.handler.__name__,
        "summary": (route.handler.__doc__ or "").strip(),
        "security": [] if route.scope == PUBLIC else [{"apiKey": []}],
        "responses": _responses(route),
    }
    if parameters := _path_parameters(route) + _query_parameters(route) + _header_parameters(route):
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(route.body)}},
        }
    return operation


def _path_parameters(route: Route) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.path_names
    ]


def _header_parameters(route: Route) -> list[Json]:
    if not route.header:
        return []
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
    return [{"name": route.header, "in": "header", "required": True, "schema": schema}]


def _query_parameters(route: Route) -> list[Json]:
    if route.query is None:
        return []
    schema = msgspec.json.schema_components([route.query], ref_template=REF)[1][route.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": property_schema}
        for name, property_schema in schema["properties"].items()
    ]


def _responses(route: Route) -> Json:
    responses: Json = {str(route.status): _success(route)}
    responses |= {str(status): {"description": "There is nothing."} for status in route.also}
    for status, codes in sorted(_error_codes(route).items()):
        responses[str(status)] = {
            "description": " or ".join(f"`{code}`" for code in codes),
            "content": {"application/json": {"schema": ERROR_REF}},
        }
    return responses


def _success(route: Route) -> Json:
    if route.answer in (type(None), None):
        return {"description": "Done; there is no body."}
    if route.answer is Response:
        return {"description": "As it is.", "content": {_MEDIA_TYPES[route.path]: {"schema": {}}}}
    return {"description": "Done.", "content": {"application/json": {"schema": _ref(route.answer)}}}


_MEDIA_TYPES = {
    "/metrics": "text/plain",
    "/openapi.json": "application/json",
    "/llms.txt": "text/plain",
    "/docs": "text/html",
    "/v1/messages/{message_id}/raw": "message/rfc822",
    "/v1/attachments/{message_id}/{filename}": "*/*",
}


def _error_codes(route: Route) -> dict[int, list[str]]:
    kinds: list[type[ApiError]] = list(route.errors)
    if route.scope != PUBLIC:
        kinds += [errors.Unauthorized, errors.RateLimitExceeded, errors.InternalError, errors.Unavailable]
        kinds += [] if route.scope == SCOPED else [errors.Forbidden]
        kinds += [errors.NotFound] if route.path_names else []
        kinds += [errors.BadRequest] if route.query or route.body else []
        kinds += [errors.RequestTimeout, errors.PayloadTooLarge] if route.body else []
        kinds += [errors.UnsupportedMediaType] if route.body else []
    codes: dict[int, list[str]] = {}
    for kind in kinds:
        codes.setdefault(kind.status, []).append(kind.code)
    return codes


def _ref(kind: Any) -> Json:
    return {"$ref": REF.format(name=kind.__name__)}


def _schemas(routes: Sequence[Route]) -> Json:
    kinds: set[Any] = {kind for route in routes for kind in (route.body, route.answer) if _is_struct(kind)}
    kinds |= {server_shapes.Error, shapes.Message, Payload}
    ordered = sorted(kinds, key=lambda kind: str(kind.__name__))
    return msgspec.json.schema_components(ordered, ref_template=REF)[1]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
