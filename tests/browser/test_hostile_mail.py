"""Hostile mails in a real browser: no request leaves, no script runs, no text leaves its place."""

import smtplib
import time
from collections import Counter
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, Request, TimeoutError

from tests.browser import hostile_mails
from tests.browser.conftest import PATIENCE, SMALL, Open, Watch
from tests.browser.house import House
from tests.shares import PARTS

pytestmark = pytest.mark.needs("chromium")
AT_ONCE = 20
IN_A_THREAD = 6
TABS = ("text", "html", "headers", "raw", "files", "events")
# One after the other in the same frames, since a new one costs more than what it shows.
IN_FRAMES = """async urls => {
  const loads = urls.map((url, at) => new Promise(done => {
    const frame = document.querySelectorAll("iframe")[at] ?? document.createElement("iframe");
    frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
    frame.onload = done;
    frame.src = url;
    if (!frame.isConnected) document.body.append(frame);
  }));
  await Promise.all(loads);
}"""
# As the page itself does when something happened in its thread; a message that has no such tab has none that is
# open.
COME_ANEW = """async ([url, message, tab, patience]) => {
  const hasCome = () => {
    const shown = document.getElementById(message), open = shown?.querySelector(".tabs [aria-current]");
    return shown && (!open || open.href.includes(`tab=${tab}`));
  };
  const end = Date.now() + patience;
  await htmx.ajax("GET", url, {target: "#messages", select: "#messages", swap: "outerHTML"});
  while (!hasCome()) {
    if (Date.now() > end) throw new Error(`${tab} of ${message} has not come`);
    await new Promise(again => setTimeout(again, 20));
  }
}"""
STATE = """() => {
  const count = selector => document.querySelectorAll(selector).length;
  const shown = {messages: count("article.message"), answers: count("#answer")};
  return {pwned: typeof pwned, out: count(".broken-out"), ...shown};
}"""


@dataclass(frozen=True, slots=True)
class Hostile:
    """What lies in the inbox: threads with their messages, oldest first, and which messages have HTML."""

    inbox_id: str
    threads: dict[str, list[str]]
    with_html: list[str]

    @property
    def long_threads(self) -> list[str]:
        return [thread for thread, messages in self.threads.items() if len(messages) > 1]


@pytest.fixture(scope="module")
def hostile(running: House) -> Hostile:
    inbox_id = running.new_inbox("hostile")
    headers, bodies = list(hostile_mails.from_every_header()), list(hostile_mails.from_every_body())
    assert len(headers) + len(bodies) >= 380
    mails = [*headers, *hostile_mails.in_threads([*bodies, *headers], IN_A_THREAD)]
    with smtplib.SMTP("127.0.0.1", running.smtp_port) as smtp:
        for mail in mails:
            smtp.sendmail("mallory@evil.example", ["hostile@postroom.localhost"], mail)
    threads: dict[str, list[str]] = {}
    with_html, found = [], 0
    while found < len(mails):
        page = running.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=100&offset={found}").json()["data"]
        assert page
        found += len(page)
        for message in page:
            threads.setdefault(message["threadId"], []).insert(0, message["id"])
            with_html += [message["id"]] if message["bodyHtml"] else []
    return Hostile(inbox_id, threads, with_html)


def require_untouched(page: Page, path: str, messages: int = 0) -> None:
    """And so many messages are shown, with one place for an answer to them."""
    for frame in page.frames[1:]:
        assert frame.evaluate("typeof pwned") == "undefined", f"{path}: a script ran"
    found = page.evaluate(STATE)
    assert found["pwned"] == "undefined", f"{path}: a script ran"
    assert found["out"] == 0, f"{path}: text left its place"
    assert (found["messages"], found["answers"]) == (messages, min(messages, 1)), path


def look_into_frame(page: Page) -> None:
    """A frame is loaded once somebody scrolls to it."""
    page.evaluate("document.querySelector('iframe')?.scrollIntoView()")
    for frame in page.frames[1:]:
        frame.wait_for_url("**/html")


def load_in_frames(page: Page, urls: list[str]) -> None:
    """And wait until Playwright knows of each document, and that all of it is loaded.

    A frame whose request fails has loaded too, with a page of the browser's own about the error.
    """
    failed: list[str] = []

    def note(request: Request) -> None:
        failed.append(f"{request.url}: {request.failure}")

    page.on("requestfailed", note)
    page.evaluate(IN_FRAMES, urls)
    while missing := set(urls) - {frame.url for frame in page.frames}:
        assert not [each for each in failed if each.startswith(tuple(missing))], failed
        try:
            page.wait_for_event("framenavigated")
        except TimeoutError as error:
            raise AssertionError(missing, failed, [frame.url for frame in page.frames]) from error
    page.remove_listener("requestfailed", note)
    for frame in page.frames:
        if frame.url in urls:
            frame.wait_for_load_state()


@pytest.mark.share
@pytest.mark.parametrize("part", range(PARTS))
def test_what_a_stranger_designed_runs_and_loads_nothing(
    part: int, running: House, open_page: Open, hostile: Hostile, watch: Watch
) -> None:
    """All that has HTML, as the pages show it; of the others there is nothing to design."""
    assert len(hostile.with_html) >= 160
    page = open_page("/app/sessions", viewport=SMALL)
    designed = hostile.with_html[part::PARTS]
    for start in range(0, len(designed), AT_ONCE):
        at_once = designed[start : start + AT_ONCE]
        urls = [f"{running.base_url}/app/messages/{each}/html" for each in at_once]
        load_in_frames(page, urls)
        require_untouched(page, f"frames from {start}")
    watch.forget_complaints()  # here the browser says what it kept from loading


def test_opened_by_itself_it_runs_and_loads_nothing_either(
    running: House, open_page: Open, hostile: Hostile, watch: Watch
) -> None:
    page = open_page("/app/sessions", viewport=SMALL)
    for each in hostile.with_html[::11]:
        page.goto(f"{running.base_url}/app/messages/{each}/html")
        assert page.evaluate("typeof pwned") == "undefined"
        assert page.evaluate("window.origin") == "null"
    watch.forget_complaints()


@pytest.mark.share(2, turn=1)
def test_a_list_shows_it_as_text(running: House, open_page: Open, hostile: Hostile) -> None:
    page = open_page("/app/mail", viewport=SMALL)
    for offset in range(0, len(hostile.threads), 50):
        page.goto(f"{running.base_url}/app/mail?offset={offset}")
        require_untouched(page, f"offset {offset}")
        assert page.locator("main").count() == 1
        assert page.locator("li[data-row]").count() == min(50, len(hostile.threads) - offset)


def wait_until_examined(running: House) -> None:
    deadline = time.monotonic() + 120
    while running.write(lambda tx: tx.one("select 1 as found from examinations limit 1")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.share(2, turn=0)
def test_a_thread_shows_it_as_text(running: House, open_page: Open, hostile: Hostile) -> None:
    """Every mail, most in their text, and each tab of many: opened, or come anew as after news of a thread.

    In every other thread the older ones are open too, in the others they are a line each.
    """
    seen = Counter[str]()
    wait_until_examined(running)  # else a thread comes anew in the middle of a look at it
    page = open_page("/app/mail", viewport=SMALL)
    for number, thread in enumerate(hostile.long_threads):
        messages, tab = hostile.threads[thread], TABS[number % len(TABS)]
        message = messages[-1 - number % 3]
        address = f"{running.base_url}/app/mail/{thread}?message={message}&tab={tab}&earlier=true"
        address += "&open=all" if number // len(TABS) % 2 else ""
        if number % (len(TABS) + 1) == 0:  # each tab in its turn
            page.goto(address)
        else:
            page.evaluate(COME_ANEW, [address, message, tab, PATIENCE])
        if tab == "html":
            look_into_frame(page)
        require_untouched(page, f"{tab} of {message}", len(messages))
        seen[tab] += 1
    assert min(seen[tab] for tab in TABS) >= 10


@pytest.mark.share(2, turn=1)
def test_a_hostile_subject_stays_a_subject(running: House, open_page: Open, hostile: Hostile) -> None:
    """It is the title of the page as well."""
    page = open_page("/app/mail", viewport=SMALL)
    query = f"limit=100&offset={len(hostile.long_threads)}"
    threads = running.api.get(f"/v1/inboxes/{hostile.inbox_id}/threads?{query}").json()["data"]
    named = [each for each in threads if not each["subject"].startswith(("Hostile", "Thread"))]
    assert len(named) == len(hostile_mails.WORDS)
    for each in named:
        page.goto(f"{running.base_url}/app/mail/{each['id']}")
        require_untouched(page, each["subject"], 1)
