"""No page breaks a rule of WCAG 2.2 AA that a program can check, light or dark, wide or narrow.

None is wider than the window either, and the browser complains about none.
"""

from importlib.resources import files

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.house import House
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import pages

pytestmark = pytest.mark.needs("chromium")
AXE = files("axe_playwright_python").joinpath("axe.min.js")
WIDTHS = (1280, 360)
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# In the dark the same document has other colours, and no rule but these asks for any.
RULES_OF_COLOURS = ["color-contrast", "link-in-text-block"]
# What holds is not described: that takes longer than to find out, and nobody reads it.
ASK = """async (runOnly) => {
  const found = await axe.run(document, {runOnly, resultTypes: ["violations"]});
  return {broken: found.violations, asked: found.passes.length};
}"""
Found = dict[tuple[str, int, str], list[str]]


@pytest.fixture(scope="module")
def shown(running: House) -> dict[str, str]:
    fill(running)
    return pages(running)


def test_sign_in_breaks_no_rule(open_page: Open) -> None:
    page = open_page("/app/sign-in", signed_in=False, reduced_motion="reduce")
    assert only_broken(looked_at("sign-in", page)) == {}


@pytest.mark.parametrize("half", [0, 1])
def test_no_page_breaks_a_rule(running: House, open_page: Open, shown: dict[str, str], half: int) -> None:
    page = open_page("/app/mail", reduced_motion="reduce")
    found: Found = {}
    for name, path in list(shown.items())[half::2]:
        page.goto(running.base_url + path)
        found |= looked_at(name, page)
    assert only_broken(found) == {}


def looked_at(name: str, page: Page) -> Found:
    """Wide and narrow, light and dark: one document, that is only laid out and coloured anew."""
    page.evaluate(AXE.read_text())
    found: Found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found[name, width, "wider"] = wider_than(page, width)
        page.emulate_media(color_scheme="light")
        found[name, width, "light"] = broken_rules(page, ALL_RULES)
        page.emulate_media(color_scheme="dark")
        found[name, width, "dark"] = broken_rules(page, RULES_OF_COLOURS)
    return found


def wider_than(page: Page, width: int) -> list[str]:
    taken = page.evaluate("document.documentElement.scrollWidth")
    return [f"{taken} pixels wide"] if taken > width else []


def broken_rules(page: Page, rules: list[str]) -> list[str]:
    result = page.evaluate(ASK, rules)
    assert result["asked"] > 0, "no rule was asked"
    return [
        f"{rule['id']}: {node['html'][:160]} {node['any'][0]['message'][:160] if node['any'] else ''}"
        for rule in result["broken"]
        for node in rule["nodes"][:3]
    ]


def only_broken(found: Found) -> Found:
    return {name: broken for name, broken in found.items() if broken}
