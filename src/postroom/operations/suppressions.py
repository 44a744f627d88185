"""Operations on suppressed addresses, which get no mail."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest, NotFound
from postroom.fields import PageQuery, Timestamp, show_item
from postroom.queue import suppressions
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize, validate
from postroom_mail.writing.header_words import CONTROL


class NewSuppression(Struct, frozen=True):
    address: Annotated[
        str, Meta(description="The address that gets no more email.", examples=["someone@example.com"])
    ]


class Suppression(Struct, rename="camel", frozen=True):
    """`messageId` is the sent email that caused it, `reason` what its recipient's server or reader said."""

    address: str
    type: str
    created_at: Timestamp
    message_id: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, item: suppressions.Suppression) -> "Suppression":
        return show_item(cls, item)


class SuppressionPage(Struct, rename="camel", frozen=True):
    data: list[Suppression]
    total: int


def list_suppressions(tx: Tx, caller: Caller, query: PageQuery) -> SuppressionPage:
    """List the suppressed addresses, newest first"""
    found, total = suppressions.list_of_account(tx, caller.account_id, query.limit, query.offset)
    return SuppressionPage([Suppression.of(item) for item in found], total)


def add_suppression(tx: Tx, caller: Caller, body: NewSuppression, now: int) -> Suppression:
    """Never send to an address again"""
    address = read_address(body.address)
    added = suppressions.add(tx, caller.account_id, address, suppressions.MANUAL, now)
    audit.record_by(tx, caller, "suppression.added", address, now)
    return Suppression.of(added)


def add_suppressions(tx: Tx, caller: Caller, addresses: Sequence[str], now: int) -> None:
    """Add the addresses of a file, or some of them."""
    for address in addresses:
        suppressions.add(tx, caller.account_id, address, suppressions.MANUAL, now)
    audit.record_by(tx, caller, "suppression.added", f"{len(addresses)} addresses of a file", now)


def delete_suppression(tx: Tx, caller: Caller, address: str, now: int) -> None:
    """Remove an address from the suppression list"""
    if CONTROL.search(address):
        raise NotFound("This address is not suppressed.")
    suppressions.remove(tx, caller.account_id, normalize(address))
    audit.record_by(tx, caller, "suppression.removed", normalize(address), now)


def read_address(value: str) -> str:
    try:
        return normalize(validate(value))
    except ValueError as error:
        raise BadRequest(f"address is not valid: {error}", field="address") from None
