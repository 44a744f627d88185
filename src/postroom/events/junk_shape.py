"""What an event says of junk, in the names of events."""

from msgspec import Struct, structs

from postroom.mailbox.documents import Junk, JunkReason


class EventJunk(Struct, frozen=True):
    """How likely the message is junk, and why."""

    score: float
    is_junk: bool
    reasons: list[JunkReason]

    @classmethod
    def of(cls, junk: Junk | None) -> "EventJunk | None":
        return None if junk is None else cls(*structs.astuple(junk))
