"""Signing in for programs: OAuth 2.1 as the official MCP client speaks it, and every refusal."""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from typer.testing import CliRunner, Result

from postroom.accounts.oauth import oauth_clients
from postroom.clock import DAY, HOUR, MINUTE, SECOND
from postroom.storage.database import Tx
from postroom.upkeep import expiry
from postroom_client import profiles
from postroom_client.cli import app
from tests.api.test_dashboard import browser
from tests.api.test_people import invite, links_of
from tests.conftest import Server
from tests.plain_transport import http_client

REDIRECT = "http://127.0.0.1:3333/callback"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-0123"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


@asynccontextmanager
async def person(server: Server, role: str = "owner", **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
    await invite(server, f"{role}@example.org", role, **more)
    async with browser(server) as page:
        token = (await links_of(server, "invitation"))[-1]
        await page.post("/app/sign-in", data={"invitation": token, "name": role})
        yield page


async def register(server: Server, *uris: str, name: str = "Claude") -> str:
    body = {"redirect_uris": list(uris) or [REDIRECT], "client_name": name}
    answer = await server.api.post("/oauth/register", json=body)
    assert answer.status_code == 201, answer.text
    client_id: str = answer.json()["client_id"]
    return client_id


def asked(client_id: str, **changed: str) -> dict[str, str]:
    return {
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "xyz",
        **changed,
    }


def answer_of(response: httpx2.Response) -> dict[str, str]:
    assert response.status_code == 303, response.text
    return {
        name: values[0] for name, values in parse_qs(urlsplit(response.headers["location"]).query).items()
    }


async def consent(page: httpx2.AsyncClient, query: dict[str, str], **choice: str) -> httpx2.Response:
    form = {"level": "draft", "scope_id": "all", "decision": "allow", **choice}
    return await page.post("/app/authorize", data={**query, **form})


async def exchange(server: Server, client_id: str, code: str, **changed: str) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        **changed,
    }
    return await server.api.post("/oauth/token", data=form)


async def renew(server: Server, client_id: str, token: str, **more: str) -> httpx2.Response:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id, **more}
    return await server.api.post("/oauth/token", data=form)


async def tokens_of(server: Server, page: httpx2.AsyncClient, **choice: str) -> tuple[str, dict[str, Any]]:
    resource = choice.pop("resource", "")
    client_id = await register(server)
    code = answer_of(await consent(page, asked(client_id, resource=resource), **choice))["code"]
    answer = await exchange(server, client_id, code)
    assert answer.status_code == 200, answer.text
    return client_id, answer.json()


async def ask_mcp(server: Server, token: str, path: str = "/mcp") -> httpx2.Response:
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with http_client(server.base_url) as client:
        return await client.post(path, json=body, headers=headers)


def tools_in(answer: httpx2.Response) -> set[str]:
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


def told(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@dataclass
class Memory:
    """Where the official client keeps what it got."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    opened: list[str] = field(default_factory=list)

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def provider(server: Server, path: str, page: httpx2.AsyncClient, memory: Memory, **choice: str) -> Any:
    """The official client; the browser step is played by a person with a session."""

    async def open_browser(url: str) -> None:
        memory.opened.append(url)

    async def wait_for_callback() -> AuthorizationCodeResult:
        led = await page.get(memory.opened[-1])  # /oauth/authorize leads to the page of consent
        shown = await page.get(led.headers["location"])
        assert "Inspector" in shown.text
        assert "127.0.0.1:3333" in shown.text
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown.text))
        assert shown.text.index("drafts only") < shown.text.index("read only")
        answer = answer_of(await consent(page, fields, **choice))
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    return OAuthClientProvider(
        server_url=f"{server.base_url}{path}",
        client_metadata=OAuthClientMetadata.model_validate(
            {"client_name": "Inspector", "redirect_uris": [REDIRECT]}
        ),
        storage=memory,
        redirect_handler=open_browser,
        callback_handler=wait_for_callback,
    )


async def list_tools(server: Server, path: str, auth: Any) -> set[str]:
    url = f"{server.base_url}{path}"
    async with (
        httpx2.AsyncClient(auth=auth, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.sqlite_alone
async def test_the_official_client_finds_registers_asks_and_lists_its_tools(server: Server) -> None:
    inbox_id = await server.new_inbox("connected")
    memory = Memory()
    async with person(server) as page:
        auth = provider(server, "/mcp", page, memory, scope_id=inbox_id)
        tools = await list_tools(server, "/mcp", auth)
    assert {"read_thread", "create_draft"} <= tools
    assert memory.tokens is not None
    me = await ask_mcp(server, memory.tokens.access_token)
    assert me.status_code == 200
    [key] = (await server.api.get(f"/v1/inboxes/{inbox_id}/api-keys")).json()["data"]
    assert (key["kind"], key["name"], key["permissions"]) == ("oauth", "Inspector", ["read", "draft"])
    assert (await server.api.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
    assert (await ask_mcp(server, memory.tokens.access_token)).status_code == 401
    assert memory.tokens.refresh_token is not None
    assert memory.client is not None
    gone = await renew(server, str(memory.client.client_id), memory.tokens.refresh_token)
    assert told(gone) == (400, "invalid_grant")


@pytest.mark.sqlite_alone
async def test_a_program_signs_in_at_the_narrow_addresses(server: Server) -> None:
    inbox_id = await server.new_inbox("narrow")
    levels = {"/mcp/readonly": "read", f"/mcp/inbox/{inbox_id}": "send"}
    async with person(server) as page:
        for path, level in levels.items():
            client_id = await register(server)
            resource = f"{server.base_url}{path}"
            code = answer_of(await consent(page, asked(client_id, resource=resource), level=level))["code"]
            given = (await exchange(server, client_id, code, resource=resource)).json()
            OAuthToken.model_validate(given)
            assert (await ask_mcp(server, given["access_token"], path)).status_code == 200
            for other in {"/mcp", *levels} - {path}:
                assert (await ask_mcp(server, given["access_token"], other)).status_code == 401
            metadata = (await server.api.get(f"/.well-known/oauth-protected-resource{path}")).json()
            assert metadata["resource"] == f"{server.base_url}{path}"
            assert metadata["authorization_servers"] == [server.base_url]


@pytest.mark.sqlite_alone
async def test_who_has_no_token_is_told_where_to_begin_and_asks_there_by_forms_alone(server: Server) -> None:
    refused = await ask_mcp(server, "pr_nobody", "/mcp/readonly")
    assert refused.status_code == 401
    found = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
    assert found
    assert found[1].endswith("/.well-known/oauth-protected-resource/mcp/readonly")
    described = (await server.api.get(found[1])).json()
    server_metadata = (await server.api.get("/.well-known/oauth-authorization-server")).json()
    assert described["authorization_servers"] == [server_metadata["issuer"]]
    assert server_metadata["code_challenge_methods_supported"] == ["S256"]
    assert (await server.api.get("/oauth/token")).status_code == 405
    assert (await server.api.post("/oauth/token", content=json.dumps({}))).status_code == 415
    twice = b"grant_type=refresh_token&client_id=a&client_id=b"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await server.api.post("/oauth/token", content=twice, headers=headers)).status_code == 400


@pytest.mark.sqlite_alone
async def test_a_redirect_is_https_or_loopback_and_compared_exactly(server: Server) -> None:
    for uri in (
        "http://evil.example/cb",
        "https://good.example/cb#part",
        "javascript:alert(1)",
        "https://user@good.example/",
        "custom://app",
        "https://",
        "http://127.0.0.1:99999/",
        'https://good.example/"x',
        3,
    ):
        answer = await server.api.post("/oauth/register", json={"redirect_uris": [uri]})
        assert told(answer) == (400, "invalid_redirect_uri"), uri
    bodies: list[Any] = [[], {"redirect_uris": []}, {}, "x"]
    for body in bodies:
        answer = await server.api.post("/oauth/register", json=body)
        assert answer.status_code == 400
    for raw in (b"[" * 60_000, b'{"redirect_uris": ["\xff"]}', b"{"):
        answer = await server.api.post("/oauth/register", content=raw)
        assert told(answer) == (400, "invalid_client_metadata"), raw[:20]
    client_id = await register(server, "https://good.example/cb?a=1", REDIRECT)
    async with person(server) as page:
        for wrong in (
            "https://good.example/cb",
            "https://good.example/cb?a=1&b=2",
            "https://good.example/cb/../x?a=1",
            "https://evil.example/cb?a=1",
            "http://127.0.0.1:3333/other",
            "http://localhost:3333/callback",
            "",
        ):
            for answer in (
                await page.get("/app/authorize", params=asked(client_id, redirect_uri=wrong)),
                await consent(page, asked(client_id, redirect_uri=wrong)),
            ):
                assert answer.status_code == 400, wrong
                assert "location" not in answer.headers
        other_port = asked(client_id, redirect_uri="http://127.0.0.1:4444/callback")
        assert "code" in answer_of(await consent(page, other_port))  # RFC 8252
        unknown = await page.get("/app/authorize", params=asked("prc_nobody"))
        assert unknown.status_code == 400


@pytest.mark.sqlite_alone
async def test_what_is_wrong_with_a_request_is_told_to_the_program(server: Server) -> None:
    client_id = await register(server)
    async with person(server) as page:
        for changed, error in (
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"code_challenge_method": ""}, "invalid_request"),
            ({"code_challenge_method": "plain"}, "invalid_request"),
            ({"code_challenge": ""}, "invalid_request"),
            ({"resource": "https://other.example/mcp"}, "invalid_target"),
            ({"resource": f"{server.base_url}/v1"}, "invalid_target"),
        ):
            answer = answer_of(await page.get("/app/authorize", params=asked(client_id, **changed)))
            assert (answer["error"], answer["state"]) == (error, "xyz"), changed
        refused = answer_of(await consent(page, asked(client_id), decision="refuse"))
        assert (refused["error"], refused["state"], refused["iss"]) == (
            "access_denied",
            "xyz",
            server.base_url,
        )


@pytest.mark.sqlite_alone
async def test_errors_have_the_words_of_oauth_and_a_message_as_every_error(server: Server) -> None:
    client_id = await register(server)
    forms: tuple[tuple[str, dict[str, str], tuple[int, str]], ...] = (
        ("token", {"client_id": client_id}, (400, "invalid_request")),
        ("token", {"client_id": client_id, "grant_type": "password"}, (400, "unsupported_grant_type")),
        ("token", {"client_id": "\0", "grant_type": "refresh_token"}, (400, "invalid_request")),
        ("token", {"client_id": "prc_nobody", "grant_type": "refresh_token"}, (401, "invalid_client")),
        ("revoke", {"client_id": client_id}, (400, "invalid_request")),
    )
    for path, form, error in forms:
        answer = await server.api.post(f"/oauth/{path}", data=form)
        assert told(answer) == error, form
        assert answer.json()["message"] == answer.json()["error_description"]
    async with person(server) as page:
        answered = answer_of(await page.get("/app/authorize", params=asked(client_id, response_type="")))
        assert answered["error"] == "invalid_request"
    assert told(await server.api.post("/auth/cli/start", content=b"{")) == (400, "bad_request")
    for path in ("/mcp/nonsense", "/mcp/inbox/", "/mcp/inbox/a/b"):
        answer = await server.api.get(f"/.well-known/oauth-protected-resource{path}")
        assert told(answer) == (404, "not_found"), path


@pytest.mark.sqlite_alone
async def test_a_program_signs_in_where_an_address_names_the_inbox(server: Server) -> None:
    inbox_id = await server.new_inbox("by-address")
    by_id, by_address = (f"/mcp/inbox/{name}" for name in (inbox_id, "by-address@postroom.localhost"))
    refused = await ask_mcp(server, "pr_nobody", by_address)
    described = f"{server.base_url}/.well-known/oauth-protected-resource{by_address}"
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{described}"'
    resource = (await server.api.get(described)).json()["resource"]
    assert resource == f"{server.base_url}{by_address}"
    client_id = await register(server)
    async with person(server) as page:
        code = answer_of(await consent(page, asked(client_id, resource=resource), level="send"))["code"]
    given = (await exchange(server, client_id, code, resource=resource)).json()
    for path in (by_address, by_id):
        assert (await ask_mcp(server, given["access_token"], path)).status_code == 200
    assert (await ask_mcp(server, given["access_token"])).status_code == 401
    renewed = await renew(server, client_id, given["refresh_token"], resource=resource)
    assert renewed.status_code == 200


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("name", ["%E2%98%83", "%FF", "%00", "a%0D%0ASet-Cookie:%20b", "a%22b"])
async def test_a_refusal_names_any_address_of_mcp_without_breaking(server: Server, name: str) -> None:
    refused = await server.api.post(f"/mcp/inbox/{name}", headers={"Authorization": ""})
    assert told(refused) == (401, "unauthorized")
    named = re.fullmatch(r'Bearer resource_metadata="([!#-~]+)"', refused.headers["www-authenticate"])
    assert named
    assert "set-cookie" not in refused.headers


@pytest.mark.sqlite_alone
async def test_an_app_may_ask_with_a_long_state_also_before_anybody_is_signed_in(server: Server) -> None:
    client_id = await register(server)
    wanted = asked(client_id, state="%/" * 500)
    async with browser(server) as stranger:
        led = await stranger.get((await stranger.get("/app/authorize", params=wanted)).headers["location"])
        assert led.status_code == 200
    async with person(server) as page:
        assert (await page.get("/app/authorize", params=wanted)).status_code == 200
        assert answer_of(await consent(page, wanted, decision="refuse"))["state"] == wanted["state"]
        too_long = asked(client_id, state="x" * 4_000)
        assert (await page.get("/app/authorize", params=too_long)).status_code == 431


@pytest.mark.sqlite_alone
async def test_a_code_is_good_once_for_a_minute_and_for_whom_it_was_given(server: Server) -> None:
    async with person(server) as page:
        client_id, other = await register(server), await register(server, name="Other")
        code = answer_of(await consent(page, asked(client_id)))["code"]
        assert told(await exchange(server, client_id, code, code_verifier="x" * 50)) == (400, "invalid_grant")
        assert told(await exchange(server, other, code)) == (400, "invalid_grant")
        wrong = await exchange(server, client_id, code, redirect_uri="http://127.0.0.1:3334/callback")
        assert told(wrong) == (400, "invalid_grant")
        elsewhere = await exchange(server, client_id, code, resource=f"{server.base_url}/mcp/readonly")
        assert told(elsewhere) == (400, "invalid_target")
        given = (await exchange(server, client_id, code)).json()
        assert (await ask_mcp(server, given["access_token"])).status_code == 200
        assert told(await exchange(server, client_id, code)) == (400, "invalid_grant")
        assert (await ask_mcp(server, given["access_token"])).status_code == 401  # used twice: all of it ends
        assert told(await renew(server, client_id, given["refresh_token"])) == (400, "invalid_grant")
        late = answer_of(await consent(page, asked(client_id)))["code"]
        server.clock.turn(60 * SECOND)
        assert told(await exchange(server, client_id, late)) == (400, "invalid_grant")
        assert told(await exchange(server, client_id, "nothing")) == (400, "invalid_grant")
        assert told(await exchange(server, "prc_nobody", late)) == (401, "invalid_client")


@pytest.mark.sqlite_alone
async def test_a_token_is_good_for_mcp_alone_is_renewed_and_used_twice_ends_the_grant(
    server: Server,
) -> None:
    async with person(server) as page:
        client_id, given = await tokens_of(server, page, level="send")
        async with server.client(given["access_token"]) as program, browser(server) as stranger:
            assert (await program.get("/v1/me")).status_code == 401
            assert (await program.get("/v1/inboxes")).status_code == 401
            signed_in = await stranger.post("/app/sign-in", data={"key": given["access_token"]})
            assert signed_in.status_code == 401
        called = await ask_mcp(server, given["access_token"])
        assert {"send_email", "list_inboxes"} <= tools_in(called)
        server.clock.turn(HOUR)
        assert (await ask_mcp(server, given["access_token"])).status_code == 401
        assert told(await renew(server, "prc_nobody", given["refresh_token"])) == (401, "invalid_client")
        renewed = (await renew(server, client_id, given["refresh_token"])).json()
        assert renewed["expires_in"] == 3600
        assert (await ask_mcp(server, renewed["access_token"])).status_code == 200
        wrong = await renew(
            server, client_id, renewed["refresh_token"], resource=f"{server.base_url}/mcp/readonly"
        )
        assert told(wrong) == (400, "invalid_target")
        assert told(await renew(server, client_id, given["refresh_token"])) == (400, "invalid_grant")
        assert (await ask_mcp(server, renewed["access_token"])).status_code == 401
        assert told(await renew(server, client_id, renewed["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.sqlite_alone
async def test_two_refreshes_at_once_leave_nothing(server: Server) -> None:
    async with person(server) as page:
        client_id, given = await tokens_of(server, page)
        both = await asyncio.gather(*(renew(server, client_id, given["refresh_token"]) for _ in range(2)))
        assert sorted(answer.status_code for answer in both) == [200, 400]
        winner = next(answer.json() for answer in both if answer.status_code == 200)
        assert (await ask_mcp(server, winner["access_token"])).status_code == 401


async def test_a_token_is_revoked_by_either_of_the_two(server: Server) -> None:
    async with person(server) as page:
        for name in ("access_token", "refresh_token"):
            client_id, given = await tokens_of(server, page)
            answer = await server.api.post(
                "/oauth/revoke", data={"token": given[name], "client_id": client_id}
            )
            assert answer.status_code == 200
            assert (await ask_mcp(server, given["access_token"])).status_code == 401
            assert told(await renew(server, client_id, given["refresh_token"])) == (400, "invalid_grant")
        assert (await server.api.post("/oauth/revoke", data={"token": "nothing"})).status_code == 200


@pytest.mark.sqlite_alone
async def test_nobody_lets_a_program_do_more_than_he_may(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"name": "own"})).json()["id"]
    own = (await server.api.post("/v1/inboxes", json={"mailboxName": "own-one", "podId": pod})).json()["id"]
    foreign = await server.new_inbox("foreign")
    client_id = await register(server)
    async with person(server, "viewer", podIds=[pod]) as page:
        shown = await page.get("/app/authorize", params=asked(client_id))
        assert "read only" in shown.text
        assert "drafts only" not in shown.text
        assert (await consent(page, asked(client_id), level="send")).status_code == 403
        assert (await consent(page, asked(client_id), level="everything")).status_code == 403
        assert (await consent(page, asked(client_id), level="read", scope_id=foreign)).status_code == 404
        resource = f"{server.base_url}/mcp/inbox/{foreign}"
        assert (await consent(page, asked(client_id, resource=resource), level="read")).status_code == 404
        code = answer_of(await consent(page, asked(client_id), level="read", scope_id=own))["code"]
        given = (await exchange(server, client_id, code)).json()
        assert "read_thread" in tools_in(await ask_mcp(server, given["access_token"]))


@pytest.mark.sqlite_alone
async def test_a_grant_ends_with_its_user_and_with_a_lower_role(server: Server) -> None:
    async with person(server, "admin") as page:
        [user] = (await server.api.get("/v1/users")).json()["data"]
        _, first = await tokens_of(server, page, level="send")
        client_id = await register(server)
        pending = answer_of(await consent(page, asked(client_id), level="send"))["code"]
        await server.api.patch(f"/v1/users/{user['id']}", json={"role": "viewer"})
        assert (await ask_mcp(server, first["access_token"])).status_code == 401
        assert told(await exchange(server, client_id, pending)) == (400, "invalid_grant")
        assert (await consent(page, asked(client_id))).headers["location"].startswith("/app/sign-in")


@pytest.mark.sqlite_alone
async def test_a_program_that_nobody_let_in_is_forgotten_after_a_day_and_a_token_after_30(
    server: Server,
) -> None:
    async with person(server) as page:
        used, given = await tokens_of(server, page)
        unused = await register(server)
        server.clock.turn(DAY + 1)
        await server.resources.db.write(expiry.expire_rows, server.clock.now(), 100)
    rows = await server.resources.db.read(lambda tx: tx.all("select id from oauth_clients"))
    assert {row["id"] for row in rows} == {used}
    assert unused != used
    server.clock.turn(29 * DAY - 1)
    assert told(await renew(server, used, given["refresh_token"])) == (400, "invalid_grant")
    while await server.resources.db.write(expiry.expire_rows, server.clock.now(), 100):
        pass
    listed = (await server.api.get("/v1/api-keys")).json()["data"]
    assert [key["kind"] for key in listed] == ["key"]


@pytest.mark.sqlite_alone
async def test_registrations_that_nobody_allowed_are_limited_by_the_hour(server: Server) -> None:
    async with person(server) as page:
        client_id = await register(server)
        await consent(page, asked(client_id))
    server.clock.turn(1_000)
    for _ in range(oauth_clients.AN_HOUR_AND_NETWORK):
        await register(server)
    server.clock.turn(60_000)
    answer = await server.api.post("/oauth/register", json={"redirect_uris": [REDIRECT]})
    assert told(answer) == (429, "rate_limit_exceeded")
    assert answer.headers["retry-after"] == str(3600 - 60)
    server.clock.turn(3_540_000 - 1_000)
    assert (await server.api.post("/oauth/register", json={"redirect_uris": [REDIRECT]})).status_code == 429
    server.clock.turn(1_000)
    await register(server)


@pytest.mark.sqlite_alone
async def test_what_is_wrong_with_a_request_is_told_to_the_program_also_when_it_is_allowed(
    server: Server,
) -> None:
    client_id = await register(server)
    async with person(server) as page:
        for wrong, error in (
            ({"code_challenge": "short"}, "invalid_request"),
            ({"code_challenge": "ü" * 43}, "invalid_request"),
            ({"code_challenge_method": "plain"}, "invalid_request"),
            ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
            ({"response_type": "token"}, "unsupported_response_type"),
        ):
            answer = answer_of(await consent(page, asked(client_id, **wrong)))
            assert (answer["error"], answer["state"]) == (error, "xyz"), wrong


@pytest.mark.sqlite_alone
async def test_a_page_of_consent_lets_its_form_lead_to_the_program_alone(server: Server) -> None:
    client_id = await register(server, "https://claude.example/callback", name="<b>Claude</b>")
    query = asked(client_id, redirect_uri="https://claude.example/callback")
    async with person(server) as page:
        shown = await page.get("/app/authorize", params=query)
        assert "form-action 'self' https://claude.example;" in shown.headers["content-security-policy"]
        assert "&lt;b&gt;Claude" in shown.text
        assert "claude.example" in shown.text
    async with browser(server) as stranger:
        led = await stranger.get("/oauth/authorize", params=query)
        to_sign_in = await stranger.get(led.headers["location"])
        assert to_sign_in.headers["location"].startswith("/app/sign-in?next=%2Fapp%2Fauthorize%3F")
        cross = await stranger.post("/app/authorize", data=query, headers={"Origin": "https://evil.example"})
        assert cross.status_code in (303, 403)


async def start_device(server: Server) -> dict[str, Any]:
    answer = await server.api.post("/auth/cli/start", json={})
    assert answer.status_code == 200
    started: dict[str, Any] = answer.json()
    assert started["expiresInSeconds"] == 600
    return started


async def poll(server: Server, started: dict[str, Any]) -> httpx2.Response:
    return await server.api.get("/auth/cli/poll", params={"requestId": started["requestId"]})


@pytest.mark.sqlite_alone
async def test_a_program_without_a_browser_gets_its_key_once(server: Server) -> None:
    inbox_id = await server.new_inbox("console")
    started = await start_device(server)
    assert (await poll(server, started)).status_code == 202
    async with person(server) as page:
        shown = await page.get(started["verifyUrl"])
        assert started["userCode"] in shown.text
        form = {"code": started["userCode"], "level": "everything", "scope_id": inbox_id, "decision": "allow"}
        assert (await page.post("/app/device", data=form)).status_code == 303
        assert (await page.post("/app/device", data=form)).status_code == 404  # decided once
    ready = await poll(server, started)
    assert ready.json()["status"] == "ready"
    async with server.client(ready.json()["apiKey"]) as program:
        me = (await program.get("/v1/me")).json()
    assert (me["scope"], me["inboxId"], me["permissions"]) == ("inbox", inbox_id, ["read", "draft", "send"])
    assert told(await poll(server, started)) == (404, "not_found")


@pytest.mark.sqlite_alone
async def test_a_refused_expired_or_unknown_request_is_not_found(server: Server) -> None:
    refused, expired = await start_device(server), await start_device(server)
    async with person(server, "viewer") as page:
        form = {"code": refused["userCode"], "decision": "refuse"}
        assert (await page.post("/app/device", data=form)).status_code == 303
        assert (await poll(server, refused)).status_code == 404
        assert (await page.get("/app/device", params={"code": "BBBB-BBBB"})).status_code == 404
        too_much = {"code": expired["userCode"], "level": "send", "scope_id": "all", "decision": "allow"}
        assert (await page.post("/app/device", data=too_much)).status_code == 403
        server.clock.turn(10 * MINUTE)
        assert (await poll(server, expired)).status_code == 404
        late = {"code": expired["userCode"], "level": "read", "scope_id": "all", "decision": "allow"}
        assert (await page.post("/app/device", data=late)).status_code == 404
    assert (await server.api.get("/auth/cli/poll", params={"requestId": "x"})).status_code == 404


@pytest.mark.sqlite_alone
async def test_the_command_signs_in_and_keeps_a_profile(server: Server) -> None:
    command = asyncio.create_task(asyncio.to_thread(run_login, server.base_url))
    async with asyncio.timeout(120):
        while not (rows := await server.resources.db.read(waiting_codes)):
            await asyncio.sleep(0.02)
    async with person(server) as page:
        form = {"code": rows[0]["user_code"], "level": "everything", "scope_id": "all", "decision": "allow"}
        assert (await page.post("/app/device", data=form)).status_code == 303
    done = await command
    assert done.exit_code == 0, done.output
    assert rows[0]["user_code"] in done.stderr
    profile = profiles.load().find("default")
    assert profile is not None
    async with server.client(profile.api_key or "") as program:
        assert (await program.get("/v1/me")).json()["scope"] == "account"


def run_login(base_url: str) -> Result:
    return CliRunner().invoke(app, ["login", base_url, "--json"])


def waiting_codes(tx: Tx) -> list[Any]:
    return tx.all("select user_code from device_codes")
