"""Values that a client rarely sends: each is an answer in shape, on both databases."""

import base64
import re
import uuid

import pytest
from msgspec import Struct, structs

from postroom.web.routes import ROUTES
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone


async def post(server: Server, inbox_id: str, **fields: object) -> tuple[int, dict[str, object]]:
    mail = {"to": "hello@postroom.localhost", "subject": "Hi", "body": "Hello"} | fields
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send", json=mail, headers={"Idempotency-Key": uuid.uuid4().hex}
    )
    return answer.status_code, answer.json()


async def test_a_nul_is_refused_wherever_it_stands(server: Server) -> None:
    hello = await server.new_inbox("hello")
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "other", "domain": "a\0b.example"})
    assert (made.status_code, made.json()["error"]) == (400, "invalid_domain")
    for after in ("%00", "msg_%00", "evt_%00"):
        answer = await server.api.get(f"/v1/inboxes/{hello}/wait?timeout=0&after={after}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), after


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # the other one stores a NUL
async def test_a_nul_in_any_id_or_field_of_any_route_is_no_fault_of_the_server(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for route in ROUTES:
        answer = await server.api.request(route.method, re.sub(r"{[^}]*}", "a%00b", route.path))
        assert answer.status_code < 500, (route.method, route.path, answer.text)
        path = re.sub(r"{[^}]*}", "x", route.path.replace("{inbox_id}", inbox_id))
        params = {} if route.query is None else dict.fromkeys(names_of(route.query), "a\0b")
        for field in names_of(route.body) if route.body else [""]:
            body = filled(route.body) | {field: "a\0b"} if route.body and field else None
            for query in ({}, *({name: value} for name, value in params.items())):
                answer = await server.api.request(
                    route.method, path, params=query, json=body, headers={"Idempotency-Key": uuid.uuid4().hex}
                )
                assert answer.status_code < 500, (route.method, route.path, field, query, answer.text)


def names_of(kind: type[Struct]) -> list[str]:
    return [field.encode_name for field in structs.fields(kind)]


def filled(kind: type[Struct]) -> dict[str, object]:
    """Fields that a body must have."""
    return {field.encode_name: "outbound" for field in structs.fields(kind) if field.required}


async def test_a_sent_file_without_a_real_name_gets_one(server: Server) -> None:
    hello = await server.new_inbox("hello")
    files = [
        {"filename": name, "contentType": "application/pdf", "data": base64.b64encode(b"%PDF").decode()}
        for name in ("", ".", "..", "...", "/", " ")
    ]
    status, sent = await post(server, hello, attachments=files)
    assert status == 200
    message = (await server.api.get(f"/v1/messages/{sent['id']}")).json()
    assert [file["filename"] for file in message["attachments"]] == [
        f"attachment-{number}.pdf" for number in range(1, 7)
    ]


async def test_words_beside_a_bare_address_are_refused(server: Server) -> None:
    hello = await server.new_inbox("hello")
    for to in ("a b@example.org", "b@example.org a", "a <b@example.org> , c d@example.org"):
        for field in ("to", "cc", "bcc", "replyTo"):
            status, answer = await post(server, hello, **{field: to})
            assert (status, answer.get("field")) == (400, field), to


async def test_a_list_of_recipients_without_end_is_refused(server: Server) -> None:
    hello = await server.new_inbox("hello")
    for to in ("a@b.example," * 50_000, [""] * 10_000):
        status, answer = await post(server, hello, to=to)
        assert (status, answer["field"]) == (400, "to")


async def test_a_name_must_not_turn_the_direction_of_text(server: Server) -> None:
    for name in ("pdf\u202efdp", "\u2066hidden\u2069", "a\u2028b"):
        made = await server.api.post("/v1/inboxes", json={"mailboxName": "hello", "displayName": name})
        assert (made.status_code, made.json()["field"]) == (400, "displayName"), name


async def test_a_filter_of_events_names_a_bounded_number_of_inboxes(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(raw_mail(), "hello")
    many = ",".join(f"inb_{number:032}" for number in range(51))
    answer = await server.api.get("/v1/events", params={"inbox_ids": many})
    assert (answer.status_code, answer.json()["field"]) == (400, "inbox_ids")
