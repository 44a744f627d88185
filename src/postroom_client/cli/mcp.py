"""postroom mcp: the tools for an agent, over stdin and stdout."""

from typing import Annotated

import typer

from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app


@command(app, "mcp")
def mcp(
    context: CommandContext,
    text: Annotated[bool, typer.Option("--text", help="Answer with text only.")] = False,
    tools: Annotated[str, typer.Option("--tools", help="Sets of tools to offer: mail, setup.")] = "mail",
) -> None:
    """Serve MCP tools on stdin and stdout, for an agent that starts this command."""
    import asyncio

    from postroom_client.errors import PostroomError, Unauthorized

    try:
        from postroom_client.mcp.server import names_of, serve_stdio
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "pydantic"):
            raise
        raise PostroomError("This command needs: pip install 'postroom-client[mcp]'") from None
    if not context.settings.api_key:
        raise Unauthorized(f"There is no API key for {context.settings.base_url}.")
    try:
        names_of(tools)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tools") from None
    asyncio.run(serve_stdio(context.settings, is_text=text, sets=tools))
