"""postroom mcp: the tools for an agent, over stdin and stdout."""

from typing import Annotated

import typer

from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app


def print_manifest(kind: str, base_url: str) -> None:
    import json

    from postroom_client.mcp.manifests import KINDS

    if kind not in KINDS:
        advice = f"There is no manifest {kind[:100]!r}. Use {', '.join(KINDS)}."
        raise typer.BadParameter(advice, param_hint="--manifest")
    try:
        print(json.dumps(KINDS[kind](base_url.rstrip("/")), indent=2))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--manifest") from None


@command(app, "mcp")
def mcp(
    context: CommandContext,
    text: Annotated[bool, typer.Option("--text", help="Answer with text only.")] = False,
    tools: Annotated[
        str, typer.Option("--tools", help="Sets of tools to offer: `mail`, `calendar`, `rules`, `setup`.")
    ] = "mail",
    manifest: Annotated[
        str,
        typer.Option(
            "--manifest",
            help="Print a host's file: chatgpt, claude, claude-code, cursor, registry or vscode.",
        ),
    ] = "",
) -> None:
    """Serve MCP tools on stdin and stdout, for an agent that starts this command."""
    import asyncio

    from postroom_client.errors import PostroomError, Unauthorized

    if manifest:
        return print_manifest(manifest, context.settings.base_url)
    try:
        from postroom_client.mcp.server import names_of, serve_stdio
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "pydantic"):
            raise
        raise PostroomError("This command needs: pip install 'mcp>=2' pydantic") from None
    if not context.settings.api_key:
        raise Unauthorized(f"There is no API key for {context.settings.base_url}.")
    try:
        names_of(tools)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tools") from None
    asyncio.run(serve_stdio(context.settings, is_text=text, sets=tools))
