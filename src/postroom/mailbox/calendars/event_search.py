"""Events by their words: what they are about, where, and with whom."""

from collections.abc import Sequence

from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.storage.database import Tx, all_of
from postroom_mail.search.tokens import fold, split

SEARCHED = 20_000  # events of one search, the latest first


def find(tx: Tx, calendar_ids: Sequence[str], words: Sequence[str]) -> list[CalendarEvent]:
    """Return the events that take place and have all words, by their first start, the latest first.

    Search the stored form, folded, before decoding it: that is cheaper.
    """
    rows = all_of(
        tx,
        "select id, content, starts_at from calendar_events where :wanted and status <> 'cancelled'"
        f" order by starts_at desc, id limit {SEARCHED}",
        "calendar_id",
        sorted(calendar_ids),
    )
    likely = [row["id"] for row in rows if all(word in fold(row["content"]) for word in words)]
    events = [
        CalendarEvent.from_row(row)
        for begin in range(0, len(likely), 500)
        for row in all_of(
            tx, "select * from calendar_events where :wanted", "id", likely[begin : begin + 500]
        )
    ]
    places = {event_id: number for number, event_id in enumerate(likely)}
    return sorted((each for each in events if has(each, words)), key=lambda each: places[each.id])


def has(event: CalendarEvent, words: Sequence[str]) -> bool:
    """Return whether each word begins a word of it, whatever the case and the accents."""
    parts = (event.series.part, *(each.part for each in event.series.overrides))
    said = (
        text
        for part in parts
        for text in (part.summary, part.description, part.location, part.organizer, *map(str, part.attendees))
    )
    tokens = split(" ".join(said))
    return all(any(token.startswith(word) for token in tokens) for word in words)
