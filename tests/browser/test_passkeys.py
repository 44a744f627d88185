"""Passkeys in a real browser, with the authenticator that it has for tests."""

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE
from tests.browser.house import house
from tests.conftest import settings
from tests.ports import free_port

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3, turn=0)]
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def test_a_person_adds_a_passkey_and_signs_in_with_it(tmp_path: Path, browser: Browser) -> None:
    port = free_port()
    where = {"HTTP": f"127.0.0.1:{port}", "BASE_URL": f"http://localhost:{port}", "OUTBOUND": "capture"}
    with (
        house(tmp_path, config=settings(tmp_path, **where)) as new,
        contextlib.closing(browser.new_context()) as context,
    ):
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        device = context.new_cdp_session(page)
        device.send("WebAuthn.enable")
        made = device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
        invited = new.api.post("/v1/users", json={"email": "ann@example.org", "role": "approver"})
        page.goto(invited.json()["invitationUrl"])
        page.get_by_label("Your name").fill("Ann")
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.goto(f"{new.base_url}/app/settings/passkeys")
        page.get_by_label("Name (of your device").fill("Laptop")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("You can now sign in with the passkey “Laptop”")).to_be_visible()
        page.wait_for_load_state()  # by then the script of the page runs, which asks the device
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("This device already has a passkey for you.")).to_be_visible()

        context.clear_cookies()
        page.goto(f"{new.base_url}/app/settings/passkeys")
        page.get_by_role("button", name="Sign in with a passkey").click()
        page.wait_for_url(f"{new.base_url}/app/settings/passkeys")
        expect(page.locator("input[value=Laptop]")).to_be_visible()

        context.clear_cookies()
        device.send(
            "WebAuthn.setUserVerified", {"authenticatorId": made["authenticatorId"], "isUserVerified": False}
        )
        page.goto(f"{new.base_url}/app/sign-in")
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_text("The device gave no passkey")).to_be_visible()
