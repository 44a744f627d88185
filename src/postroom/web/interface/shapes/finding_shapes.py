"""What answers carry about finding: results of a search, and usage."""

from typing import Annotated

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
