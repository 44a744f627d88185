"""Templates over REST: kept for an inbox, filled in by sends and drafts, out of scope for others."""

from typing import Any

import httpx2
import pytest

from postroom.mailbox.templates import TEMPLATES_OF_AN_INBOX
from postroom.upkeep.upkeep_loop import one_round
from postroom_mail.mime.parse import parse_mail
from tests.api.test_keys import second_account
from tests.api.test_pods import new_pod, pod_client
from tests.api.test_send import raw_of
from tests.conftest import Server

SHIPPED = {
    "name": "shipped",
    "subject": "Order {{order}}",
    "body": "Hello {{name}},\nyour order {{order}} is on its way.",
}
VALUES = {"name": "Ann", "order": "7"}
TO = "ann@example.com"


async def new_template(server: Server, inbox_id: str, **texts: Any) -> dict[str, Any]:
    answer = await server.api.post("/v1/templates", json={"inboxId": inbox_id, **SHIPPED, **texts})
    assert answer.status_code == 201, answer.text
    template: dict[str, Any] = answer.json()
    return template


async def send(
    server: Server, inbox_id: str, key: str = "k", api: httpx2.AsyncClient | None = None, **fields: Any
) -> httpx2.Response:
    path, headers = f"/v1/inboxes/{inbox_id}/send", {"Idempotency-Key": key}
    return await (api or server.api).post(path, json={"to": TO, **fields}, headers=headers)


async def test_a_template_is_kept_changed_listed_and_deleted(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    made = await new_template(server, bob)
    assert (made["inboxId"], made["fields"], made["bodyHtml"]) == (bob, ["order", "name"], None)
    assert made["id"].startswith("tpl_")
    path = f"/v1/templates/{made['id']}"
    assert (await server.api.get(path)).json() == made
    again = await server.api.post("/v1/templates", json={"inboxId": bob, **SHIPPED})
    assert (again.status_code, again.json()["error"]) == (409, "template_exists")
    other = await new_template(server, carol)  # another inbox may use the name
    page = (await server.api.get("/v1/templates")).json()
    assert ([each["id"] for each in page["data"]], page["total"]) == ([other["id"], made["id"]], 2)
    page = (await server.api.get("/v1/templates", params={"inboxId": bob})).json()
    assert ([each["id"] for each in page["data"]], page["total"]) == ([made["id"]], 1)
    changed = (await server.api.patch(path, json={"subject": None, "bodyHtml": "<p>{{when}}</p>"})).json()
    assert (changed["subject"], changed["fields"]) == (None, ["name", "order", "when"])
    second = await new_template(server, bob, name="second")
    taken = await server.api.patch(f"/v1/templates/{second['id']}", json={"name": "shipped"})
    assert taken.json()["error"] == "template_exists"
    assert (await server.api.delete(path)).status_code == 204
    assert (await server.api.get(path)).status_code == 404
    noted = (await server.api.get("/v1/audit")).json()["data"]
    assert [each["action"] for each in noted if each["target"] == made["id"]] == [
        "template.deleted",
        "template.changed",
        "template.created",
    ]


@pytest.mark.sqlite_alone
async def test_what_is_no_template_or_one_too_many_is_refused(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for wrong, field in (
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"subject": "a\r\nBcc: x"}, "subject"),
        ({"body": ""}, "body"),
        ({"body": "x" * 100_001}, "body"),
    ):
        answer = await server.api.post("/v1/templates", json={"inboxId": bob, **SHIPPED, **wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, field), wrong
    made = await new_template(server, bob, body="a NUL: \0")
    assert (await server.api.get(f"/v1/templates/{made['id']}")).json()["body"] == "a NUL: \0"
    full = await server.new_inbox("full")
    for number in range(TEMPLATES_OF_AN_INBOX):
        await new_template(server, full, name=f"t{number}")
    answer = await server.api.post("/v1/templates", json={"inboxId": full, **SHIPPED})
    assert (answer.status_code, answer.json()["error"]) == (422, "template_limit_reached")


@pytest.mark.sqlite_alone
async def test_a_send_is_written_from_a_template_by_name_or_id_and_says_what_it_misses(
    server: Server,
) -> None:
    bob = await server.new_inbox("bob")
    made = await new_template(server, bob)
    for key, named in (("a", "shipped"), ("b", made["id"])):
        sent = (await send(server, bob, key, template=named, fields=VALUES)).json()
        mail = parse_mail(await raw_of(server, sent["id"]))
        assert mail.subject == "Order 7"
        assert mail.body_text.strip() == "Hello Ann,\nyour order 7 is on its way."
        assert not mail.body_html
    sent = (await send(server, bob, "c", template="shipped", fields=VALUES, subject="Mine")).json()
    assert parse_mail(await raw_of(server, sent["id"])).subject == "Mine"
    for asked, status, field in (
        ({"template": "shipped", "fields": {"name": "Ann"}}, 400, "fields"),
        ({"template": "shipped", "fields": VALUES, "body": "x"}, 400, "template"),
        (
            {"template": "shipped", "fields": {"name": "a", "order": "1\r\nBcc: x@example.com"}},
            400,
            "subject",
        ),
        ({"fields": VALUES, "body": "x", "subject": "s"}, 400, "template"),
        ({"subject": "s"}, 400, "body"),
        ({"template": "nothing", "fields": VALUES}, 404, None),
    ):
        answer = await send(server, bob, **asked)
        assert (answer.status_code, answer.json().get("field")) == (status, field), asked


@pytest.mark.sqlite_alone
async def test_a_repeated_send_is_answered_whatever_became_of_its_template(server: Server) -> None:
    bob = await server.new_inbox("bob")
    made = await new_template(server, bob)
    first = await send(server, bob, template="shipped", fields=VALUES)
    await server.api.patch(f"/v1/templates/{made['id']}", json={"body": "Other {{more}}"})
    again = await send(server, bob, template="shipped", fields=VALUES)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    await server.api.delete(f"/v1/templates/{made['id']}")
    assert (await send(server, bob, template="shipped", fields=VALUES)).content == first.content
    other = await send(server, bob, template="shipped", fields={**VALUES, "name": "Bob"})
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")


@pytest.mark.sqlite_alone
async def test_values_are_text_in_both_forms(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await new_template(server, bob, name="html", body="<p>Hello {{name}}</p>", subject="s")
    await new_template(server, bob, name="plain", body="Hello {{name}}", subject="s")
    value = {"name": '<a href="https://evil.example">x</a>'}
    escaped = "&lt;a href=&quot;https://evil.example&quot;&gt;x&lt;/a&gt;"
    for number, name in enumerate(("html", "plain")):
        sent = (await send(server, bob, f"k{number}", template=name, fields=value)).json()
        mail = parse_mail(await raw_of(server, sent["id"]))
        assert mail.body_text.strip() == f"Hello {value['name']}"
        assert escaped in mail.body_html


@pytest.mark.sqlite_alone
async def test_a_draft_is_filled_in_when_it_is_written(server: Server) -> None:
    bob = await server.new_inbox("bob")
    made = await new_template(server, bob)
    path = f"/v1/inboxes/{bob}/drafts"
    draft = (await server.api.post(path, json={"template": "shipped", "fields": VALUES, "to": TO})).json()
    assert (draft["subject"], draft["body"]) == ("Order 7", "Hello Ann,\nyour order 7 is on its way.")
    await server.api.patch(f"/v1/templates/{made['id']}", json={"body": "Bye {{name}}"})
    assert (await server.api.get(f"/v1/drafts/{draft['id']}")).json()["body"] == draft["body"]
    change = {"template": made["id"], "fields": {"name": "Eve", "order": "8"}}
    changed = (await server.api.patch(f"/v1/drafts/{draft['id']}", json=change)).json()
    assert (changed["subject"], changed["body"], changed["to"]) == ("Order 8", "Bye Eve", [TO])
    for wrong in ({"fields": VALUES}, {"template": "shipped", "body": "x", "fields": VALUES}):
        answer = await server.api.patch(f"/v1/drafts/{draft['id']}", json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, "template")


async def test_templates_stay_within_account_pod_and_inbox(server: Server) -> None:
    await new_pod(server, clientId="seven")
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    made = await new_template(server, bob)
    path = f"/v1/templates/{made['id']}"
    reader = (await server.api.post(f"/v1/inboxes/{bob}/api-keys", json={})).json()["token"]
    async with server.client(reader) as agent:
        assert (await agent.get("/v1/templates")).json()["total"] == 1
        assert (await send(server, bob, "agent", agent, template="shipped", fields=VALUES)).status_code == 200
        assert (await agent.delete(path)).status_code == 403
    beside = (await server.api.post(f"/v1/inboxes/{carol}/api-keys", json={})).json()["token"]
    strangers = [
        server.client(await second_account(server)),
        await pod_client(server, "seven"),
        server.client(beside),
    ]
    for stranger in strangers:
        async with stranger:
            assert (await stranger.get("/v1/templates")).json() == {"data": [], "total": 0}
            assert (await stranger.get(path)).status_code == 404
            listed = await stranger.get("/v1/templates", params={"inboxId": bob})
            assert listed.json() == {"data": [], "total": 0}
            there = await stranger.post("/v1/templates", json={"inboxId": bob, **SHIPPED, "name": "x"})
            assert there.status_code == (403 if stranger is strangers[2] else 400)
            answer = await send(server, carol, "x", stranger, template=made["id"], fields=VALUES)
            assert answer.status_code == 404


async def test_templates_go_with_their_inbox(server: Server) -> None:
    bob = await server.new_inbox("bob")
    made = await new_template(server, bob)
    await server.api.delete(f"/v1/inboxes/{bob}")
    assert (await server.api.get("/v1/templates")).json()["total"] == 0
    assert (await server.api.get(f"/v1/templates/{made['id']}")).status_code == 404
    await one_round(server.resources)
    rows = await server.resources.db.read(lambda tx: tx.all("select id from templates"))
    assert rows == []
