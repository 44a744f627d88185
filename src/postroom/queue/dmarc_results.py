"""DMARC results: what was seen of email in the name of a domain that wants reports, one row an email."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from postroom.clock import DAY
from postroom.storage.database import Tx
from postroom_mail.reports.dmarc_report_writing import SeenSender

LIFETIME = 3 * DAY  # by then a report was written, or none is wanted
MOST_OF_A_REPORT = 100_000  # rows that are read for one; more of a day are counted in none
ID_DIGITS = 40


class DmarcResult(Struct, frozen=True):
    """`id` is of the content: copies for several inboxes are one email."""

    id: str
    domain: str
    seen: SeenSender


def id_of(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:ID_DIGITS]


def add_all(tx: Tx, results: Sequence[DmarcResult], now: int) -> None:
    tx.many(
        "insert into dmarc_results (id, day, domain, result, noted_at) values :rows"
        " on conflict (id) do nothing",
        [
            (each.id, now // DAY, each.domain, msgspec.json.encode(each.seen).decode(), now)
            for each in results
        ],
    )


def list_days(tx: Tx, before: int, limit: int) -> list[tuple[int, str]]:
    """List the days and domains not reported yet."""
    rows = tx.all(
        "select distinct day, domain from dmarc_results where day < :before"
        " order by day, domain limit :limit",
        before=before,
        limit=limit,
    )
    return [(row["day"], row["domain"]) for row in rows]


def take(tx: Tx, domain: str, day: int) -> list[tuple[SeenSender, int]]:
    """Removes all of a domain and day, and returns what was seen how often, most frequent first."""
    found: Counter[str] = Counter(_results(tx, domain, day))
    tx.run("delete from dmarc_results where day = :day and domain = :domain", day=day, domain=domain)
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return [(msgspec.json.decode(seen, type=SeenSender), count) for seen, count in ordered]


def _results(tx: Tx, domain: str, day: int) -> Iterator[str]:
    rows = tx.all(
        "select result from dmarc_results where day = :day and domain = :domain limit :most",
        day=day,
        domain=domain,
        most=MOST_OF_A_REPORT,
    )
    return (row["result"] for row in rows)
