"""No page breaks a rule of WCAG 2.2 AA that a program can check, light or dark, wide or narrow."""

from importlib.resources import files
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.browser.house import House
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import pages

pytestmark = pytest.mark.needs("chromium")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


@pytest.fixture(scope="module")
def shown(running: House) -> dict[str, str]:
    fill(running)
    return pages(running)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_no_page_breaks_a_rule(
    running: House, open_page: Open, shown: dict[str, str], scheme: str, width: int
) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text()
    page = open_page(
        "/app/sign-in", signed_in=False, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    found = {"sign-in": broken_rules(page, axe)}
    page = open_page("/app/mail", color_scheme=scheme, viewport={"width": width, "height": 800})
    for name, path in shown.items():
        page.goto(running.base_url + path)
        found[name] = broken_rules(page, axe)
    assert {name: broken for name, broken in found.items() if broken} == {}


def broken_rules(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    result = page.evaluate("rules => axe.run(document, rules)", RULES)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['any'][0]['message'][:160] if node['any'] else ''}"
        for rule in result["violations"]
        for node in rule["nodes"][:3]
    ]
