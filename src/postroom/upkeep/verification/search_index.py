"""Checks the search index: every message is in it or waits for it, and nothing else is."""

from collections.abc import Sequence

from postroom.mailbox.search import indexing
from postroom.storage.database import Tx, one_of
from postroom.upkeep.verification.parts import Finding, Page, next_ids, of_rows

NAME, LEFT_OVER = "search index", "entries of the search index"
PAGE = 500
WAITING = (
    "with waiting as (select message_id from search_changes"
    " where number > (select reached from search_state where name = 'index'))"
)


def look_for_missing(tx: Tx, after: str) -> Page:
    """Reports nothing while earlier email is indexed again: missing entries will come."""
    ids, following = next_ids(tx, "messages", "id", after, PAGE)
    if not ids or not indexing.is_whole(tx):
        return Page([], len(ids), following)
    is_wanted, wanted = one_of("messages.id", ids)
    rows = tx.all(
        f"{WAITING} select id from messages where {is_wanted}"
        " and not exists (select 1 from search_documents where message_id = messages.id)"
        " and not exists (select 1 from waiting where waiting.message_id = messages.id)"
        " and not exists (select 1 from examinations where message_id = messages.id)"
        " and exists (select 1 from inboxes where inboxes.id = messages.inbox_id)",
        **wanted,
    )
    found = [Finding(NAME, row["id"], "it is not in the index", is_derived=True) for row in rows]
    return Page(found, len(ids), following)


def look_for_left_over(tx: Tx, after: str) -> Page:
    ids, following = next_ids(tx, "search_documents", "message_id", after, PAGE)
    if not ids:
        return Page([], 0, None)
    is_wanted, wanted = one_of("message_id", ids)
    rows = tx.all(
        f"{WAITING} select message_id from search_documents where {is_wanted}"
        " and not exists (select 1 from messages where id = search_documents.message_id)"
        " and not exists (select 1 from waiting where waiting.message_id = search_documents.message_id)",
        **wanted,
    )
    what = "its message is missing"
    found = [Finding(LEFT_OVER, row["message_id"], what, is_derived=True) for row in rows]
    return Page(found, len(ids), following)


def repair(tx: Tx, message_ids: Sequence[str]) -> None:
    """Let the index loop make or remove the entries, as for any other change."""
    indexing.enqueue_all(tx, message_ids)


PARTS = (
    of_rows(NAME, "messages", look_for_missing, repair),
    of_rows(LEFT_OVER, "search_documents", look_for_left_over, repair),
)
