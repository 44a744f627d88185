"""The OpenAPI 3.1 description, made from the route table and the handlers' types, so that it cannot drift."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from starlette.responses import Response

from postroom import errors
from postroom.errors import ApiError
from postroom.events.payload import Payload
from postroom.limits import VISIBLE_CHARACTERS
from postroom.operations import messages
from postroom.web.interface import server_shapes
from postroom.web.interface.groups import GROUPS, TAGS
from postroom.web.interface.schemas import BINARY, FORM, REF, components, is_struct, ref
from postroom.web.requests.files_body import read_with_files
from postroom.web.requests.request_body import read_optional
from postroom.web.routing import PUBLIC, SCOPED, Route

VERSION = "1.0.0"
ERROR_REF = {"$ref": "#/components/schemas/Error"}
UNLISTED = ("/docs/{group}",)
PATH_NAMES = {
    "address": "The address.",
    "calendar_id": "Id of the calendar, cal_…",
    "calendar_event_id": "Id of the calendar event, cev_…",
    "connection_id": "Id of the connection, con_…",
    "delivery_id": "Id of the delivery, whd_…",
    "file": "Name of the file.",
    "domain_id": "Id of the domain, dom_…",
    "draft_id": "Id of the draft, drf_…",
    "filename": "Name of the file, as the message or the draft lists it.",
    "inbox_id": "Id or address of the inbox.",
    "follow_up_id": "Id of the follow-up, fup_…",
    "key_id": "Id of the key, key_…",
    "message_id": "Id of the message, msg_…",
    "job_id": "Id of the job, job_….",
    "note_id": "Id of the note, note_…",
    "pod_id": "Id of the pod, pod_…, or its clientId.",
    "rule_id": "Id of the rule.",
    "template_id": "Id of the template, tpl_…",
    "thread_id": "Id of the thread, thr_…",
    "user_id": "Id of the user, usr_…",
    "webhook_id": "Id of the webhook, whk_…",
}
IDEMPOTENCY = "A new UUID for each email, the same one for each retry of it: a retry sends nothing twice."

Json = dict[str, Any]

IF_MATCH: Json = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The version you saw, in quotes: another one is 409 `draft_changed`.",
    "schema": {"type": "string", "pattern": '^("[0-9]{1,15}"|[0-9]{1,15}|[*])$'},
}


@lru_cache(maxsize=1)
def render(routes: Sequence[Route], base_url: str) -> bytes:
    return json.dumps(document(routes, base_url), ensure_ascii=False).encode()


def document(routes: Sequence[Route], base_url: str) -> Json:
    listed = [route for route in routes if route.path not in UNLISTED]
    paths: dict[str, Json] = {}
    for route in listed:
        operation = paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
        if links := dict(_links(route, listed)):
            operation["responses"][str(route.status)]["links"] = links
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Postroom",
            "version": VERSION,
            "description": "Email for software agents: inboxes, threads and messages over REST.",
            "contact": {"name": "The operator of this server", "url": base_url},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "x-tagGroups": [{"name": name, "tags": list(tags)} for name, tags in GROUPS.items()],
        "paths": paths,
        "x-errors": [_error(kind) for kind in ApiError.__subclasses__()],
        "components": {
            "schemas": _schemas(listed),
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, pr_…"}
            },
        },
    }


def _error(kind: type[ApiError]) -> Json:
    """Return a row of the table of errors, from which clients and the reference are generated."""
    meaning = (kind.__doc__ or "").strip()
    return {"code": kind.code, "status": kind.status, "name": kind.__name__, "description": meaning}


def _operation(route: Route) -> Json:
    operation: Json = {
        "operationId": route.operation.__name__,
        "summary": _first_line(route),
        "description": (route.operation.__doc__ or "").strip() + ".",
        "tags": [_tag(route)],
        "security": [] if route.scope == PUBLIC else [{"apiKey": []}],
        "x-scope": route.scope,
        "x-permissions": list(route.permissions),
        "responses": _responses(route),
    }
    if parameters := _path_parameters(route) + _query_parameters(route) + _header_parameters(route):
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {
            "required": route.read is not read_optional,
            "content": _request_content(route, route.body),
        }
    return operation


def _first_line(route: Route) -> str:
    return (route.operation.__doc__ or "").strip().partition("\n")[0]


def _tag(route: Route) -> str:
    """Return the noun that a path begins with."""
    return route.segments[1] if route.segments[0] == "v1" else "server"


def _links(made: Route, routes: Sequence[Route]) -> Iterator[tuple[str, Json]]:
    """Yield OpenAPI links: from the answer that created an item to the operations that take its id."""
    if made.method != "POST" or made.status != 201 or not is_struct(made.answer):
        return
    if "id" not in made.answer.__struct_fields__:
        return
    for route in routes:
        if route.path_names and route.path.partition("/{" + route.path_names[-1])[0] == made.path:
            parameters = {route.path_names[-1]: "$response.body#/id"}
            parameters |= {name: f"$request.path.{name}" for name in route.path_names[:-1]}
            yield (
                route.operation.__name__,
                {"operationId": route.operation.__name__, "parameters": parameters},
            )


def _request_content(route: Route, body: Any) -> Json:
    content = {"application/json": {"schema": ref(body)}}
    if takes_files(route):
        content["multipart/form-data"] = {"schema": {"$ref": REF.format(name=f"{body.__name__}{FORM}")}}
    return content


def _path_parameters(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_NAMES[name],
            "schema": {"type": "string"},
        }
        for name in route.path_names
    ]


def _header_parameters(route: Route) -> list[Json]:
    fewest, pattern = (0, "^[!-~]*$") if route.may_lack_header else (1, "^[!-~]+$")
    schema = {"type": "string", "minLength": fewest, "maxLength": VISIBLE_CHARACTERS, "pattern": pattern}
    is_required = not route.may_lack_header
    said = {"description": IDEMPOTENCY} if route.header == "Idempotency-Key" else {}
    named: list[Json] = [
        {"name": route.header, "in": "header", "required": is_required, **said, "schema": schema}
    ]
    return (named if route.header else []) + ([IF_MATCH] if route.is_versioned else [])


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
    if route.is_repeatable:
        responses["200"] = {**_success(route), "description": "It was there, by its clientId; unchanged."}
    responses |= {str(status): _WITHOUT_A_BODY[status] for status in route.also}
    for status, codes in sorted(_error_codes(route).items()):
        responses[str(status)] = {
            "description": " or ".join(f"`{code}`" for code in codes),
            "x-codes": codes,
            "content": {"application/json": {"schema": ERROR_REF}},
        }
    return responses


_WITHOUT_A_BODY: dict[int, Json] = {
    204: {"description": "There is nothing."},
    302: {
        "description": "The store of large emails serves it: follow the link, without the key.",
        "headers": {
            "Location": {
                "description": "A link that works for a while.",
                "required": True,
                "schema": {"type": "string", "format": "uri"},
            }
        },
    },
}


def _success(route: Route) -> Json:
    if route.answer in (type(None), None):
        return {"description": "Done; there is no body."}
    if route.answer is Response:
        media_type = _MEDIA_TYPES[route.path]
        schema = BINARY if route.path in _BYTES else {"type": "object" if "json" in media_type else "string"}
        # Some generators recognise bytes only by this name.
        names = ["application/octet-stream", media_type] if media_type == "*/*" else [media_type]
        return {"description": "As it is.", "content": {name: {"schema": schema} for name in names}}
    return {"description": "Done.", "content": {"application/json": {"schema": ref(route.answer)}}}


_MEDIA_TYPES = {
    "/.well-known/mta-sts.txt": "text/plain",
    "/.well-known/autoconfig/mail/config-v1.1.xml": "application/xml",
    "/calendars/{file}": "text/calendar",
    "/metrics": "text/plain",
    "/openapi.json": "application/json",
    "/llms.txt": "text/plain",
    "/docs": "text/html",
    "/v1/attachments/{message_id}/{filename}/preview": "image/png",
    "/v1/messages/{message_id}/raw": "message/rfc822",
    "/v1/contacts/{address}/export": "application/zip",
    "/v1/attachments/{message_id}/{filename}": "*/*",
}
_BYTES = (
    "/v1/contacts/{address}/export",
    "/v1/messages/{message_id}/raw",
    "/v1/attachments/{message_id}/{filename}",
    "/v1/attachments/{message_id}/{filename}/preview",
)


def _error_codes(route: Route) -> dict[int, list[str]]:
    kinds: list[type[ApiError]] = [*route.errors, errors.BadRequest]  # for a filter that it does not take
    kinds += [errors.MethodNotAllowed] if route.scope == PUBLIC else []
    if route.scope != PUBLIC:
        kinds += [errors.Unauthorized, errors.RateLimitExceeded, errors.InternalError, errors.Unavailable]
        kinds += [errors.Forbidden] if route.scope != SCOPED or route.permissions else []
        kinds += [errors.NotFound] if route.path_names else []
        kinds += [errors.RequestTimeout, errors.PayloadTooLarge] if route.body else []
        kinds += [errors.UnsupportedMediaType] if route.body else []
    codes: dict[int, list[str]] = {}
    for kind in kinds:
        codes.setdefault(kind.status, []).append(kind.code)
    return codes


def _schemas(routes: Sequence[Route]) -> Json:
    bodies = {route.body for route in routes if route.body is not None}
    answers = {route.answer for route in routes if is_struct(route.answer)}
    answers |= {server_shapes.Error, messages.Message, Payload}
    return components(bodies, answers, {route.body for route in routes if takes_files(route)})


def takes_files(route: Route) -> bool:
    return route.body is not None and route.read is read_with_files
