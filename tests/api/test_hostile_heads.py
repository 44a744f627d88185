"""Heads of requests that were made to be read slowly."""

import ast
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

import postroom
from postroom.web.requests import cookies
from tests.conftest import Server
from tests.samples import samples

FORM = 'multipart/form-data; boundary="x"; charset=punycode'
PART = b'--x\r\nContent-Disposition: form-data; name="body"\r\n\r\nhello\r\n--x--\r\n'


def with_cookie(value: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "headers": [(b"cookie", value.encode())]})


def test_nobody_reads_cookies_by_the_standard_library() -> None:
    """It takes 15 seconds for 60 kB of escaped quotes, which anybody may send to a page."""
    for path in Path(postroom.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "cookie" in text else ():
            names = {node.attr} if isinstance(node, ast.Attribute) else set()
            if isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            assert not names & {"cookies", "cookie_parser", "http.cookies"}, path


@samples("value", ['a="' + '\\"' * 30_000, ";" * 60_000, "=" * 60_000, " " * 60_000])
def test_a_long_cookie_is_looked_through_to_its_end(value: str) -> None:
    assert cookies.find(with_cookie(f"{value}; postroom_session=abc"), "postroom_session") == "abc"


def test_a_cookie_is_found_among_others() -> None:
    found = cookies.find(with_cookie("theme=dark; postroom_session=abc-_123; last=x"), "postroom_session")
    assert found == "abc-_123"
    assert cookies.find(with_cookie("theme=dark"), "postroom_session") == ""


@pytest.mark.sqlite_alone
async def test_a_form_is_read_in_utf_8_alone(server: Server) -> None:
    """Decoding punycode takes quadratic time."""
    inbox_id = await server.new_inbox("bob")
    headers = {"Content-Type": FORM, "Idempotency-Key": "1"}
    answer = await server.api.post(f"/v1/inboxes/{inbox_id}/send", content=PART, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type")
