"""postroom search."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app
from postroom_client.cli.mailbox.messages import other_side, show_message

if TYPE_CHECKING:
    from postroom_client.results import SearchPage


@command(app, "search")
def search(
    context: CommandContext,
    q: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS...",
            help='Words, "a phrase", -not, a OR b, word*, and from: to: subject: label: in: has: is: before:'
            " after:",
            show_default=False,
        ),
    ],
    inbox_id: Annotated[str | None, typer.Option("--inbox-id", help="Only in this inbox.")] = None,
    pod_id: Annotated[str | None, typer.Option("--pod-id", help="Only in this pod.")] = None,
    include: Annotated[
        Literal["junk", "trash"] | None, typer.Option(help="Also find what is in Junk or in the trash.")
    ] = None,
    limit: Limit = 20,
    cursor: Annotated[
        str | None, typer.Option(help="Cursor of the next page, from the answer before.")
    ] = None,
    open_first: Annotated[bool, typer.Option("--open", help="Show the newest one found.")] = False,
) -> None:
    """Find messages by their words, in emails and in attached files, newest first."""
    from postroom_client.calls import calls
    from postroom_client.errors import PostroomError

    asked = calls.search_page(
        " ".join(q),
        inbox_id=inbox_id,
        pod_id=pod_id,
        limit=1 if open_first else limit,
        cursor=cursor,
        include=include,
    )
    if not open_first:
        context.show(asked, _show_page)
        return
    page = context.ask(asked)
    if not page.data:
        raise PostroomError("Nothing found.", code="not_found")
    context.show(calls.get_message(page.data[0].message.id), lambda message: show_message(context, message))


def _show_page(page: "SearchPage") -> None:
    if not page.data:
        output.note("Nothing found. Try fewer words, or a prefix: invo*")
        return
    other = ("with", lambda result: other_side(result.message))
    columns = ("id message.id", "when message.created_at", other, "subject message.subject", "found snippet")
    output.print_table(columns, page.data)
    if page.next:
        output.note(f"More: --cursor {page.next}")
