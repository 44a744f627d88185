"""Pages of other sites, and clients of others' making: CORS, Standard Webhooks, MCP's description."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom import config as configuration
from postroom.config import ConfigError
from postroom.events.webhook_signature import new_secret, sign, standard_headers
from tests import generators
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone

SITE = "https://app.example.com"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
MCP_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a page", "version": "1"},
    },
}


@pytest.fixture
async def open_server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, CORS_ORIGINS=f"{SITE}, http://localhost:3000/")
    async with running_server(config, clock) as running:
        yield running


async def test_a_named_site_is_told_that_it_may_call_and_reads_the_interface_alone(
    open_server: Server,
) -> None:
    """Told before, without a key; errors are read as well, and pages outside of the interface are not."""
    async with open_server.client("") as stranger:
        del stranger.headers["Authorization"]
        for path in ("/v1/inboxes", "/mcp"):
            answer = await stranger.options(path, headers={"Origin": SITE, **PREFLIGHT})
            assert answer.status_code == 204
            assert answer.headers["Access-Control-Allow-Origin"] == SITE
            assert "POST" in answer.headers["Access-Control-Allow-Methods"]
            assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
            assert "Access-Control-Allow-Credentials" not in answer.headers
    for path, status in (("/v1/inboxes", 200), ("/v1/messages/msg_1", 404)):
        answer = await open_server.api.get(path, headers={"Origin": "http://localhost:3000"})
        assert answer.status_code == status
        assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        assert "X-Request-Id" in answer.headers["Access-Control-Expose-Headers"]
        assert answer.headers["Vary"] == "Origin"
    answer = await open_server.api.get("/health", headers={"Origin": SITE})
    assert "Access-Control-Allow-Origin" not in answer.headers


async def may_call(server: Server, origin: str) -> bool:
    answer = await server.api.get("/v1/inboxes", headers={"Origin": origin})
    before = await server.api.options("/v1/inboxes", headers={"Origin": origin, **PREFLIGHT})
    said = {"Access-Control-Allow-Origin" in each.headers for each in (answer, before)}
    assert said == {before.status_code == 204}
    return said == {True}


async def test_other_sites_are_told_nothing(open_server: Server) -> None:
    assert await may_call(open_server, SITE)
    for origin in ("https://evil.example", f"{SITE}.evil", "null"):
        assert not await may_call(open_server, origin)
    for origin, status in ((SITE, 200), ("https://evil.example", 403)):
        headers = {"Origin": origin, "Accept": "application/json, text/event-stream"}
        answer = await open_server.api.post("/mcp", json=MCP_HELLO, headers=headers)
        assert answer.status_code == status


async def test_without_the_setting_no_site_may_call(server: Server) -> None:
    assert not await may_call(server, SITE)


@samples("value", ["*", "app.example.com", "https://a.example/path", "https://A b"])
def test_what_is_no_origin_stops_the_start(value: str) -> None:
    with pytest.raises(ConfigError, match="POSTROOM_CORS_ORIGINS"):
        configuration.load({"POSTROOM_CORS_ORIGINS": value})


def test_variables_that_are_no_setting_are_found() -> None:
    environment = {"POSTROOM_DOMIAN": "x", "POSTROOM_DOMAIN": "x", "POSTROOM_PROFILE": "x", "HOME": "x"}
    assert configuration.unknown_settings(environment) == ["POSTROOM_DOMIAN"]


async def test_mcp_clients_are_told_what_to_bring(server: Server) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        said = (await server.api.get(path)).json()
        assert said["resource"] == f"{server.base_url}/mcp"
        assert said["bearer_methods_supported"] == ["header"]


def test_a_new_secret_serves_both_signatures() -> None:
    secret = new_secret()
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert standard_headers(secret, "evt_1", 1, b"{}")["webhook-signature"].startswith("v1,")
    assert len(sign(secret, 1, b"{}")) == 64


def test_the_standard_signature_is_that_of_its_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    made = standard_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@samples("secret", ["a-secret-of-my-own", "whsec_not base64!", "whsec_"])
def test_a_secret_of_another_form_has_only_our_own_signature(secret: str) -> None:
    assert standard_headers(secret, "evt_1", 1, b"{}") == {}


@pytest.mark.needs("generators of clients")
def test_the_library_of_standard_webhooks_verifies_what_we_sign() -> None:
    script = (
        "import json, os, time\nfrom standardwebhooks import Webhook\n"
        "given = json.loads(os.environ['GIVEN'])\n"
        "print(Webhook(given['secret']).verify(given['body'], given['headers']))"
    )
    secret, body = new_secret(), '{"event":"message.received","text":"Grüße"}'
    headers = standard_headers(secret, "evt_1", int(time.time()), body.encode())
    given = json.dumps({"secret": secret, "body": body, "headers": headers})
    path = ":".join([*filter(None, sys.path), str(generators.PYTHON_FOLDER)])
    environment = os.environ | {"GIVEN": given, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Grüße" in done.stdout
