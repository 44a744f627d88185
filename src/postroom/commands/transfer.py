"""`postroom import` and `postroom accounts export`: mail from other places, and into files."""

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from postroom.commands.accounts import AccountArgument, accounts_app
from postroom.commands.database import require_account, with_database
from postroom.commands.output import done
from postroom.config import Config
from postroom_client.cli import app
from postroom_client.cli.command import Json, group

if TYPE_CHECKING:
    from postroom.inward.extraction_pool import ExtractionPool
    from postroom.mailbox.inboxes import Inbox
    from postroom.processes.pools import ProcessPool
    from postroom.resources import Resources
    from postroom.storage.database import Database, Tx
    from postroom.transfer.mbox import FiledMail
    from postroom.transfer.sources import Known, OldMail

    Mails = AsyncIterator[list[OldMail]]
    Read = Callable[[Known, Callable[[int], None]], Mails]
    Find = Callable[[Resources], Awaitable[tuple[int, Read]]]

T = TypeVar("T")

import_app = group(
    "Import email from files or a mailbox, with its threads and dates (on the server's machine)."
)
app.add_typer(import_app, name="import")

Into = Annotated[str, typer.Option("--inbox", help="Address or id of the inbox.")]
Source = Annotated[Path, typer.Argument(exists=True, help="Where the email is.")]
SourceFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Where the email is.")]


@import_app.command("mbox")
def import_mbox(path: SourceFile, inbox: Into, as_json: Json = None) -> None:
    """Import an mbox file; skips what the inbox already has."""
    from postroom.transfer import mbox

    _import([(_of_files(lambda now: mbox.list_mbox(path, now)), inbox)], as_json)


@import_app.command("maildir")
def import_maildir(path: Source, inbox: Into, as_json: Json = None) -> None:
    """Import a Maildir; skips what the inbox already has."""
    from postroom.transfer import mbox

    _import([(_of_files(lambda now: mbox.list_maildir(path, now)), inbox)], as_json)


@import_app.command("export")
def import_export(
    folder: Source,
    inbox: Annotated[
        str,
        typer.Option("--inbox", help="Address or id of one inbox for all; else those of the same address."),
    ] = "",
    has_aliases: Annotated[
        bool, typer.Option("--aliases/--no-aliases", help="Create the aliases too; not with --inbox.")
    ] = True,
    as_json: Json = None,
) -> None:
    """Import what `postroom accounts export` wrote, with dates, labels and aliases; skips what is there."""
    from functools import partial

    from postroom.transfer import exported

    found = exported.list_inboxes(folder)
    _import(
        [(_of_files(partial(exported.list_mails, folder, address)), inbox or address) for address in found],
        as_json,
        found if has_aliases and not inbox else {},
    )


@import_app.command("imap")
def import_imap(
    url: Annotated[str, typer.Argument(help="imap://user:password@host/FOLDER; 993 is TLS, else STARTTLS.")],
    inbox: Into,
    as_json: Json = None,
) -> None:
    """Import a folder of a mailbox elsewhere; nothing changes there. Asks for a missing password."""
    from msgspec.structs import replace

    from postroom.external_mailboxes.imap_wire import ImapError
    from postroom.transfer import sources

    wanted = sources.parse_url(url)
    if not wanted.password:
        wanted = replace(wanted, password=typer.prompt("Password", hide_input=True, err=True))

    async def find(resources: "Resources") -> "tuple[int, Read]":
        client = await sources.open_mailbox(resources, wanted)
        listed = await sources.list_mailbox(client)
        now = resources.now()
        return len(listed), lambda known, skip: sources.from_mailbox(client, listed, known, skip, now)

    try:
        _import([(find, inbox)], as_json)
    except ImapError as error:
        raise typer.BadParameter(str(error), param_hint="url") from None


@import_app.command("agentmail")
def import_agentmail(
    address: Annotated[str, typer.Argument(help="Address of the inbox there.")],
    inbox: Into,
    key: Annotated[
        str, typer.Option(envvar="AGENTMAIL_API_KEY", prompt=True, hide_input=True, help="Their API key.")
    ],
    url: Annotated[str, typer.Option(help="URL of the AgentMail API.")] = "https://api.agentmail.to",
    as_json: Json = None,
) -> None:
    """Import an inbox from AgentMail; skips what the inbox here already has."""
    from tempfile import TemporaryDirectory

    from postroom.clock import SystemClock
    from postroom.transfer.fetch_agentmail import fetch_mails

    with TemporaryDirectory() as folder:
        with progress("emails", None) as report:
            mails = fetch_mails(url, key, address, Path(folder) / "mail", SystemClock().now(), report)
        _import([(_of_files(lambda now: mails), inbox)], as_json)


@accounts_app.command("export")
def export_account(
    account: AccountArgument,
    folder: Annotated[Path, typer.Argument(help="A new folder, readable only by you.")],
    as_json: Json = None,
) -> None:
    """Write all email of an account into a folder: mbox and JSON for each inbox, and every attachment."""
    from postroom.inward.journal import positions
    from postroom.transfer.export_mail import export_account

    if folder.exists():
        raise typer.BadParameter("already exists", param_hint="folder")

    async def work(resources: "Resources") -> tuple[int, int]:
        found = await resources.db.read(require_account, account)
        with progress("messages", None) as report:
            count = await export_account(resources, found, folder, report)
        left = await resources.db.read(positions.survey, resources.config.data_dir)
        return count, sum(each.mails for each in left)

    count, waiting = with_resources(work)
    said = f"{count} messages are in {folder}."
    if waiting:
        said += (
            f"\n{waiting} emails are still in the journal. A running server stores them: export again then."
        )
    done({"folder": str(folder), "messages": count, "waiting": waiting}, said, as_json)


def _of_files(list_mails: "Callable[[int], list[FiledMail]]") -> "Find":
    from postroom.processes import pools
    from postroom.transfer import sources

    async def find(resources: "Resources") -> "tuple[int, Read]":
        filed = await pools.ONCE.run(list_mails, resources.now())
        return len(filed), lambda known, skip: sources.from_files(filed, known, skip)

    return find


def _import(
    wanted: "Sequence[tuple[Find, str]]",
    as_json: bool | None,
    aliases: "Mapping[str, Sequence[str]] | None" = None,
) -> None:
    """Import from each source into its inbox, after its aliases: email in their name counts as sent.

    Emails are parsed by one process per core.
    """
    from postroom.inward.extraction_pool import ExtractionPool
    from postroom.operations.exported_aliases import create_all
    from postroom.processes.pools import ProcessPool

    async def work(resources: "Resources") -> tuple[int, int, int]:
        found = [(find, await resources.db.read(_require_inbox, inbox)) for find, inbox in wanted]
        created = 0
        if aliases:
            created = await resources.db.write(create_all, aliases, resources.config, resources.now())
            found = [(find, await resources.db.read(_require_inbox, inbox.id)) for find, inbox in found]
        extractor, readers = ExtractionPool(), ProcessPool("postroom.transfer.reading_processes")
        gc.freeze()  # everything loaded so far stays
        imported = left_out = 0
        try:
            for find, inbox in found:
                total, count = await _import_into(resources, readers, extractor, inbox, find)
                imported, left_out = imported + count, left_out + total - count
        finally:
            readers.close()
            await extractor.close()
        return imported, left_out, created

    imported, left_out, created = with_resources(work)
    sentence = f"{imported} messages were imported; {left_out} were already there or are not mail."
    if created:
        sentence += f"\n{created} aliases were created."
    of_aliases = {} if aliases is None else {"aliases": created}
    done({"imported": imported, "leftOut": left_out, **of_aliases}, sentence, as_json)


async def _import_into(
    resources: "Resources", readers: "ProcessPool", extractor: "ExtractionPool", inbox: "Inbox", find: "Find"
) -> tuple[int, int]:
    """Return how many there are, and how many of them are new."""
    from postroom.transfer.import_mail import import_all, known_ids

    total, read = await find(resources)

    async def find_known(message_ids: "Sequence[str]") -> set[str]:
        return await resources.db.read(known_ids, inbox, message_ids)

    with progress("messages", total) as report:
        batches = read(find_known, report)
        return total, await import_all(resources, readers, extractor, inbox, batches, report)


def _require_inbox(tx: "Tx", address_or_id: str) -> "Inbox":
    from postroom.errors import NotFound
    from postroom.mailbox import inboxes
    from postroom_mail.mime.address import mailbox_of

    found = inboxes.find(tx, address_or_id) or inboxes.find_by_address(tx, mailbox_of(address_or_id))
    if found is None:
        raise NotFound(f"No inbox is called '{address_or_id}'. Create it: postroom inboxes create NAME")
    return found


def with_resources(work: "Callable[[Resources], Awaitable[T]]", of: Config | None = None) -> T:
    """Opens the storage of these settings, or of the environment, next to a server that may be running."""

    async def opened(db: "Database", config: Config) -> T:
        import asyncio

        from postroom.clock import SystemClock
        from postroom.net.dns import Resolver
        from postroom.resources import Resources
        from postroom.storage.opening import open_blobs

        resolver = Resolver()
        try:
            blobs = open_blobs(config)
            return await work(Resources(config, db, blobs, SystemClock(), resolver, asyncio.Event()))
        finally:
            await resolver.close()

    return with_database(opened, of)


@contextmanager
def progress(unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda by: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda by: bar.advance(task, by)
