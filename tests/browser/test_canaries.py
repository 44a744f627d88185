"""Texts that ask to become markup, in a real browser: no page asks for more than its harmless copy."""

import contextlib
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from postroom.web.dashboard.display import assets
from postroom.web.dashboard.routes import PAGES
from tests.browser.conftest import PATIENCE, SMALL, Open, wait_until_live
from tests.page_canaries import Grown, grown
from tests.shares import PARTS

pytestmark = pytest.mark.needs("chromium")
USUAL = "/app/sessions"
FILES = (".csv", "/raw", "/zone", "/receipt", "/contact/export")  # nothing to open
TABS = ("text", "html", "headers", "raw", "files", "delivery", "events")
ICONS = {assets.load()[name].url for name in ("favicon.svg", "waiting.svg")}
IDS = re.compile(r"\b(?:[a-z]{2,4}_[0-9a-f]{20,}|[0-9a-f]{8}-[0-9a-f-]{27})|(?<=/review/)\w+")
# As htmx does by itself with what it is told to show, for an attribute of each kind.
TAKE_IN = """nonce => {
  const taken = document.createElement("div");
  taken.innerHTML = `<b hx-get="/app/rail?taken=get" hx-trigger="load">x</b>
    <b data-hx-get="/app/rail?taken=data" hx-trigger="load">x</b>
    <b hx-nonce="" hx-post="/app/rail?taken=post" hx-trigger="load">x</b>
    <b hx-nonce="guessed" hx-action="/app/rail?taken=action" hx-trigger="load">x</b>
    <b hx-ws:connect="/app/live?taken=socket">x</b>
    <a hx-boost="true" href="/app/rail?taken=boost">x</a>
    <b hx-on:click="document.title = 'taken'">x</b>`;
  document.querySelector("main").append(taken);
  htmx.process(taken);
  for (const each of taken.children) each.dispatchEvent(new CustomEvent("click", {bubbles: true}));
  const ours = document.createElement("div");
  ours.innerHTML = `<b hx-get="/app/rail?ours=yes" hx-trigger="load" hx-nonce="${nonce}">x</b>`;
  document.querySelector("main").append(ours);
  htmx.process(ours);
}"""
MOVED = """() => htmx.swap({
  text: '<p id="new">new</p><h1 id="moved" hx-swap-oob="innerHTML:#live">moved</h1>',
  target: "#trial", swap: "innerHTML", sourceElement: document.querySelector("#trial"),
})"""


class Requests:
    """What a page asks for, by the row of its route, with ids left out.

    Without our icons: the browser loads the icon of a tab when it likes, often after it left the page.
    """

    def __init__(self, page: Page, base_url: str) -> None:
        self._base_url = base_url
        self._row, self._path = "", ""
        self.made: dict[str, set[str]] = {}
        page.on("request", lambda request: self.note(request.method, request.url))
        page.on("websocket", lambda socket: self.note("socket", socket.url))

    def begin(self, row: str, path: str) -> None:
        self._row, self._path = row, path

    def note(self, method: str, url: str) -> None:
        own = url.removeprefix(self._base_url).removeprefix(self._base_url.replace("http", "ws", 1))
        if own in ICONS:
            return
        path = "itself" if own == self._path else IDS.sub("ID", re.sub(r"\?after=.*", "", own))
        self.made.setdefault(self._row, set()).add(f"{method} {path}")


def pages_of(account: Grown) -> Iterator[tuple[str, str]]:
    for route in PAGES:
        if route.method == "GET" and not route.path.endswith(FILES):
            yield route.path, route.path.format(**{name: account.ids[name][0] for name in route.path_names})
    for thread in account.from_strangers:
        message = account.threads[thread][0]
        for tab in TABS:
            yield f"{tab} of a mail", f"/app/mail/{thread}?message={message}&tab={tab}"
    yield "a review", account.review_paths[-1]
    yield "not there", f"/app/mail/{account.canaries.path('thread that is not there')}"
    yield "a search", f"/app/search?q={account.canaries.path('search')}"


def load_frames(page: Page) -> None:
    """Which the browser would do once somebody scrolls to them, or a moment later."""
    page.evaluate("document.querySelectorAll('iframe').forEach(frame => { frame.loading = 'eager'; })")
    for frame in page.frames[1:]:
        frame.wait_for_url(lambda url: "/html" in url, wait_until="commit")


def requests_of(browser: Browser, account: Grown, rows: set[str]) -> dict[str, set[str]]:
    base_url = account.house.base_url
    with contextlib.closing(browser.new_context(base_url=base_url, viewport=SMALL)) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(account.house.login_link())
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("body[data-live]")
        requests = Requests(page, base_url)
        for row, path in pages_of(account):
            if row in rows:
                requests.begin(row, path)
                page.goto(path, wait_until="domcontentloaded")
                wait_until_live(page)  # htmx has gone through all of the page by then
                load_frames(page)
        return requests.made


@pytest.mark.share
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_asks_for_more_than_its_harmless_copy(
    part: int, tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> None:
    """Most ask for what each page of ours does; the copy of one of them stands for the copies of all."""
    with grown(tmp_path_factory.mktemp("grown")) as account:
        every = dict(pages_of(account)).keys()
        rows = {USUAL, *list(every)[part::PARTS]}
        made = requests_of(browser, account, rows)
    assert made.keys() == rows
    assert len(every) >= 30
    copied = {USUAL, *(row for row, asked in made.items() if asked - made[USUAL])}
    with grown(tmp_path_factory.mktemp("grown"), is_harmless=True) as account:
        assert dict(pages_of(account)).keys() == every
        harmless = requests_of(browser, account, copied)
    allowed = {row: harmless[row if row in copied else USUAL] for row in rows}
    more = {row: asked - allowed[row] for row, asked in made.items() if asked - allowed[row]}
    assert more == {}


def test_htmx_obeys_no_attribute_without_the_nonce_of_the_page(open_page: Open) -> None:
    page = open_page("/app/sessions", own=True)
    page.wait_for_selector("body[data-live]")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("?")[2]))
    page.on("websocket", lambda socket: asked.append(socket.url.rpartition("?")[2]))
    with page.expect_response("**/app/rail?ours=yes"):
        page.evaluate(TAKE_IN, page.locator("#rail").get_attribute("hx-nonce"))
    assert asked == ["ours=yes"]
    assert page.title() != "taken"


def test_what_comes_anew_changes_nothing_but_its_own_place(open_page: Open) -> None:
    page = open_page("/app/sessions")
    page.wait_for_selector("body[data-live]")
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<div id=trial></div>')")
    page.evaluate(MOVED)
    assert page.locator("#trial #new").count() == 1
    assert page.locator("#live").inner_text() == ""
