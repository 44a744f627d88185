"""No page breaks a rule of WCAG 2.2 AA that a program can check, light or dark, wide or narrow.

None is wider than the window either, and the browser complains about none.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.house import House
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import pages
from tests.shares import PARTS

pytestmark = pytest.mark.needs("chromium")
AXE = files("axe_playwright_python").joinpath("axe.min.js")
ASK = Path(__file__).with_name("rules.js").read_text()
Scheme = Literal["light", "dark"]
VIEWS: tuple[tuple[int, Scheme], ...] = ((1280, "light"), (1280, "dark"), (360, "dark"), (360, "light"))
UNREADABLE: tuple[tuple[Scheme, str], ...] = (
    ("light", "h1.style.color = 'gray'"),
    ("light", "h1.parentElement.style.background = 'gray'"),
    ("light", "h1.style.opacity = 0.4"),
    ("dark", "h1.style.color = '#444'"),
)
INSERT = "([place, markup]) => document.querySelector(place).insertAdjacentHTML('beforeend', markup)"
NAMELESS = "<button></button>"
SMALL = "<button aria-label='small'></button>"
FAR = "<div id=far><p>near<p>far<p>farther</div>"
SCROLL = "document.getElementById('far').style.cssText = 'height: 20px; overflow: auto'"
Found = dict[tuple[str, int, str], list[str]]


class Eyes:
    """See pages one after the other, and remember which looks of letters were asked about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.looks: dict[Scheme, set[str]] = {"light": set(), "dark": set()}
        self._tags: set[str] = set()  # that a second view of a page showed, and all rules were asked about
        self._parts: set[str] = set()  # of the frame, that a view of this width and scheme showed
        self._views = list(VIEWS)
        self._view: tuple[int, str] = (0, "")
        page.add_init_script(f"if (window === top) {{ {AXE.read_text()} }}")

    def look_at(self, name: str, address: str) -> Found:
        """One document, that is only laid out and coloured anew."""
        self.page.goto(address)
        found = {(name, *view): list(self._broken(*view)) for view in self._views}
        self._views.reverse()  # the next page is seen first as this one was last
        return {view: broken for view, broken in found.items() if broken}

    def _broken(self, width: int, scheme: Scheme) -> Iterator[str]:
        self._show(width, scheme)
        taken = self.page.evaluate("document.documentElement.scrollWidth")
        if taken > width:
            yield f"{taken} pixels wide"
        yield from self.broken_rules(scheme)

    def _show(self, width: int, scheme: Scheme) -> None:
        """Each change makes the browser draw the page anew."""
        if self._view[0] != width:
            self.page.set_viewport_size({"width": width, "height": 800})
        if self._view[1] != scheme:
            self.page.emulate_media(color_scheme=scheme)
        self._view = (width, scheme)

    def broken_rules(self, scheme: Scheme) -> list[str]:
        known = [scheme == "light", list(self.looks[scheme]), list(self._tags), list(self._parts)]
        result = self.page.evaluate(ASK, known)
        self.looks[scheme].update(result["looks"])
        self._tags.update(result["tags"])
        self._parts.update(result["parts"])
        broken: list[str] = result["broken"]
        return broken


@pytest.fixture(scope="module")
def shown(running: House) -> dict[str, str]:
    fill(running)
    return pages(running)


def test_sign_in_breaks_no_rule_and_what_is_changed_there_is_asked_about(open_page: Open) -> None:
    """A new look that cannot be read is found, and a new element is asked all rules."""
    page = open_page("/app/sign-in", signed_in=False, reduced_motion="reduce")
    eyes = Eyes(page)
    assert eyes.look_at("sign-in", page.url) == {}
    as_it_was = page.evaluate("document.querySelector('h1').parentElement.outerHTML")
    for scheme, change in UNREADABLE:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(f"const h1 = document.querySelector('h1'); h1.style.fontSize = '16px'; {change}")
        broken = [rule for rule in eyes.broken_rules(scheme) if rule.startswith("color-contrast: <h1")]
        assert broken, change
        page.evaluate(
            "before => { document.querySelector('h1').parentElement.outerHTML = before; }", as_it_was
        )
        assert eyes.broken_rules(scheme) == [], change
    page.emulate_media(color_scheme="light")
    page.evaluate(INSERT, ["main", NAMELESS + SMALL * 2 + FAR])
    page.evaluate(SCROLL)
    broken_now = {rule.partition(":")[0] for rule in eyes.broken_rules("light")}
    assert broken_now == {"button-name", "target-size", "scrollable-region-focusable"}


@pytest.mark.share
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_breaks_a_rule(part: int, running: House, open_page: Open, shown: dict[str, str]) -> None:
    """At the end, one does in the frame that all of them share."""
    eyes = Eyes(open_page("/app/mail", reduced_motion="reduce"))
    found: Found = {}
    for name, path in list(shown.items())[part::PARTS]:
        found |= eyes.look_at(name, running.base_url + path)
    assert found == {}
    eyes.page.evaluate(INSERT, ["#rail li", NAMELESS])
    assert "button-name" in {rule.partition(":")[0] for rule in eyes.broken_rules("light")}
    assert min(len(looks) for looks in eyes.looks.values()) > 30
