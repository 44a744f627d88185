"""The calendar on the pages: a week and an agenda, answers, moves, cancellations, and what is new."""

import re

import pytest

from tests.api.test_calendar_mail import Writer
from tests.api.test_calendars import MEETING, agenda, create
from tests.api.test_dashboard import signed_in
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone
DAY = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")


async def test_a_person_sees_the_week_answers_moves_and_cancels_with_ten_seconds_to_undo(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    made = await create(server, inboxId=inbox_id, summary="<b>Planning</b>")
    await Writer(server).write(summary="Review <script>")
    async with signed_in(server) as person:
        asked = {"inboxId": inbox_id, "day": "2026-11-20"}
        page = (await person.get("/app/calendar", params=asked)).text
        assert "&lt;b&gt;Planning&lt;/b&gt;" in page, page[page.index("<main") :][:3000]
        assert "<script>" not in page.partition("<main")[2].replace("<script nonce", "")
        assert page.count(">New<") == 2
        (invited,) = (each for each in await agenda(server, inbox_id, *DAY) if each["organizer"])
        path = f"/app/calendar/{invited['id']}"
        assert (await person.post(f"{path}/answer", data={"response": "accepted"})).status_code == 303
        (invited,) = (each for each in await agenda(server, inbox_id, *DAY) if each["organizer"])
        assert invited["ownResponse"] == "accepted"
        shown = re.findall(
            r'name="eventId" value="(\w+)"', (await person.get("/app/calendar", params=asked)).text
        )
        assert shown == [made["id"]]
        await person.post("/app/calendar/seen", data={"eventId": shown})
        assert ">New<" not in (await person.get("/app/calendar", params={**asked, "view": "agenda"})).text
        own = f"/app/calendar/{made['id']}"
        moved = {"start": "2026-11-20T10:00", "end": "2026-11-20T10:30"}
        assert (await person.post(f"{own}/move", data=moved)).status_code == 303
        refused = await person.post(f"{own}/move", data={**moved, "end": "2026-11-19T10:30"})
        assert refused.status_code == 400
        assert [each["start"] for each in await agenda(server, inbox_id, *DAY)] == [
            "2026-11-20T10:00:00+00:00",
            "2026-11-20T16:00:00+00:00",
        ]
        assert (await person.post(f"{own}/cancel", data={"back": "/app/calendar"})).status_code == 303
        assert "Cancelling" in (await person.get("/app/calendar", params=asked)).text
        assert len(await agenda(server, inbox_id, *DAY)) == 2
        (action,) = re.findall(
            r"/app/delayed/(\w+)/now", (await person.get("/app/calendar", params=asked)).text
        )
        await person.post(f"/app/delayed/{action}/now", data={"back": "/app"})
        assert len(await agenda(server, inbox_id, *DAY)) == 1
        assert (await person.get("/app/calendar", params={"day": "never"})).status_code == 400
    assert MEETING["summary"] == "Planning"
