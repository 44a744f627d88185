"""Contacts: who exchanged email with an inbox, and what was counted of it. Nobody writes one by hand.

The counts include email that was deleted since; `threads` are those that are there.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.limits import ADDRESS_CHARACTERS
from postroom.mailbox import correspondents
from postroom.storage.database import Row, Tx, all_of
from postroom_mail.search.tokens import fold

WORDS = 6
FOUND = 1_000  # contacts that a search looks at
COUNTED_BEYOND_PAGE = 1_000
LAST = "\U0010ffff"  # behind all words that begin with the letters in front of it
COUNTS = ("received", "sent", "threads", "auth_passed", "auth_failed", "clean", "suspicious", "malicious")
_SUMS = ", ".join(f"sum({name}) as {name}" for name in COUNTS)
_SUMMED = f"select address, max(name) as name, min(first_at) as first_at, max(last_at) as last_at, {_SUMS}"


class Contact(Struct, frozen=True):
    """An address, and what all inboxes in a scope know of it."""

    address: str
    name: str
    first_at: int
    last_at: int
    received: int
    sent: int
    threads: int
    auth_passed: int
    auth_failed: int
    clean: int
    suspicious: int
    malicious: int
    is_known: bool = False

    @classmethod
    def from_row(cls, row: Row) -> "Contact":
        counts: Any = {name: int(row[name]) for name in COUNTS}
        return cls(row["address"], row["name"], row["first_at"], row["last_at"], **counts)


def find(tx: Tx, scope: Scope, address: str) -> Contact | None:
    found = _read(tx, scope, [address])
    return found[0] if found else None


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[Contact], int]:
    """List contacts by address. The total counts at most a thousand more than the page shows."""
    owner, owner_id = scope.owner
    asked = {"owner_id": owner_id, "most": offset + limit + COUNTED_BEYOND_PAGE}
    some = f"(select distinct address from contacts where {owner} = :owner_id order by address limit :most)"
    row = tx.one(f"select count(*) as number from {some} as counted", **asked)
    rows = tx.all(
        f"{_SUMMED} from contacts where {owner} = :owner_id group by address order by address"
        " limit :limit offset :offset",
        owner_id=owner_id,
        limit=limit,
        offset=offset,
    )
    total = 0 if row is None else int(row["number"])
    return _with_known(tx, scope, [Contact.from_row(row) for row in rows]), total


def search(tx: Tx, scope: Scope, asked: str, limit: int, offset: int) -> tuple[list[Contact], int]:
    """List the first thousand contacts whose address, domain or any word of the name begins like this."""
    owner, owner_id = scope.owner
    word = fold_word(asked)
    rows = tx.all(
        f"select word, address from contact_words where {owner} = :owner_id"
        " and word >= :word and word < :last order by word, address limit :most",
        owner_id=owner_id,
        word=word,
        last=word + LAST,
        most=FOUND,
    )
    addresses = sorted({row["address"] for row in rows})
    return _read(tx, scope, addresses[offset : offset + limit]), len(addresses)


def _read(tx: Tx, scope: Scope, addresses: Sequence[str]) -> list[Contact]:
    owner, owner_id = scope.owner
    rows = all_of(
        tx,
        f"{_SUMMED} from contacts where {owner} = :owner_id and :wanted group by address order by address",
        "address",
        addresses,
        owner_id=owner_id,
    )
    return _with_known(tx, scope, [Contact.from_row(row) for row in rows])


def _with_known(tx: Tx, scope: Scope, found: list[Contact]) -> list[Contact]:
    """Mark the known contacts: those who sent one of these inboxes an email that did not fail DMARC."""
    owner, owner_id = scope.owner
    rows = all_of(
        tx,
        f"select inbox_id, address from contacts where {owner} = :owner_id and :wanted",
        "address",
        [each.address for each in found],
        owner_id=owner_id,
    )
    pairs = [(row["inbox_id"], row["address"]) for row in rows]
    known = {address for _, address in correspondents.find(tx, pairs, only_trusted=True)} if pairs else set()
    return [replace(each, is_known=each.address in known) for each in found]


def list_threads(tx: Tx, scope: Scope, address: str, limit: int) -> list[str]:
    """List the newest threads with this address, in any inbox in scope."""
    owner, owner_id = scope.owner
    rows = tx.all(
        "select contact_threads.thread_id as id from contacts join contact_threads"
        " on contact_threads.inbox_id = contacts.inbox_id and contact_threads.address = contacts.address"
        f" where contacts.{owner} = :owner_id and contacts.address = :address"
        " order by contact_threads.thread_id desc limit :limit",
        owner_id=owner_id,
        address=address,
        limit=limit,
    )
    return [row["id"] for row in rows]


def list_inboxes(tx: Tx, scope: Scope, address: str, limit: int) -> list[str]:
    """List the inboxes in scope that know this address."""
    owner, owner_id = scope.owner
    rows = tx.all(
        f"select inbox_id from contacts where {owner} = :owner_id and address = :address"
        " order by inbox_id limit :limit",
        owner_id=owner_id,
        address=address,
        limit=limit,
    )
    return [row["inbox_id"] for row in rows]


def forget_thread(tx: Tx, thread_id: str) -> None:
    """Reduce the count of each contact of a deleted thread by one."""
    tx.run(
        "update contacts set threads = threads - 1 where (inbox_id, address) in"
        " (select inbox_id, address from contact_threads where thread_id = :id)",
        id=thread_id,
    )


def words_of(address: str, name: str) -> list[str]:
    """Return what a contact is found by."""
    words = [fold_word(address), fold_word(address.rpartition("@")[2]), *fold(name).split()]
    return [word[:ADDRESS_CHARACTERS] for word in words[:WORDS] if word]


def fold_word(text: str) -> str:
    return fold(text).strip()[:ADDRESS_CHARACTERS]
