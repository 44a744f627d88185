"""One browser for all these tests, and one server for those of a module.

While the browser is open, no other test can run a loop.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from tests.browser.house import House, house
from tests.browser.screenshots import chromium, sign_in

PATIENCE = 60_000  # milliseconds, on a machine that may be busy
Open = Callable[..., Page]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    with house(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(browser: Browser, running: House) -> StorageState:
    """Of a person who signed in as one does; every page of the module that is opened later is theirs."""
    with contextlib.closing(browser.new_context()) as context:
        context.set_default_timeout(PATIENCE)
        sign_in(context.new_page(), running)
        return context.storage_state()


class Watch:
    """What a page did that none of ours may do."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self.left: list[str] = []
        self.complaints: list[str] = []

    def over(self, context: BrowserContext) -> None:
        context.on("request", lambda request: self.note_request(request.url))
        context.on("console", lambda message: self.note_message(message.type, message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("dialog", lambda dialog: self.complaints.append(dialog.message))

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


@pytest.fixture
def open_page(browser: Browser, running: House, watch: Watch, session: StorageState) -> Iterator[Open]:
    """Opens a page of somebody who is signed in; options are those of a browser's context."""
    contexts: list[BrowserContext] = []

    def open_one(path: str = "/app/mail", signed_in: bool = True, **options: Any) -> Page:
        usual = {"viewport": {"width": 1280, "height": 800}, "storage_state": session if signed_in else None}
        context = browser.new_context(**{**usual, **options})
        context.set_default_timeout(PATIENCE)
        watch.over(context)
        contexts.append(context)
        page = context.new_page()
        page.goto(running.base_url + path)
        return page

    yield open_one
    for context in contexts:
        context.close()
