"""`postroom verify`: checks everything that is stored, on the server's machine."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands.output import is_for_programs, print_table
from postroom.commands.transfer import progress, with_resources
from postroom_client.cli import app
from postroom_client.cli.command import Json

if TYPE_CHECKING:
    from postroom.resources import Resources
    from postroom.upkeep.verification.verify import Verified


@app.command("verify")
def verify(
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild derived data: counters and the search index.")
    ] = False,
    rebuild_index: Annotated[
        bool, typer.Option("--rebuild-index", help="Empty the search index; the server rebuilds it.")
    ] = False,
    as_json: Json = None,
) -> None:
    """Check everything stored: rows, large emails, search index, counters; the server may run."""
    if rebuild_index:
        with_resources(_empty_index)
        print("The search index is empty. The running server rebuilds it, newest email first.")
        return
    verified = with_resources(lambda resources: _verify(resources, repair))
    shown = [
        {"part": each.part, "id": each.id, "what": each.what, "repaired": each in verified.repaired}
        for each in verified.findings
    ]
    print_table(shown, as_json, f"{verified.looked_at} rows and files are correct.")
    if verified.left:
        _say_what_to_do(verified, is_for_programs(as_json))
        raise typer.Exit(1)


async def _empty_index(resources: "Resources") -> None:
    from postroom.mailbox.search import index_upkeep

    if await resources.db.find_damage(
        of_index=True
    ):  # the running server notices that the file is another one
        await resources.db.repair_index(is_asked=True)
    else:
        await resources.db.write_index(index_upkeep.clear)


async def _verify(resources: "Resources", repairs: bool) -> "Verified":
    from postroom.errors import Unavailable
    from postroom.upkeep.verification import verify

    try:
        total = await verify.count_all(resources)
    except Unavailable:  # a damaged file cannot be counted, and is reported below
        total = None
    with progress("rows and files", total) as report:
        return await verify.verify(resources, repairs, report)


def _say_what_to_do(verified: "Verified", is_quiet: bool) -> None:
    if is_quiet:
        return
    if any(each.is_derived for each in verified.left):
        print("postroom: derived data can be rebuilt: postroom verify --repair", file=sys.stderr)
    if not all(each.is_derived for each in verified.left):
        print("postroom: the rest can only be restored from a backup", file=sys.stderr)
