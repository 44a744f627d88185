"""Common parts of results: a page of a list, and properties made from several fields of a message."""

from typing import Generic, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
FLAGGED = frozenset({"suspicious", "malicious"})


class Page(Struct, Generic[T], frozen=True):
    """`truncated`: it ended early because of its size; the next one begins behind what was given."""

    data: list[T]
    total: int = 0
    truncated: bool = False


class _Examined(Protocol):
    @property
    def direction(self) -> str: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def attachments_read(self) -> bool: ...


class Judged(Struct, frozen=True):
    """A received message is examined before its event is sent; a list shows it at once."""

    @property
    def is_examined(self: _Examined) -> bool:
        """Return whether its sender was judged and its files were read."""
        return self.direction == "outbound" or (self.verdict is not None and self.attachments_read)

    @property
    def is_flagged(self: _Examined) -> bool:
        return self.verdict in FLAGGED
