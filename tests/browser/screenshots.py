"""Pictures of the pages, light and dark, wide and narrow: `make screenshots` writes docs/images."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from postroom.clock import SystemClock
from tests import programs
from tests.browser.house import House, house
from tests.browser.made_up_mail import fill
from tests.doubles import FakeClock

FOLDER = Path(__file__).parent.parent.parent / "docs" / "images"
OTHERS = ("approvals", "drafts", "compose", "agents", "events", "webhooks", "inboxes", "settings", "operator")
OPERATOR = ("queue", "deliverability", "accounts", "feedback")
SETTINGS = (
    *("keys", "pods", "policy", "suppressions", "notifications", "domains", "audit", "people"),
    *("connections", "templates", "rules"),
)
SIZES = {"wide": (1280, 800), "narrow": (360, 720)}


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # A process for each frame without scripts protects the browser, and is half of what a frame costs.
        # A new frame in the browser for each page of a tab is a sixth of what a page costs, a process for
        # the network a tenth.
        features = [
            "--disable-features=IsolateSandboxedIframes,RenderDocument",
            "--enable-features=NetworkServiceInProcess2,CDPScreenshotNewSurface",
        ]
        # Painting in one tile without coloured edges of letters saves a tenth of what a page costs.
        tile = [
            "--default-tile-width=1280",
            "--default-tile-height=800",
            "--disable-lcd-text",
            "--disable-zero-copy",
        ]
        # No page lives long enough to pay for what compiles its scripts well, or a process that only paints.
        short = ["--js-flags=--no-opt,--no-maglev", "--in-process-gpu"]
        args = ["--no-sandbox", *features, *tile, *short]
        browser = playwright.chromium.launch(executable_path=programs.browser(), args=args)
        yield browser
        browser.close()


def pages(running: House) -> dict[str, str]:
    """Every page by the name of its picture."""
    found = {"reference": "/docs/drafts"}
    found |= {name: f"/app/{name}" for name in ("start", "mail", "sessions", "activity", *OTHERS)}
    found |= {name: f"/app/settings/{name}" for name in SETTINGS}
    found |= {name: f"/app/operator/{name}" for name in OPERATOR}
    found |= {"search": "/app/search?q=export", "waiting": "/app/mail?state=awaiting"}
    found |= {"contacts": "/app/contacts", "contact": "/app/contact?address=maya@nordlight.example"}
    support = next(
        each["id"]
        for each in running.api.get("/v1/inboxes").json()["data"]
        if each["displayName"] == "Support"
    )
    threads = running.api.get(f"/v1/inboxes/{support}/threads").json()["data"]
    found["inbox"] = f"/app/mail?inboxId={support}"
    [export] = [each["id"] for each in threads if each["subject"].startswith("Export")]
    found["thread"] = f"/app/mail/{export}?inboxId={support}"
    found |= {"reply": f"/app/mail/{export}?how=reply", "done": "/app/mail?state=done"}
    [boxes] = [each["id"] for each in threads if "damaged" in each["subject"]]
    found |= {"noted": f"/app/mail/{boxes}", "noted-contact": "/app/contact?address=tomas@campo.example"}
    [trick] = [each["id"] for each in threads if each["subject"].startswith("New bank")]
    [invited] = [each["id"] for each in threads if each["subject"].startswith("Invitation")]
    found |= {"trick": f"/app/mail/{trick}?inboxId={support}", "invitation": f"/app/mail/{invited}"}
    found |= {"html": f"/app/mail/{trick}?tab=html", "files": f"/app/mail/{trick}?tab=events"}
    found["views"] = f"/app/mail/{trick}?tab=agent"
    [draft] = running.api.get(f"/v1/inboxes/{support}/drafts").json()["data"]
    found |= {"draft": f"/app/drafts/{draft['id']}", "one-inbox": f"/app/inboxes/{support}"}
    [template] = running.api.get("/v1/templates").json()["data"]
    found["template"] = f"/app/settings/templates/{template['id']}"
    found["compose-template"] = f"/app/compose?template={template['id']}"
    [key] = running.api.get(f"/v1/inboxes/{support}/api-keys").json()["data"]
    pod = running.api.get("/v1/pods/customer-17").json()
    found |= {"agent": f"/app/agents/{key['id']}"}
    found |= {"key": f"/app/settings/keys/{key['id']}", "pod": f"/app/settings/pods/{pod['id']}"}
    return found


def sign_in(page: Page, running: House) -> None:
    page.goto(running.login_link())
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#rail")


def take(browser: Browser, running: House, wanted: set[str]) -> None:
    for scheme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            context = browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light",
                viewport={"width": width, "height": height},
                timezone_id="Europe/Stockholm",
                locale="en-GB",
            )
            page = context.new_page()
            sign_in(page, running)
            for name, path in pages(running).items():
                if not wanted or name in wanted:
                    page.goto(running.base_url + path)
                    page.wait_for_selector("body:is([data-live], .reference)", timeout=60_000)
                    page.screenshot(path=FOLDER / f"{name}-{size}-{scheme}.png", full_page=size == "narrow")
            context.close()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    clock = FakeClock(SystemClock().now())
    with (
        tempfile.TemporaryDirectory() as folder,
        house(Path(folder), clock) as running,
        chromium() as browser,
    ):
        fill(running)
        take(browser, running, set(sys.argv[1:]))


if __name__ == "__main__":
    main()
