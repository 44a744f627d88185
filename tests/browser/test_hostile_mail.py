"""Hostile mails in a real browser: no request leaves, no script runs, no text leaves its place."""

import os
import smtplib

import pytest
from playwright.sync_api import Page

from tests.browser import hostile_mails
from tests.browser.conftest import Open, Watch
from tests.browser.house import House

pytestmark = pytest.mark.needs("chromium")
AT_ONCE = 48
# One thread in so many is opened as a person would; POSTROOM_TEST_THREADS_APART=1 opens all.
THREADS_APART = int(os.environ.get("POSTROOM_TEST_THREADS_APART", "6"))
IN_FRAMES = """async urls => {
  const loads = urls.map(url => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
    frame.className = "trial";
    frame.onload = done;
    frame.src = url;
    document.body.append(frame);
  }));
  await Promise.all(loads);
}"""


@pytest.fixture(scope="module")
def message_ids(running: House) -> list[str]:
    """All of them in one inbox, as they came in."""
    inbox_id = running.new_inbox("hostile")
    mails = list(hostile_mails.all_mails())
    assert len(mails) >= 300
    with smtplib.SMTP("127.0.0.1", running.smtp_port) as smtp:
        for mail in mails:
            smtp.sendmail("mallory@evil.example", ["hostile@postroom.localhost"], mail)
    found: list[str] = []
    while len(found) < len(mails):
        query = f"limit=100&offset={len(found)}"
        page = running.api.get(f"/v1/inboxes/{inbox_id}/messages?{query}").json()["data"]
        assert page
        found += [message["id"] for message in page]
    return found


def require_untouched(page: Page, path: str) -> None:
    for frame in page.frames:
        assert frame.evaluate("typeof pwned") == "undefined", f"{path}: a script ran"
    assert page.locator(".broken-out").count() == 0, f"{path}: text left its place"


def test_what_a_stranger_designed_runs_and_loads_nothing(
    running: House, open_page: Open, message_ids: list[str], watch: Watch
) -> None:
    page = open_page("/app/sessions")
    for start in range(0, len(message_ids), AT_ONCE):
        page.goto(f"{running.base_url}/app/sessions")
        page.evaluate(
            IN_FRAMES, [f"/app/messages/{each}/html" for each in message_ids[start : start + AT_ONCE]]
        )
        require_untouched(page, f"frames from {start}")
    watch.forget_complaints()  # here the browser says what it kept from loading


def test_opened_by_itself_it_runs_and_loads_nothing_either(
    running: House, open_page: Open, message_ids: list[str], watch: Watch
) -> None:
    page = open_page("/app/sessions")
    for each in message_ids[-7::-13]:
        page.goto(f"{running.base_url}/app/messages/{each}/html")
        assert page.evaluate("typeof pwned") == "undefined"
        assert page.evaluate("window.origin") == "null"
    watch.forget_complaints()


def test_lists_and_threads_show_it_as_text(running: House, open_page: Open, message_ids: list[str]) -> None:
    page = open_page("/app/mail")
    for offset in range(0, len(message_ids), 50):
        page.goto(f"{running.base_url}/app/mail?offset={offset}")
        require_untouched(page, f"offset {offset}")
        assert page.locator("main").count() == 1
    tabs = ("text", "html", "headers", "raw", "files", "events")
    for number, each in enumerate(message_ids[::THREADS_APART]):
        tab = tabs[number % len(tabs)]
        thread = running.api.get(f"/v1/messages/{each}").json()["threadId"]
        page.goto(f"{running.base_url}/app/mail/{thread}?tab={tab}")
        require_untouched(page, f"{tab} of {each}")
        assert page.locator("article").count() == 1
        assert page.locator("#answer").count() == 1
