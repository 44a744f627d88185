"""What belongs to others, what a key may not, and what has no counterpart: on every route of /v0."""

from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from postroom.errors import BadRequest
from postroom.web.agentmail.routes import ROUTES
from postroom.web.routing import Route
from postroom.web.scope_filters import NAMES, require_taken, taken_by
from tests.agentmail.test_mail import mail, received
from tests.api.test_keys import second_account
from tests.conftest import Server
from tests.plain_transport import http_client

UNKNOWN = {
    "inbox_id": "nobody@postroom.localhost",
    "message_id": "<nothing@there.example>",
    "thread_id": f"thr_{'0' * 32}",
    "pod_id": f"pod_{'0' * 32}",
    "attachment_id": f"msg_{'0' * 32}.0",
    "draft_id": f"drf_{'0' * 32}",
    "domain_id": f"dom_{'1' * 32}",
    "key_id": f"key_{'0' * 32}",
    "webhook_id": f"whk_{'0' * 32}",
    "direction": "send",
    "type": "block",
    "entry": "there.example",
}


async def names_of_everything(server: Server) -> dict[str, str]:
    inbox_id = await server.new_inbox("support")
    await received(server, mail("Private words", message_id="<private@there.example>"))
    message = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"][0]
    inbox = (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()
    address, pod = inbox["address"], inbox["podId"]
    api = server.api
    draft = (await api.post(f"/v0/inboxes/{address}/drafts", json={"subject": "Private words"})).json()
    domain = (await api.post("/v0/domains", json={"domain": "private.example"})).json()
    key = (await api.post("/v0/api-keys", json={"name": "private"})).json()
    hook = {"url": "http://127.0.0.1:9/x", "event_types": ["message.sent"]}
    webhook = (await api.post("/v0/webhooks", json=hook)).json()
    for place in ("/v0", f"/v0/pods/{pod}", f"/v0/inboxes/{address}"):
        await api.post(f"{place}/lists/send/block", json={"entry": "there.example"})
    return {
        "draft_id": draft["draft_id"],
        "domain_id": domain["domain_id"],
        "key_id": key["api_key_id"],
        "webhook_id": webhook["webhook_id"],
        "direction": "send",
        "type": "block",
        "entry": "there.example",
        "inbox_id": address,
        "message_id": "<private@there.example>",
        "thread_id": message["threadId"],
        "pod_id": pod,
        "attachment_id": f"{message['id']}.0",
    }


def path_of(route: Route, names: dict[str, str]) -> str:
    return route.path.format(**{name: names.get(name, UNKNOWN.get(name, "x")) for name in route.path_names})


async def ask(
    api: AsyncClient, route: Route, path: str, content: bytes = b"{}", query: dict[str, str] | None = None
) -> Response:
    body: dict[str, Any] = {}
    if route.body is not None:
        body = {"content": content, "headers": {"Content-Type": "application/json"}}
    return await api.request(route.method, path, params=query, **body)


@pytest.mark.sqlite_alone
async def test_what_is_foreign_is_answered_as_what_is_unknown_before_query_and_body_are_judged(
    server: Server,
) -> None:
    names = await names_of_everything(server)
    async with server.client(await second_account(server)) as stranger:
        for route in [route for route in ROUTES if set(route.path_names) - {"direction", "type"}]:
            answers = [
                await ask(stranger, route, path_of(route, named), content, {"limit": "nonsense"})
                for named in (names, {})
                for content in ((b"{}", b"{") if route.body else (b"",))
            ]
            assert {answer.status_code for answer in answers} == {404}, route.name
            assert len({answer.text for answer in answers}) == 1, route.name
            assert answers[0].json()["name"] == "NotFoundError"
        for listed in ("/v0/inboxes", "/v0/threads", "/v0/drafts", "/v0/domains", "/v0/webhooks"):
            assert (await stranger.get(listed)).json()["count"] == 0


@pytest.mark.sqlite_alone
async def test_no_route_ignores_a_boundary_or_takes_what_nobody_may(server: Server) -> None:
    names = await names_of_everything(server)
    made = await server.api.post("/v1/api-keys", json={"permissions": ["draft"]})
    async with server.client(made.json()["token"]) as drafter, http_client() as nobody:
        for route in ROUTES:
            path = path_of(route, names)
            not_taken = sorted(set(NAMES) - taken_by(route.query))
            for name in not_taken:
                with pytest.raises(BadRequest):
                    require_taken([name], route.query)
            answer = await ask(server.api, route, path, query={not_taken[0]: "x"})
            if answer.status_code == 404:  # a file that the mail does not have
                assert "{attachment_id}" in route.path
            else:
                told = answer.json()
                assert (answer.status_code, told["code"]) == (400, "validation_error"), route.name
            if route.permissions and "draft" not in route.permissions:
                answer = await ask(drafter, route, path)
                assert (answer.status_code, answer.json()["code"]) == (403, "missing_permission"), route.name
            answer = await ask(nobody, route, f"{server.base_url}{path}")
            assert (answer.status_code, answer.json()["name"]) == (401, "UnauthorizedError"), route.name


@pytest.mark.sqlite_alone
async def test_what_has_no_counterpart_is_said_before_anybody_is_asked_who_he_is(server: Server) -> None:
    async with http_client(server.base_url) as nobody:
        for path in (
            "/v0/agent/sign-up",
            "/v0/apps",
            "/v0/inboxes/a@b.example/calendar",
            "/v0/webhooks/polling",
        ):
            answer = await nobody.post(path, json={})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        assert (await nobody.get("/v0/nothing")).status_code == 401
    assert (await server.api.get("/v0/nothing")).json()["name"] == "NotFoundError"
    assert (await server.api.put("/v0/inboxes")).status_code == 405
