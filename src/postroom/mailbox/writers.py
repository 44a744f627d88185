"""Writers: who has the reply to a thread open on a page, so that two people see each other."""

from postroom.clock import SECOND
from postroom.storage.database import Tx

SHOWN = 25 * SECOND  # after the page said so for the last time
PEOPLE = 5


def record(tx: Tx, thread_id: str, person: str, name: str, now: int) -> None:
    tx.run(
        "insert into writers (thread_id, person, name, until_at) values (:thread_id, :person, :name, :until)"
        " on conflict (thread_id, person) do update set name = :name, until_at = :until",
        thread_id=thread_id,
        person=person,
        name=name,
        until=now + SHOWN,
    )


def remove(tx: Tx, thread_id: str, person: str) -> None:
    tx.run(
        "delete from writers where thread_id = :thread_id and person = :person",
        thread_id=thread_id,
        person=person,
    )


def list_others(tx: Tx, thread_id: str, person: str, now: int) -> list[str]:
    """Return the names of all others who write to this thread."""
    rows = tx.all(
        "select name from writers where thread_id = :thread_id and person <> :person and until_at > :now"
        " order by name, person limit :most",
        thread_id=thread_id,
        person=person,
        now=now,
        most=PEOPLE,
    )
    return [row["name"] for row in rows]
