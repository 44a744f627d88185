"""One browser for all these tests, and one server for those of a module.

While the browser is open, no other test can run a loop.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    FloatRect,
    Locator,
    Page,
    StorageState,
    ViewportSize,
    expect,
)

from tests.browser.house import House, house
from tests.browser.screenshots import chromium, sign_in

PATIENCE = 60_000  # milliseconds, on a machine that may be busy
expect.set_options(timeout=PATIENCE)
WIDE: ViewportSize = {"width": 1280, "height": 800}
SMALL: ViewportSize = {"width": 200, "height": 100}  # of a page at which nobody looks: little to paint
Open = Callable[..., Page]
# A page without news is as live as it gets. For a selector, Playwright would load its reader of selectors
# into each page, which costs half as much as the page itself.
LIVE = """patience => new Promise((done, fail) => {
  const look = () => {
    if (document.getElementById("live") && document.body.dataset.live === undefined) return;
    changes.disconnect();
    done();
  };
  const changes = new MutationObserver(look);
  changes.observe(document.body, {attributes: true});
  setTimeout(() => fail(new Error("not live")), patience);
  look();
})"""
KEEP_NOTICES = """{
  const wait = window.setTimeout;
  window.setTimeout = (work, time, ...given) => wait(work, time >= 10_000 ? 600_000 : time, ...given);
}"""


def wait_until_live(page: Page) -> None:
    page.evaluate(LIVE, PATIENCE)


def wait_for_events(page: Page, found: list[Any], missing: str) -> None:
    """Until a listener of the page's events has found something."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not found:
        assert time.monotonic() < deadline, missing
        page.wait_for_timeout(20)


def keep_notices(page: Page) -> None:
    """On all that it opens from now on: they go after ten seconds, when there is nothing left to undo."""
    page.add_init_script(KEEP_NOTICES)


def box_of(element: Locator) -> FloatRect:
    """Where it is once it is visible. The page may replace it while it is measured."""
    while (box := element.bounding_box()) is None:
        expect(element).to_be_visible()
    return box


def press_when_loaded(page: Page, key: str) -> None:
    """A page may be seen a moment before its script runs, which listens to keys."""
    page.wait_for_load_state()
    page.keyboard.press(key)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    with house(folder) as opened:
        yield opened


class Watch:
    """What a page did that none of ours may do."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self.left: list[str] = []
        self.complaints: list[str] = []

    @contextlib.contextmanager
    def over(self, context: BrowserContext) -> Iterator[None]:
        seen: dict[Any, Callable[[Any], None]] = {
            "request": lambda request: self.note_request(request.url),
            "console": lambda message: self.note_message(message.type, message.text),
            "weberror": lambda error: self.complaints.append(str(error.error)),
            "dialog": lambda dialog: self.complaints.append(dialog.message),
        }
        for event, note in seen.items():
            context.on(event, note)
        yield
        for event, note in seen.items():
            context.remove_listener(event, note)

    def note_request(self, url: str) -> None:
        if not url.startswith((f"{self._base_url}/", "data:", "about:", "blob:")):
            self.left.append(url)

    def note_message(self, kind: str, text: str) -> None:
        if "Content Security Policy" in text or "Content-Security-Policy" in text:
            self.complaints.append(f"{kind}: {text}")

    def forget_complaints(self) -> None:
        self.complaints.clear()


@pytest.fixture
def watch(running: House) -> Iterator[Watch]:
    watching = Watch(running.base_url)
    yield watching
    assert watching.left == []
    assert watching.complaints == []


@pytest.fixture(scope="module")
def shared_tab(browser: Browser, running: House) -> Iterator[Page]:
    """Of a person who signed in as one does: a new one costs twice as much as a page that is shown in it."""
    with contextlib.closing(browser.new_context()) as context:
        context.set_default_timeout(PATIENCE)
        tab = context.new_page()
        sign_in(tab, running)
        tab.goto("about:blank")  # else it follows what happens
        yield tab


@pytest.fixture(scope="module")
def session(shared_tab: Page) -> StorageState:
    """As it was after the sign-in; every page of the module that is opened later is theirs."""
    return shared_tab.context.storage_state()


@contextlib.contextmanager
def lent(tab: Page, session: StorageState) -> Iterator[Page]:
    """As good as new for the next one, who opens another page first."""
    yield tab
    for other in tab.context.pages:
        if other != tab:
            other.close()
    tab.evaluate("if (origin !== 'null') { localStorage.clear(); sessionStorage.clear(); }")
    tab.context.clear_cookies()
    tab.context.add_cookies(cast(Any, session["cookies"]))


@pytest.fixture
def open_page(
    browser: Browser, running: House, watch: Watch, session: StorageState, shared_tab: Page
) -> Iterator[Open]:
    """Opens a page of somebody who is signed in; options are those of a browser's context.

    One without options is shown in the tab that all tests of the module share; who listens to a page or
    changes its requests takes one of his own.
    """
    with contextlib.ExitStack() as stack:

        def own_tab(signed_in: bool, **options: Any) -> Page:
            usual = {"viewport": WIDE, "storage_state": session if signed_in else None}
            context = browser.new_context(**{**usual, **options})
            stack.enter_context(contextlib.closing(context))
            context.set_default_timeout(PATIENCE)
            stack.enter_context(watch.over(context))
            return context.new_page()

        def lend_tab(viewport: ViewportSize) -> Page:
            stack.enter_context(watch.over(shared_tab.context))
            shared_tab.set_viewport_size(viewport)
            return stack.enter_context(lent(shared_tab, session))

        def open_one(
            path: str = "/app/mail",
            signed_in: bool = True,
            own: bool = False,
            viewport: ViewportSize = WIDE,
            **options: Any,
        ) -> Page:
            is_shared = signed_in and not own and not options
            page = lend_tab(viewport) if is_shared else own_tab(signed_in, viewport=viewport, **options)
            page.goto(running.base_url + path)
            return page

        yield open_one
