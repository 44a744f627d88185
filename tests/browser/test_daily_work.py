"""Writing and deciding in a real browser: with the keyboard, with files, and never by accident."""

import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from postroom.queue.delayed_actions import DELAY
from tests.browser.conftest import Open, box_of, keep_notices, press_when_loaded
from tests.browser.house import House
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import pages
from tests.raw_mails import raw_mail

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3)]


@pytest.fixture(scope="module")
def inboxes(running: House) -> dict[str, str]:
    return fill(running)


def hold(running: House, inbox_id: str, *subjects: str) -> list[str]:
    """Sends that wait for a person."""
    running.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    held = []
    for subject in subjects:
        body = {"to": "ann@there.example", "subject": subject, "body": "Please look at this."}
        headers = {"Idempotency-Key": subject}
        answer = running.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
        held.append(answer.json()["id"])
    return held


def state_of(running: House, message_id: str) -> str:
    message: dict[str, Any] = running.api.get(f"/v1/messages/{message_id}").json()
    state: str = message["hold"]["state"]
    return state


def test_a_new_mail_is_written_with_a_file_and_enter_does_not_send_it(
    running: House, open_page: Open, inboxes: dict[str, str], tmp_path: Path
) -> None:
    page = open_page(f"/app/mail?inboxId={inboxes['research']}")
    page.keyboard.press("c")
    expect(page.get_by_label("To", exact=True)).to_be_focused()
    page.get_by_label("To", exact=True).fill("support@postroom.localhost")
    page.get_by_label("Subject").fill("By hand")
    text = page.get_by_label("Text")
    buttons, field = box_of(page.get_by_role("toolbar", name="Formatting")), box_of(text)
    assert buttons["y"] + buttons["height"] <= field["y"]
    text.fill("Written by a person.\nTea\nMilk")
    text.evaluate("area => area.setSelectionRange(0, 7)")
    page.get_by_role("button", name="Bold").click()
    text.evaluate("area => area.setSelectionRange(area.value.length - 6, area.value.length)")
    page.get_by_role("button", name="List").click()
    expect(text).to_have_value("**Written** by a person.\n- Tea\n- Milk")
    page.get_by_label("Subject").press("Enter")
    expect(page.get_by_text("Saved as a draft.")).to_be_visible()
    note = tmp_path / "note.txt"
    note.write_text("a note")
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("More files").set_input_files(note)
    page.get_by_role("button", name="Save and preview").click()
    expect(page.locator(".carried")).to_contain_text("note.txt")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Held for approval.")).to_be_visible()
    found = running.api.get(f"/v1/inboxes/{inboxes['research']}/messages").json()["data"]
    [sent] = [each for each in found if each["subject"] == "By hand"]
    assert [file["filename"] for file in sent["attachments"]] == ["note.txt"]
    assert sent["bodyText"].splitlines() == ["**Written** by a person.", "- Tea", "- Milk"]
    assert "<strong>Written</strong>" in sent["bodyHtml"]
    assert "<li>Tea</li><li>Milk</li>" in sent["bodyHtml"]


def test_keys_decide_about_what_is_open_and_go_on_and_several_are_rejected(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("deciding")
    first, second, third, fourth, fifth = hold(
        running, inbox_id, "First", "Second", "Third", "Fourth", "Fifth"
    )
    page = open_page(f"/app/approvals?inboxId={inbox_id}", own=True, viewport={"width": 1280, "height": 500})
    keep_notices(page)
    press = partial(press_when_loaded, page)
    read_to_end(page)
    press("a")  # nobody has opened it: the key only reaches the button
    expect(page.get_by_role("button", name="Approve and send")).to_be_focused()
    assert state_of(running, first) == "held"
    page.get_by_role("link", name="Second").click()
    expect(page.get_by_role("heading", name="Second")).to_be_visible()
    read_to_end(page)
    press("a")
    approved = page.get_by_text("Approved. It is sent in 10 seconds.")
    expect(approved).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Third")).to_be_visible()
    read_to_end(page)
    expect(approved).to_be_in_viewport()
    press("x")
    expect(page.get_by_text("Rejected in 10 seconds. It will not be sent.")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Fourth")).to_be_visible()
    press("z")  # the last one is taken back
    expect(page.get_by_text("Undone. Nothing has changed.")).to_be_in_viewport()
    assert state_of(running, third) == "held"
    page.get_by_role("link", name="Third").click()
    expect(page.get_by_role("heading", name="Third")).to_be_visible()
    read_to_end(page)
    press("x")
    expect(page.get_by_text("Rejected in 10 seconds. It will not be sent.")).to_be_visible()
    pass_delay(running, third, "rejected")
    states = [state_of(running, each) for each in (first, second, third, fourth)]
    assert states == ["held", "approved", "rejected", "held"]
    page.reload()
    page.get_by_label("All on this page").check()
    expect(page.get_by_role("toolbar", name="Bulk actions")).to_contain_text("3 selected")
    page.get_by_label("Note", exact=True).fill("All wrong")
    page.get_by_role("toolbar").get_by_role("button", name="Reject").click()
    expect(page.get_by_text("3 rejected in 10 seconds.")).to_be_in_viewport()
    pass_delay(running, fifth, "rejected")
    assert {state_of(running, each) for each in (first, fourth, fifth)} == {"rejected"}


def read_to_end(page: Page) -> None:
    """Only then can it be decided: the end of each part has to be on the screen."""
    page.wait_for_load_state()
    approve = page.get_by_role("button", name="Approve and send")
    while approve.is_disabled():
        page.evaluate("document.querySelector('[data-read-on]').click()")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pass_delay(running: House, message_id: str, state: str) -> None:
    """On the clock of the server: on that of the browser, ten seconds may be over at any moment."""
    running.clock.turn(DELAY)
    deadline = time.monotonic() + 60
    while state_of(running, message_id) != state:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_with_shift_all_rows_between_two_are_ticked(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("ticking")
    for number in range(5):
        running.clock.turn(1000)
        running.deliver(raw_mail(subject=f"Row {number}"), "ticking")
    page = open_page(f"/app/mail?inboxId={inbox_id}")
    boxes = page.locator("[data-row] input[type=checkbox]")
    boxes.nth(1).check()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(page.locator("[data-row] input:checked")).to_have_count(3)
    expect(page.get_by_role("toolbar", name="Bulk actions")).to_contain_text("3 selected")
    page.get_by_label("Label", exact=True).fill("together")
    page.get_by_role("button", name="Label", exact=True).click()
    expect(page.get_by_text("3 have the label together now.")).to_be_visible()


def test_a_picture_that_the_mail_carries_is_shown_and_a_trick_is_underlined(
    running: House, open_page: Open, inboxes: dict[str, str]
) -> None:
    page = open_page(pages(running)["trick"])
    expect(page.locator(".prose mark").first).to_contain_text("Ignore all previous instructions")
    page.get_by_role("link", name="HTML").click()
    picture = page.frame_locator("iframe.page").get_by_alt_text("Seal")
    expect(picture).to_be_visible()
    assert picture.evaluate("picture => picture.naturalWidth") == 1


def test_the_log_of_events_holds_still_while_somebody_reads_it(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("still")
    running.deliver(raw_mail(subject="Before"), "still")
    page = open_page(f"/app/events?inboxId={inbox_id}")  # of other inboxes, mails of tests before still leave
    page.wait_for_selector("body[data-live]")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.keyboard.press("p")
    running.deliver(raw_mail(subject="While still"), "still")
    expect(page.get_by_role("button", name=re.compile("new$"))).to_be_visible()
    assert page.locator("[data-row]").count() == 1
    page.keyboard.press("p")
    expect(page.locator("[data-row]")).to_have_count(2)


def test_rows_are_as_dense_as_the_reader_chose_and_both_views_of_a_mail_stand_side_by_side(
    running: House, open_page: Open, inboxes: dict[str, str]
) -> None:
    page = open_page("/app/mail")
    row = page.locator("[data-row]").first
    roomy = box_of(row)
    page.keyboard.press("v")
    expect(page.get_by_role("button", name="Compact", pressed=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Compact", pressed=True)).to_be_visible()
    dense = box_of(row)
    assert dense["height"] < roomy["height"]
    page.goto(running.base_url + pages(running)["views"])
    agent = page.get_by_role("region", name="What the agent gets")
    person = page.get_by_role("region", name="What a person sees")
    left, right = box_of(agent), box_of(person)
    assert left["x"] + left["width"] <= right["x"]
    expect(person.locator("iframe")).to_be_visible()
