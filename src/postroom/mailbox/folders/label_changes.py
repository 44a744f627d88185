"""Which labels were added to and removed from messages, and when; kept as long as the messages."""

from collections.abc import Sequence

from msgspec import Struct

from postroom import ids
from postroom.fields import Span
from postroom.storage import pages
from postroom.storage.database import Row, Tx

ARRIVALS = (
    "select id, inbox_id, id as message_id, 'unread' as label, 1 as is_added, created_at from messages"
    " where inbox_id = :inbox_id and direction = 'inbound' and is_imported = 0"
)


class LabelChange(Struct, frozen=True):
    id: str
    inbox_id: str
    message_id: str
    label: str
    is_added: bool
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "LabelChange":
        place = row["inbox_id"], row["message_id"], row["label"]
        return cls(row["id"], *place, bool(row["is_added"]), row["created_at"])


def record(
    tx: Tx, inbox_id: str, label: str, message_ids: Sequence[str], now: int, *, is_added: bool
) -> None:
    tx.many(
        "insert into label_changes (id, inbox_id, message_id, label, is_added, created_at) values :rows",
        [
            (ids.new(ids.LABEL_CHANGE, now), inbox_id, message_id, label, int(is_added), now)
            for message_id in message_ids
        ],
    )


def list_span(tx: Tx, inbox_id: str, span: Span) -> list[LabelChange]:
    """Return changes with arrivals: a received message is `unread` from then on, and has no row for that."""
    rows = [
        *pages.rows_of(tx, "select * from label_changes where inbox_id = :inbox_id", span, inbox_id=inbox_id),
        *pages.rows_of(tx, ARRIVALS, span, inbox_id=inbox_id),
    ]
    found = sorted(map(LabelChange.from_row, rows), key=lambda change: (change.created_at, change.id))
    return (found if span.is_ascending else found[::-1])[: span.limit]
