"""`postroom move`: a server with SQLite becomes one with PostgreSQL."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import output
from postroom.commands.transfer import progress, with_resources
from postroom.config import Config, ConfigError, load
from postroom_client.cli import app
from postroom_client.cli.command import Json

if TYPE_CHECKING:
    from postroom.resources import Resources
    from postroom.transfer.move_server import Moved


@app.command("move")
def move(
    to: Annotated[
        str,
        typer.Option("--to", envvar="POSTROOM_MOVE_TO", help="postgresql://user:password@host/database"),
    ],
    as_json: Json = None,
) -> None:
    """Copy a SQLite server into an empty PostgreSQL database, compare both, build the search index there."""
    from postroom.storage.data_folder import DATABASE_NAME, FolderLock
    from postroom.storage.database import StorageError

    config = load(os.environ)
    if config.database_url:
        raise ConfigError("POSTROOM_DATABASE_URL", "is set: this server already uses PostgreSQL")
    if not to.startswith(("postgresql://", "postgres://")):
        raise typer.BadParameter("must be like postgresql://user:password@host/database", param_hint="--to")
    if not (config.data_dir / DATABASE_NAME).is_file():
        raise StorageError(f"POSTROOM_DATA_DIR: there is no SQLite database in {config.data_dir.absolute()}.")
    lock = FolderLock(config.data_dir)
    try:
        moved = _move_rows(config, to)
        faults = _look_at_files_and_index(config, to)
    finally:
        lock.release()
    _report(config, moved, faults, as_json)


def _move_rows(config: Config, to: str) -> "Moved":
    from postroom.clock import SystemClock
    from postroom.storage.data_folder import DATABASE_NAME
    from postroom.transfer.move_server import count_rows, move_rows

    path = config.data_dir / DATABASE_NAME
    print("postroom: copying and comparing rows", file=sys.stderr)
    with progress("rows copied and compared", 2 * count_rows(path)) as report:
        return move_rows(path, to, SystemClock().now(), report)


def _look_at_files_and_index(config: Config, to: str) -> list[str]:
    """Return what is wrong with large emails, one line each."""
    from msgspec.structs import replace

    print("postroom: reading large emails and building the search index", file=sys.stderr)
    return with_resources(_finish, replace(config, database_url=to))


async def _finish(resources: "Resources") -> list[str]:
    from postroom.mailbox.search import index_upkeep, indexing
    from postroom.upkeep.verification import large_mails

    faults: list[str] = []
    after: str | None = ""
    with progress("large emails", await resources.db.read(large_mails.count)) as report:
        while after is not None:
            page = await large_mails.look(resources, after)
            faults += [f"the large email {each.id}: {each.what}" for each in page.findings]
            report(page.looked_at)
            after = page.after
    holder = index_upkeep.holder_of(resources.config.data_dir)
    with progress("percent of the search index", 100) as report:
        done = 0
        while await indexing.step(resources.db, holder, resources.now()):
            now_done = (await resources.db.read(indexing.progress)).earlier_percent
            report(now_done - done)
            done = now_done
    return faults


def _report(config: Config, moved: "Moved", faults: list[str], as_json: bool | None) -> None:
    said = [f"{moved.rows} rows of {moved.tables} tables are in PostgreSQL, with the same hashes as here."]
    if moved.without_nul:
        said.append(
            f"{moved.without_nul} texts contained NUL, which PostgreSQL cannot store: it is U+FFFD there."
        )
    said.append(
        f"Set POSTROOM_DATABASE_URL to that database, keep POSTROOM_DATA_DIR={config.data_dir} (large emails,"
        " journals and the certificate stay there), and start: postroom serve"
    )
    counts = {"rows": moved.rows, "tables": moved.tables, "withoutNul": moved.without_nul}
    output.done({**counts, "faults": faults}, "\n".join(said), as_json)
    for fault in faults:
        print(f"postroom: {fault}", file=sys.stderr)
    if faults:
        raise typer.Exit(1)
