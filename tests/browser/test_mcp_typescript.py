"""The official MCP client of TypeScript signs in by OAuth; a person allows it in a real browser."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests import generators
from tests.browser.conftest import PATIENCE
from tests.browser.house import House
from tests.browser.screenshots import sign_in

pytestmark = [pytest.mark.needs("chromium", "node", "generators of clients"), pytest.mark.share(3, turn=1)]
PROGRAM = """
import http from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

setTimeout(() => process.exit(1), 360_000).unref(); // nobody waits for ever
const say = (value) => console.log(JSON.stringify(value));
const visit = async (address) => {
  let arrive;
  const arrived = new Promise((resolve) => { arrive = resolve; });
  const home = http.createServer((request, response) => {
    response.end("You can close this page.");
    const query = new URL(request.url, "http://127.0.0.1").searchParams;
    if (query.has("code")) arrive(query.get("code"));
  });
  await new Promise((resolve) => home.listen(0, "127.0.0.1", resolve));
  const redirectUrl = `http://127.0.0.1:${home.address().port}/callback`;
  const kept = {};
  const authProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: "Inspector",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    redirectToAuthorization: (url) => say({ open: url.href }),
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    codeVerifier: () => kept.verifier,
    invalidateCredentials: () => { kept.tokens = undefined; },
  };
  const transport = () => new StreamableHTTPClientTransport(address, { authProvider });
  const listTools = async () => {
    const client = new Client({ name: "inspector", version: "1.0.0" });
    await client.connect(transport());
    const { tools } = await client.listTools();
    await client.close();
    return tools.map((tool) => tool.name);
  };
  const isRefused = await listTools().then(() => false, (error) => error instanceof UnauthorizedError);
  await transport().finishAuth(await arrived);
  const first = await listTools();
  const before = kept.tokens;
  kept.tokens = { ...before, access_token: "pr_forgotten" };
  const refreshed = await listTools();
  const isNew = kept.tokens.refresh_token !== before.refresh_token;
  await fetch(new URL("/oauth/revoke", address), {
    method: "POST",
    body: new URLSearchParams({ token: kept.tokens.refresh_token, client_id: kept.client.client_id }),
  });
  const isOver = await listTools().then(() => false, (error) => error instanceof UnauthorizedError);
  say({ isRefused, first, refreshed, isNew, isOver });
  home.closeAllConnections();
  home.close();
};
for (const address of process.argv.slice(2)) await visit(new URL(address));
"""


@contextlib.contextmanager
def connecting(folder: Path, *addresses: str) -> "Iterator[subprocess.Popen[str]]":
    """One process to one after the other: most of its time goes by until it has loaded the client."""
    (folder / "node_modules").symlink_to(generators.NODE_FOLDER / "node_modules")
    (folder / "program.mjs").write_text(PROGRAM)
    command = [str(generators.NEWEST_NODE), str(folder / "program.mjs"), *addresses]
    with subprocess.Popen(
        command, env=generators.kept_by_node(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> Any:
    """It ends by itself where something fails, so that no line is waited for in vain."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("{"), line + process.stdout.read()
    return json.loads(line)


def allow(page: Page, url: str, level: str) -> None:
    page.goto(url)
    assert page.get_by_text("Inspector").first.is_visible()
    assert page.get_by_text("127.0.0.1").first.is_visible()
    page.locator(f"input[name=level][value={level}]").check()
    page.get_by_role("button", name="Allow").click()
    page.get_by_text("You can close this page.").wait_for()


def test_the_typescript_client_is_let_in_refreshes_and_is_shut_out(
    running: House, browser: Browser, tmp_path: Path
) -> None:
    inbox_id = running.new_inbox("typescript")
    paths = {"/mcp": True, "/mcp/readonly": False, f"/mcp/inbox/{inbox_id}": True}
    with (
        contextlib.closing(browser.new_context()) as context,
        connecting(tmp_path, *(f"{running.base_url}{path}" for path in paths)) as process,
    ):
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        sign_in(page, running)
        for path, has_send in paths.items():
            allow(page, said(process)["open"], "send" if has_send else "read")
            end = said(process)
            while "open" in end:  # after it was shut out it asks again
                end = said(process)
            assert end["isRefused"], path
            assert end["first"] == end["refreshed"], path
            assert ("send_email" in end["first"]) == has_send, path
            assert "read_thread" in end["first"], path
            assert end["isNew"], path
            assert end["isOver"], path
