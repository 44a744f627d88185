"""What hosts read to connect is what they take, has no key, and promises nothing that is not there."""

import json
from typing import Any

import pytest

from postroom_client import __version__
from postroom_client.mcp.manifests import KINDS
from tests.client.live import API_KEY, Shell

BASE_URL = "https://mail.example.org"
TEXT: dict[str, Any] = {"type": "string", "minLength": 1}


def closed(needs: list[str], /, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": needs,
        "properties": properties,
        "additionalProperties": False,
    }


def of_texts(pattern: str = "") -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"type": "string", "pattern": pattern}}


BEARER = of_texts(r"^Bearer \$\{[A-Za-z:_-]+\}$")
ADDRESS = {"const": f"{BASE_URL}/mcp"}
# The parts of the published schemas that bind us: registry 2025-12-11, MCPB 0.4, and the files of the hosts.
SCHEMAS: dict[str, dict[str, Any]] = {
    "registry": closed(
        ["$schema", "name", "description", "version", "remotes"],
        **{"$schema": {"type": "string", "pattern": "/2025-12-11/server.schema.json$"}},
        name={"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        title={**TEXT, "maxLength": 100},
        description={**TEXT, "maxLength": 100},
        version={"const": __version__},
        remotes={
            "type": "array",
            "items": closed(["type", "url"], type={"const": "streamable-http"}, url=ADDRESS),
        },
    ),
    "claude": closed(
        ["manifest_version", "name", "version", "description", "author", "server"],
        manifest_version={"const": "0.4"},
        name=TEXT,
        display_name=TEXT,
        version={"const": __version__},
        description=TEXT,
        author=closed(["name"], name=TEXT),
        license=TEXT,
        server=closed(
            ["type", "entry_point", "mcp_config"],
            type={"enum": ["python", "node", "binary", "uv"]},
            entry_point=TEXT,
            mcp_config=closed(
                ["command"],
                command=TEXT,
                args={"type": "array", "items": TEXT},
                env=of_texts(r"^\$\{user_config\.[a-z_]+\}$"),
            ),
        ),
        tools_generated={"type": "boolean"},
        prompts_generated={"type": "boolean"},
        user_config={
            "type": "object",
            "additionalProperties": closed(
                ["type", "title", "description"],
                type={"enum": ["string", "number", "boolean", "directory", "file"]},
                title=TEXT,
                description=TEXT,
                default={"type": "string"},
                required={"type": "boolean"},
                sensitive={"type": "boolean"},
            ),
        },
    ),
    "claude-code": closed(
        ["mcpServers"],
        mcpServers=closed(
            ["postroom"],
            postroom=closed(["type", "url"], type={"const": "http"}, url=ADDRESS, headers=BEARER),
        ),
    ),
    "cursor": closed(
        ["mcpServers"],
        mcpServers=closed(["postroom"], postroom=closed(["url"], url=ADDRESS, headers=BEARER)),
    ),
    "vscode": closed(
        ["servers"],
        inputs={
            "type": "array",
            "items": closed(
                ["type", "id", "description"],
                type={"enum": ["promptString", "pickString", "command"]},
                id=TEXT,
                description=TEXT,
                password={"const": True},
            ),
        },
        servers=closed(
            ["postroom"],
            postroom=closed(["type", "url"], type={"const": "http"}, url=ADDRESS, headers=BEARER),
        ),
    ),
    "chatgpt": closed(
        ["name", "mcp_server_url", "authentication"],
        name=TEXT,
        description=TEXT,
        mcp_server_url=ADDRESS,
        authentication={"const": "oauth"},
    ),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_manifest_is_what_its_host_takes(kind: str) -> None:
    import jsonschema  # to load it takes a second of every worker

    made = KINDS[kind](BASE_URL)
    jsonschema.validate(made, SCHEMAS[kind])
    assert "packages" not in made


def test_names_in_a_manifest_lead_to_what_it_asks_for() -> None:
    bundle, editor = KINDS["claude"](BASE_URL), KINDS["vscode"](BASE_URL)
    asked = {value[len("${user_config.") : -1] for value in bundle["server"]["mcp_config"]["env"].values()}
    assert asked == set(bundle["user_config"])
    assert bundle["user_config"]["api_key"]["sensitive"]
    [entry] = editor["inputs"]
    assert editor["servers"]["postroom"]["headers"]["Authorization"] == f"Bearer ${{input:{entry['id']}}}"
    assert KINDS["registry"](BASE_URL)["name"] == "org.example.mail/postroom"
    for local in ("http://127.0.0.1:8025", "http://mail.example.org", "https://localhost"):
        with pytest.raises(ValueError, match="public servers"):
            KINDS["registry"](local)


def test_the_command_prints_manifests_without_a_key(shell: Shell) -> None:
    for kind in sorted(KINDS.keys() - {"registry"}):
        printed = shell.run("mcp", "--manifest", kind)
        assert printed.exit_code == 0, printed.output
        assert shell.server.base_url in json.dumps(json.loads(printed.stdout))
        assert API_KEY not in printed.output
    assert shell.run("mcp", "--manifest", "registry").exit_code == 2
    wrong = shell.run("mcp", "--manifest", "emacs")
    assert wrong.exit_code == 2
    assert "Use chatgpt, claude," in wrong.output
