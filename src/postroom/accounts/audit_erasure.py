"""Takes a person's content out of audit entries, so that the chain still verifies.

What is left of each entry (who did what, when) is hashed in a new entry of the same chain, which names them.
An entry whose content is gone without being named so, or is named with another hash, was tampered with.
"""

import hashlib
import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts import audit
from postroom.accounts.actors import Actor
from postroom.accounts.audit_entries import Entry, hash_of_rest
from postroom.accounts.scope import Scope
from postroom.storage.database import Row, Tx, all_of, update
from postroom_mail.mime.address import with_readable_domain

NAMED_TOGETHER = 80  # hashes in one entry, whose length is limited
ERASED = "audit.erased"


class AuditErasure(Struct, frozen=True):
    """Who is erased, by which job, for whom."""

    scope: Scope
    job_id: str
    actor: Actor
    address: str
    now: int


class ErasedPage(Struct, frozen=True):
    """How many entries were looked at and emptied, and the last one; None at the end."""

    examined: int
    erased: int
    last: tuple[int, str] | None


def hashed(address: str) -> str:
    """Return what is kept in place of an address: it can be compared, and not read."""
    return "sha256:" + hashlib.sha256(f"postroom erased {address}".encode()).hexdigest()


def mention_of(address: str) -> re.Pattern[str]:
    """Return a pattern for the address where it is not a part of another one: in text and in JSON."""
    written = {address, with_readable_domain(address)}
    written |= {msgspec.json.encode(each).decode()[1:-1] for each in written}
    forms = "|".join(map(re.escape, sorted(written, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.+%-])(?:{forms})(?![\w-]|\.\w)", re.IGNORECASE)


def erase_some(tx: Tx, asked: AuditErasure, after: tuple[int, str], rows: int) -> ErasedPage:
    """Erase the content of those of the next entries that mention the address."""
    column = "pod_id" if asked.scope.pod_id is not None else "account_id"
    found = tx.all(
        f"select * from audit where {column} = :owner and (created_at, id) > (:at, :id)"
        " and created_at <= :now order by created_at, id limit :rows",
        owner=asked.scope.pod_id or asked.scope.account_id,
        at=after[0],
        id=after[1],
        now=asked.now,
        rows=rows,
    )
    is_mentioned = mention_of(asked.address).search
    mentioned = [row for row in found if _mentions(row, is_mentioned)]
    _empty_all(tx, asked, mentioned)
    last = (found[-1]["created_at"], found[-1]["id"]) if len(found) == rows else None
    return ErasedPage(len(found), len(mentioned), last)


def erase_of_targets(tx: Tx, asked: AuditErasure, targets: Sequence[str]) -> int:
    """Erase the content of entries about erased messages: notes of decisions, and what was changed.

    Return how many.
    """
    found = all_of(tx, "select * from audit where :wanted and inbox_id is not null", "target", targets)
    with_content = [row for row in found if row["before"] or row["after"]]
    _empty_all(tx, asked, with_content)
    return len(with_content)


def _mentions(row: Row, is_mentioned: Callable[[str], object]) -> bool:
    return any(is_mentioned(row[name] or "") for name in ("target", "before", "after"))


def _empty_all(tx: Tx, asked: AuditErasure, found: Sequence[Row]) -> None:
    for start in range(0, len(found), NAMED_TOGETHER):
        _empty(tx, asked, found[start : start + NAMED_TOGETHER])


def _empty(tx: Tx, asked: AuditErasure, found: Sequence[Row]) -> None:
    """Erase the content of these entries.

    Those that wait to join the chain have no hash yet; it will cover what is left.
    """
    pattern, kept = mention_of(asked.address), hashed(asked.address)
    left = {
        row["id"]: replace(
            Entry.from_row(row), before=None, after=None, target=pattern.sub(kept, row["target"])
        )
        for row in found
        if row["erased_by"] is None
    }
    chained = {str(each.sequence): hash_of_rest(each) for each in left.values() if each.sequence is not None}
    erased_by = None
    if chained:
        after = {"jobId": asked.job_id, "entries": chained}
        erased_by = audit.record(tx, asked.actor, ERASED, asked.job_id, asked.scope, asked.now, after=after)
    for each in left.values():
        named = erased_by if each.sequence is not None else None
        update(tx, "audit", each.id, target=each.target, before=None, after=None, erased_by=named)


def read_named(after: object) -> dict[str, str]:
    """Return the entries that an entry says were emptied, by number, with the hash of what is left."""
    try:
        return msgspec.convert(after, _Named).entries
    except msgspec.ValidationError:
        return {}


class _Named(Struct, frozen=True):
    entries: dict[str, str]
