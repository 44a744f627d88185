"""postroom suppressions …"""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Page, Suppression

app = group("Addresses that no mail goes to.")

AddressArgument = Annotated[str, typer.Argument(help="The address.", show_default=False)]


@command(app, "list")
def list_all(desk: Desk, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the suppressed addresses, newest first."""
    from postroom_client.calls import calls

    desk.show(calls.list_suppressions(limit=limit, offset=offset), _show_page)


@command(app, "add")
def add(desk: Desk, address: AddressArgument) -> None:
    """Never send to an address again."""
    from postroom_client.calls import calls

    desk.show(calls.add_suppression(address), _show_one)


@command(app, "remove")
def remove(desk: Desk, address: AddressArgument) -> None:
    """Take an address off the list."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_suppression(address))
    desk.done({"address": address, "deleted": True}, f"{address} is off the list.")


def _show_one(item: "Suppression") -> None:
    output.print_human(output.record([("address", item.address), ("type", item.type)]))


def _show_page(page: "Page[Suppression]") -> None:
    if not page.data:
        output.note("No address is suppressed. Add one: postroom suppressions add ADDRESS")
        return
    rows = [(item.address, item.type, output.ago(item.created_at)) for item in page.data]
    output.print_human(output.table(("ADDRESS", "TYPE", "SINCE"), rows))
    output.note_rest(page)
