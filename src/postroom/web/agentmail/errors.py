"""Errors of /v0: status, name, code, and the field at fault."""

import re

import msgspec
from starlette.responses import Response

from postroom import errors
from postroom.errors import ApiError
from postroom.holding_errors import OriginNotAllowed

INVALID = 400, "ValidationError", "validation_error"
REJECTED = 403, "MessageRejectedError", "message_rejected"
NOT_DELETED = 403, "CannotDeleteError", "cannot_delete"
LIMITED = 403, "LimitExceededError", "limit_exceeded"
CONFLICT = 409, "ConflictError", "conflict"
TOO_MANY = 429, "RateLimitError", "rate_limit_exceeded"

# All other errors keep their status and code.
IN_OTHER_WORDS: dict[type[ApiError], tuple[int, str, str]] = {
    errors.BadRequest: INVALID,
    errors.InvalidMailboxName: INVALID,
    errors.InvalidDomain: INVALID,
    errors.InvalidWebhookUrl: INVALID,
    errors.Unauthorized: (401, "UnauthorizedError", "unauthorized"),
    errors.Forbidden: (403, "ForbiddenError", "missing_permission"),
    errors.AddressTaken: (403, "IsTakenError", "resource_taken"),
    errors.AddressIsAnInbox: (403, "IsTakenError", "resource_taken"),
    errors.DomainTaken: (403, "AlreadyExistsError", "already_exists"),
    errors.ClientIdTaken: (403, "AlreadyExistsError", "already_exists"),
    errors.RecipientNotAllowed: REJECTED,
    OriginNotAllowed: REJECTED,
    errors.RecipientSuppressed: REJECTED,
    errors.FeatureRequiresPaidPlan: REJECTED,
    errors.PodNotEmpty: NOT_DELETED,
    errors.PodHasDomains: NOT_DELETED,
    errors.DefaultPod: NOT_DELETED,
    errors.LastKey: NOT_DELETED,
    errors.ApiKeyLimitReached: LIMITED,
    errors.DraftLimitReached: LIMITED,
    errors.WebhookLimitReached: LIMITED,
    errors.NotFound: (404, "NotFoundError", "not_found"),
    errors.IdempotencyKeyReused: CONFLICT,
    errors.DraftChanged: CONFLICT,
    errors.NothingToDo: CONFLICT,
    errors.RateLimitExceeded: TOO_MANY,
    errors.ColdOutreachLimit: TOO_MANY,
    errors.LoopDetected: TOO_MANY,
}
FIELDS = {
    "mailboxName": "username",
    "displayName": "display_name",
    "addLabels": "add_labels",
    "removeLabels": "remove_labels",
    "replyTo": "reply_to",
    "replyAll": "reply_all",
    "sendAt": "send_at",
    "clientId": "client_id",
    "podId": "pod_id",
    "inboxId": "inbox_id",
    "eventTypes": "event_types",
    "inboxIds": "inbox_ids",
    "podIds": "pod_ids",
    "cursor": "page_token",
}

_named = re.compile(r"\b(?:" + "|".join(FIELDS) + r")\b")


def error_response(error: ApiError, challenge: str) -> Response:
    status, name, code = IN_OTHER_WORDS.get(
        type(error), (error.status, f"{type(error).__name__}Error", error.code)
    )
    message = _named.sub(lambda found: FIELDS[found[0]], error.message)
    body: dict[str, object] = {"name": name, "code": code, "message": message}
    if status == 400:
        field = str(error.extras.get("field", ""))
        path = [FIELDS.get(field, field)] if field else []
        body["errors"] = [{"path": path, "message": message}]
    if "request_id" in error.extras:
        body["request_id"] = error.extras["request_id"]
    return Response(
        msgspec.json.encode(body), status, headers_of(error, challenge), media_type="application/json"
    )


def headers_of(error: ApiError, challenge: str) -> dict[str, str]:
    """Return the headers of an error, in either interface."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 408:
        headers["Connection"] = "close"  # the rest of the body may still come
    if error.status == 401:
        headers["WWW-Authenticate"] = challenge
    if error.status == 405:
        headers["Allow"] = ", ".join(error.allow)
    return headers
