"""The approval card in a browser: it shows text alone, and asks its host to open the dashboard."""

import contextlib
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3, turn=2)]
PAGE = files("postroom_client.mcp").joinpath("approval_card.html").read_text("utf-8")
HOSTILE = "<img src=x onerror=parent.postMessage('out','*')>"
CARD: dict[str, Any] = {
    "state": "held",
    "reasons": ["always"],
    "origins": [HOSTILE],
    "from": "bob@postroom.localhost",
    "to": HOSTILE,
    "bcc": "",
    "replyTo": "",
    "headers": [f"X-Note: {HOSTILE}"],
    "subject": HOSTILE,
    "text": f"Hello\n{HOSTILE}",
    "isCut": True,
    "hasHtml": True,
    "isRedirected": False,
    "files": [{"name": HOSTILE, "bytes": 2}],
    "fileCount": 1,
    "url": "https://mail.example.com/app/approvals?message=msg_1",
}
# A host as the specification of MCP Apps has it: a sandbox without the same origin, and JSON-RPC.
HOST = """async ([page, card]) => {
  const heard = [], frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = page;
  const shown = new Promise((done) => window.addEventListener("message", ({ data }) => {
    heard.push(data);
    const say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    if (data.method === "ui/initialize") say({ id: data.id, result: { protocolVersion: "2026-01-26" } });
    if (data.method === "ui/notifications/initialized") {
      const params = { content: [], _meta: { "postroom/approval": card } };
      say({ method: "ui/notifications/tool-result", params });
    }
    if (data.method === "ui/notifications/size-changed") done();
  }));
  window.heard = heard;
  document.body.append(frame);
  await shown;
}"""


def test_a_card_shows_text_and_opens_the_dashboard_by_its_host(browser: Browser) -> None:
    with contextlib.closing(browser.new_context()) as context:
        page, asked = context.new_page(), []
        context.on("request", lambda request: asked.append(request.url))
        page.goto("about:blank")
        page.evaluate(HOST, [PAGE, CARD])
        card = page.frame_locator("iframe")
        assert card.locator("#state").text_content() == "This email waits for approval"
        assert card.locator("#text").text_content() == CARD["text"]
        assert HOSTILE in (card.locator("#fields").text_content() or "")
        assert card.locator("img").count() == 0
        assert "see all of it on the dashboard" in (card.locator("#note").text_content() or "")
        assert card.locator("button").count() == 1
        card.locator("#open").click()
        page.wait_for_function("window.heard.some((each) => each.method === 'ui/open-link')")
        heard = page.evaluate("window.heard")
        [opened] = [each for each in heard if each.get("method") == "ui/open-link"]
        assert opened["params"] == {"url": CARD["url"]}
        assert "out" not in heard
        assert [url for url in asked if not url.startswith("about:")] == []
