"""What agents read of the interface, /llms.txt and the skill, names only what there is."""

import re
from pathlib import Path

import httpx2
import pytest
import typer.main
from typer.core import TyperGroup

from postroom import errors
from postroom.web import routes
from postroom_client.cli import app
from tests.conftest import Server

ROOT = Path(__file__).parents[2]
GUIDES = {
    "llms.txt": (ROOT / "src/postroom/web/llms.txt").read_text(),
    "SKILL.md": (ROOT / "skills/postroom/SKILL.md").read_text(),
}
OUTSIDE_THE_TABLE = {("POST", "/mcp"), ("GET", "/v1/ws")}
CALL = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]*)")
BARE_PATH = re.compile(r"`(/[a-z0-9/._{}-]+)`|\{base_url\}(/[a-z.]+)")
COMMAND = re.compile(r"^postroom ([a-z]+)(?: ([a-z]+))?(.*)$|`postroom ([a-z]+)(?: ([a-z]+))?`", re.MULTILINE)
TOOLS = {
    "list_unread_threads",
    "read_thread",
    "reply_to_thread",
    "send_email",
    "wait_for_message",
}

guides = pytest.mark.parametrize("guide", GUIDES)


@guides
def test_every_call_that_a_guide_names_is_a_route(guide: str) -> None:
    known = {(route.method, route.path) for route in routes.ROUTES} | OUTSIDE_THE_TABLE
    named = set(CALL.findall(GUIDES[guide]))
    assert named
    assert named <= known


@guides
def test_every_path_that_a_guide_names_exists(guide: str) -> None:
    known = {route.path for route in routes.ROUTES} | {path for _, path in OUTSIDE_THE_TABLE}
    assert {first or second for first, second in BARE_PATH.findall(GUIDES[guide])} <= known


@guides
def test_every_error_that_a_guide_names_exists(guide: str) -> None:
    codes = {kind.code for kind in errors.ApiError.__subclasses__()}
    rows = [line.split("|")[1] for line in GUIDES[guide].splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([a-z_]+)`", "".join(rows))) <= codes


def test_every_command_of_the_skill_exists_with_its_options() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for first, second, rest, bare_first, bare_second in COMMAND.findall(GUIDES["SKILL.md"]):
        command = root.commands[first or bare_first]
        if isinstance(command, TyperGroup):
            command = command.commands[second or bare_second]
        options = {name for parameter in command.params for name in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options


def test_every_tool_of_the_skill_exists() -> None:
    from postroom_client.mcp import ANNOTATIONS

    assert set(ANNOTATIONS) >= TOOLS
    assert all(f"`{tool}`" in GUIDES["SKILL.md"] for tool in TOOLS)


def test_the_skill_says_when_to_use_it() -> None:
    assert re.match(r"---\nname: postroom\ndescription: .{50,1024}\n---\n", GUIDES["SKILL.md"])


async def test_the_server_gives_its_guide_to_anybody_with_its_own_address(server: Server) -> None:
    async with httpx2.AsyncClient(base_url=server.base_url) as anybody:
        answer = await anybody.get("/llms.txt")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"Base URL: {server.base_url}." in answer.text
    assert "{base_url}" not in answer.text
