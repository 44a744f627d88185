"""Aliases at every door: what may be an alias, who may write as one, and where one is the inbox itself."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from postroom.clock import HOUR, to_iso
from tests.api.test_alias_calendars import ALIAS, sent_of, with_alias
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.waiting import until

HOME = "postroom.localhost"
# An address that somebody wants as an alias, and the answer.
WANTED = [
    (f"Sales@{HOME.upper()}", 201, f"sales@{HOME}"),
    (f"sales+tag@{HOME}", 400, "address"),
    (f'"sales team"@{HOME}', 400, "address"),
    (f'"sales"@{HOME}', 400, "address"),
    (f"Sales <sales@{HOME}>", 400, "address"),
    (f" sales@{HOME} ", 400, "address"),
    (f"s@les@{HOME}", 400, "address"),
    (f"sälës@{HOME}", 400, "address"),
    (f"..@{HOME}", 400, "address"),
    (f"sales@{HOME}.", 400, "address"),
    ("sales@bücher.example", 400, "address"),
    ("sales@xn--bcher-kva.example", 400, "address"),
    (f"postmaster@{HOME}", 409, "address"),
    (f"bounces+1-abc@{HOME}", 400, "address"),
    ("sales@[127.0.0.1]", 400, "address"),
    ("sales", 400, "address"),
    ("@", 400, "address"),
    ("", 400, "address"),
    (f"sales\r\nBcc: x@{HOME}", 400, "address"),
    (f"{'a' * 300}@{HOME}", 400, "address"),
]
OTHERS = (f"sales@{HOME}", f"ann@{HOME}", f"nobody@{HOME}", f"billing+x@{HOME}", "billing", "a@b.example")


@pytest.mark.sqlite_alone
async def test_what_may_be_an_alias(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    found = []
    for address, *_ in WANTED:
        answer = await server.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": address})
        body = answer.json()
        found.append((address, answer.status_code, body.get("field", body.get("address"))))
    assert found == WANTED


@pytest.mark.sqlite_alone
async def test_every_way_of_writing_takes_own_aliases_and_nobody_elses(server: Server) -> None:
    bob, ann = await with_alias(server, "bob"), await with_alias(server, "ann", f"sales@{HOME}")
    await server.deliver(raw_mail("Hello?", sender="carol@there.example"), "bob")
    asked = await until(lambda: first_of(server, bob))
    to = {"to": "dora@there.example", "subject": "Hi", "body": "Hi"}
    forward = {"forwardOf": asked["id"], "to": "dora@there.example", "body": "See below"}
    reply = {"replyToMessageId": asked["id"], "body": "Yes"}
    hello = {"name": "hello", "subject": "Hello", "body": "Hello"}
    made = await server.api.post("/v1/templates", json={**hello, "inboxId": bob})
    assert made.status_code == 201, made.text
    from_template = {"template": "hello", "to": "dora@there.example"}
    later = {**to, "sendAt": to_iso(server.clock.now() + HOUR)}
    for number, body in enumerate((to, reply, forward, from_template, later)):
        for other, status in (*((each, 400) for each in OTHERS), (ALIAS.upper(), 200)):
            answer = await server.api.post(
                f"/v1/inboxes/{bob}/send",
                json={**body, "fromAddress": other},
                headers={"Idempotency-Key": f"{number}{other}"},
            )
            assert answer.status_code == status, answer.text
            assert answer.json().get("field") == (None if status == 200 else "fromAddress")
    assert [each["fromAddr"] for each in await sent_of(server, bob)] == [ALIAS] * 5
    assert await sent_of(server, ann) == []


@pytest.mark.sqlite_alone
async def test_a_draft_takes_own_aliases_and_nobody_elses(server: Server) -> None:
    bob = await with_alias(server, "bob")
    await with_alias(server, "ann", f"sales@{HOME}")
    drafts = f"/v1/inboxes/{bob}/drafts"
    made = await server.api.post(drafts, json={"fromAddress": ALIAS.upper(), "to": "dora@there.example"})
    assert made.status_code == 201, made.text
    path = f"/v1/drafts/{made.json()['id']}"
    for other in OTHERS:
        for method, where in (("POST", drafts), ("PATCH", path)):
            answer = await server.api.request(method, where, json={"fromAddress": other})
            assert (answer.status_code, answer.json().get("field")) == (400, "fromAddress"), answer.text
    assert (await server.api.get(drafts)).json()["total"] == 1
    assert (await server.api.get(path)).json() == made.json(), "a refused change changes nothing"
    assert (await server.api.delete(f"/v1/inboxes/{bob}/aliases/{ALIAS}")).status_code == 204
    changed = await server.api.patch(path, json={"subject": "Hi", "body": "Hi"})
    assert changed.status_code == 200, "what the draft has already is judged when it is sent"
    sent = await server.api.post(f"{path}/send", headers={"Idempotency-Key": "a"})
    assert (sent.status_code, sent.json()["field"]) == (400, "fromAddress"), sent.text
    for given in (None, f"Bob@{HOME}"):
        changed = await server.api.patch(path, json={"fromAddress": given})
        assert (changed.status_code, changed.json()["fromAddress"]) == (200, given)


async def first_of(server: Server, inbox_id: str) -> dict[str, Any] | None:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()
    return page["data"][0] if page["data"] else None


@pytest.mark.sqlite_alone
async def test_an_own_alias_is_no_contact_and_searching_in_it_is_searching_in_its_inbox(
    server: Server,
) -> None:
    bob = await with_alias(server, "bob")
    body = {"to": ALIAS, "subject": "Note", "body": "To myself"}
    key = {"Idempotency-Key": "a"}
    assert (await server.api.post(f"/v1/inboxes/{bob}/send", json=body, headers=key)).status_code == 200
    body = {**body, "to": f"bob@{HOME}", "fromAddress": ALIAS}
    key = {"Idempotency-Key": "b"}
    assert (await server.api.post(f"/v1/inboxes/{bob}/send", json=body, headers=key)).status_code == 200

    async def found(path: str) -> list[dict[str, Any]]:
        data: list[dict[str, Any]] = (await server.api.get(path)).json()["data"]
        return data

    received = f"/v1/inboxes/{bob}/messages?direction=inbound"
    await until(lambda: has(found, received, 2))
    await server.deliver(raw_mail("Hello", sender="carol@there.example"), "bob")
    await until(lambda: has(found, received, 3))
    contacts = await found(f"/v1/contacts?inboxId={bob}")
    assert ALIAS not in [each["address"] for each in contacts]
    for words in (f"in:{ALIAS}", f"in:{ALIAS} note", f"in:{ALIAS} is:unread"):
        await until(partial(has, found, f"/v1/search?q={quote(words)}", 2))
        assert await found(f"/v1/search?q={quote(words.replace('billing', 'nobody'))}") == []


async def has(found: Callable[[str], Awaitable[list[Any]]], path: str, number: int) -> bool:
    return len(await found(path)) >= number
