"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.responses import Response

from postroom.events.payload import Payload
from postroom.fields import Truncated
from postroom.operations.messages import Message, RawMessage
from postroom.outward.send_stages import SendReceipt

RawMessageOrNothing = Annotated[Response, Message]
RawReceipt = Annotated[Response, SendReceipt]


class EventPage(Struct, rename="camel", frozen=True):
    data: list[Annotated[Raw, Payload]]
    next: str | None
    truncated: Truncated | UnsetType = UNSET


class ShownResult(Struct, rename="camel", frozen=True):
    """A found message, the parts that matched, and a snippet of the first."""

    message: RawMessage
    matched: list[Annotated[str, Meta(description="text, file, subject, filename, from or to")]]
    snippet: str


class SearchPage(Struct, rename="camel", frozen=True):
    data: list[ShownResult]
    next: str | None
