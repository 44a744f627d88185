"""Bodies with too many values or too deep ones are refused at every door, before they are decoded."""

import json
from typing import Any

import httpx2
import pytest

from postroom_mail.mime.parsing_cost import MAX_JSON_DEPTH, MAX_JSON_VALUES
from tests.api.raw_websocket import open_raw
from tests.conftest import Server
from tests.connections.test_posts import connect
from tests.plain_transport import http_client

pytestmark = pytest.mark.sqlite_alone
JSON = {"Content-Type": "application/json"}
MANY = {f"k{number}": "v" for number in range(MAX_JSON_VALUES)}
DEEP: Any = []
for _ in range(MAX_JSON_DEPTH):
    DEEP = [DEEP]
MAIL = {"to": "bob@there.example", "subject": "Hello", "body": "Hello", "text": "Hello"}


def require_refused(answer: httpx2.Response, where: object) -> None:
    assert answer.status_code == 400, (where, answer.text)
    assert "values" in answer.text or "nested" in answer.text, (where, answer.text)


async def test_every_body_of_the_interface_is_bounded(server: Server) -> None:
    inbox_id = await server.new_inbox("bounded")
    sends = {
        f"/v1/inboxes/{inbox_id}/send": ("headers", "metadata", "fields", "unknown"),
        f"/v1/inboxes/{inbox_id}/drafts": ("headers", "metadata", "unknown"),
        f"/v0/inboxes/{inbox_id}/messages/send": ("headers", "unknown"),
        f"/v0/inboxes/{inbox_id}/drafts": ("unknown",),
        "/v1/webhooks": ("headers", "unknown"),
        "/v1/inboxes": ("metadata", "unknown"),
        "/mcp": ("params", "unknown"),
    }
    for path, fields in sends.items():
        for field in fields:
            for hostile in (MANY, DEEP):
                body = json.dumps({**MAIL, field: hostile}).encode()
                answer = await server.api.post(path, content=body, headers=JSON | {"Idempotency-Key": field})
                require_refused(answer, (path, field))


async def test_objects_in_a_multipart_form_are_bounded(server: Server) -> None:
    inbox_id = await server.new_inbox("bounded")
    file = {"attachments": ("a.txt", b"A", "text/plain")}
    for field in ("headers", "metadata", "calendar"):
        for hostile in (MANY, DEEP):
            answer = await server.api.post(
                f"/v1/inboxes/{inbox_id}/send",
                data={**MAIL, field: json.dumps(hostile)},
                files=file,
                headers={"Idempotency-Key": field},
            )
            require_refused(answer, field)


async def test_posts_of_services_are_bounded_before_their_signature_is_read(server: Server) -> None:
    for provider in ("mailgun", "ses", "postmark", "resend", "sendgrid"):
        more = {"apiKey": "re_key"} if provider == "resend" else {}
        url = (await connect(server, provider, **more))["url"]
        for hostile in (MANY, DEEP):
            # In UTF-16, U+2222 has the bytes of two quotes: commas could be hidden behind them.
            for charset in ("utf-8", "utf-16"):
                body = json.dumps({"a": hostile}).encode(charset)
                async with http_client() as stranger:
                    answer = await stranger.post(url, content=body, headers=JSON)
                assert answer.status_code == 400, (provider, charset, answer.text)


async def test_a_registration_and_a_streams_messages_are_bounded(server: Server) -> None:
    deep = json.dumps({"redirect_uris": DEEP}).encode()
    answer = await server.api.post("/oauth/register", content=deep, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert "nested" in answer.json()["error_description"]
    for path in ("/v1/ws", "/v0"):
        stream = await open_raw(server.base_url, server.token, path)
        await stream.say(type="subscribe", unknown=DEEP)
        while (heard := await stream.hear())["type"] != "error":
            assert heard["type"] != "subscribed", path
        assert "nested" in heard["message"], path
        stream.writer.close()


async def test_a_list_of_commas_is_refused_wherever_addresses_are_taken(server: Server) -> None:
    inbox_id = await server.new_inbox("bounded")
    sent = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send", json=MAIL, headers={"Idempotency-Key": "first"}
    )
    commas = "," * 49_000
    for path, body in {
        f"/v1/messages/{sent.json()['id']}/redirect": {"to": commas + "bob@there.example"},
        f"/v1/inboxes/{inbox_id}/send": {**MAIL, "cc": commas},
        f"/v1/inboxes/{inbox_id}/drafts": {"to": commas},
        f"/v0/inboxes/{inbox_id}/messages/send": {**MAIL, "reply_to": [commas]},
    }.items():
        answer = await server.api.post(path, json=body, headers={"Idempotency-Key": "commas"})
        assert answer.status_code == 400, (path, answer.text)
        assert "entries" in answer.text, (path, answer.text)
