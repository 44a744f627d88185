"""`postroom certificates`: those that the server gets itself, and ordering them anew."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.commands import output
from postroom.commands.database import with_database
from postroom.config import Config
from postroom_client.cli import app
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext

if TYPE_CHECKING:
    from postroom.storage.database import Database, Tx

MOST_SHOWN = 1000
Order = Annotated[bool, typer.Option("--order", help="Order all of them now, within a minute.")]


@command(app, "certificates")
def show_certificates(context: CommandContext, order: Order = False) -> None:
    """List the certificates that the server gets by ACME, or order them now (on the server's machine)."""
    from postroom.certificates import certificates
    from postroom.clock import SystemClock

    async def work(db: "Database", config: Config) -> list[dict[str, Any]]:
        if order:
            await db.write(certificates.order_now, SystemClock().now())
        return await db.read(_describe)

    output.print_table(with_database(work), context.is_json, empty="No certificate: set POSTROOM_ACME.")


def _describe(tx: "Tx") -> list[dict[str, Any]]:
    from postroom.certificates import certificates
    from postroom.clock import to_iso

    return [
        {
            "names": each.names,
            "expiresAt": "" if each.expires_at is None else to_iso(each.expires_at),
            "nextOrderAt": to_iso(each.due_at),
            "error": each.error or "",
        }
        for each in certificates.list_states(tx, MOST_SHOWN)
    ]
