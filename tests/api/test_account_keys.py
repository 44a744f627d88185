"""Keys over REST: no key makes one that may do more, reach further or live longer than itself."""

from typing import Any

import pytest

from postroom.accounts import keys
from tests.api.test_keys import second_account
from tests.api.test_pods import told
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

LATER, MUCH_LATER, EARLIER = "2026-12-01T00:00:00Z", "2027-12-01T00:00:00Z", "2026-11-01T00:00:00Z"


async def make(server: Server, **body: object) -> dict[str, Any]:
    answer = await server.api.post("/v1/api-keys", json=body)
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


async def own_id(server: Server) -> str:
    key_id: str = (await server.api.get("/v1/me")).json()["keyId"]
    return key_id


async def test_an_account_key_is_made_listed_changed_and_revoked(server: Server) -> None:
    key = await make(server, name="deploy", permissions=["manage", "read"], expiresAt=LATER)
    assert (key["permissions"], key["expiresAt"]) == (["read", "manage"], "2026-12-01T00:00:00.000Z")
    assert (key["createdBy"], key["podId"], key["inboxId"]) == (await own_id(server), None, None)
    listed = (await server.api.get("/v1/api-keys")).json()
    assert (listed["total"], [item["name"] for item in listed["data"]]) == (2, ["first key", "deploy"])
    assert "token" not in listed["data"][1]
    body = {"name": "ci", "permissions": ["read"], "limits": {"perDay": 5}, "approval": {"when": ["always"]}}
    changed = (await server.api.patch(f"/v1/api-keys/{key['id']}", json=body)).json()
    assert (changed["name"], changed["permissions"]) == ("ci", ["read"])
    assert changed["limits"] == {"perMinute": None, "perDay": 5, "coldPerDay": None}
    assert changed["approval"]["when"] == ["always"]
    assert (await server.api.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
    async with server.client(key["token"]) as gone:
        assert (await gone.get("/v1/me")).status_code == 401
    actions = [entry["action"] for entry in (await server.api.get("/v1/audit")).json()["data"]]
    assert actions == ["key.revoked", "key.changed", "key.created"]


async def test_the_last_key_that_may_manage_stays(server: Server) -> None:
    only = await own_id(server)
    assert told(await server.api.delete(f"/v1/api-keys/{only}")) == (409, "last_key")
    fewer = await server.api.patch(f"/v1/api-keys/{only}", json={"permissions": ["read"]})
    assert told(fewer) == (409, "last_key")
    await make(server, permissions=["read", "send"])
    await make(server, expiresAt=LATER)
    server.clock.turn(60 * 86_400_000)
    assert told(await server.api.delete(f"/v1/api-keys/{only}")) == (409, "last_key")
    await make(server)
    assert (await server.api.delete(f"/v1/api-keys/{only}")).status_code == 204


async def test_a_key_makes_none_that_may_do_more_or_live_longer_and_the_line_is_known(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("own")
    key = await make(server, permissions=["read", "manage"], expiresAt=LATER)
    await server.api.patch(f"/v1/api-keys/{key['id']}", json={"approval": {"when": ["always"]}})
    async with server.client(key["token"]) as limited:
        for path in ("/v1/api-keys", f"/v1/inboxes/{inbox_id}/api-keys"):
            assert told(await limited.post(path, json={"permissions": ["send"]})) == (403, "forbidden")
            assert told(await limited.post(path, json={"expiresAt": MUCH_LATER})) == (403, "forbidden")
        child = (await limited.post("/v1/api-keys", json={})).json()
        assert child["permissions"] == ["read", "manage"]
        assert (child["expiresAt"], child["createdBy"]) == (key["expiresAt"], key["id"])
        assert child["approval"]["when"] == ["always"]
        grandchild = (await limited.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()
        assert (grandchild["permissions"], grandchild["inboxId"]) == (["read"], inbox_id)
        assert grandchild["podId"] == (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["podId"]
    first = await own_id(server)
    parent = await make(server)
    async with server.client(parent["token"]) as maker:
        child = (await maker.post("/v1/api-keys", json={})).json()
    await server.api.delete(f"/v1/api-keys/{parent['id']}")
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    stored = await server.resources.db.read(keys.get, account_id, child["id"])
    assert stored.lineage == (first, parent["id"])


async def test_what_is_asked_of_a_key_must_make_sense(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    cases: list[tuple[str, dict[str, object], str]] = [
        ("/v1/api-keys", {"expiresAt": EARLIER}, "expiresAt"),
        ("/v1/api-keys", {"expiresAt": "2026-12-01T00:00:00"}, "expiresAt"),
        ("/v1/api-keys", {"permissions": ["fly"]}, "permissions"),
        ("/v1/api-keys", {"permissions": []}, "permissions"),
        (f"/v1/inboxes/{inbox_id}/api-keys", {"permissions": ["read", "manage"]}, "permissions"),
        (f"/v1/inboxes/{inbox_id}/api-keys", {"permissions": ["approve"]}, "permissions"),
    ]
    for path, body, field in cases:
        answer = await server.api.post(path, json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), body
    key = await make(server, permissions=["read"])
    for change, field in [
        ({"permissions": ["read", "send"]}, "permissions"),
        ({"limits": {"perDay": 100_000}}, "limits"),
        ({"limits": {"perMinute": -1}}, "limits"),
        ({"approval": {"when": ["never"]}}, "approval"),
        ({"name": "a\nb"}, "name"),
    ]:
        answer = await server.api.patch(f"/v1/api-keys/{key['id']}", json=change)
        assert (answer.status_code, answer.json()["field"]) == (400, field), change


async def test_a_key_tells_what_it_may_do_and_ends_when_it_expires(server: Server) -> None:
    me = (await server.api.get("/v1/me")).json()
    assert (me["customerId"], me["apiKeyScope"], me["mcpScopes"]) == (me["accountId"], "account", None)
    assert me["permissions"] == ["read", "draft", "send", "approve", "manage"]
    key = await make(server, expiresAt=LATER)
    async with server.client(key["token"]) as short:
        assert (await short.get("/v1/me")).status_code == 200
        server.clock.turn(30 * 86_400_000)
        assert (await short.get("/v1/me")).status_code == 401


async def test_an_account_changes_its_name_and_rules_but_not_its_plan(server: Server) -> None:
    body = {"name": "Acme", "plan": "business", "retentionDays": 30, "approval": {"when": ["always"]}}
    changed = (await server.api.patch("/v1/account", json=body)).json()
    assert (changed["name"], changed["plan"], changed["retentionDays"]) == ("Acme", "free", 30)
    assert (await server.api.get("/v1/account")).json() == changed
    for wrong, field in [
        ({"name": " "}, "name"),
        ({"retentionDays": 0}, "retentionDays"),
        ({"name": None}, "name"),
    ]:
        answer = await server.api.patch("/v1/account", json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_an_inbox_keeps_metadata_limits_and_rules(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    body = {
        "metadata": {"customer": "7"},
        "limits": {"coldPerDay": 0},
        "retentionDays": 7,
        "approval": {"when": ["links"]},
    }
    changed = (await server.api.patch(f"/v1/inboxes/{inbox_id}", json=body)).json()
    assert (changed["metadata"], changed["limits"]["coldPerDay"], changed["retentionDays"]) == (
        {"customer": "7"},
        0,
        7,
    )
    cleared = await server.api.patch(f"/v1/inboxes/{inbox_id}", json=dict.fromkeys(body))
    assert [cleared.json()[name] for name in body] == [{}, None, None, None]


WRONG_METADATA: list[dict[str, object]] = [
    {f"k{number}": "v" for number in range(257)},
    {"k": "x" * 501},
    {"k" * 501: "x"},
    {"k": "\0"},
    {"k\0": "x"},
    {"k": ["v"]},
    {"k": {"deep": 1}},
    {f"k{number}": "ü" * 500 for number in range(256)},
]


async def test_metadata_of_an_inbox_is_merged_and_null_removes_a_key(server: Server) -> None:
    inbox_id = await server.new_inbox("own")

    async def change(metadata: object) -> Any:
        answer = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"metadata": metadata})
        assert answer.status_code == 200, answer.text
        return answer.json()["metadata"]

    kept = {"customer": "7", "seats": 3, "rate": 0.5, "trial": False}
    assert await change(kept) == kept
    assert await change({"seats": None, "unknown": None, "trial": True}) == {
        "customer": "7",
        "rate": 0.5,
        "trial": True,
    }
    assert await change({}) == {"customer": "7", "rate": 0.5, "trial": True}
    assert await change(None) == {}
    many = {f"k{number}": number for number in range(256)}
    assert await change(many) == many
    full = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"metadata": {"one more": 1}})
    assert (full.status_code, full.json()["field"]) == (400, "metadata")
    for wrong in WRONG_METADATA:
        answer = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"metadata": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "metadata"), str(wrong)[:50]
    shown = (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()
    assert shown["metadata"] == many


async def test_one_way_makes_a_key_of_the_account_of_a_pod_or_of_an_inbox(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"clientId": "acme"})).json()["id"]
    inside = (await server.api.post("/v1/inboxes", json={"mailboxName": "inside", "podId": pod})).json()["id"]
    outside = await server.new_inbox("outside")
    made = {}
    for name, scope in {
        "account": {},
        "pod": {"podId": "acme"},
        "inbox": {"inboxId": outside},
        "both": {"podId": pod, "inboxId": inside},
    }.items():
        answer = await server.api.post("/v1/api-keys", json={"name": name, **scope})
        assert answer.status_code == 201, answer.text
        made[name] = answer.json()
    assert (made["account"]["podId"], made["account"]["inboxId"]) == (None, None)
    assert (made["pod"]["podId"], made["pod"]["inboxId"]) == (pod, None)
    assert (made["inbox"]["inboxId"], made["both"]["inboxId"]) == (outside, inside)
    assert made["inbox"]["permissions"] == ["read", "draft", "send"]
    for scope, field in (
        ({"podId": "pod_none"}, "podId"),
        ({"inboxId": "inb_none"}, "inboxId"),
        ({"podId": pod, "inboxId": outside}, "inboxId"),
        ({"inboxId": inside, "permissions": ["manage"]}, "permissions"),
    ):
        refused = await server.api.post("/v1/api-keys", json=scope)
        assert (refused.status_code, refused.json().get("field")) == (400, field), scope


async def test_a_key_of_another_account_is_made_for_nobody(server: Server) -> None:
    inbox_id = await server.new_inbox("mine")
    async with server.client(await second_account(server)) as stranger:
        refused = await stranger.post("/v1/api-keys", json={"inboxId": inbox_id})
    assert (refused.status_code, refused.json()["field"]) == (400, "inboxId")
