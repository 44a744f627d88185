"""What would restrict a new key, inbox or pod is taken as in a change of it, and never ignored."""

from typing import Any

import pytest

from tests.api.test_account_keys import WRONG_METADATA, make
from tests.api.test_pods import told
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

APPROVAL = {
    "when": ["always", {"overPerDay": 3}],
    "expiresHours": 5,
    "reviewers": ["boss@example.com"],
    "approvals": 2,
}
LIMITS = {"perMinute": 1, "perDay": 5, "coldPerDay": 0}
WRONG: list[tuple[str, Any]] = [
    ("approval", {"when": ["never"]}),
    ("approval", {"when": "always"}),
    ("approval", {"expiresHours": 0}),
    ("approval", {"reviewers": ["nobody"]}),
    ("approval", "always"),
    ("limits", {"perDay": 100_000}),
    ("limits", {"perMinute": -1}),
    ("limits", {"perDay": "5"}),
    ("limits", 5),
]


async def key_paths(server: Server) -> list[str]:
    inbox_id = await server.new_inbox("own")
    pod = await server.api.post("/v1/pods", json={})
    return ["/v1/api-keys", f"/v1/pods/{pod.json()['id']}/api-keys", f"/v1/inboxes/{inbox_id}/api-keys"]


async def test_a_new_key_of_any_reach_is_held_and_limited_as_asked(server: Server) -> None:
    for path in await key_paths(server):
        made = await server.api.post(path, json={"approval": APPROVAL, "limits": LIMITS})
        assert made.status_code == 201, made.text
        shown = (await server.api.get(f"/v1/api-keys/{made.json()['id']}")).json()
        for answer in (made.json(), shown):
            assert (answer["approval"], answer["limits"]) == (APPROVAL, LIMITS), path
        plain = await server.api.post(path, json={"approval": None, "limits": None})
        assert (plain.json()["approval"], plain.json()["limits"]) == (None, None)


async def test_what_a_new_key_cannot_be_bound_to_makes_none(server: Server) -> None:
    for path in await key_paths(server):
        before = (await server.api.get(path)).json()["total"]
        for field, value in WRONG:
            answer = await server.api.post(path, json={field: value})
            assert (answer.status_code, answer.json()["field"]) == (400, field), value
        assert (await server.api.get(path)).json()["total"] == before


async def test_the_first_send_of_a_key_made_with_approval_waits(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    body = {"approval": {"when": ["always"]}}
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=body)
    letter = {"to": "a@example.com", "subject": "s", "body": "b"}
    async with server.client(made.json()["token"]) as bound:
        headers = {"Idempotency-Key": "1"}
        sent = await bound.post(f"/v1/inboxes/{inbox_id}/send", json=letter, headers=headers)
    assert sent.json()["hold"]["reasons"] == ["always"], sent.text


async def test_a_key_that_is_bound_itself_binds_no_key_it_makes(server: Server) -> None:
    paths = await key_paths(server)
    key = await make(server, limits={"perDay": 2})
    async with server.client(key["token"]) as bound:
        for path in paths:
            for body in ({"limits": None}, {"limits": LIMITS}, {"approval": None}, {"approval": APPROVAL}):
                assert told(await bound.post(path, json=body)) == (403, "forbidden"), (path, body)
            child = (await bound.post(path, json={})).json()
            assert child["limits"]["perDay"] == 2


async def test_a_new_inbox_has_rules_limits_metadata_and_retention(server: Server) -> None:
    body = {
        "approval": APPROVAL,
        "limits": LIMITS,
        "metadata": {"customer": "7", "seats": 3, "gone": None},
        "retentionDays": 7,
    }
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bound", **body})
    assert made.status_code == 201, made.text
    shown = (await server.api.get(f"/v1/inboxes/{made.json()['id']}")).json()
    for answer in (made.json(), shown):
        kept = {**body, "metadata": {"customer": "7", "seats": 3}}
        assert {name: answer[name] for name in body} == kept
    wrong = [*WRONG, *(("metadata", each) for each in WRONG_METADATA), ("retentionDays", 0)]
    for field, value in wrong:
        answer = await server.api.post("/v1/inboxes", json={"mailboxName": "none", field: value})
        assert (answer.status_code, answer.json()["field"]) == (400, field), str(value)[:50]
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 1


async def test_a_new_pod_has_rules_and_says_that_it_has_no_limits(server: Server) -> None:
    made = (await server.api.post("/v1/pods", json={"approval": APPROVAL})).json()
    assert made["approval"] == APPROVAL
    assert (await server.api.get(f"/v1/pods/{made['id']}")).json() == made
    for field, value in WRONG:
        for answer in (
            await server.api.post("/v1/pods", json={field: value}),
            await server.api.patch(f"/v1/pods/{made['id']}", json={field: value}),
        ):
            assert (answer.status_code, answer.json()["field"]) == (400, field), value
    limited = await server.api.post("/v1/pods", json={"limits": LIMITS})
    assert (limited.status_code, limited.json()["field"]) == (400, "limits")
    assert (await server.api.get("/v1/pods")).json()["total"] == 2


@pytest.mark.both_databases
async def test_a_pod_gets_another_client_id_that_no_other_has(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"clientId": "a", "name": "A"})).json()
    await server.api.post("/v1/pods", json={"clientId": "b"})
    path = f"/v1/pods/{pod['id']}"
    assert told(await server.api.patch(path, json={"clientId": "b"})) == (409, "client_id_taken")
    assert (await server.api.patch(path, json={"clientId": "a"})).json() == pod
    assert (await server.api.patch(path, json={"clientId": "c"})).json() == {**pod, "clientId": "c"}
    assert (await server.api.get("/v1/pods/c")).json()["id"] == pod["id"]
    assert told(await server.api.get("/v1/pods/a")) == (404, "not_found")
    cleared = await server.api.patch("/v1/pods/c", json={"clientId": None})
    assert (cleared.json()["clientId"], cleared.json()["name"]) == (None, "A")
    wrong = await server.api.patch(path, json={"clientId": "pod_x"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "clientId")
