"""Boundaries in a query narrow what is answered, on every route, or are refused: none is ignored."""

from typing import Any

import pytest
from httpx2 import AsyncClient, Response
from websockets.exceptions import InvalidStatus

from postroom.errors import BadRequest
from postroom.web.routes import ROUTES
from postroom.web.routing import Route
from postroom.web.scope_filters import NAMES, require_taken, taken_by
from tests.api.test_keys import second_account
from tests.api.test_pods import inbox_in, new_pod, pod_client
from tests.api.test_stream import mail, open_stream
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

UNKNOWN = "0" * 32
# Of these the paths must name something that is there: what is unknown is told before the query is judged.
OWNED = (
    "inbox_id",
    "draft_id",
    "template_id",
    "pod_id",
    "thread_id",
    "message_id",
    "domain_id",
    "key_id",
    "user_id",
    "connection_id",
    "webhook_id",
    "job_id",
)


async def ids_of_everything(server: Server) -> dict[str, str]:
    """Something of every kind that a path can name and whose ownership is asked before the query."""
    api = server.api
    pod = await new_pod(server, clientId="tenant")
    inbox_id = await server.new_inbox("hello")
    await server.deliver(mail(1), "hello")
    event = await server.next_event()
    draft = await api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "s"})
    template = {"inboxId": inbox_id, "name": "hello", "body": "Hello {{name}}"}
    template_id = (await api.post("/v1/templates", json=template)).json()["id"]
    domain = await api.post("/v1/domains", json={"domain": "tenant.example"})
    key = await api.post("/v1/api-keys", json={"name": "other"})
    user = await api.post("/v1/users", json={"email": "ann@there.example", "role": "viewer"})
    connection = await api.post("/v1/connections", json={"kind": "http", "provider": "raw"})
    webhook = await api.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/hook"})
    calendar = (await api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"][0]["id"]
    lunch = {"calendarId": calendar, "summary": "Lunch", "start": "2026-11-20", "end": "2026-11-21"}
    appointment = await api.post("/v1/calendar-events", json={**lunch, "allDay": True})
    await api.patch("/v1/account", json={"erasureApproval": True})
    contact = (await api.get("/v1/contacts")).json()["data"][0]["address"]
    job = await api.delete(f"/v1/contacts/{contact}")
    rule = {"name": "r", "query": "subject:x", "actions": [{"type": "archive"}]}
    rule_id = (await api.post("/v1/rules", json=rule)).json()["id"]
    return {
        "calendar_id": calendar,
        "calendar_event_id": appointment.json()["id"],
        "rule_id": rule_id,
        "inbox_id": inbox_id,
        "draft_id": draft.json()["id"],
        "template_id": template_id,
        "pod_id": pod["id"],
        "thread_id": event["thread_id"],
        "message_id": event["message"]["id"],
        "domain_id": domain.json()["id"],
        "key_id": key.json()["id"],
        "user_id": user.json()["id"],
        "connection_id": connection.json()["id"],
        "webhook_id": webhook.json()["id"],
        "job_id": job.json()["jobId"],
    }


def path_of(route: Route, ids: dict[str, str]) -> str:
    return route.path.format(**{name: ids.get(name, f"x_{UNKNOWN}") for name in route.path_names})


async def ask(api: AsyncClient, route: Route, path: str, **params: str) -> Response:
    body: dict[str, Any] = {} if route.body is None else {"json": {}}
    return await api.request(route.method, path, params=params, headers={"Idempotency-Key": "k"}, **body)


def test_no_boundary_is_ignored_that_a_query_does_not_take() -> None:
    for query in {route.query for route in ROUTES}:
        for name in set(NAMES) - taken_by(query):
            with pytest.raises(BadRequest) as refused:
                require_taken(["other", name], query)
            assert refused.value.extras == {"field": name}


async def test_no_route_ignores_a_boundary_that_it_does_not_take(server: Server) -> None:
    ids = await ids_of_everything(server)
    for number, route in enumerate(ROUTES):
        others = sorted(set(NAMES) - taken_by(route.query))
        for name in others[number % len(NAMES) :][:1] or others[:1]:
            answer = await ask(server.api, route, path_of(route, ids), **{name: "pod_1", "other": "x"})
            told = answer.status_code, answer.json()["error"], answer.json().get("field")
            assert told == (400, "bad_request", name), (route.name, name)
    assert (await server.api.get(f"/v1/inboxes/{ids['inbox_id']}?pod%49d=x")).status_code == 400
    assert (await server.api.get("/v1/me", params={"other": "x"})).status_code == 200
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 1


async def test_no_boundary_stands_twice_where_one_of_them_would_count(server: Server) -> None:
    ids = await ids_of_everything(server)
    for route in ROUTES:
        for name in taken_by(route.query):
            path = path_of(route, ids)
            answer = await server.api.request(route.method, f"{path}?{name}=a&{name}=b")
            assert (answer.status_code, answer.json()["field"]) == (400, name), route.name


async def test_what_is_unknown_or_foreign_is_not_found_before_query_and_body_are_judged(
    server: Server,
) -> None:
    ids = await ids_of_everything(server)
    async with server.client(await second_account(server)) as stranger:
        for route in [route for route in ROUTES if set(route.path_names) & set(OWNED)]:
            for named in (ids, {}):
                path = path_of(route, named)
                bad_query = await ask(stranger, route, path, pod_ids="x", limit="nonsense")
                assert bad_query.status_code == 404, route.name
                if route.body is None:
                    continue
                for content in (b"{", b'{"name": 3, "contentHash": 3, "sendAt": 3, "to": 3}'):
                    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
                    bad_body = await stranger.request(route.method, path, content=content, headers=headers)
                    assert bad_body.status_code == 404, (route.name, content)


async def test_inboxes_are_listed_of_one_pod_alone(server: Server) -> None:
    pod, other = await new_pod(server, clientId="seven"), await new_pod(server, clientId="eight")
    outside = await server.new_inbox("outside")
    inside = await inbox_in(server.api, "inside", podId="seven")
    for asked in (pod["id"], "seven"):
        page = (await server.api.get("/v1/inboxes", params={"podId": asked})).json()
        assert ([inbox["id"] for inbox in page["data"]], page["total"]) == ([inside], 1)
    for unknown in (other["id"], "eight", "nine", f"pod_{UNKNOWN}", "", "\0", "a b"):
        page = (await server.api.get("/v1/inboxes", params={"podId": unknown})).json()
        assert page == {"data": [], "total": 0}, unknown
    async with await pod_client(server, "eight") as tenant:
        for asked in ("seven", pod["id"]):
            page = (await tenant.get("/v1/inboxes", params={"podId": asked})).json()
            assert page == {"data": [], "total": 0}
    made = await server.api.post(f"/v1/inboxes/{outside}/api-keys", json={})
    async with server.client(made.json()["token"]) as key_of_one:
        assert (await key_of_one.get("/v1/inboxes", params={"podId": "seven"})).json()["total"] == 0


@pytest.mark.both_databases
async def test_events_are_filtered_by_pod_and_inbox(server: Server) -> None:
    await new_pod(server, clientId="seven")
    outside = await server.new_inbox("outside")
    inside = await inbox_in(server.api, "inside", podId="seven")
    await server.deliver(mail(1, "outside"), "outside")
    first = await server.next_event()
    await server.deliver(mail(2, "inside"), "inside")
    second = await server.next_event(first["event_id"])

    async def found(**params: str) -> list[str]:
        answer = await server.api.get("/v1/events", params=params)
        assert answer.status_code == 200, answer.text
        return [event["event_id"] for event in answer.json()["data"]]

    for order in ("asc", "desc"):
        assert await found(podId="seven", order=order) == [second["event_id"]]
        assert await found(inboxId=outside, order=order) == [first["event_id"]]
        assert await found(podId="seven", inboxId=inside, order=order) == [second["event_id"]]
        for nothing in (
            {"podId": "nine"},
            {"podId": ""},
            {"inboxId": ""},
            {"inboxId": "\0"},
            {"inboxId": f"inb_{UNKNOWN}"},
            {"podId": "seven", "inboxId": outside},
            {"inboxId": inside, "inbox_ids": outside},
        ):
            assert await found(**nothing, order=order) == [], nothing
    answer = await server.api.get("/v1/events", params={"inbox_ids": ""})
    assert (answer.status_code, answer.json()["field"]) == (400, "inbox_ids")
    made = await server.api.post(f"/v1/inboxes/{outside}/api-keys", json={})
    async with server.client(made.json()["token"]) as key_of_one:
        assert (await key_of_one.get("/v1/events", params={"podId": "seven"})).json()["data"] == []


async def test_usage_is_filtered_by_pod_and_inbox(server: Server) -> None:
    pod = await new_pod(server, clientId="seven")
    outside = await server.new_inbox("outside")
    inside = await inbox_in(server.api, "inside", podId="seven")
    await server.deliver(mail(1, "outside"), "outside")
    await server.next_event()

    async def groups(**params: str) -> list[str]:
        answer = await server.api.get("/v1/usage", params={"group_by": "inbox", **params})
        assert answer.status_code == 200, answer.text
        return [group["group"] for group in answer.json()["data"]]

    assert await groups(inboxId=outside) == [outside]
    for nothing in (
        {"podId": pod["id"]},
        {"podId": "seven"},
        {"podId": "nine"},
        {"inboxId": inside},
        {"inboxId": "\0"},
        {"podId": "seven", "inboxId": outside},
    ):
        assert await groups(**nothing) == [], nothing
    await server.deliver(mail(2, "inside"), "inside")
    await server.next_event((await server.next_event())["event_id"])
    assert await groups(podId="seven") == [inside]


async def test_a_key_without_read_opens_no_stream(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for path in ("/v1/api-keys", f"/v1/inboxes/{inbox_id}/api-keys"):
        key = (await server.api.post(path, json={"permissions": ["send"]})).json()
        with pytest.raises(InvalidStatus) as refused:
            async with open_stream(server, key["token"]):
                pass
        assert refused.value.response.status_code == 403
        assert b'"forbidden"' in refused.value.response.body
        noted = (await server.api.get("/v1/audit", params={"actor": key["id"]})).json()["data"]
        assert [entry["target"] for entry in noted] == ["GET /v1/ws"]


async def test_a_boundary_in_the_address_of_the_stream_is_refused(server: Server) -> None:
    for name in NAMES:
        with pytest.raises(InvalidStatus) as refused:
            async with open_stream(server, query=f"?{name}=x"):
                pass
        assert refused.value.response.status_code == 400
        assert f'"{name}"'.encode() in refused.value.response.body
