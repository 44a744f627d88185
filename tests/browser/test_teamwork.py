"""People who share an inbox, in a real browser: assign, snooze, done, notes, and two who answer a thread."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, press_when_loaded
from tests.browser.house import House, house
from tests.browser.test_honest_pages import wait_for
from tests.conftest import settings
from tests.raw_mails import raw_mail

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3)]


def new_person(running: House, name: str, page: Page) -> None:
    """Invited, and signed in on this page."""
    body = {"email": f"{name}@people.example", "role": "owner"}
    invited = running.api.post("/v1/users", json=body)
    assert invited.status_code == 201, invited.text
    page.goto(invited.json()["invitationUrl"])
    page.get_by_label("Your name").fill(name.title())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#rail")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Captures what it sends, so that invitations show their links."""
    folder = tmp_path_factory.mktemp("team")
    with house(folder, config=settings(folder, OUTBOUND="capture")) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(running: House) -> str:
    inbox_id = running.new_inbox("team")
    for number, subject in enumerate(("Refund", "Quote", "Hello")):
        running.clock.turn(1000)
        running.deliver(raw_mail(subject=subject, message_id=f"<team{number}@x>"), "team")
    wait_for(lambda: len(threads_of(running, inbox_id)) == 3)
    return inbox_id


def threads_of(running: House, inbox_id: str, **query: str) -> dict[str, str]:
    page = running.api.get("/v1/threads", params={"inboxId": inbox_id, **query}).json()
    return {each["subject"]: each["id"] for each in page["data"]}


def open_thread(page: Page, subject: str) -> None:
    page.get_by_role("link", name=re.compile(subject)).first.click()
    expect(page.get_by_role("heading", name=subject)).to_be_visible()


def test_a_thread_is_assigned_snoozed_and_done_and_leaves_the_list_until_it_is_reopened(
    running: House, open_page: Open, shared: str
) -> None:
    page = open_page("/app/sign-in", signed_in=False)
    new_person(running, "mia", page)
    here = f"{running.base_url}/app/mail?inboxId={shared}"
    page.goto(here)
    open_thread(page, "Refund")
    press_when_loaded(page, "a")
    expect(page.get_by_label("Assignee")).to_be_focused()
    page.get_by_label("Assignee").select_option(label="Mia (you)")
    expect(page.get_by_text("Assigned to Mia.")).to_be_visible()
    page.goto(here)
    page.get_by_role("link", name="Mine", exact=True).click()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("[data-row]", has_text="Refund").get_by_title("Assigned to Mia")).to_be_visible()
    open_thread(page, "Refund")
    press_when_loaded(page, "s")
    page.get_by_role("button", name="In 1 day").click()
    expect(page).to_have_url(re.compile("assignee=me"))  # the list that the thread was opened from
    expect(page.get_by_text("Nothing is assigned to you")).to_be_visible()
    page.get_by_role("link", name="Snoozed").click()
    open_thread(page, "Refund")
    expect(page.get_by_text("until someone writes")).to_be_visible()
    press_when_loaded(page, "e")
    expect(page.get_by_text("Open again.")).to_be_visible()
    page.goto(here)
    expect(page.locator("[data-row]")).to_have_count(3)
    page.locator("[data-row]", has_text="Quote").locator("a").focus()
    press_when_loaded(page, "e")
    expect(page.get_by_text("1 done.")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Open again.")).to_be_visible()
    assert set(threads_of(running, shared, state="open")) == {"Refund", "Quote", "Hello"}
    page.goto(f"{running.base_url}/app/events?kind=thread.snoozed")
    row = page.get_by_role("row", name="thread.snoozed")
    expect(row.get_by_role("link", name="Refund")).to_have_attribute("href", re.compile("^/app/mail/thr_"))
    expect(row).to_contain_text("By Mia")
    expect(row).to_contain_text("team@postroom.localhost")


def test_a_note_stands_between_the_messages_and_is_marked_as_internal(
    running: House, open_page: Open, shared: str
) -> None:
    thread_id = threads_of(running, shared)["Hello"]
    page = open_page(f"/app/mail/{thread_id}?inboxId={shared}")
    press_when_loaded(page, "i")
    page.get_by_label("Note (only").fill("**Wait** for legal.\n<script>alert(1)</script>")
    page.get_by_role("button", name="Add note").click()
    note = page.get_by_role("article", name="Internal note by Ann")
    expect(note).to_contain_text("alert(1)")
    press_when_loaded(page, "i")
    expect(page.get_by_label("Note (only")).to_be_focused()
    page.get_by_label("Note (only").fill("**Wait** for:\n- legal")
    page.get_by_role("button", name="Add note").click()
    expect(note).to_have_count(2)
    expect(note.last.locator("strong", has_text="Wait")).to_be_visible()
    expect(note.last.locator(".item")).to_have_text("legal")
    running.clock.turn(1000)
    answer = raw_mail(subject="Re: Hello", message_id="<team9@x>", in_reply_to="<team2@x>")
    running.deliver(answer, "team")
    expect(page.locator("#messages > article")).to_have_count(4)
    places = page.locator("#messages > article").evaluate_all("all => all.map(each => each.className)")
    assert [name.split()[0] for name in places] == ["message", "note", "note", "sheet"]
    note.first.get_by_role("button", name="Delete").click()
    expect(note).to_have_count(1)


def test_two_who_answer_one_thread_see_each_other_and_the_second_send_asks_once(
    running: House, open_page: Open, shared: str
) -> None:
    thread_id = threads_of(running, shared)["Quote"]
    path = f"/app/mail/{thread_id}?how=reply"
    ann = open_page(path)
    ben = open_page("/app/sign-in", signed_in=False)
    new_person(running, "ben", ben)
    ben.goto(running.base_url + path)
    expect(ben.get_by_text("Ann is writing")).to_be_visible()
    expect(ann.get_by_text("Ben is writing")).to_be_visible()
    ann.get_by_label("Reply", exact=True).fill("We can do that.")
    ann.get_by_role("button", name="Send", exact=True).click()
    expect(ann.get_by_text("Sending in 10 seconds.")).to_be_visible()
    assert ann.get_by_text("is writing").count() == 1  # Ben still is
    ben.get_by_label("Reply", exact=True).fill("No, we cannot.")
    ben.get_by_role("button", name="Send", exact=True).click()
    expect(ben.get_by_text("Someone else replied at")).to_be_visible()
    expect(ben.get_by_text("We can do that.").first).to_be_visible()
    expect(ben.get_by_label("Reply", exact=True)).to_have_value("No, we cannot.")
    sent = running.api.get(f"/v1/threads/{thread_id}").json()
    assert sent["messageCount"] == 2
    ben.get_by_role("button", name="Send", exact=True).click()
    expect(ben.get_by_text("Sending in 10 seconds.")).to_be_visible()
    assert running.api.get(f"/v1/threads/{thread_id}").json()["messageCount"] == 3


def test_a_contact_shows_what_came_and_left_and_stops_email_in_both_directions(
    running: House, open_page: Open, shared: str
) -> None:
    zoe = {"from": "Zoe Lind <zoe@shop.example>", "subject": "Parcel"}
    running.deliver(raw_mail("Your verification code is 482913.", message_id="<zoe0@x>", **zoe), "team")
    wait_for(lambda: "Parcel" in threads_of(running, shared))
    page = open_page("/app/contacts")
    page.get_by_role("searchbox").fill("zoe")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Zoe Lind").click()
    expect(page.get_by_role("heading", name="Zoe Lind")).to_be_visible()
    expect(page.get_by_text("1 received, 0 sent")).to_be_visible()
    expect(page.get_by_text("482913").first).to_be_visible()
    expect(page.locator("[data-row]", has_text="Parcel")).to_be_visible()
    page.get_by_role("button", name="Block", exact=True).click()
    expect(page.get_by_text("is blocked from now on.")).to_be_visible()
    page.get_by_role("button", name="Suppress", exact=True).click()
    expect(page.get_by_role("button", name="Remove suppression")).to_be_visible()
    assert running.api.get("/v1/contacts/zoe@shop.example").json()["suppressed"] == "manual"
    page.locator("[data-row]", has_text="Parcel").locator("a").click()
    page.get_by_role("link", name="Contact", exact=True).click()
    expect(page.get_by_role("heading", name="Zoe Lind")).to_be_visible()


def test_a_chat_gets_the_whole_email_by_choice_and_its_link_needs_a_sign_in(
    running: House, open_page: Open, shared: str
) -> None:
    page = open_page("/app/settings/notifications")
    page.get_by_label("Channel").select_option(label="Microsoft Teams")
    page.get_by_label("URL or email address").fill("http://127.0.0.1:9/teams")
    page.get_by_label("The whole email").check()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("row", name="Microsoft Teams")).to_contain_text("Whole email")
    running.api.patch(f"/v1/inboxes/{shared}", json={"approval": {"when": ["always"]}})
    body = {"to": "zoe@there.example", "subject": "Offer", "body": "For your eyes."}
    headers = {"Idempotency-Key": "offer"}
    held = running.api.post(f"/v1/inboxes/{shared}/send", json=body, headers=headers).json()["id"]
    stranger = open_page(f"/app/approvals?message={held}", signed_in=False)
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()
    assert "For your eyes." not in stranger.content()
    stranger.get_by_label("API key").fill(running.token)
    stranger.locator("#key").press("Enter")
    expect(stranger.get_by_text("For your eyes.").first).to_be_visible()
