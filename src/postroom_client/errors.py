"""What can go wrong, one exception per error code of the interface."""

from collections.abc import Mapping
from typing import Any

import msgspec


class PostroomError(Exception):
    """`code` is for programs, `message` for people; `extras` holds what else the answer named."""

    code = "error"
    status = 0

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        extras: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.status = type(self).status if status is None else status
        self.extras = dict(extras or {})
        self.retry_after = retry_after

    def to_json(self) -> dict[str, Any]:
        waiting = {} if self.retry_after is None else {"retryAfter": self.retry_after}
        return {"error": self.code, "message": self.message, **self.extras, **waiting}


class ConnectionFailed(PostroomError):
    """No answer came: the server is away, or the network between."""

    code = "connection_failed"


class InvalidAnswer(PostroomError):
    """What came back is not this interface's."""

    code = "invalid_answer"


class StreamRefused(PostroomError):
    """The stream answered a subscription with an error."""

    code = "stream_refused"


class BadRequest(PostroomError):
    code, status = "bad_request", 400


class InvalidMailboxName(PostroomError):
    code, status = "invalid_mailbox_name", 400


class InvalidDomain(PostroomError):
    code, status = "invalid_domain", 400


class MissingIdempotencyKey(PostroomError):
    code, status = "missing_idempotency_key", 400


class NoWebhookUrl(PostroomError):
    code, status = "no_webhook_url", 400


class Unauthorized(PostroomError):
    code, status = "unauthorized", 401


class Forbidden(PostroomError):
    code, status = "forbidden", 403


class InvalidSignature(PostroomError):
    code, status = "invalid_signature", 403


class RecipientNotAllowed(PostroomError):
    code, status = "recipient_not_allowed", 403


class FeatureRequiresPaidPlan(PostroomError):
    code, status = "feature_requires_paid_plan", 403


class NotFound(PostroomError):
    code, status = "not_found", 404


class MethodNotAllowed(PostroomError):
    code, status = "method_not_allowed", 405


class RequestTimeout(PostroomError):
    code, status = "request_timeout", 408


class AddressTaken(PostroomError):
    code, status = "address_taken", 409


class DomainTaken(PostroomError):
    code, status = "domain_taken", 409


class NameTaken(PostroomError):
    code, status = "name_taken", 409


class FirstAccountStays(PostroomError):
    code, status = "first_account", 409


class QuotaExceeded(PostroomError):
    code, status = "quota_exceeded", 507


class ClientIdTaken(PostroomError):
    code, status = "client_id_taken", 409


class PodNotEmpty(PostroomError):
    code, status = "pod_not_empty", 409


class PodHasDomains(PostroomError):
    code, status = "pod_has_domains", 409


class DefaultPod(PostroomError):
    code, status = "default_pod", 409


class LastKey(PostroomError):
    code, status = "last_key", 409


class NothingToDo(PostroomError):
    code, status = "nothing_to_do", 409


class NotHeld(PostroomError):
    code, status = "not_held", 409


class ContentChanged(PostroomError):
    code, status = "content_changed", 409


class DraftChanged(PostroomError):
    code, status = "draft_changed", 409


class PayloadTooLarge(PostroomError):
    code, status = "payload_too_large", 413


class UnsupportedMediaType(PostroomError):
    code, status = "unsupported_media_type", 415


class ApiKeyLimitReached(PostroomError):
    code, status = "api_key_limit_reached", 422


class DraftLimitReached(PostroomError):
    code, status = "draft_limit_reached", 422


class IdempotencyKeyReused(PostroomError):
    code, status = "idempotency_key_reused", 422


class InvalidWebhookUrl(PostroomError):
    code, status = "invalid_webhook_url", 422


class NoText(PostroomError):
    code, status = "no_text", 422


class RecipientSuppressed(PostroomError):
    code, status = "recipient_suppressed", 422


class RateLimitExceeded(PostroomError):
    code, status = "rate_limit_exceeded", 429


class ColdOutreachLimit(PostroomError):
    code, status = "cold_outreach_limit", 429


class LoopDetected(PostroomError):
    code, status = "loop_detected", 429


class HeadersTooLarge(PostroomError):
    code, status = "headers_too_large", 431


class InternalError(PostroomError):
    code, status = "internal_error", 500


class WebhookFailed(PostroomError):
    code, status = "webhook_failed", 502


class Unavailable(PostroomError):
    code, status = "unavailable", 503


BY_CODE: dict[str, type[PostroomError]] = {kind.code: kind for kind in PostroomError.__subclasses__()}


def from_answer(status: int, content: bytes, retry_after: int | None) -> PostroomError:
    """Reads an error answer; one that is not ours, say from a proxy, still says what it was."""
    try:
        body = msgspec.json.decode(content, type=dict[str, Any])
        code, message = str(body.pop("error")), str(body.pop("message"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return InvalidAnswer(
            f"The server answered {status}, in words that are not Postroom's.",
            status=status,
            retry_after=retry_after,
        )
    kind = BY_CODE.get(code, PostroomError)
    return kind(message, code=code, status=status, extras=body, retry_after=retry_after)
