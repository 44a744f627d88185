"""`postroom import` and `postroom accounts export`: mail from elsewhere, and into files."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from postroom.commands.accounts import AccountArgument, accounts_app
from postroom.commands.database import require_account, with_database
from postroom.config import Config
from postroom_client.cli import app
from postroom_client.cli.command import group

if TYPE_CHECKING:
    from postroom.mailbox.inboxes import Inbox
    from postroom.resources import Resources
    from postroom.storage.database import Database, Tx
    from postroom.transfer.mbox import FiledMail
    from postroom.transfer.sources import OldMail

    Batches = tuple[AsyncIterator[list[OldMail]], int]

T = TypeVar("T")

import_app = group(
    "Bring mail in from files or a mailbox, with its threads and dates (on the server's machine)."
)
app.add_typer(import_app, name="import")

Into = Annotated[str, typer.Option("--inbox", help="Address or id of the inbox.")]
Source = Annotated[Path, typer.Argument(exists=True, help="Where the mail is.")]


@import_app.command("mbox")
def import_mbox(path: Source, inbox: Into) -> None:
    """Import the mails of an mbox file; what the inbox has already is left out."""
    from postroom.transfer import mbox

    _import_files(lambda now: mbox.list_mbox(path, now), inbox)


@import_app.command("maildir")
def import_maildir(path: Source, inbox: Into) -> None:
    """Import the mails of a Maildir; what the inbox has already is left out."""
    from postroom.transfer import mbox

    _import_files(lambda now: mbox.list_maildir(path, now), inbox)


@import_app.command("imap")
def import_imap(
    url: Annotated[str, typer.Argument(help="imap://user:password@host/FOLDER; 993 is TLS, else STARTTLS.")],
    inbox: Into,
) -> None:
    """Import a folder of a mailbox elsewhere; nothing changes there. The password may be asked for."""
    from msgspec.structs import replace

    from postroom.connections.imap_wire import ImapError
    from postroom.transfer import sources

    wanted = sources.parse_url(url)
    if not wanted.password:
        wanted = replace(wanted, password=typer.prompt("Password", hide_input=True, err=True))

    async def read(resources: "Resources") -> "Batches":
        client = await sources.open_mailbox(resources, wanted)
        listed = await sources.list_mailbox(client)
        return sources.from_mailbox(client, listed, resources.now()), len(listed)

    try:
        _import(read, inbox)
    except ImapError as error:
        raise typer.BadParameter(str(error), param_hint="url") from None


@import_app.command("agentmail")
def import_agentmail(
    address: Annotated[str, typer.Argument(help="The inbox there: its address.")],
    inbox: Into,
    key: Annotated[
        str, typer.Option(envvar="AGENTMAIL_API_KEY", prompt=True, hide_input=True, help="A key of theirs.")
    ],
    url: Annotated[str, typer.Option(help="Where their interface is.")] = "https://api.agentmail.to",
) -> None:
    """Import the mails of an inbox at AgentMail; what the inbox here has already is left out."""
    from tempfile import TemporaryDirectory

    from postroom.clock import SystemClock
    from postroom.transfer.fetch_agentmail import fetch_mails

    with TemporaryDirectory() as folder:
        with progress("mails", None) as tell:
            mails = fetch_mails(url, key, address, Path(folder) / "mail", SystemClock().now(), tell)
        _import_files(lambda now: mails, inbox)


@accounts_app.command("export")
def export_account(
    account: AccountArgument,
    folder: Annotated[Path, typer.Argument(help="A new folder, made for you alone.")],
) -> None:
    """Write all mail of an account into a folder: mbox and JSON for each inbox, and every attachment."""
    from postroom.inward.journal import places
    from postroom.transfer.export_mail import export_account

    if folder.exists():
        raise typer.BadParameter("is there already", param_hint="folder")

    async def work(resources: "Resources") -> tuple[int, int]:
        found = await resources.db.read(require_account, account)
        with progress("messages", None) as tell:
            count = await export_account(resources, found, folder, tell)
        left = await resources.db.read(places.survey, resources.config.data_dir)
        return count, sum(each.mails for each in left)

    count, waiting = with_resources(work)
    print(f"{count} messages are in {folder}.")
    if waiting:
        print(f"{waiting} mails wait in the journal. A running server stores them: export again then.")


def _import_files(list_mails: "Callable[[int], list[FiledMail]]", inbox: str) -> None:
    from postroom.processes import pools
    from postroom.transfer import sources

    async def read(resources: "Resources") -> "Batches":
        filed = await pools.ONCE.run(list_mails, resources.now())
        return sources.from_files(filed), len(filed)

    _import(read, inbox)


def _import(read: "Callable[[Resources], Awaitable[Batches]]", inbox: str) -> None:
    """Mails are read by as many processes as there are cores."""
    from postroom.extraction.pool import ExtractionPool
    from postroom.processes.pools import ProcessPool
    from postroom.transfer.import_mail import import_all

    async def work(resources: "Resources") -> tuple[int, int]:
        found = await resources.db.read(_require_inbox, inbox)
        batches, total = await read(resources)
        extractor, readers = ExtractionPool(), ProcessPool()
        try:
            with progress("messages", total) as tell:
                count = await import_all(resources, readers, extractor, found, batches, tell)
        finally:
            readers.close()
            await extractor.close()
        return count, total - count

    imported, left_out = with_resources(work)
    print(f"{imported} messages were imported; {left_out} were there already or cannot be mail.")


def _require_inbox(tx: "Tx", address_or_id: str) -> "Inbox":
    from postroom.errors import NotFound
    from postroom.mail.address import mailbox_of
    from postroom.mailbox import inboxes

    found = inboxes.find(tx, address_or_id) or inboxes.find_by_address(tx, mailbox_of(address_or_id))
    if found is None:
        raise NotFound(f"No inbox is called '{address_or_id}'.")
    return found


def with_resources(work: "Callable[[Resources], Awaitable[T]]") -> T:
    """The storage of the settings in the environment, beside a server that may be running."""

    async def opened(db: "Database", config: Config) -> T:
        from postroom.assembly import open_blobs
        from postroom.clock import SystemClock
        from postroom.net.dns import Resolver
        from postroom.resources import Resources

        resolver = Resolver()
        try:
            blobs = open_blobs(config)
            return await work(Resources(config, db, blobs, SystemClock(), resolver, asyncio.Event()))
        finally:
            await resolver.close()

    return with_database(opened)


@contextmanager
def progress(unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar for a person at a terminal, nothing for a program."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda by: bar.advance(task, by)
