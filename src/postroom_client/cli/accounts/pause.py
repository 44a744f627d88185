"""postroom pause."""

from typing import Annotated

import typer

from postroom_client.cli.accounts.shown import show_pause
from postroom_client.cli.command import OfInbox, OfPod, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app


@command(app, "pause")
def pause(
    context: CommandContext,
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
    show: Annotated[bool, typer.Option("--show", help="Only show whether it is paused.")] = False,
) -> None:
    """Hold every send, new and waiting: of all the key's inboxes, of a pod or of an inbox."""
    from postroom_client.calls import calls

    call = calls.get_pause if show else calls.pause
    context.show(call(inbox_id=inbox_id, pod_id=pod_id), lambda found: show_pause(context, found))
