"""The script that runs while no page is open, in a real browser: what is pushed becomes a notification."""

import contextlib
import json
from typing import Any

import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.browser.conftest import PATIENCE, wait_for_events
from tests.browser.house import House

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3, turn=2)]
PUSHED = {
    "title": "An email needs approval",
    "body": "Offer 7",
    "path": "/app/approvals?message=msg_1",
    "tag": "held",
}
REGISTER = """async () => {
  await navigator.serviceWorker.register("/app/service-worker.js", {scope: "/app"});
  await navigator.serviceWorker.ready;
}"""
# A browser without a screen shows nothing: what it would have shown is kept.
KEEP = """() => {
  self.shown = new Promise((resolve) => {
    ServiceWorkerRegistration.prototype.showNotification = async (title, more) => resolve({title, ...more});
  });
}"""


def test_what_is_pushed_is_shown_with_the_page_that_decides_it(
    browser: Browser, running: House, session: StorageState
) -> None:
    with contextlib.closing(browser.new_context(storage_state=session)) as context:
        context.set_default_timeout(PATIENCE)
        context.grant_permissions(["notifications"], origin=running.base_url)
        page = context.new_page()
        page.goto(f"{running.base_url}/app/settings/devices")
        expect(page.get_by_role("heading", name="Devices")).to_be_visible()
        service = context.new_cdp_session(page)
        known: list[dict[str, Any]] = []
        service.on(
            "ServiceWorker.workerRegistrationUpdated", lambda news: known.extend(news["registrations"])
        )
        service.send("ServiceWorker.enable")
        with context.expect_event("serviceworker") as started:
            page.evaluate(REGISTER)
        worker = started.value
        worker.evaluate(KEEP)
        wait_for_events(page, known, "the browser never told of the registered service worker")
        service.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": running.base_url,
                "registrationId": known[-1]["registrationId"],
                "data": json.dumps(PUSHED),
            },
        )
        shown = worker.evaluate("() => self.shown")
        assert {name: shown[name] for name in ("title", "body", "tag")} | shown["data"] == PUSHED
