"""What answers carry about finding: results of a search, and usage."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom.operations.messages import RawMessage


class ShownResult(Struct, rename="camel", frozen=True):
    """A message that was found, the parts of it that matched, and a piece of the first of them."""

    message: RawMessage
    matched: list[Annotated[str, Meta(description="text, file, subject, filename, from or to")]]
    snippet: str


class SearchPage(Struct, rename="camel", frozen=True):
    data: list[ShownResult]
    next: str | None


class ShownUsage(Struct, rename="camel", frozen=True):
    """`group` is a day, or the id of an inbox or a pod; `storedBytes` is what was kept at its end."""

    group: str
    received: int
    sent: int
    failed: int
    bounced: int
    complained: int
    held: int
    blocked: int
    stored_bytes: int


class Usage(Struct, rename="camel", frozen=True):
    first: str = msgspec.field(name="from")
    last: str = msgspec.field(name="to")
    data: list[ShownUsage]
