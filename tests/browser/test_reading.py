"""Reading quickly in a real browser: long threads, the list beside them, and rows that say who takes part."""

import re
import time
from functools import partial
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE, Open, box_of, press_when_loaded, wait_until_live
from tests.browser.house import House
from tests.browser.made_up_dashboard import trick
from tests.raw_mails import html_mail, raw_mail

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3)]
PHONE = {"width": 390, "height": 844}
SHORT, LONG = 4, 20


@pytest.fixture(scope="module")
def reading(running: House) -> str:
    """An inbox with a thread of four short messages and one of twenty, among others."""
    inbox_id = running.new_inbox("reader")
    for subject, count in (("Four short", SHORT), ("Twenty", LONG)):
        for number in range(count):
            running.clock.turn(1000)
            reply = {"in_reply_to": f"<{subject[0]}0@x>"} if number else {}
            filler = "And so on. " * 20 if count == LONG else ""
            text = f"{subject}, number {number}.\n\n{filler}{subject} ends with {number}."
            make = html_mail if number == count - 1 else raw_mail
            raw = make(text, subject=subject, message_id=f"<{subject[0]}{number}@x>", **reply)
            running.deliver(raw, "reader")
    for number in range(25):
        running.clock.turn(1000)
        running.deliver(raw_mail(subject=f"Row {number}", message_id=f"<r{number}@x>"), "reader")
    return inbox_id


def open_thread(page: Page, subject: str) -> None:
    page.get_by_role("link", name=re.compile(subject)).first.click()
    expect(page.get_by_role("heading", name=subject)).to_be_visible()


def test_four_short_messages_fit_on_a_screen_and_one_is_opened_by_a_key_or_a_click(
    running: House, open_page: Open, reading: str
) -> None:
    page = open_page(f"/app/mail?inboxId={reading}")
    press = partial(press_when_loaded, page)
    open_thread(page, "Four short")
    reply = page.get_by_role("link", name="Reply", exact=True)
    expect(page.locator(".one-line")).to_have_count(SHORT - 1)
    expect(page.locator("#subject")).to_be_in_viewport()
    expect(reply).to_be_in_viewport()
    expect(page.get_by_label("Reply", exact=True)).to_have_count(0)
    tabs = page.locator(".message .tabs > a").all_inner_texts()
    assert tabs == ["Text", "HTML", "Agent"]
    page.locator(".message summary", has_text="More").click()
    expect(page.get_by_role("link", name="Headers")).to_be_visible()
    press("p")
    expect(page.locator(".one-line a").last).to_be_focused()
    press("Enter")
    expect(page.locator(".prose", has_text="Four short ends with 2.")).to_be_visible()
    page.locator(".one-line a").first.click()
    expect(page.locator(".prose", has_text="Four short ends with 0.")).to_be_visible()
    expect(page.locator(".one-line")).to_have_count(1)
    page.get_by_role("link", name="Close").first.click()
    expect(page.locator(".one-line")).to_have_count(2)
    press("r")
    expect(page.get_by_label("Reply", exact=True)).to_be_focused()


def test_a_long_thread_loads_what_it_shows_and_a_link_leads_into_the_middle_of_it(
    running: House, open_page: Open, reading: str
) -> None:
    page = open_page(f"/app/mail?inboxId={reading}")
    open_thread(page, "Twenty")
    expect(page.locator(".message")).to_have_count(6)
    assert "Twenty ends with 3." not in page.content()
    expect(page.locator(".message").last).to_be_in_viewport()
    page.get_by_role("link", name=f"{LONG - 6} earlier messages").click()
    expect(page.locator(".message")).to_have_count(LONG)
    assert "Twenty ends with 3." not in page.content()
    found = running.api.get(f"/v1/inboxes/{reading}/messages?limit=100").json()["data"]
    [third] = [each for each in found if each["bodyText"].startswith("Twenty, number 3.")]
    page.goto(f"{running.base_url}/app/messages/{third['id']}")
    expect(page.locator(".prose", has_text="Twenty ends with 3.")).to_be_visible()


def test_a_verdict_is_a_banner_above_the_text_and_warns_before_a_reply(
    running: House, open_page: Open, reading: str
) -> None:
    running.deliver(trick().as_bytes(), "reader")
    page = open_page(f"/app/mail?inboxId={reading}")
    open_thread(page, "New bank details")
    banner, text = box_of(page.locator(".verdict")), box_of(page.locator(".prose").first)
    assert banner["y"] + banner["height"] <= text["y"]
    assert banner["width"] > 400
    warning = page.locator(".warned")
    expect(warning).to_contain_text("look suspicious")
    page.get_by_role("link", name="Reply", exact=True).click()
    expect(warning).to_be_visible()
    page.goto(f"{running.base_url}/app/mail?inboxId={reading}")
    open_thread(page, "Four short")
    expect(warning).to_have_count(0)


def test_the_list_beside_a_thread_is_the_one_it_came_from_and_esc_goes_back_to_its_row(
    running: House, open_page: Open, reading: str
) -> None:
    page = open_page(f"/app/mail?inboxId={reading}&unread=true")
    press = partial(press_when_loaded, page)
    page.get_by_role("link", name=re.compile("Row 2\\b")).click()
    current = page.locator(".beside [aria-current]")
    expect(current).to_contain_text("Row 2")
    expect(current).to_be_in_viewport()
    place = page.locator(".beside").evaluate("list => list.scrollTop")
    assert place > 0
    page.locator(".beside a", has_text="Row 3").click()
    expect(page.get_by_role("heading", name="Row 3")).to_be_visible()
    expect(current).to_contain_text("Row 3")
    assert page.locator(".beside").evaluate("list => list.scrollTop") == place
    toggle = page.locator(".conversation").get_by_role("button", name=re.compile("^Mark as"))
    toggle.click()
    expect(toggle).to_have_text("Mark as unread")
    expect(page.locator(".beside li.read")).to_have_count(0)
    toggle.click()
    expect(current).to_contain_text("Row 3")
    press("Escape")
    page.wait_for_url("**unread=true**")
    expect(page.get_by_role("link", name=re.compile("Row 3\\b"))).to_be_focused()


def test_a_search_stays_beside_what_it_found(running: House, open_page: Open, reading: str) -> None:
    query = {"q": '"number 2"', "inboxId": reading}
    deadline = time.monotonic() + PATIENCE / 1000
    while len(running.api.get("/v1/search", params=query).json()["data"]) < 2:  # the index is a moment behind
        assert time.monotonic() < deadline
        time.sleep(0.02)
    page = open_page(f"/app/search?{urlencode(query)}")
    row = page.locator("[data-row] a", has_text="Four short").last
    found = row.locator("..").get_attribute("data-row")
    row.click()
    expect(page.locator(".beside [data-row]")).to_have_count(2)
    expect(page.locator(".beside [aria-current]")).to_contain_text("Four short")
    press_when_loaded(page, "Escape")
    page.wait_for_url("**/app/search?**")
    expect(page.locator(f"[data-row='{found}'] a")).to_be_focused()


def test_a_result_says_who_wrote_whether_it_is_unread_and_what_was_found_and_names_no_fields(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("seeker")
    running.deliver(trick().as_bytes(), "seeker")
    query = {"q": "bank", "inboxId": inbox_id}
    deadline = time.monotonic() + PATIENCE / 1000
    while not running.api.get("/v1/search", params=query).json()["data"]:  # the index is a moment behind
        assert time.monotonic() < deadline
        time.sleep(0.02)
    row = open_page(f"/app/search?{urlencode(query)}").locator("[data-row]")
    expect(row).to_have_count(1)
    expect(row).to_have_class("unread")
    expect(row.locator(".who-wrote")).to_contain_text("Accounts")
    expect(row.locator(".state")).to_have_text(["malicious"])


def test_a_row_names_everyone_in_the_thread_and_new_rows_are_announced_where_one_reads(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("people")
    priya = {"from": "Priya Raman <priya@blueharbour.example>", "to": "people@postroom.localhost"}
    running.deliver(raw_mail(subject="Paging", message_id="<p0@x>", **priya), "people")
    [thread] = running.api.get(f"/v1/inboxes/{inbox_id}/threads").json()["data"]
    for number in range(20):
        running.deliver(raw_mail(subject=f"Row {number}", message_id=f"<q{number}@x>"), "people")
    running.clock.turn(1000)
    answer = {"to": "priya@blueharbour.example", "threadId": thread["id"], "body": "By label, yes."}
    sent = running.api.post(
        f"/v1/inboxes/{inbox_id}/send", json=answer, headers={"Idempotency-Key": "people"}
    )
    assert sent.status_code == 200
    page = open_page(f"/app/mail?inboxId={inbox_id}", viewport={"width": 1280, "height": 400})
    expect(page.locator(".people").first).to_have_text(re.compile(r"^\s*Priya, people\s+\(2\)\s*$"))
    wait_until_live(page)
    page.mouse.wheel(0, 300)
    page.wait_for_function("scrollY > 200")
    running.deliver(raw_mail(subject="New one", message_id="<new@x>"), "people")
    news = page.get_by_role("button", name="1 new")
    expect(news).to_be_in_viewport()
    news.click()
    expect(page.get_by_role("link", name=re.compile("New one"))).to_be_in_viewport()


# What can be pressed, without links in a sentence; a label counts with its field.
SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, summary, input, select")].filter(each => {
  const {width, height} = each.getBoundingClientRect();
  const isInline = each.localName === "a" && getComputedStyle(each).display === "inline";
  const isInSentence = isInline && each.closest("p, dd");
  const isSeen = each.checkVisibility({visibilityProperty: true}) && width > 1;
  return isSeen && !isInSentence && (width < 24 || height < 24);
}).map(each => each.outerHTML.slice(0, 100))"""
ROWS_IN_SIGHT = """() => {
  const bar = document.querySelector("#rail nav").getBoundingClientRect().top;
  const ends = [...document.querySelectorAll("[data-row]")].map(row => row.getBoundingClientRect().bottom);
  return ends.filter(end => end <= bar).length;
}"""


def test_a_phone_shows_seven_rows_and_one_menu_of_filters_and_all_is_large_enough_for_a_thumb(
    running: House, open_page: Open, reading: str
) -> None:
    page = open_page("/app/mail", viewport=PHONE)
    assert page.evaluate(ROWS_IN_SIGHT) >= 7
    filters = page.get_by_role("navigation", name="Filters")
    expect(filters).to_be_hidden()
    assert "\n".join(page.evaluate(SMALL_TARGETS)) == ""
    page.locator("summary", has_text="Filter").click()
    expect(filters).to_be_visible()
    expect(page.get_by_role("navigation", name="Inboxes")).to_be_visible()
    assert "\n".join(page.evaluate(SMALL_TARGETS)) == ""
    filters.get_by_role("link", name="Unread").click()
    page.wait_for_url("**unread=true**")
    open_thread(page, "Twenty")
    assert "\n".join(page.evaluate(SMALL_TARGETS)) == ""


def test_a_slash_opens_the_search_everywhere_and_help_lists_only_keys_that_work(
    running: House, open_page: Open, reading: str
) -> None:
    page = open_page("/app/settings/audit")
    press = partial(press_when_loaded, page)
    press("?")
    keys = page.get_by_role("dialog").locator("dt:visible")
    assert keys.all_inner_texts() == ["/", "g m"]
    press("Escape")
    press("/")
    page.wait_for_url("**/app/search#q")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.goto(f"{running.base_url}/app/mail?inboxId={reading}")
    press("?")
    assert keys.all_inner_texts() == ["/", "g m", "j k", "Enter", "u", "e", "x", "v", "c"]
    press("Escape")
    open_thread(page, "Four short")
    press("?")
    listed = ["/", "g m", "j k", "Enter", "Esc", "r", "R", "f", "n p", "t", "e s a", "i", "u"]
    assert keys.all_inner_texts() == listed
