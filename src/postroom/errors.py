"""The error table of the interface, one class per row."""

from collections.abc import Sequence
from typing import ClassVar

STORE_AWAY = "The store of large emails does not answer."


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
    """Malformed JSON, a missing or wrong field or query value, not HTTP."""

    status, code = 400, "bad_request"


class InvalidMailboxName(ApiError):
    """`mailboxName` is missing or breaks the rule."""

    status, code = 400, "invalid_mailbox_name"


class NoWebhookUrl(ApiError):
    """A test of a webhook that is not set."""

    status, code = 400, "no_webhook_url"


class NotAnInvitation(ApiError):
    """An answer to a message without an invitation."""

    status, code = 422, "not_an_invitation"


class NotRedirectable(ApiError):
    """A message that cannot be redirected."""

    status, code = 422, "not_redirectable"


class InvalidDomain(ApiError):
    """Not a verified domain of the account, or not a name that can be added."""

    status, code = 400, "invalid_domain"


class MissingIdempotencyKey(ApiError):
    """A send without `Idempotency-Key`."""

    status, code = 400, "missing_idempotency_key"


class Unauthorized(ApiError):
    """The key is missing, wrong or revoked."""

    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    """The key's scope or permissions do not allow it."""

    status, code = 403, "forbidden"


class FeatureRequiresPaidPlan(ApiError):
    """On the free plan, `replyTo` outside the account."""

    status, code = 403, "feature_requires_paid_plan"


class InvalidSignature(ApiError):
    """An attachment's link has expired or was altered; a post of a mail service has no valid signature."""

    status, code = 403, "invalid_signature"


class Infected(ApiError):
    """clamd found malware in the attachment."""

    status, code = 403, "infected"


class RecipientNotAllowed(ApiError):
    """A policy does not let the inbox write to `recipient`."""

    status, code = 403, "recipient_not_allowed"


class NotFound(ApiError):
    """It does not exist, or belongs to somebody else; also unknown paths."""

    status, code = 404, "not_found"


def no_such(noun: str) -> NotFound:
    """Return the error for an id that does not exist or belongs to somebody else: both look the same."""
    return NotFound(f"No such {noun}. Check its id or name, and the scope of your API key.")


class MethodNotAllowed(ApiError):
    """The path exists, the method does not; `Allow` lists those that do."""

    status, code = 405, "method_not_allowed"


class RequestTimeout(ApiError):
    """The body did not arrive in time (60 s; 600 s for a send)."""

    status, code = 408, "request_timeout"


class AddressTaken(ApiError):
    """The address is in use, or the name is reserved."""

    status, code = 409, "address_taken"


class CatchAllTaken(ApiError):
    """Another inbox receives the email to all other addresses of the domain."""

    status, code = 409, "catch_all_taken"


class DomainTaken(ApiError):
    """The domain is already verified or added, or inboxes still use it."""

    status, code = 409, "domain_taken"


class ClientIdTaken(ApiError):
    """Another pod of the account has this `clientId`."""

    status, code = 409, "client_id_taken"


class NameTaken(ApiError):
    """Another account has this name."""

    status, code = 409, "name_taken"


class TemplateExists(ApiError):
    """Another template of the inbox has this name."""

    status, code = 409, "template_exists"


class FirstAccountStays(ApiError):
    """The first account cannot be deleted (only the command answers this)."""

    status, code = 409, "first_account"


class LegalHold(ApiError):
    """A legal hold on the inbox or the thread keeps what is to be deleted."""

    status, code = 409, "legal_hold"


class PodNotEmpty(ApiError):
    """Inboxes are still in the pod."""

    status, code = 409, "pod_not_empty"


class PodHasDomains(ApiError):
    """Domains are still in the pod."""

    status, code = 409, "pod_has_domains"


class DefaultPod(ApiError):
    """The default pod of an account cannot be deleted."""

    status, code = 409, "default_pod"


class LastKey(ApiError):
    """An account must keep a key that may `manage`."""

    status, code = 409, "last_key"


class AddressIsAnInbox(ApiError):
    """A person's address that an inbox of this server receives or pulls, or the other way round."""

    status, code = 409, "address_is_an_inbox"


class UserExists(ApiError):
    """A user of the account has this address."""

    status, code = 409, "user_exists"


class LastOwner(ApiError):
    """An account must keep an owner who can sign in."""

    status, code = 409, "last_owner"


class NothingToDo(ApiError):
    """No recipient of the message failed or waits; or an attempt is under way."""

    status, code = 409, "nothing_to_do"


class NotHeld(ApiError):
    """The message is not waiting for a decision."""

    status, code = 409, "not_held"


class ContentChanged(ApiError):
    """`contentHash` is not that of the message."""

    status, code = 409, "content_changed"


class DraftChanged(ApiError):
    """A draft is not at the given version, or kept changing while it was sent."""

    status, code = 409, "draft_changed"


class PayloadTooLarge(ApiError):
    """Files above 25 MB in total, or a body above 1 MB elsewhere."""

    status, code = 413, "payload_too_large"


class UnsupportedMediaType(ApiError):
    """Neither JSON nor, where allowed, multipart."""

    status, code = 415, "unsupported_media_type"


class InvalidWebhookUrl(ApiError):
    """Not http or https, or it leads into a forbidden network."""

    status, code = 422, "invalid_webhook_url"


class InvalidTarget(ApiError):
    """The host of a connection or a relay is not valid, or leads into a forbidden network."""

    status, code = 422, "invalid_target"


class UnknownRecipient(ApiError):
    """A posted email without a recipient here; `recipients` are those it names."""

    status, code = 422, "unknown_recipient"


class AliasLimitReached(ApiError):
    """An inbox has 50 aliases."""

    status, code = 422, "alias_limit_reached"


class ConnectionLimitReached(ApiError):
    """An account has 1,000 connections."""

    status, code = 422, "connection_limit_reached"


class ApiKeyLimitReached(ApiError):
    """An inbox or a pod has 20 keys, or the account itself 100."""

    status, code = 422, "api_key_limit_reached"


class UploadLimitReached(ApiError):
    """100 uploads or 100 MB of an account wait to be attached."""

    status, code = 422, "upload_limit_reached"


class DraftLimitReached(ApiError):
    """An inbox has 1,000 drafts."""

    status, code = 422, "draft_limit_reached"


class TemplateLimitReached(ApiError):
    """An inbox has 100 templates."""

    status, code = 422, "template_limit_reached"


class WebhookLimitReached(ApiError):
    """An account has 50 webhooks in its list."""

    status, code = 422, "webhook_limit_reached"


class NoPreview(ApiError):
    """No preview of the attachment: it is not a PDF, JPEG, PNG, GIF or WebP, or cannot be drawn."""

    status, code = 422, "no_preview"


class NoText(ApiError):
    """No text was found in the attachment; the message says why."""

    status, code = 422, "no_text"


class IdempotencyKeyReused(ApiError):
    """The same key with another request."""

    status, code = 422, "idempotency_key_reused"


class RecipientSuppressed(ApiError):
    """An address on the suppression list."""

    status, code = 422, "recipient_suppressed"


class RateLimitExceeded(ApiError):
    """1,000 requests a minute, 10 sends a minute or 200 a day per inbox, 100 new inboxes a day."""

    status, code = 429, "rate_limit_exceeded"


class ColdOutreachLimit(ApiError):
    """An inbox younger than 30 days, and more than 20 strangers a day."""

    status, code = 429, "cold_outreach_limit"


class LoopDetected(ApiError):
    """20 replies within an hour to a sender that answers automatically."""

    status, code = 429, "loop_detected"


class HeadersTooLarge(ApiError):
    """Headers above 64 kB, or a path and query above 16 kB."""

    status, code = 431, "headers_too_large"


class InternalError(ApiError):
    """A bug; give the operator the `request_id`."""

    status, code = 500, "internal_error"


class WebhookFailed(ApiError):
    """The endpoint did not answer a test with success."""

    status, code = 502, "webhook_failed"


class Unavailable(ApiError):
    """The database or the disk cannot be used now; nothing was done."""

    status, code = 503, "unavailable"


class QuotaExceeded(ApiError):
    """The account's storage is full: delete email, or ask the operator for more."""

    status, code = 507, "quota_exceeded"


OUT_OF_SPACE = ("disk is full", "no space left", "quota exceeded", "file too large", STORE_AWAY.lower())


def is_passing(error: BaseException) -> bool:
    """Return whether disk or database is the cause, not the mail."""
    return isinstance(error, Unavailable | OSError) or is_out_of_space(error)


def is_out_of_space(error: BaseException) -> bool:
    """Return whether space ran out, by the text of the error and its cause: each storage has its own type."""
    reasons = f"{error} {error.__cause__}".lower()
    return any(words in reasons for words in OUT_OF_SPACE)
