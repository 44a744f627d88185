"""No page breaks a rule of WCAG 2.2 AA that a program can check, light or dark, wide or narrow."""

from importlib.resources import files
from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.house import House
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import pages

pytestmark = pytest.mark.needs("chromium")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


@pytest.fixture(scope="module")
def shown(running: House) -> dict[str, str]:
    fill(running)
    return pages(running)


@pytest.mark.parametrize("width", [1280, 360])
def test_no_page_breaks_a_rule(running: House, open_page: Open, shown: dict[str, str], width: int) -> None:
    look = {"viewport": {"width": width, "height": 800}, "reduced_motion": "reduce"}
    found = in_both_schemes("sign-in", open_page("/app/sign-in", signed_in=False, **look))
    page = open_page("/app/mail", **look)
    for name, path in shown.items():
        page.goto(running.base_url + path)
        found |= in_both_schemes(name, page)
    assert {name: broken for name, broken in found.items() if broken} == {}


def in_both_schemes(name: str, page: Page) -> dict[tuple[str, str], list[str]]:
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found: dict[tuple[str, str], list[str]] = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found[name, scheme] = broken_rules(page)
    return found


def broken_rules(page: Page) -> list[str]:
    result = page.evaluate("rules => axe.run(document, rules)", RULES)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['any'][0]['message'][:160] if node['any'] else ''}"
        for rule in result["violations"]
        for node in rule["nodes"][:3]
    ]
