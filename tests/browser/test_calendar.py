"""The calendar in a real browser: a week and an agenda, on a wide page and on a phone, in light and dark."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, Open
from tests.browser.house import House

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3, turn=0)]
expect.set_options(timeout=PATIENCE)
PHONE = {"width": 390, "height": 844}


def test_a_person_sees_moves_cancels_and_takes_back_what_an_agent_put_into_the_week(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("diary")
    for summary, hour in (("Planning <b>", 15), ("A very long title " * 12, 17)):
        body = {
            "inboxId": inbox_id,
            "summary": summary,
            "start": f"2026-11-20T{hour}:00:00",
            "end": f"2026-11-20T{hour + 1}:00:00",
        }
        made = running.api.post("/v1/calendar-events", json=body)
        assert made.status_code == 201, made.text
    here = f"/app/calendar?inboxId={inbox_id}&day=2026-11-20"
    page = open_page(here)
    planning = page.locator("li.appointment", has_text="Planning <b>")
    expect(planning.get_by_text("New")).to_be_visible()
    page.get_by_role("button", name="Mark all as seen").click()
    expect(planning.get_by_text("New")).to_have_count(0)
    planning.get_by_text("Change").click()
    planning.get_by_label("Start").fill("2026-11-21T10:00")
    planning.get_by_label("End").fill("2026-11-21T10:30")
    planning.get_by_role("button", name="Move").click()
    saturday = page.locator("ol.week > li", has_text="Sat 21 Nov")
    expect(saturday.get_by_text("10:30")).to_be_visible()
    page.get_by_role("link", name="Agenda").click()
    expect(page.locator("ol.agenda")).to_be_visible()
    planning.get_by_text("Change").click()
    planning.get_by_role("button", name="Cancel event").click()
    page.get_by_role("button", name="Undo").click()
    expect(planning).to_be_visible()
    listed = running.api.get("/v1/calendar-events", params={"inboxId": inbox_id, "q": "planning"}).json()
    assert [(each["start"], each["status"]) for each in listed["data"]] == [
        ("2026-11-21T10:00:00+00:00", "confirmed")
    ]
    for scheme in ("light", "dark"):
        phone = open_page(here, viewport=PHONE, color_scheme=scheme)
        expect(phone.get_by_role("heading", name="Calendar")).to_be_visible()
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        expect(phone.locator("li.appointment").first).to_be_visible()
