"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from typing import Annotated

from msgspec import UNSET, Raw, Struct, UnsetType
from starlette.responses import Response

from postroom.events.payload import Payload
from postroom.operations.messages import Message, Truncated
from postroom.outward.orders import SendReceipt

RawMessageOrNothing = Annotated[Response, Message]
RawReceipt = Annotated[Response, SendReceipt]


class EventPage(Struct, rename="camel", frozen=True):
    data: list[Annotated[Raw, Payload]]
    next: str | None
    truncated: Truncated | UnsetType = UNSET
