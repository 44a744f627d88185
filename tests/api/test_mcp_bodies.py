"""What /mcp reads in the event loop: long texts, but never millions of values."""

import pytest

from postroom.web.mcp import PARTS_LIMIT, SMALL_BODY_BYTES, require_few_parts
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
CALL = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "send_email", "arguments": %s}}'
)


async def test_a_body_of_many_values_is_refused_before_it_is_read(server: Server) -> None:
    for hostile in (b"0,", b"[],", b'{"a":0},', b'{"a":'):
        body = CALL % (b"[" + hostile * (3_000_000 // len(hostile)) + b"0]")
        answer = await server.api.post("/mcp", content=body, headers=HEADERS)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), hostile
    in_text = await server.api.post("/mcp", content=CALL % (b'"%s"' % (b"0," * 100_000)), headers=HEADERS)
    assert (in_text.status_code, in_text.json()["error"]) == (413, "payload_too_large")
    too_long = await server.api.post("/mcp", content=CALL % (b'"' + b"A" * 4_200_000 + b'"'), headers=HEADERS)
    assert too_long.status_code == 413


async def test_a_request_that_is_no_json_gets_an_error_as_everywhere(server: Server) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    for content, changed, told in (
        (body, {"Content-Type": "text/plain"}, (415, "unsupported_media_type")),
        (body, {"Accept": "text/html", "MCP-Protocol-Version": "2026-07-28"}, (400, "bad_request")),
        (body[:-2] + b'\xff"}', {}, (400, "bad_request")),
        (body[:-2] + b'\xff"}', {"MCP-Protocol-Version": "2026-07-28"}, (400, "bad_request")),
    ):
        answer = await server.api.post("/mcp", content=content, headers={**HEADERS, **changed})
        assert (answer.status_code, answer.json()["error"]) == told, changed


async def test_a_file_of_three_megabytes_is_taken(server: Server) -> None:
    inbox_id = await server.new_inbox("long")
    file = b'{"filename": "a.bin", "data_base64": "%s"}' % (b"A" * 3_000_000)
    mail = b'"to": "bob@there.example", "subject": "A file", "body": "Here"'
    body = CALL % (b'{"inbox_id": "%s", %s, "attachments": [%s]}' % (inbox_id.encode(), mail, file))
    answer = await server.api.post("/mcp", content=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["result"].get("isError"), answer.text


def test_a_small_body_is_never_counted() -> None:
    require_few_parts(b"," * SMALL_BODY_BYTES)
    require_few_parts(b"," * PARTS_LIMIT + b"A" * SMALL_BODY_BYTES)
