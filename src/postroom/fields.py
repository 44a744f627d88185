"""Fields shared by requests and answers of many operations, and how times are read from them."""

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from postroom import value_errors
from postroom.clock import to_iso
from postroom.errors import ApiError, BadRequest, InvalidMailboxName
from postroom.limits import LONGEST_PAGE, PAGE

Shown = TypeVar("Shown", bound=Struct)

OFFSET_LIMIT = 2**53

_ERROR_OF_FIELD: dict[str, type[ApiError]] = {"mailboxName": InvalidMailboxName}

Timestamp = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-14T10:05:00.000Z"])
]
AnyJson = Annotated[Raw | None, Meta(description="Any JSON value.")]
Moment = Annotated[datetime, Meta(tz=True, examples=["2026-11-14T10:05:00Z"])]
# Otherwise a number in a query would also be read as a time.
AskedMoment = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-14T10:05:00Z"])
]
Truncated = Annotated[bool, Meta(description="Only when a page is cut short: the next one starts after it.")]
PodId = Annotated[str, Meta(description="The id of a pod, or its clientId.")]
InboxFilter = Annotated[str, Meta(description="Only of this inbox, by its id or address.")]
PodFilter = Annotated[str, Meta(description="Only of this pod, by its id or client id.")]
RetentionDays = Annotated[int, Meta(ge=1, le=3650, description="Days until email is deleted.")]
OwnWebhook = Annotated[str, Meta(description="The inbox's own webhook, instead of the account's.")]
Limit = Annotated[
    int, Meta(ge=1, description=f"Size of the page; above {LONGEST_PAGE} counts as {LONGEST_PAGE}.")
]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_LIMIT, description="How many to skip.")]


class PageQuery(Struct, frozen=True):
    limit: Limit = PAGE
    offset: Offset = 0


class ScopeFilter(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[str, Meta(description="Only of this inbox.")] | None = None
    pod_id: Annotated[str, Meta(description="Only of this pod: its id or clientId.")] | None = None


class Cursor(Struct, frozen=True, array_like=True):
    """The position of a row in a list ordered by time and id."""

    at: int
    id: str


class Span(Struct, frozen=True):
    """A page of a list: after a row of it, whatever was added or removed since. Newest first by default."""

    limit: int
    behind: Cursor | None = None
    is_ascending: bool = False
    since: int | None = None  # later than this
    until: int | None = None  # earlier than this


def iso(moment: int | None) -> str | None:
    return None if moment is None else to_iso(moment)


def show_item(kind: type[Shown], item: Struct, /, **given: Any) -> Shown:
    """Return an answer from a stored item: fields of the same name, times as text.

    `given` are fields that the item does not have, or has in another form.
    """
    same = (name for name in kind.__struct_fields__ if name not in given and hasattr(item, name))
    return kind(**{name: _written(name, getattr(item, name)) for name in same}, **given)


def _written(name: str, value: Any) -> Any:
    if name == "at" or name.endswith("_at"):
        return iso(value)
    return list(value) if isinstance(value, tuple) else value


def to_moment(given: datetime | None) -> int | None:
    """Return milliseconds."""
    return None if given is None else int(given.timestamp() * 1000)


def read_asked(asked: str | None, field: str) -> int | None:
    try:
        return None if asked is None else to_moment(msgspec.convert(asked, Moment))
    except msgspec.ValidationError:
        raise BadRequest(
            f"{field} must be a time with its zone: 2026-11-14T10:05:00Z.", field=field
        ) from None


Outbound = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="Relays for its email, such as smtps://user:password@host or ses://…;"
        " null: the pod's or the server's. Shown without the password.",
    ),
]


def explain(error: msgspec.ValidationError, kind: Any = None) -> ApiError:
    """Return the API's error for a value that does not fit its type; it names the field."""
    field, message = value_errors.describe(error, kind)
    if not field:
        return BadRequest(message)
    return _ERROR_OF_FIELD.get(field, BadRequest)(message, field=field)
