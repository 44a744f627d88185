"""The pages as a person uses them, in a real browser."""

import contextlib
import re
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from postroom.clock import DAY
from tests.browser.conftest import PATIENCE, Open, box_of, keep_notices, press_when_loaded, wait_for_events
from tests.browser.house import House, house
from tests.browser.screenshots import sign_in
from tests.conftest import settings
from tests.ports import free_port
from tests.raw_mails import html_mail, raw_mail

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3)]
COUNT_NEWS = (
    "() => { window.news = 0; document.addEventListener('htmx:ws:after:message:incoming', () => news++); }"
)
UNTIL_NEWS = """count => new Promise(done => {
  const look = () => news >= count ? done() : setTimeout(look, 20);
  look();
})"""

# As for news of a thread.
COME_ANEW = """thread => new Promise(done => {
  document.addEventListener("htmx:after:swap", () => done(), {once: true});
  document.body.dispatchEvent(new CustomEvent(`live-${thread}`));
})"""


def wait_until_live(page: Page) -> None:
    page.wait_for_selector("body[data-live]")


def inbox_of_three(running: House, name: str) -> str:
    """Of letters 0 to 2, the last one newest."""
    inbox_id = running.new_inbox(name)
    for number in range(3):
        running.clock.turn(1000)
        running.deliver(raw_mail(f"Text {number}", subject=f"Letter {number}"), name)
    return inbox_id


def path_of(page: Page) -> str:
    return re.sub(r"^https?://[^/]+", "", page.url)


def test_the_first_run_leads_from_a_link_to_a_mail_before_ones_eyes(tmp_path: Path, browser: Browser) -> None:
    with house(tmp_path) as new, contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(new.base_url)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        sign_in(page, new)
        page.get_by_role("button", name="Create inbox").click()
        expect(page.get_by_role("status").filter(has_text="is ready to receive email.")).to_be_visible()
        page.get_by_role("button", name="Send a test email").click()
        page.get_by_role("link", name=re.compile("Your first email")).click()
        expect(page.locator(".prose")).to_contain_text("this email arrived like every other")
        expect(page.locator(".found")).to_have_text("482913")
        page.goto(f"{new.base_url}/app/start")
        page.get_by_role("button", name="Create API key").click()
        token = page.locator(".key-once code").inner_text()
        assert token in page.locator("details", has_text="curl").first.inner_text()
        agent = new.api.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).json()
        assert (agent["scope"], agent["permissions"]) == ("inbox", ["read", "draft", "send"])


def test_a_mail_shows_up_in_the_open_list_and_counts_everywhere(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("live")
    page = open_page(f"/app/mail?inboxId={inbox_id}")
    expect(page.get_by_role("heading", name="No mail yet")).to_be_visible()
    wait_until_live(page)
    running.deliver(raw_mail("Here I am", subject="Right now"), "live")
    expect(page.get_by_role("link", name=re.compile("Right now"))).to_be_visible()
    expect(page.locator("#rail [aria-current] .count")).to_be_visible()


def test_a_page_whose_own_script_comes_late_is_live_all_the_same(running: House, open_page: Open) -> None:
    page = open_page("/app/sessions", own=True)
    wait_until_live(page)
    late: list[Route] = []
    sockets: list[str] = []
    page.route("**/dashboard*.js", lambda route: late.append(route))
    page.on("websocket", lambda socket: sockets.append(socket.url))
    with page.expect_response(re.compile("htmx.*js")):
        page.goto(f"{running.base_url}/app/sessions?again", wait_until="commit")
    wait_for_events(page, late, "the page never asked for its script")
    page.wait_for_timeout(300)  # in which the page would have connected, had it not waited for its script
    assert sockets == []
    late.pop().continue_()
    wait_until_live(page)
    assert "after=" in sockets[0]


def test_new_rows_are_announced_while_somebody_reads_the_list(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("reading")
    running.deliver(raw_mail(subject="Old"), "reading")
    page = open_page(f"/app/mail?inboxId={inbox_id}")
    wait_until_live(page)
    page.keyboard.press("j")
    for number in range(2):
        running.deliver(raw_mail(subject=f"New {number}"), "reading")
    button = page.get_by_role("button", name="2 new")
    expect(button).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(1)
    button.click()
    expect(page.locator("[data-row]")).to_have_count(3)


def test_rows_that_come_late_leave_the_focus_on_its_row(running: House, open_page: Open) -> None:
    inbox_id = inbox_of_three(running, "late")
    page = open_page(f"/app/mail?inboxId={inbox_id}", own=True)
    wait_until_live(page)
    held: list[Route] = []
    page.route("**/app/mail?*", lambda route: route.continue_() if held else held.append(route))
    page.evaluate("document.body.dispatchEvent(new CustomEvent('rows'))")
    # for this event, or for news of a moment before
    wait_for_events(page, held, "the page never asked for its rows")
    page.evaluate("document.querySelector('#rows').dataset.old = 'yes'")
    page.keyboard.press("j")
    page.keyboard.press("j")
    held[0].continue_()
    expect(page.locator("#rows[data-old]")).to_have_count(0)
    expect(page.locator("[data-row]").nth(1).get_by_role("link")).to_be_focused()


def test_rows_that_come_while_a_button_is_pressed_wait_for_the_click(running: House, open_page: Open) -> None:
    inbox_id = inbox_of_three(running, "pressed")
    page = open_page(f"/app/mail?inboxId={inbox_id}", own=True)
    wait_until_live(page)
    held: list[Route] = []
    page.route("**/app/mail?*", lambda route: route.continue_() if held else held.append(route))
    page.evaluate("tell('rows')")
    wait_for_events(page, held, "the page never asked for its rows")
    page.evaluate("document.querySelector('#rows').dataset.old = 'yes'")
    page.get_by_role("link", name=re.compile("Letter 1")).hover()
    page.mouse.down()
    with page.expect_event("requestfinished"):
        held[0].continue_()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.locator("#rows[data-old]")).to_have_count(1)
    page.mouse.up()
    expect(page.get_by_role("heading", name="Letter 1")).to_be_visible()


def test_rows_that_waited_for_a_press_come_when_it_ends(running: House, open_page: Open) -> None:
    inbox_id = inbox_of_three(running, "released")
    page = open_page(f"/app/mail?inboxId={inbox_id}", own=True)
    wait_until_live(page)
    page.evaluate("document.querySelector('#rows').dataset.old = 'yes'")
    page.get_by_role("heading", level=1).hover()
    page.mouse.down()
    with page.expect_response("**/app/mail?*") as answer:
        page.evaluate("tell('rows')")
    answer.value.finished()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.locator("#rows[data-old]")).to_have_count(1)
    page.mouse.up()
    expect(page.locator("#rows[data-old]")).to_have_count(0)


def test_news_that_come_while_a_thread_is_fetched_are_fetched_as_well(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("twice")
    running.deliver(raw_mail("First", subject="Twice", message_id="<first@there.example>"), "twice")
    [thread] = running.api.get(f"/v1/inboxes/{inbox_id}/threads").json()["data"]
    page = open_page(f"/app/mail/{thread['id']}", own=True)
    wait_until_live(page)
    held: list[tuple[Route, APIResponse]] = []

    def hold_the_first(route: Route) -> None:
        if held:
            return route.continue_()
        held.append((route, route.fetch()))

    page.route(f"**/app/mail/{thread['id']}", hold_the_first)
    page.evaluate(COUNT_NEWS)
    for number, text in enumerate(("Second", "Third"), 1):
        running.deliver(raw_mail(text, subject="Re: Twice", in_reply_to="<first@there.example>"), "twice")
        page.evaluate(UNTIL_NEWS, number)
        wait_for_events(page, held, "the page never asked for its messages")
    route, response = held[0]
    route.fulfill(response=response)
    expect(page.locator("article.message")).to_have_count(3)


def test_the_keyboard_is_enough(running: House, open_page: Open) -> None:
    inbox_id = inbox_of_three(running, "keys")
    page = open_page(f"/app/mail?inboxId={inbox_id}")
    press = partial(press_when_loaded, page)
    press("j")
    press("j")
    press("u")
    expect(page.locator("li.read")).to_have_count(1)
    expect(page.locator("li.read a")).to_be_focused()  # the row that was left
    press("x")
    expect(page.locator("li.read input")).to_be_checked()
    press("x")
    press("j")
    press("k")
    press("Enter")
    expect(page.get_by_role("heading", name="Letter 1")).to_be_visible()
    press("Escape")
    expect(page.locator("li.read a")).to_be_focused()
    press("Enter")
    expect(page.get_by_role("heading", name="Letter 1")).to_be_visible()
    press("f")
    expect(page.get_by_label("Text above the forwarded mail")).to_be_focused()
    press("Escape")
    expect(page.get_by_label("Text above the forwarded mail")).not_to_be_focused()
    press("Escape")
    expect(page.locator("li.read a")).to_be_focused()
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press("Escape")
    press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    press("Escape")
    page.evaluate("() => { const now = Date.now(); Date.now = () => now; }")  # they belong together in time
    press("g")
    press("m")
    page.wait_for_url("**/app/mail")


def test_a_person_answers_and_sees_how_far_the_answer_came(running: House, open_page: Open) -> None:
    running.new_inbox("friend")
    running.new_inbox("answering")
    raw = raw_mail("Are you there?", subject="Question", **{"from": "Friend <friend@postroom.localhost>"})
    running.deliver(raw, "answering", sender="friend@postroom.localhost")
    page = open_page("/app/mail", own=True)
    keep_notices(page)
    page.get_by_role("link", name=re.compile("Question")).click()
    wait_until_live(page)
    page.get_by_role("link", name="Reply", exact=True).click()
    page.get_by_label("Reply", exact=True).fill("Yes, I am.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".message.outbound .prose").first).to_have_text("Yes, I am.")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    running.clock.turn(11_000)
    expect(page.locator(".message.outbound .state")).to_have_text("sent")
    page.locator(".message.outbound summary", has_text="More").click()
    page.evaluate(COME_ANEW, re.findall(r"thr_\w+", page.url)[0])  # which leaves the menu open
    page.locator(".message.outbound").get_by_role("link", name="Delivery").click()
    expect(page.get_by_text("Stored in the inbox")).to_be_visible()


def test_signing_out_leaves_nothing_behind(running: House, open_page: Open) -> None:
    page = open_page("/app/sign-in", signed_in=False)
    sign_in(page, running)
    page.goto(f"{running.base_url}/app/sessions")
    page.locator(".who summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_an_expired_session_leads_to_the_sign_in_and_back_again(tmp_path: Path, browser: Browser) -> None:
    with house(tmp_path) as old, contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        sign_in(page, old)
        page.goto(f"{old.base_url}/app/sessions")
        wait_until_live(page)
        old.clock.turn(14 * DAY)  # the open page notices by itself
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.get_by_label("API key").fill(old.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()


def test_an_open_page_survives_a_restart_and_shows_what_came_meanwhile(
    tmp_path: Path, browser: Browser
) -> None:
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        where = f"127.0.0.1:{free_port()}"
        with house(tmp_path, config=settings(tmp_path, HTTP=where)) as first:
            first.new_inbox("hello")
            sign_in(page, first)
            page.goto(f"{first.base_url}/app/mail")
            wait_until_live(page)
        expect(page.locator("#live")).to_contain_text("Not live since")
        with house(tmp_path, config=settings(tmp_path, HTTP=where)) as second:
            second.deliver(raw_mail(subject="After the restart"), "hello")
            expect(page.get_by_role("link", name=re.compile("After the restart"))).to_be_visible()
            expect(page.locator("#live")).to_be_empty()


def test_more_tabs_than_a_browser_has_connections_are_all_live(running: House, open_page: Open) -> None:
    """It has six for one server. Tabs that a page opens share its process."""
    inbox_id = running.new_inbox("tabs")
    first = open_page(f"/app/mail?inboxId={inbox_id}")
    for _ in range(6):
        with first.expect_popup():
            first.evaluate("() => { open(location.href); }")
    tabs = first.context.pages
    assert len(tabs) == 7
    for tab in tabs:
        wait_until_live(tab)
    running.deliver(raw_mail(subject="For all"), "tabs")
    for tab in tabs:
        expect(tab.get_by_role("link", name=re.compile("For all"))).to_have_count(1)


def test_without_script_everything_is_read_and_every_form_works(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("plain")
    running.deliver(raw_mail("Plain words", subject="Without script"), "plain")
    page = open_page("/app/sign-in", signed_in=False, java_script_enabled=False)
    sign_in(page, running)
    page.goto(f"{running.base_url}/app/mail?inboxId={inbox_id}")
    page.get_by_role("button", name="Mark as read").click()
    assert page.locator("li.read").count() == 1
    page.get_by_role("link", name=re.compile("Without script")).click()
    assert page.locator(".prose").inner_text() == "Plain words"
    page.locator(".message summary", has_text="More").click()
    page.get_by_role("link", name="Headers").click()
    assert "Subject: Without script" in page.locator("pre.plain").inner_text()
    page.get_by_role("button", name="Pause sending").click()
    assert page.get_by_text("Paused. No email is sent until you resume.").count() == 1
    page.get_by_role("button", name="Resume sending").click()
    assert page.get_by_text("Resumed.").count() == 1


def test_at_360_pixels_nothing_is_wider_than_the_screen(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("narrow")
    running.api.post("/v1/pods", json={"name": "y" * 100})
    running.deliver(raw_mail("word " * 300 + "x" * 500, subject="Long " * 40 + "x" * 100), "narrow")
    page = open_page(f"/app/mail?inboxId={inbox_id}", viewport={"width": 360, "height": 720})
    paths = ["/app/mail", path_of(page), "/app/start", "/app/sessions", "/app/events", "/app/settings/people"]
    page.get_by_role("link", name=re.compile("Long")).click()
    paths += [path_of(page), f"{path_of(page)}&tab=headers", f"{path_of(page)}&tab=raw"]
    for path in paths:
        page.goto(running.base_url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


DATES = """() => {
  const frame = document.querySelector("ul.threads").getBoundingClientRect();
  const dates = [...document.querySelectorAll("ul.threads .when")];
  const isInside = each =>
    each.scrollWidth <= each.clientWidth + 1 && each.getBoundingClientRect().right <= frame.right;
  return {count: dates.length, outside: dates.filter(each => !isInside(each)).map(each => each.outerHTML)};
}"""


def test_dates_stay_in_the_frame_of_the_list(running: House, open_page: Open) -> None:
    inbox_of_three(running, "dated")
    page = open_page("/app/mail", locale="en-US")
    for width in (1440, 1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        found = page.evaluate(DATES)
        assert found["count"] >= 3
        assert found["outside"] == [], width


NEWSLETTER = """<body bgcolor="#102030"><table {wide} bgcolor="#102030"><tr>
<td><font color="#ffffff">White words on a dark ground</font></td></tr></table></body>"""


@pytest.mark.parametrize("wide", ['width="600"', 'style="width: 600px"'])
def test_a_newsletter_keeps_its_ground_and_fits_a_phone(running: House, open_page: Open, wide: str) -> None:
    name = f"newsletter{len(wide)}"
    inbox_id = running.new_inbox(name)
    running.deliver(html_mail(NEWSLETTER.replace("{wide}", wide), subject="Offers"), name)
    page = open_page(f"/app/mail?inboxId={inbox_id}", viewport={"width": 360, "height": 720})
    page.get_by_role("link", name=re.compile("Offers")).click()
    page.get_by_role("link", name="HTML", exact=True).click()
    inside = page.frame_locator("iframe.page").get_by_text("White words")
    expect(inside).to_have_css("color", "rgb(255, 255, 255)")
    table = page.frame_locator("iframe.page").locator("table")
    expect(table).to_have_css("background-color", "rgb(16, 32, 48)")
    shown, around = box_of(table), box_of(page.locator("iframe.page"))
    assert shown["x"] + shown["width"] <= around["x"] + around["width"] + 1


def test_what_is_ticked_far_below_is_tinted_and_has_its_actions_in_sight(
    running: House, open_page: Open
) -> None:
    inbox_id = running.new_inbox("ticked")
    for number in range(12):
        running.deliver(raw_mail("Text", subject=f"Letter {number}", message_id=f"<{number}@x>"), "ticked")
    page = open_page(f"/app/mail?inboxId={inbox_id}", viewport={"width": 1280, "height": 300})
    rows = page.locator("ul.threads > li")
    ground = "each => getComputedStyle(each).backgroundColor"
    plain = rows.last.evaluate(ground)
    rows.last.get_by_role("checkbox").check()
    expect(page.get_by_role("toolbar", name="Bulk actions")).to_be_in_viewport()
    expect(page.get_by_role("toolbar", name="Bulk actions")).to_contain_text("1 selected")
    assert rows.last.evaluate(ground) != plain


def test_there_is_a_way_back_from_a_thread_on_a_phone_and_from_nowhere(
    running: House, open_page: Open
) -> None:
    inbox_id = inbox_of_three(running, "returning")
    page = open_page(f"/app/mail?inboxId={inbox_id}", viewport={"width": 360, "height": 720})
    page.get_by_role("link", name=re.compile("Letter 1")).click()
    page.get_by_role("link", name="Back to the list").click()
    expect(page.get_by_role("link", name=re.compile("Letter 2"))).to_be_visible()
    page.goto(f"{running.base_url}/app/nowhere")
    page.get_by_role("link", name="Open mail").click()
    expect(page.locator("#rail")).to_be_visible()
