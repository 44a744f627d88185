"""What requests carry: the types of bodies and queries, and how they are read from hostile bytes."""

import asyncio
import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.requests import ClientDisconnect, Request

from postroom.accounts import names
from postroom.errors import (
    ApiError,
    BadRequest,
    InvalidMailboxName,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)
from postroom.events.events import Filter
from postroom.mailbox import inboxes

BODY_LIMIT_BYTES = 1024 * 1024
BODY_SECONDS = 60.0
DECODE_IN_LOOP_BYTES = 256 * 1024
PAGE_LIMIT = 100
OFFSET_LIMIT = 2**53
LISTED = r"^[\w.,-]*$"
IS_WHOLE = "is_whole"  # set by the connection once it has all of a request

# Patterns are only described here: the nouns check them, and say in words what is wrong.
DisplayName = Annotated[
    str,
    Meta(
        max_length=names.MAX_CHARACTERS,
        description="The name that From shows.",
        extra_json_schema={"pattern": names.PATTERN},
    ),
]
MailboxName = Annotated[
    str,
    Meta(
        description="The part of the address before the @.",
        examples=["invoices", "support-eu"],
        extra_json_schema={"pattern": inboxes.MAILBOX_NAME},
    ),
]


class NewInbox(Struct, rename="camel", frozen=True):
    mailbox_name: MailboxName
    display_name: DisplayName | None = None
    domain: Annotated[str, Meta(description="A verified domain of the account.")] | None = None


class InboxChange(Struct, rename="camel", frozen=True):
    display_name: DisplayName | UnsetType | None = UNSET
    webhook_url: str | UnsetType | None = UNSET


class NewKey(Struct, rename="camel", frozen=True):
    name: Annotated[
        str,
        Meta(
            max_length=names.MAX_CHARACTERS,
            examples=["ci-runner"],
            extra_json_schema={"pattern": names.GIVEN_PATTERN},
        ),
    ]


EventType = Literal[
    "message.received", "message.sent", "message.failed", "message.bounced", "message.complained"
]
Limit = Annotated[int, Meta(ge=1, description="Page size; above 100 counts as 100.")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_LIMIT, description="How many to skip.")]


class Page(Struct, frozen=True):
    limit: Limit = 50
    offset: Offset = 0

    @property
    def size(self) -> int:
        return min(self.limit, PAGE_LIMIT)


class NewWebhook(Struct, rename="camel", frozen=True):
    url: Annotated[str, Meta(examples=["https://example.com/hooks/mail"])]
    event_types: Annotated[list[EventType], Meta(max_length=20)] | None = None
    secret: Annotated[str, Meta(min_length=16, max_length=200, pattern="^[\\x21-\\x7e]+$")] | None = None


class DeliveryQuery(Struct, rename="camel", frozen=True):
    state: Literal["pending", "delivered", "failed"] | None = None
    limit: Limit = 50
    offset: Offset = 0

    @property
    def size(self) -> int:
        return min(self.limit, PAGE_LIMIT)


class RetryFailed(Struct, frozen=True):
    since: Annotated[datetime, Meta(tz=True, description="Deliveries made since this moment.")]


class WaitQuery(Struct, frozen=True):
    timeout: Annotated[float, Meta(ge=0, le=120, description="Seconds to wait.")] = 60
    after: Annotated[str, Meta(description="An event or message id to start behind.")] | None = None
    sender: Annotated[str, Meta(description="Part of the sender.")] = field(default="", name="from")
    subject: Annotated[str, Meta(description="Part of the subject.")] = ""
    thread_id: str = ""


class NewSuppression(Struct, frozen=True):
    address: Annotated[str, Meta(examples=["someone@example.com"])]


class NewDomain(Struct, frozen=True):
    domain: Annotated[str, Meta(examples=["mail.example.com"])]


class ThreadQuery(Struct, frozen=True):
    is_read: Annotated[bool, Meta(description="false gives the unread ones.")] | None = None
    is_read_alias: bool | None = field(default=None, name="isRead")
    limit: Limit = 50
    offset: Offset = 0

    @property
    def size(self) -> int:
        return min(self.limit, PAGE_LIMIT)

    @property
    def flag(self) -> bool | None:
        return self.is_read_alias if self.is_read is None else self.is_read


class ThreadChange(Struct, frozen=True):
    is_read: bool | UnsetType = UNSET
    is_read_alias: bool | UnsetType = field(default=UNSET, name="isRead")

    @property
    def flag(self) -> bool:
        flag = self.is_read_alias if self.is_read is UNSET else self.is_read
        if flag is UNSET:
            raise BadRequest("is_read is missing: send true or false.", field="is_read")
        return flag


class MessageQuery(Struct, frozen=True):
    direction: Literal["inbound", "outbound"] | None = None
    limit: Limit = 50
    offset: Offset = 0

    @property
    def size(self) -> int:
        return min(self.limit, PAGE_LIMIT)


class EventQuery(Struct, frozen=True):
    after: Annotated[str, Meta(description="The last event that you have.")] | None = None
    limit: Limit = 50
    wait: Annotated[float, Meta(ge=0, le=60, description="Seconds to hold on for an event.")] = 0
    inbox_ids: Annotated[
        str, Meta(pattern=LISTED, description="Only of these inboxes, separated by commas.")
    ] = ""
    event_types: Annotated[
        str, Meta(pattern=LISTED, description="Only of these kinds, separated by commas.")
    ] = ""

    @property
    def size(self) -> int:
        return min(self.limit, PAGE_LIMIT)

    def wanted(self, account_id: str, scope: str | None) -> Filter:
        """A key of one inbox sees that one, whatever it asks for."""
        asked = frozenset(self.inbox_ids.split(",")) - {""}
        kinds = frozenset(self.event_types.split(",")) - {""}
        return Filter(account_id, asked if scope is None else frozenset({scope}), kinds)


DOMAIN_NAME = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")

_ERROR_OF_FIELD: dict[str, type[ApiError]] = {"mailboxName": InvalidMailboxName}
_PATH = re.compile(r"\$\.(\w+)")
_MISSING = re.compile(r"missing required field `(\w+)`")


def read_query(request: Request, kind: type[Struct]) -> Any:
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise explain(error) from None


async def read_json(
    request: Request, kind: type[Struct], limit: int = BODY_LIMIT_BYTES, seconds: float = BODY_SECONDS
) -> Any:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType("Send JSON, with the header Content-Type: application/json.")
    raw = await read_bytes(request, limit, seconds)
    if len(raw) > DECODE_IN_LOOP_BYTES:
        return await asyncio.to_thread(decode, raw, kind)
    return decode(raw, kind)


def decode(raw: bytes, kind: type[Struct]) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise explain(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("The body is not valid JSON.") from None
    except RecursionError:
        raise BadRequest("The JSON is nested too deeply.") from None


async def read_bytes(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """Stops at the limit, whatever Content-Length says, and gives up on a sender that is too slow."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    if request.scope.get("state", {}).get(IS_WHOLE):  # nothing to wait for
        return await _read_up_to(request, limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read_up_to(request, limit)
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {seconds:g} seconds.") from None


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
    return PayloadTooLarge(f"The body is larger than {limit} bytes.")


def explain(error: msgspec.ValidationError) -> ApiError:
    reason = str(error)
    found = _PATH.search(reason) or _MISSING.search(reason)
    if found is None:
        return BadRequest(f"The body is not as expected: {reason}.")
    field = found[1]
    kind = _ERROR_OF_FIELD.get(field, BadRequest)
    return kind(f"{field} is not valid: {reason.partition(' - at ')[0]}.", field=field)
