"""What agents read of the REST interface, /llms.txt and the skill, names only what there is."""

import re
from pathlib import Path

import pytest

from postroom.web import routes
from postroom.web.interface import openapi
from tests.conftest import Server
from tests.plain_transport import http_client

pytestmark = pytest.mark.sqlite_alone

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "src/postroom/web/llms.txt").read_text()
SKILL = (ROOT / "skills/postroom/SKILL.md").read_text()
OUTSIDE_THE_TABLE = {
    *(("POST", "/mcp"), ("POST", "/mcp/readonly"), ("POST", "/mcp/inbox/{inbox_id}"), ("GET", "/v1/ws")),
}
CALL = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]*)")
BARE_PATH = re.compile(r"`(/[a-z0-9/._{}-]+)`|\{base_url\}(/[a-z.]+)")
FIELD = re.compile(r"`([a-z]+(?:[A-Z][a-z]+)+)`")

guides = pytest.mark.parametrize("guide", [PAGE, SKILL], ids=["llms.txt", "SKILL.md"])


@guides
def test_every_call_that_a_guide_names_is_a_route(guide: str) -> None:
    known = {(route.method, route.path) for route in routes.ROUTES} | OUTSIDE_THE_TABLE
    named = set(CALL.findall(guide))
    assert named
    assert named <= known


@guides
def test_every_path_that_a_guide_names_exists(guide: str) -> None:
    known = {route.path for route in routes.ROUTES} | {path for _, path in OUTSIDE_THE_TABLE}
    assert {first or second for first, second in BARE_PATH.findall(guide)} <= known


def test_the_page_names_the_calls_of_the_usual_work() -> None:
    named = {path for _, path in CALL.findall(PAGE)}
    assert named >= {
        "/v1/inboxes",
        "/v1/inboxes/{inbox_id}/threads",
        "/v1/inboxes/{inbox_id}/send",
        "/v1/inboxes/{inbox_id}/wait",
        "/v1/threads/{thread_id}",
        "/v1/threads/{thread_id}/messages",
        "/v1/events",
    }


def test_every_field_that_the_page_names_is_of_the_interface() -> None:
    described = openapi.render(routes.ROUTES, "http://127.0.0.1").decode()
    named = set(FIELD.findall(PAGE))
    assert len(named) > 5
    assert {name for name in named if f'"{name}"' not in described} == set()


async def test_the_server_gives_its_page_to_anybody_with_its_own_address(server: Server) -> None:
    async with http_client(server.base_url) as anybody:
        answer = await anybody.get("/llms.txt")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"Base URL: {server.base_url}." in answer.text
    assert "{base_url}" not in answer.text
