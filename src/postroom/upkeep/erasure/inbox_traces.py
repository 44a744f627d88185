"""What an inbox knows of a contact besides its email: drafts, appointments, and rows that name it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from postroom.accounts.audit_erasure import mention_of
from postroom.events.event_erasure import without_address
from postroom.mailbox import contact_mail, drafts, inbox_calendars, inboxes, messages
from postroom.mailbox.contact_mail import MailCursor
from postroom.mailbox.jobs import Job
from postroom.storage.database import Row, Tx, delete, update

ROWS = 50
NEWEST = 200  # of the email in threads of a contact, which may have come meanwhile
# Rows of an inbox by the address of a contact.
OF_A_CONTACT = ("contact_words", "correspondents", "rule_replies", "contact_threads")
OF_THREADS = "(select thread_id from contact_threads where inbox_id = :inbox_id and address = :address)"
Erased = tuple[int, list[str], MailCursor | None]  # rows looked at, blobs to remove, where to go on


def erase(tx: Tx, job: Job, place: MailCursor, until: int, counts: Counter[str]) -> Erased:
    if place.part == contact_mail.REST:
        return _erase_rows(tx, job, place, counts)
    rows = tx.all(
        f"select * from {contact_mail.OF_INBOX[place.part]} where inbox_id = :inbox_id and id > :id"
        " and created_at <= :until order by id limit :limit",
        inbox_id=place.inbox_id,
        id=place.id,
        until=until,
        limit=ROWS,
    )
    is_drafts = place.part == contact_mail.DRAFTS
    erase_one = _erase_draft if is_drafts else _erase_appointment
    columns = ("fields",) if is_drafts else ("content", "before")
    blobs = [blob for row in rows for blob in _unless_held(tx, row, columns, job, counts, erase_one)]
    return len(rows), blobs, replace(place, id=rows[-1]["id"]) if len(rows) == ROWS else None


def _unless_held(
    tx: Tx,
    row: Row,
    columns: Sequence[str],
    job: Job,
    counts: Counter[str],
    erase_one: Callable[[Tx, Row, Job, Counter[str]], list[str]],
) -> list[str]:
    is_mentioned = mention_of(job.subject).search
    if not any(is_mentioned(_text(row[name])) for name in columns):
        return []
    if inboxes.lock(tx, row["inbox_id"]).legal_hold:
        counts.update(kept=1)
        return []
    return erase_one(tx, row, job, counts)


def _text(stored: Any) -> str:
    return stored if isinstance(stored, str) else bytes(stored or b"").decode(errors="replace")


def _erase_draft(tx: Tx, row: Row, job: Job, counts: Counter[str]) -> list[str]:
    counts.update(drafts=1)
    return drafts.remove(tx, row["id"])


def _erase_appointment(tx: Tx, row: Row, job: Job, counts: Counter[str]) -> list[str]:
    """Erase the person from an appointment, which stays; mail clients get the new version."""
    changed = {
        name: msgspec.json.encode(without_address(msgspec.json.decode(row[name]), job.subject)).decode()
        for name in ("content", "before", "proposals")
        if row[name] is not None
    }
    version = inbox_calendars.next_version(tx, row["calendar_id"])
    update(tx, "calendar_events", row["id"], version=version, **changed)
    counts.update(calendarEvents=1)
    return []


def _has_row(tx: Tx, table: str, named: dict[str, str]) -> bool:
    wanted = "inbox_id = :inbox_id and address = :address"
    return tx.one(f"select 1 as found from {table} where {wanted} limit 1", **named) is not None


def _erase_rows(tx: Tx, job: Job, place: MailCursor, counts: Counter[str]) -> Erased:
    """Erase the rows. The contact stays as long as email of it does: it can be erased again."""
    named = {"inbox_id": place.inbox_id, "address": job.subject}
    if not any(_has_row(tx, table, named) for table in ("contacts", "correspondents", "rule_replies")):
        return 0, [], None
    inboxes.lock(tx, place.inbox_id)
    if place.has_kept or _has_newer(tx, named):
        return 0, [], None
    tx.run(f"delete from participants where thread_id in {OF_THREADS} and address = :address", **named)
    tx.run(
        "update threads set awaiting_since = null, awaiting_until = null, awaiting_from = null,"
        f" awaiting_message = null where id in {OF_THREADS} and awaiting_from = :address",
        **named,
    )
    tx.run(f"update threads set digest = null where id in {OF_THREADS}", **named)
    for table in OF_A_CONTACT:
        delete(tx, table, **named)
    counts.update(contacts=delete(tx, "contacts", **named))
    return 0, [], None


def _has_newer(tx: Tx, named: dict[str, str]) -> bool:
    """Return whether email came while the others were erased.

    It is among the newest of the contact's threads.
    """
    rows = tx.all(
        f"select id from messages where thread_id in {OF_THREADS}"
        " order by created_at desc, id desc limit :limit",
        limit=NEWEST,
        **named,
    )
    found = messages.list_by_ids(tx, [row["id"] for row in rows])
    return bool(contact_mail.of_address(tx, found, named["address"]))
