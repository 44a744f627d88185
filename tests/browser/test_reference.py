"""The API reference: found, read and tried in a browser, with a key made for it and without one."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.house import House

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3, turn=1)]


def test_an_operation_is_found_tried_and_its_answer_fills_the_next_form(
    running: House, open_page: Open
) -> None:
    page = open_page("/docs", own=True)
    page.get_by_label("Search operations").fill("create inbox")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/inboxes#create_inbox")
    create = page.locator("#create_inbox")
    create.get_by_text("Try it", exact=True).click()
    create.get_by_label("Body").fill('{"mailboxName": "tried"}')
    create.get_by_role("button", name="Send POST").click()
    expect(create.get_by_role("status")).to_contain_text("201 Created")
    expect(create.get_by_role("status")).to_contain_text("tried@")
    [key] = [
        each for each in running.api.get("/v1/api-keys").json()["data"] if each["name"] == "API reference"
    ]
    assert key["expiresAt"] is not None
    expect(create.locator(".of-curl pre")).to_contain_text(re.compile("Bearer pr_.*" + key["last4"]))
    [inbox] = running.api.get("/v1/inboxes").json()["data"]
    get = page.locator("#get_inbox")
    get.get_by_text("Try it", exact=True).click()
    expect(get.get_by_label("inbox_id")).to_have_value(inbox["id"])
    page.get_by_label("API key").fill("pr_wrong")
    get.get_by_role("button", name="Send GET").click()
    expect(get.get_by_role("status")).to_contain_text("unauthorized")


def test_without_a_session_a_key_is_asked_for(open_page: Open) -> None:
    page = open_page("/docs/me", signed_in=False)
    page.get_by_text("Try it", exact=True).click()
    page.get_by_role("button", name="Send GET").click()
    expect(page.locator(".outcome")).to_contain_text("This needs an API key.")
    expect(page.get_by_role("link", name="Sign in")).to_have_attribute("href", "/app")
