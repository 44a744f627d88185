"""Write the files that agent hosts read to connect: the address and where the key is, never a key."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from postroom_client import __version__

Json = dict[str, Any]
NAME = "postroom"
ABOUT = "Email inboxes for agents: read, search, answer and send, with approval by people."
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
KEY = "POSTROOM_API_KEY"


def registry(base_url: str) -> Json:
    """Return server.json, named after the server's host, which its operator can prove.

    It names no package.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if parts.scheme != "https" or "." not in host.strip("."):
        raise ValueError(f"A registry lists public servers, and {base_url} is none. Use an https address.")
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": f"{'.'.join(reversed(host.split('.')))}/{NAME}",
        "title": "Postroom",
        "description": ABOUT,
        "version": __version__,
        "remotes": [{"type": "streamable-http", "url": f"{base_url}/mcp"}],
    }


def claude(base_url: str) -> Json:
    """Return manifest.json of a bundle (MCPB 0.4) that starts the `postroom` command of this machine."""
    environment = {"POSTROOM_BASE_URL": "${user_config.base_url}", KEY: "${user_config.api_key}"}
    return {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": "Postroom",
        "version": __version__,
        "description": ABOUT,
        "author": {"name": "Postroom"},
        "license": "Apache-2.0",
        "server": {
            "type": "binary",
            "entry_point": NAME,
            "mcp_config": {"command": NAME, "args": ["mcp"], "env": environment},
        },
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {
            "base_url": {
                "type": "string",
                "title": "Server",
                "description": "The address of your Postroom server.",
                "default": base_url,
                "required": True,
            },
            "api_key": {
                "type": "string",
                "title": "API key",
                "description": "A key of one inbox.",
                "sensitive": True,
                "required": True,
            },
        },
    }


def claude_code(base_url: str) -> Json:
    """Return .mcp.json of a project."""
    server = {"type": "http", "url": f"{base_url}/mcp", "headers": {"Authorization": f"Bearer ${{{KEY}}}"}}
    return {"mcpServers": {NAME: server}}


def cursor(base_url: str) -> Json:
    """Return .cursor/mcp.json."""
    server = {"url": f"{base_url}/mcp", "headers": {"Authorization": f"Bearer ${{env:{KEY}}}"}}
    return {"mcpServers": {NAME: server}}


def vscode(base_url: str) -> Json:
    """Return .vscode/mcp.json; VS Code asks for the key once."""
    asked = {
        "type": "promptString",
        "id": "postroom-key",
        "description": "API key of an inbox",
        "password": True,
    }
    headers = {"Authorization": "Bearer ${input:postroom-key}"}
    return {
        "inputs": [asked],
        "servers": {NAME: {"type": "http", "url": f"{base_url}/mcp", "headers": headers}},
    }


def chatgpt(base_url: str) -> Json:
    """Return the fields of a connector. People sign in by OAuth, so it has no key."""
    return {
        "name": "Postroom",
        "description": ABOUT,
        "mcp_server_url": f"{base_url}/mcp",
        "authentication": "oauth",
    }


KINDS: dict[str, Callable[[str], Json]] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "claude-code": claude_code,
    "cursor": cursor,
    "registry": registry,
    "vscode": vscode,
}
