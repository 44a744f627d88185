"""Long lists on a page: how much of one is shown, and which part."""

from msgspec import Struct

from postroom import fields

SHOWN = 50


class OffsetQuery(Struct, frozen=True):
    offset: fields.Offset = 0

    def to_page(self) -> fields.PageQuery:
        return fields.PageQuery(SHOWN, self.offset)

    def of(self, total: int) -> dict[str, int]:
        """Return values for the links to the previous and next part."""
        return {"total": total, "offset": self.offset, "limit": SHOWN}
