"""Every refusal has the error shape, and changes nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.clock import MINUTE
from postroom.storage.database import Tx
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock

pytestmark = pytest.mark.sqlite_alone

JSON = {"Content-Type": "application/json"}


async def test_an_unknown_path_or_one_with_a_nul_is_not_found_with_or_without_the_api_prefix(
    server: Server,
) -> None:
    for path in ("/v1/nothing", "/nothing", "/", "/v1/inboxes/", "/V1/inboxes", "//v1/me", "/v1"):
        answer = await server.api.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
    message = f"msg_{'0' * 32}"
    for path in (f"/v1/attachments/{message}/a%00b", f"/v1/attachments/{message}/%00/text", "/v1/me%00"):
        answer = await server.api.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
    for field in ("inbox_ids", "event_types"):
        answer = await server.api.get(f"/v1/events?{field}=a%00b")
        assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert (await server.api.get("/v1/events?after=%00")).status_code == 404


async def test_a_known_path_with_another_method_names_the_allowed_ones(server: Server) -> None:
    """HEAD is answered like GET, without a body."""
    answer = await server.api.head("/v1/inboxes")
    assert (answer.status_code, answer.content) == (200, b"")
    answer = await server.api.put("/v1/inboxes")
    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "POST, GET"
    assert (await server.api.request("TRACE", "/health")).status_code == 405


BROKEN = [
    b"",
    b"{",
    b"nope",
    b"\xff\xfe",
    b'{"mailboxName": "a\xff"}',
    b'{"mailboxName": "abc"} trailing',
    b"[" * 200_000,
    b'{"mailboxName":"hello","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    b"[]",
    b'"text"',
    b"null",
    b"NaN",
]


async def test_broken_json_is_a_bad_request_and_nothing_is_created(server: Server) -> None:
    for body in BROKEN:
        answer = await server.api.post("/v1/inboxes", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), body[:30]
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 0


async def test_an_unknown_inbox_is_not_found_before_its_body_is_judged(server: Server) -> None:
    path = "/v1/inboxes/inb_" + "0" * 32
    for answer in [
        await server.api.patch(path, content=b"{", headers=JSON),
        await server.api.patch(path, json={"displayName": "\n"}),
        await server.api.post(f"{path}/api-keys", content=b"{}", headers={"Content-Type": "text/plain"}),
    ]:
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_ten_megabytes_of_json_are_too_large_with_and_without_a_length(server: Server) -> None:
    body = json.dumps({"mailboxName": "hello", "padding": "x" * 10_000_000}).encode()

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    for content in (body, chunks()):
        answer = await server.api.post("/v1/inboxes", content=content, headers=JSON)
        assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 0


async def test_a_body_that_is_not_json_is_refused_and_a_charset_or_unknown_fields_are_not(
    server: Server,
) -> None:
    for content_type in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = await server.api.post("/v1/inboxes", content=b"{}", headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type")
    headers = {"Content-Type": "application/json; charset=utf-8"}
    answer = await server.api.post("/v1/inboxes", content=b'{"mailboxName":"hello"}', headers=headers)
    assert answer.status_code == 201
    answer = await server.api.post("/v1/inboxes", json={"mailboxName": "other", "extra": {"deep": [1]}})
    assert answer.status_code == 201


async def test_an_unexpected_exception_is_internal_error_without_a_traceback(server: Server) -> None:
    def break_the_table(tx: Tx) -> None:
        tx.run("alter table inboxes rename to hidden")

    await server.resources.db.write(break_the_table)
    answer = await server.api.get("/v1/inboxes")
    assert answer.status_code == 500
    assert answer.json() == {
        "error": "internal_error",
        "message": "Something went wrong on our side.",
        "request_id": answer.headers["X-Request-Id"],
    }


async def test_every_response_has_a_request_id_of_its_own(server: Server) -> None:
    answers = [
        await server.api.get(path) for path in ("/health", "/v1/me", "/v1/nothing", "/nothing", "/docs")
    ]
    identities = [answer.headers["X-Request-Id"] for answer in answers]
    assert len(set(identities)) == len(answers)


async def test_requests_of_a_minute_are_counted_then_429_until_it_ends(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path, REQUESTS_PER_MINUTE="20"), clock) as server:
        first = await server.api.get("/v1/me")
        assert first.headers["RateLimit-Limit"] == "20"
        assert first.headers["RateLimit-Remaining"] == "19"
        clock.turn(20_000)
        answers = await asyncio.gather(*(server.api.get("/v1/nothing") for _ in range(19)))
        assert {answer.status_code for answer in answers} == {404}
        refused = await server.api.get("/v1/me")
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limit_exceeded")
        assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"] == "40"
        assert refused.headers["RateLimit-Remaining"] == "0"
        assert (await server.api.get("/health")).status_code == 200
        clock.turn(MINUTE - 20_000)
        assert (await server.api.get("/v1/me")).status_code == 200
