"""The error table of the interface, one class a row."""

from collections.abc import Sequence
from typing import ClassVar

STORE_AWAY = "The store of large mails does not answer."


class ApiError(Exception):
    """An answer other than success: a status, a code for programs and a sentence for people."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(
        self, message: str, *, retry_after: int | None = None, allow: Sequence[str] = (), **extras: object
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.allow = allow
        self.extras = extras

    def to_json(self) -> dict[str, object]:
        return {"error": self.code, "message": self.message, **self.extras}


class BadRequest(ApiError):
    status, code = 400, "bad_request"


class InvalidMailboxName(ApiError):
    status, code = 400, "invalid_mailbox_name"


class NoWebhookUrl(ApiError):
    status, code = 400, "no_webhook_url"


class InvalidDomain(ApiError):
    status, code = 400, "invalid_domain"


class MissingIdempotencyKey(ApiError):
    status, code = 400, "missing_idempotency_key"


class Unauthorized(ApiError):
    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    status, code = 403, "forbidden"


class FeatureRequiresPaidPlan(ApiError):
    status, code = 403, "feature_requires_paid_plan"


class InvalidSignature(ApiError):
    status, code = 403, "invalid_signature"


class RecipientNotAllowed(ApiError):
    status, code = 403, "recipient_not_allowed"


class NotFound(ApiError):
    status, code = 404, "not_found"


class MethodNotAllowed(ApiError):
    status, code = 405, "method_not_allowed"


class RequestTimeout(ApiError):
    status, code = 408, "request_timeout"


class AddressTaken(ApiError):
    status, code = 409, "address_taken"


class DomainTaken(ApiError):
    status, code = 409, "domain_taken"


class ClientIdTaken(ApiError):
    status, code = 409, "client_id_taken"


class NameTaken(ApiError):
    status, code = 409, "name_taken"


class FirstAccountStays(ApiError):
    status, code = 409, "first_account"


class PodNotEmpty(ApiError):
    status, code = 409, "pod_not_empty"


class PodHasDomains(ApiError):
    status, code = 409, "pod_has_domains"


class DefaultPod(ApiError):
    status, code = 409, "default_pod"


class LastKey(ApiError):
    status, code = 409, "last_key"


class NothingToDo(ApiError):
    status, code = 409, "nothing_to_do"


class NotHeld(ApiError):
    status, code = 409, "not_held"


class ContentChanged(ApiError):
    status, code = 409, "content_changed"


class DraftChanged(ApiError):
    status, code = 409, "draft_changed"


class PayloadTooLarge(ApiError):
    status, code = 413, "payload_too_large"


class UnsupportedMediaType(ApiError):
    status, code = 415, "unsupported_media_type"


class InvalidWebhookUrl(ApiError):
    status, code = 422, "invalid_webhook_url"


class ApiKeyLimitReached(ApiError):
    status, code = 422, "api_key_limit_reached"


class DraftLimitReached(ApiError):
    status, code = 422, "draft_limit_reached"


class NoText(ApiError):
    status, code = 422, "no_text"


class IdempotencyKeyReused(ApiError):
    status, code = 422, "idempotency_key_reused"


class RecipientSuppressed(ApiError):
    status, code = 422, "recipient_suppressed"


class RateLimitExceeded(ApiError):
    status, code = 429, "rate_limit_exceeded"


class ColdOutreachLimit(ApiError):
    status, code = 429, "cold_outreach_limit"


class LoopDetected(ApiError):
    status, code = 429, "loop_detected"


class HeadersTooLarge(ApiError):
    status, code = 431, "headers_too_large"


class InternalError(ApiError):
    status, code = 500, "internal_error"


class WebhookFailed(ApiError):
    status, code = 502, "webhook_failed"


class Unavailable(ApiError):
    status, code = 503, "unavailable"


class QuotaExceeded(ApiError):
    status, code = 507, "quota_exceeded"
