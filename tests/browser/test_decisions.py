"""Deciding in a real browser: nobody approves what was not on the screen, nor past a warning by one click."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Open, box_of, press_when_loaded
from tests.browser.house import House
from tests.browser.made_up_dashboard import trick
from tests.browser.test_daily_work import pass_delay, read_to_end, state_of
from tests.browser.test_honest_pages import wait_for
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.needs("chromium")

PHONE: ViewportSize = {"width": 390, "height": 844}


def send(running: House, inbox_id: str, subject: str, **fields: Any) -> str:
    body = {"to": "ann@there.example", "subject": subject, "body": "Please look at this.", **fields}
    headers = {"Idempotency-Key": f"{inbox_id}-{subject}".replace(" ", "-")}
    answer = running.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    message_id: str = answer.json()["id"]
    return message_id


def holding(running: House, name: str) -> str:
    inbox_id = running.new_inbox(name)
    running.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    return inbox_id


def top_of(page: Page, selector: str) -> float:
    return box_of(page.locator(selector).first)["y"]


@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 800}])
def test_buttons_wait_until_the_end_of_all_that_is_decided_was_on_the_screen(
    running: House, open_page: Open, size: ViewportSize
) -> None:
    inbox_id = holding(running, f"reading-{size['width']}")
    lines = "\n".join(f"Line {number}, which nobody may skip." for number in range(200))
    files = [{"filename": "offer.pdf", "contentType": "application/pdf", "data": "JVBERi0x"}]
    message_id = send(running, inbox_id, "Long", body=f"{lines}\nhttps://bank.example", attachments=files)
    page = open_page(f"/app/approvals?inboxId={inbox_id}&message={message_id}", viewport=size)
    approve = page.get_by_role("button", name="Approve and send")
    # Who gets it and how it begins is on the screen before anything is done, and in front of the buttons.
    expect(approve).to_be_disabled()
    assert top_of(page, ".content .facts") < top_of(page, ".letter-text") < top_of(page, ".decide")
    expect(page.get_by_text("In-Reply-To")).not_to_be_visible()
    expect(page.get_by_text(re.compile("^[0-9a-f]{64}$")).first).not_to_be_visible()
    press_when_loaded(page, "a")
    expect(page.locator("#live")).to_have_text("Read to the end of the email first.")
    press_when_loaded(page, "x")
    expect(page.get_by_text("Read to the end to decide.")).to_be_visible()
    page.evaluate("scrollTo(0, 2000)")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(approve).to_be_disabled()
    read_to_end(page)
    expect(approve).to_be_enabled()
    # Other contents in the same place begin anew, whatever of them is on the screen now.
    page.evaluate("""() => {
        scrollTo(0, 0);
        document.querySelector("form[data-decides]").dataset.decides += "0";
        document.dispatchEvent(new CustomEvent("htmx:after:swap"));
    }""")
    expect(approve).to_be_disabled()
    page.reload()  # these were read to their end
    expect(approve).to_be_enabled()
    press_when_loaded(page, "a")
    expect(page.get_by_text("Approved. It is sent in 10 seconds.")).to_be_visible()
    pass_delay(running, message_id, "approved")
    [entry] = [
        each
        for each in running.api.get("/v1/audit?action=message.approved").json()["data"]
        if each["target"] == message_id
    ]
    assert entry["address"] == "127.0.0.1"
    assert "Chrome" in entry["userAgent"]
    assert entry["requestedAt"] < entry["at"]


def test_without_script_the_buttons_come_after_the_text_and_work(running: House, open_page: Open) -> None:
    inbox_id = holding(running, "scriptless")
    message_id = send(running, inbox_id, "Plain", body="word\n" * 200)
    page = open_page(
        f"/app/approvals?inboxId={inbox_id}&message={message_id}", viewport=PHONE, java_script_enabled=False
    )
    assert top_of(page, ".decide") > top_of(page, ".letter-text .end-mark") > PHONE["height"]
    page.get_by_role("button", name="Approve and send").click()
    assert page.get_by_text("Approved. It is sent in 10 seconds.").count() == 1


def test_a_warning_asks_for_a_second_click_and_comes_first_in_the_list(
    running: House, open_page: Open
) -> None:
    inbox_id = holding(running, "warned")
    harmless = send(running, inbox_id, "Older and harmless")
    running.clock.turn(1000)
    running.deliver(raw_mail(message_id="<first@ledger.example>", to="warned@postroom.localhost"), "warned")
    wait_for(lambda: verdicts(running, inbox_id) == ["clean"])
    [thread] = [each for each in threads_of(running, inbox_id) if each["subject"] == "Hi"]
    thread_id = thread["id"]
    message_id = send(running, inbox_id, "Answer", threadId=thread_id, to="accounts@ledger.example")
    stale = open_page(f"/app/approvals?inboxId={inbox_id}&message={message_id}", own=True)
    expect(stale.locator(".findings")).to_have_count(0)
    # Only now somebody writes into the thread what is judged malicious.
    mail = trick()
    mail["In-Reply-To"] = "<first@ledger.example>"
    running.deliver(mail.as_bytes(), "warned", sender="accounts@ledger.example")
    wait_for(lambda: sorted(verdicts(running, inbox_id)) == ["clean", "malicious"])
    page = open_page(f"/app/approvals?inboxId={inbox_id}", viewport=PHONE)
    first, second = page.locator("[data-row]").all()
    expect(first).to_have_attribute("data-row", message_id)
    for said in ("accounts@ledger.example", "warned@postroom.localhost", "Every send waits for approval"):
        expect(first).to_contain_text(said)
    expect(second).to_have_attribute("data-row", harmless)
    first.get_by_role("link").click()
    warning = page.locator(".findings")
    expect(warning).to_contain_text("judged malicious")
    assert top_of(page, ".findings") < top_of(page, ".letter-text")
    expect(page.get_by_text("Submitted by")).to_be_visible()
    for tab in (stale, page):  # a page from before cannot skip it
        read_to_end(tab)
        tab.get_by_role("button", name="Approve and send").click()
        expect(tab.get_by_text("Not approved yet.")).to_be_visible()
        expect(tab.locator(".findings")).to_contain_text("judged malicious")
    assert state_of(running, message_id) == "held"
    rail = page.locator("#rail")
    before = int(rail.get_attribute("data-held") or "")
    page.get_by_role("button", name="Approve despite the warning").click()
    # Badge and list say the same while it can be undone.
    expect(rail).to_have_attribute("data-held", str(before - 1))
    assert state_of(running, message_id) == "held"
    page.goto(f"{running.base_url}/app/approvals")
    expect(page.locator("#rows").get_by_text(f"{before - 1} waiting")).to_be_visible()


def threads_of(running: House, inbox_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.api.get(f"/v1/inboxes/{inbox_id}/threads").json()["data"]
    return found


def verdicts(running: House, inbox_id: str) -> list[str]:
    found = running.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound").json()["data"]
    return [each["verdict"] or "" for each in found]


def rules_of(running: House, inbox_id: str) -> list[str]:
    approval = running.api.get(f"/v1/inboxes/{inbox_id}").json()["approval"] or {"when": []}
    words: list[str] = approval["when"]
    return words


def test_who_has_no_rule_sets_one_by_one_click(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("ruleless")
    for word, label in (("links", "Links"), ("strangers", "New recipients")):
        page = open_page(f"/app/approvals?inboxId={inbox_id}", viewport=PHONE)
        page.get_by_text("Set an approval rule").click()
        page.get_by_role("button", name=label, exact=True).click()
        wait_for(lambda: word in rules_of(running, inbox_id))  # noqa: B023
    assert rules_of(running, inbox_id) == ["links", "strangers"]
    expect(page.get_by_text("Nothing is waiting")).to_be_visible()
