"""What anybody may ask for: health, readiness, metrics, the description and its viewer."""

import ast
import asyncio
import contextlib
import re
from pathlib import Path

import msgspec
import pytest

from postroom import errors
from postroom.errors import ApiError
from postroom.processes import loop_supervisor
from postroom.web.dashboard.display.rendering import POLICY
from postroom.web.interface import openapi
from postroom.web.routes import ROUTES
from tests.conftest import Server


@pytest.mark.sqlite_alone
async def test_health_and_readiness_need_no_key(server: Server) -> None:
    for path in ("/health", "/ready"):
        answer = await server.api.get(path, headers={"Authorization": ""})
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["search"] == {"waiting": 0, "earlierPercent": 100}


async def test_not_ready_when_the_database_cannot_answer(server: Server) -> None:
    await server.resources.db.write(lambda tx: tx.run("alter table accounts rename to hidden"))
    answer = await server.api.get("/ready")
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert (await server.api.get("/health")).status_code == 200


@pytest.mark.sqlite_alone
async def test_a_loop_that_stands_still_is_seen_in_readiness_and_metrics(server: Server) -> None:
    loops = server.resources.loops
    loops.failed("mail", RuntimeError("no key could be made"))
    assert (await server.api.get("/ready")).status_code == 200
    server.clock.turn(loop_supervisor.PATIENCE)
    assert loops.stuck() == ["mail since 2026-11-14T10:00:00.000Z"]
    assert 'postroom_loops_down{loop="mail"} 1.0' in (await server.api.get("/metrics")).text
    async with asyncio.timeout(120):
        while (answer := await server.api.get("/ready")).status_code == 200:
            await asyncio.sleep(0.05)  # an answer holds for a second
    assert answer.json()["message"].startswith("These loops do not work: mail since 2026-11-14T10:00:00.000Z")
    assert (await server.api.get("/health")).status_code == 200
    loops.works("mail")
    assert "postroom_loops_down{" not in (await server.api.get("/metrics")).text


@pytest.mark.sqlite_alone
async def test_not_ready_on_a_disk_that_takes_no_mail(server: Server, tmp_path: Path) -> None:
    (tmp_path / "blobs").rename(tmp_path / "gone")
    answer = await server.api.get("/ready")
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")


@pytest.mark.sqlite_alone
async def test_metrics_count_requests_by_route_and_name_no_account(server: Server) -> None:
    await server.api.get("/v1/inboxes/inb_" + "0" * 32)
    text = (await server.api.get("/metrics")).text
    assert 'postroom_http_requests_total{route="GET /v1/inboxes/{inbox_id}",status="404"} 1.0' in text
    assert "inb_0" not in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.sqlite_alone
async def test_the_description_lists_every_route_and_every_type_that_it_refers_to(server: Server) -> None:
    text = (await server.api.get("/openapi.json")).text
    document = msgspec.json.decode(text)
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "1.0.0"
    assert document["servers"] == [{"url": server.base_url}]
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES if route.path not in openapi.UNLISTED}
    inbox = document["components"]["schemas"]["Inbox"]
    assert {"id", "address", "displayName", "createdAt", "approval"} <= set(inbox["properties"])
    schemas = document["components"]["schemas"]
    assert set(re.findall(r'"#/components/schemas/(\w+)"', text)) <= set(schemas)
    messages = {"$ref": "#/components/schemas/Message"}
    for page in ("MessagePage", "ThreadMessages"):  # passed on as they are stored
        assert schemas[page]["properties"]["data"]["items"] == messages, page


@pytest.mark.sqlite_alone
async def test_the_reference_has_every_operation_under_the_policy_of_the_dashboard(server: Server) -> None:
    groups = [route.segments[1] if route.segments[0] == "v1" else "server" for route in ROUTES]
    pages = {name: await server.api.get(f"/docs/{name}") for name in dict.fromkeys(groups)}
    for route, group in zip(ROUTES, groups, strict=True):
        if route.path not in openapi.UNLISTED:
            assert f'<article id="{route.operation.__name__}"' in pages[group].text, route.name
    for page in (
        *pages.values(),
        *[await server.api.get(f"/docs{path}") for path in ("", "/errors", "/shapes")],
    ):
        assert page.headers["content-security-policy"] == POLICY
        assert not re.search(r"<script>|<style|\bon[a-z]+=|style=", page.text)
    assert server.base_url in pages["inboxes"].text
    for link in re.findall(r'(?:src|href)="(/[^"#]+)"', pages["inboxes"].text):
        assert (await server.api.get(link)).status_code in (200, 303), link
    assert (await server.api.get("/docs/nothing")).status_code == 404
    assert (await server.api.get("/docs/%2e%2e%2freference.py")).status_code == 404


@pytest.mark.sqlite_alone
async def test_answers_that_are_the_same_for_everybody_are_compressed_for_those_who_ask(
    server: Server,
) -> None:
    for path in ("/docs", "/docs/messages", "/docs/shapes", "/openapi.json", "/llms.txt"):
        asked, plain = [
            await server.api.get(path, headers={"Accept-Encoding": encoding})
            for encoding in ("gzip", "identity")
        ]
        assert (asked.headers["content-encoding"], asked.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert "content-encoding" not in plain.headers
        assert plain.headers["vary"] == "Accept-Encoding"
        assert asked.content == plain.content
        assert int(asked.headers["content-length"]) < len(plain.content)
    small = await server.api.get("/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


def call_at(text: str, start: int) -> ast.Call:
    """Up to the first bracket with which it is a whole call: to parse every file takes longer."""
    for end in re.finditer(r"\)", text[start:]):
        with contextlib.suppress(SyntaxError):
            call = ast.parse(text[start : start + end.end()], mode="eval").body
            assert isinstance(call, ast.Call)
            return call
    raise AssertionError(text[start : start + 100])


def test_the_description_of_errors_has_all_that_an_error_can_carry() -> None:
    kinds = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ApiError)
    ]
    is_raised = re.compile(rf"\b({'|'.join(kinds)})\(")
    texts = [path.read_text() for path in Path(errors.__file__).parent.rglob("*.py")]
    raised = [call_at(text, found.start()) for text in texts for found in is_raised.finditer(text)]
    carried = {keyword.arg for call in raised for keyword in call.keywords} - {"retry_after", "allow", None}
    described = openapi.document(ROUTES, "")["components"]["schemas"]["Error"]["properties"]
    assert "feature" in carried
    assert carried <= described.keys()


@pytest.mark.sqlite_alone
async def test_no_folder_of_the_data_is_open_to_others(server: Server) -> None:
    folders = [path for path in server.resources.config.data_dir.rglob("*") if path.is_dir()]
    assert {"spool", "blobs"} <= {folder.name for folder in folders}
    assert [folder for folder in folders if folder.stat().st_mode & 0o077] == []
