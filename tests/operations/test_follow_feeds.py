"""A calendar that follows a feed has its events, and says why it could not be read."""

from collections.abc import Mapping

from msgspec.structs import replace

from postroom.clock import HOUR
from postroom.external_mailboxes.fetching import Fetched, FetchError
from postroom.mailbox import inbox_calendars
from postroom.operations.calendars.follow_feeds import claim, follow
from tests.conftest import Server

EVENT = (
    "BEGIN:VEVENT\r\nUID:{0}\r\nSUMMARY:{0}\r\nDTSTART:20261120T100000Z\r\nDURATION:PT1H\r\nEND:VEVENT\r\n"
)


class Feed:
    """A server elsewhere, with one answer after the other."""

    def __init__(self, *answers: Fetched | FetchError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        self.asked.append(f"{method} {url}")
        answer = self.answers.pop(0)
        if isinstance(answer, FetchError):
            raise answer
        return answer


def of(*names: str) -> Fetched:
    inside = "".join(map(EVENT.format, names))
    return Fetched(200, f"BEGIN:VCALENDAR\r\n{inside}END:VCALENDAR\r\n".encode())


async def test_a_feed_gives_its_events_and_takes_them_back_and_a_failed_look_changes_nothing(
    server: Server,
) -> None:
    resources, url = server.resources, "https://calendar.example/team.ics"
    inbox_id = await server.new_inbox("hello")
    asked = {"inboxId": inbox_id, "name": "Team"}
    made = (await server.api.post("/v1/calendars", json=asked)).json()
    path = f"/v1/calendars/{made['id']}"
    private = await server.api.patch(path, json={"sourceUrl": "file:///team.ics"})
    assert (private.status_code, private.json()["field"]) == (422, "sourceUrl"), private.text
    default = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"][0]
    refused = await server.api.patch(
        f"/v1/calendars/{default['id']}", json={"sourceUrl": "http://127.0.0.1:2525/a"}
    )
    assert (refused.status_code, refused.json()["field"]) == (400, "sourceUrl")
    feed = Feed(
        of("a", "b"), of("b", "c"), FetchError("No answer."), Fetched(404, b""), Fetched(200, b"<html>")
    )

    async def look() -> tuple[list[str], str | None]:
        calendar = await resources.db.read(inbox_calendars.find, made["id"])
        assert calendar is not None
        await follow(resources, feed, calendar_with(calendar, url))
        listed = await server.api.get(
            "/v1/calendar-events", params={"calendarId": made["id"], "expand": "false"}
        )
        shown = (await server.api.get(path)).json()
        return sorted(each["summary"] for each in listed.json()["data"]), shown["sourceError"]

    assert await look() == (["a", "b"], None)
    assert await look() == (["b", "c"], None)
    assert await look() == (["b", "c"], "No answer.")
    assert await look() == (["b", "c"], "The feed answered 404.")
    found, why = await look()
    assert (found, (why or "")[:31]) == (["b", "c"], "This is not a calendar file: it")
    assert feed.asked[0] == f"GET {url}"


async def test_a_feed_is_due_once_an_hour_and_one_node_takes_it(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    made = (await server.api.post("/v1/calendars", json={"inboxId": inbox_id, "name": "Team"})).json()
    now, db = server.clock.now(), server.resources.db
    calendar = await db.read(inbox_calendars.find, made["id"])
    assert calendar is not None
    await db.write(inbox_calendars.put, calendar_with(calendar, "https://calendar.example/a.ics", now + HOUR))
    assert await db.write(claim, now) is None
    taken = await db.write(claim, now + HOUR)
    assert taken is not None
    assert await db.write(claim, now + HOUR) is None
    assert not await db.write(inbox_calendars.put_off_source, taken, now)


def calendar_with(
    calendar: inbox_calendars.InboxCalendar, url: str, due_at: int | None = None
) -> inbox_calendars.InboxCalendar:
    return replace(calendar, source_url=url, source_due_at=due_at)
