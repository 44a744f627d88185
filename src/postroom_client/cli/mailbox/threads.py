"""postroom threads …"""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, Limit, Offset, command, group
from postroom_client.cli.desk import Desk
from postroom_client.cli.mailbox.messages import show_message

if TYPE_CHECKING:
    from postroom_client.results import Page, Thread, ThreadMessages

app = group("Threads, and what of them is unread.")

ThreadArgument = Annotated[str, typer.Argument(help="Id of the thread, thr_…", show_default=False)]


@command(app, "list")
def list_all(
    desk: Desk,
    unread: Annotated[
        bool | None, typer.Option("--unread/--read", help="Only those; both by default.", show_default=False)
    ] = None,
    label: Annotated[str | None, typer.Option(help="Only those with this label.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Of all inboxes that the key reaches.")] = False,
    limit: Limit = 50,
    offset: Offset = 0,
    inbox_id: InboxId = None,
) -> None:
    """List the threads of an inbox, or of all, newest first."""
    from postroom_client.calls import calls

    wanted_inbox = None if everywhere else desk.require_inbox_id(inbox_id)
    listing = calls.list_all_threads(
        inbox_id=wanted_inbox,
        is_read=None if unread is None else not unread,
        label=label,
        limit=limit,
        offset=offset,
    )
    is_filtered = unread is not None or label is not None
    desk.show(listing, lambda page: _show_threads(page, is_filtered=is_filtered))


@command(app, "get")
def get(desk: Desk, thread_id: ThreadArgument, limit: Limit = 50, offset: Offset = 0) -> None:
    """Show the messages of a thread, oldest first."""
    from postroom_client.calls import calls

    desk.show(calls.list_thread_messages(thread_id, limit=limit, offset=offset), _show_conversation)


@command(app, "label")
def label_thread(
    desk: Desk,
    thread_id: ThreadArgument,
    add: Annotated[list[str] | None, typer.Option(help="A label to add; may be repeated.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="A label to remove; may be repeated.")] = None,
) -> None:
    """Add labels to a thread, and remove some."""
    from postroom_client.calls import shortcuts

    desk.show(shortcuts.label_thread(thread_id, add=add or (), remove=remove or ()), _show_thread)


@command(app, "read")
def mark_read(desk: Desk, thread_id: ThreadArgument) -> None:
    """Mark a thread as read."""
    from postroom_client.calls import shortcuts

    desk.show(shortcuts.mark_thread(thread_id, is_read=True), _show_thread)


@command(app, "unread")
def mark_unread(desk: Desk, thread_id: ThreadArgument) -> None:
    """Mark a thread as unread."""
    from postroom_client.calls import shortcuts

    desk.show(shortcuts.mark_thread(thread_id, is_read=False), _show_thread)


@command(app, "delete")
def delete(
    desk: Desk,
    thread_id: ThreadArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a thread with its messages; what has not left never does."""
    from postroom_client.calls import calls

    output.confirm(f"Delete {thread_id} and its messages?", yes=yes)
    desk.ask(calls.delete_thread(thread_id))
    desk.done({"id": thread_id, "deleted": True}, f"{thread_id} is deleted.")


def _show_threads(page: "Page[Thread]", *, is_filtered: bool) -> None:
    if not page.data:
        hint = "all of them: postroom threads list" if is_filtered else "wait for mail: postroom wait"
        output.note(f"No thread here. See {hint}" if is_filtered else f"No thread here. To {hint}")
        return
    rows = [
        (
            thread.id,
            _flag(thread),
            str(thread.message_count),
            output.ago(thread.last_message_at),
            ", ".join(thread.labels),
            thread.subject,
        )
        for thread in page.data
    ]
    output.print_human(output.table(("ID", "", "MESSAGES", "LAST", "LABELS", "SUBJECT"), rows))
    output.note_rest(page)


def _show_thread(thread: "Thread") -> None:
    pairs = [("id", thread.id), ("subject", thread.subject), ("state", _flag(thread) or "read")]
    pairs += [("labels", ", ".join(thread.labels))] if thread.labels else []
    pairs += [("related", related_id) for related_id in thread.related_thread_ids]
    output.print_human(output.record(pairs))


def _show_conversation(page: "ThreadMessages") -> None:
    for position, message in enumerate(page.data):
        if position:
            output.print_human("─" * 40)
        show_message(message)
    output.note_rest(page)
    if page.related_thread_ids:
        output.note(f"Related threads: {', '.join(page.related_thread_ids)}")


def _flag(thread: "Thread") -> str:
    return "" if thread.is_read else "unread"
