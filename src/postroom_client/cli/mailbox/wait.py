"""postroom wait."""

from typing import Annotated

import typer

from postroom_client.cli.command import InboxId, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app
from postroom_client.cli.mailbox.messages import show_message


@command(app, "wait")
def wait(
    context: CommandContext,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait.")] = 120,
    from_addr: Annotated[str | None, typer.Option("--from", help="Only with this in the sender.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only with this in the subject.")] = None,
    thread_id: Annotated[str | None, typer.Option(help="Only in this thread.")] = None,
    after: Annotated[str | None, typer.Option(help="Also what arrived after this message or event.")] = None,
    q: Annotated[str | None, typer.Option("--search", help="Only email that matches this search.")] = None,
    unread: Annotated[
        bool, typer.Option("--unread", help="Also an email that is already there and unread.")
    ] = False,
    inbox_id: InboxId = None,
) -> None:
    """Wait for the next email and show it. Exits with 1 when none arrives in time."""
    from postroom_client.calls import waiting
    from postroom_client.errors import PostroomError

    steps = waiting.wait(
        context.require_inbox_id(inbox_id),
        timeout=timeout,
        after=after,
        from_addr=from_addr,
        subject=subject,
        thread_id=thread_id,
        unread=unread,
        q=q,
    )
    raw, message = context.carry_out(steps, None)
    if message is None:
        raise PostroomError(f"No email came within {timeout:g} s.", code="timed_out")
    context.show_result(raw, message, lambda shown: show_message(context, shown))
