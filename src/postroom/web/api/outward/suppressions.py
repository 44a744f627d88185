"""Suppressed addresses over REST."""

from postroom.errors import BadRequest, NotFound
from postroom.mail.address import normalize, validate
from postroom.mail.writing.compose import CONTROL
from postroom.queue import suppressions
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import NewSuppression, PageQuery
from postroom.web.interface.shapes import shapes


async def list_suppressions(call: Call, query: PageQuery) -> shapes.SuppressionPage:
    """List the suppressed addresses, newest first"""
    found, total = await call.read_page(
        query.offset, lambda tx: suppressions.list_of_account(tx, call.account_id, query.limit, query.offset)
    )
    return shapes.SuppressionPage([shapes.Suppression.of(item) for item in found], total)


async def add_suppression(call: Call, body: NewSuppression) -> shapes.Suppression:
    """Never send to an address again"""
    address = read_address(body.address)

    def work(tx: Tx) -> suppressions.Suppression:
        added = suppressions.add(tx, call.account_id, address, suppressions.MANUAL, call.now())
        call.record(tx, "suppression.added", address)
        return added

    return shapes.Suppression.of(await call.resources.db.write(work))


async def delete_suppression(call: Call, address: str) -> None:
    """Take an address off the suppression list"""
    if CONTROL.search(address):
        raise NotFound("This address is not suppressed.")

    def work(tx: Tx) -> None:
        suppressions.remove(tx, call.account_id, normalize(address))
        call.record(tx, "suppression.removed", normalize(address))

    await call.resources.db.write(work)


def read_address(value: str) -> str:
    try:
        return normalize(validate(value))
    except ValueError as error:
        raise BadRequest(f"address is not valid: {error}", field="address") from None
