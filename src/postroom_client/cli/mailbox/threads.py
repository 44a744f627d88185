"""postroom threads list, and how threads are shown."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, Limit, Offset, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox.messages import show_message

if TYPE_CHECKING:
    from postroom_client.results import Page, Thread, ThreadMessages

app = GROUPS["threads"]

PREVIEW_CHARACTERS = 40  # of a row


@command(app, "list")
def list_all(
    context: CommandContext,
    unread: Annotated[
        bool | None,
        typer.Option(
            "--unread/--read", help="Only unread or only read threads; both by default.", show_default=False
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Only those with this label.")] = None,
    assignee: Annotated[str | None, typer.Option(help="Only those of this user: an id, me or none.")] = None,
    state: Annotated[str | None, typer.Option(help="Only open, snoozed, done, awaiting, overdue.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Of all inboxes of the key.")] = False,
    limit: Limit = 50,
    offset: Offset = 0,
    inbox_id: InboxId = None,
) -> None:
    """List the threads of an inbox, or of all, newest first."""
    from postroom_client.calls import calls

    wanted_inbox = None if everywhere else context.require_inbox_id(inbox_id)
    listing = calls.list_all_threads(
        inbox_id=wanted_inbox,
        is_read=None if unread is None else not unread,
        label=label,
        assignee=assignee,
        state=cast("Any", state),
        limit=limit,
        offset=offset,
    )
    is_filtered = any(each is not None for each in (unread, label, assignee, state))
    context.show(listing, lambda page: _show_threads(page, is_filtered=is_filtered))


def _show_threads(page: "Page[Thread]", *, is_filtered: bool) -> None:
    if not page.data:
        hint = "all of them: postroom threads list" if is_filtered else "wait for email: postroom wait"
        output.note(f"No thread here. See {hint}" if is_filtered else f"No thread here. To {hint}")
        return
    columns = (
        "id",
        ("", _flag),
        "last last_message_at",
        ("from", _sender),
        "subject",
        ("preview", _preview),
        "labels",
        "messages message_count",
    )
    output.print_table(columns, page.data)
    output.mention_rest(page)


@command(app, "expect")
def expect(
    context: CommandContext,
    thread_id: Annotated[str, typer.Argument(help="The thread.")],
    days: Annotated[int | None, typer.Option(min=1, help="Days from now.")] = None,
    working_days: Annotated[int | None, typer.Option(min=1, help="Working days from now.")] = None,
    by: Annotated[str | None, typer.Option(help="A time with its zone.")] = None,
    never: Annotated[bool, typer.Option("--never", help="Expect none any more; cancels follow-ups.")] = False,
) -> None:
    """Expect an answer by a time; without one the thread is overdue."""
    from postroom_client.calls import calls
    from postroom_client.results import ReplyWithin

    if sum((days is not None, working_days is not None, by is not None, never)) != 1:
        raise typer.BadParameter("give one of --days, --working-days, --by and --never")
    within = None if days is None and working_days is None else ReplyWithin(days, working_days)
    asked = calls.update_thread(thread_id, expect_reply_by=within or by)
    context.show(asked, lambda thread: show_thread(context, thread))


def show_thread(context: CommandContext, thread: "Thread") -> None:
    pairs = [("id", thread.id), ("subject", thread.subject), ("state", _flag(thread) or "read")]
    pairs += [("with", ", ".join(each.name or each.address for each in thread.participants))]
    pairs += [("verdict", _warning(thread))] if _warning(thread) else []
    pairs += [("assignee", thread.assignee_id)] if thread.assignee_id else []
    pairs += [("awaiting", f"until {output.moment_of(thread.awaiting.until)}")] if thread.awaiting else []
    pairs += [("legal hold", "yes")] if thread.legal_hold else []
    pairs += [("labels", ", ".join(thread.labels))] if thread.labels else []
    pairs += [("related", related_id) for related_id in thread.related_thread_ids]
    output.print_human(output.record(pairs))


def show_conversation(context: CommandContext, page: "ThreadMessages") -> None:
    for position, message in enumerate(page.data):
        if position:
            output.print_human("─" * 40)
        show_message(context, message)
    output.mention_rest(page)
    if page.related_thread_ids:
        output.note(f"Related threads: {', '.join(page.related_thread_ids)}")


def _flag(thread: "Thread") -> str:
    flags = ["" if thread.is_read else "unread", _warning(thread)]
    flags += ["done" if thread.is_done else "", "snoozed" if thread.snoozed_until else ""]
    return " ".join(filter(None, flags))


def _warning(thread: "Thread") -> str:
    return "" if thread.verdict in (None, "clean") else thread.verdict


def _sender(thread: "Thread") -> str:
    return "" if thread.sender is None else thread.sender.name or thread.sender.address


def _preview(thread: "Thread") -> str:
    cut = thread.preview[:PREVIEW_CHARACTERS]
    return cut if cut == thread.preview else f"{cut.rstrip()}…"
