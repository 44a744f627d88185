"""Calendar files over HTTP: imported into a calendar, and read through its private link."""

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from postroom.errors import InvalidTarget, InvalidWebhookUrl, NotFound, no_such
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars import imported
from postroom.operations.calendars.calendars import hash_token
from postroom.operations.calendars.imported import Imported, ImportedFile
from postroom.processes import pools
from postroom.resources import Resources, Tx
from postroom.web.api.webhooks import require_allowed
from postroom.web.call import Call
from postroom.web.public import Site
from postroom_mail.reading.series import Series
from postroom_mail.writing.series_file import write_feed

MEDIA_TYPE = "text/calendar; charset=utf-8"


async def import_calendar_file(call: Call, calendar_id: str, body: ImportedFile) -> Imported:
    """Import a calendar file (.ics) into a calendar; nobody is notified by email"""
    calendar = await call.resources.db.read(inbox_calendars.get, call.scope, calendar_id)
    objects = await imported.read_file(body.content.encode(errors="replace"))
    actor = call.decider.actor
    return await imported.store(call.resources, call.scope, calendar.id, objects, actor=actor)


async def calendar_feed(site: Site, file: str) -> Response:
    """The calendar of a private link, as a calendar file"""
    token, _, ending = file.rpartition(".")
    if ending != "ics":
        raise no_such("calendar")
    calendar, found = await site.resources.db.read(read_feed, token)
    now = datetime.fromtimestamp(site.resources.now() / 1000, UTC)
    content = await pools.COMPOSING.run(write_feed, calendar.name, found, now)
    headers = {
        "Cache-Control": "private, max-age=300",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": 'attachment; filename="calendar.ics"',
    }
    return Response(content, media_type=MEDIA_TYPE, headers=headers)


def read_feed(tx: Tx, token: str) -> tuple[InboxCalendar, list[Series]]:
    calendar = inbox_calendars.find_by_feed(tx, hash_token(token))
    if calendar is None:
        raise NotFound("No such calendar. Ask for a new link.")
    return calendar, calendar_events.list_newest_series(tx, calendar.id)


async def require_allowed_source(resources: Resources, body: Any) -> dict[str, Any]:
    """Refuse a feed whose URL no webhook could have."""
    if isinstance(body.source_url, str):
        try:
            await require_allowed(resources, body.source_url)
        except InvalidWebhookUrl as error:
            raise InvalidTarget(error.message, field="sourceUrl") from None
    return {}
