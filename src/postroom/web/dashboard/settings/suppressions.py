"""Suppressed addresses: why, since which mail, and import and export as files."""

from msgspec import Struct
from starlette.responses import Response

from postroom.clock import to_iso
from postroom.errors import ApiError, BadRequest
from postroom.operations import messages
from postroom.operations import suppressions as operations
from postroom.operations.sending.files import SentFile
from postroom.queue import suppressions
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.paging import OffsetQuery

PATH = "/app/settings/suppressions"
IMPORTED = 10_000  # addresses of one file
EXPORTED = 50_000
AT_ONCE = 500


class AgainForm(operations.NewSuppression, frozen=True):
    message: str


class ListForm(Struct, frozen=True):
    attachments: list[SentFile] = []


async def show_suppressions(context: PageContext, query: OffsetQuery) -> Response:
    page = await context.ask(operations.list_suppressions, query=query.to_page())
    return await context.show(
        "suppressions.html",
        "settings",
        title="Suppressions",
        suppressions=page["data"],
        **query.of(page["total"]),
    )


suppress = runs(operations.add_suppression, PATH, "Suppressed. No email is sent to {body.address}.")


unsuppress = undo.delayed(
    operations.delete_suppression,
    PATH,
    "{body.address} is removed from the list in {seconds} seconds.",
    operations.NewSuppression,
    lambda form: {"address": form.address},
)


async def send_again(context: PageContext, body: AgainForm) -> Response:
    """Removes the address from the list, and retries the failed mail."""
    await context.run(operations.delete_suppression, address=body.address)
    try:
        await context.run(messages.retry_message, message_id=body.message)
    except ApiError as error:
        return go(PATH, f"{body.address} is no longer suppressed. The email was not sent: {error.message}")
    return go(f"/app/messages/{body.message}", f"{body.address} is no longer suppressed and gets the email.")


async def export(context: PageContext) -> Response:
    account_id, read_long = context.call.account_id, context.call.resources.db.read_long
    found, _ = await read_long(suppressions.list_of_account, 10.0, account_id, EXPORTED, 0)
    rows = ((each.address, each.type, to_iso(each.created_at), each.reason) for each in found)
    return sheets.to_file("suppressions.csv", ("address", "type", "createdAt", "reason"), rows)


async def import_list(context: PageContext, body: ListForm) -> Response:
    """Reads the first column of each line. If one is no address, the whole file is refused."""
    if not body.attachments:
        raise BadRequest("Choose a file with one address per line.", field="attachments")
    cells = [cell for file in body.attachments for cell in sheets.first_cells(file.content, IMPORTED)]
    if cells and "@" not in cells[0]:
        cells = cells[1:]  # the head of the table
    addresses = list(dict.fromkeys(operations.read_address(cell) for cell in cells))
    for start in range(0, len(addresses), AT_ONCE):
        await context.decide(operations.add_suppressions, addresses[start : start + AT_ONCE])
    return go(PATH, f"{len(addresses):,} addresses of the file are suppressed.")
