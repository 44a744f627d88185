"""What docs/reliability.md promises, asked of the rows, of the peers and of the interfaces."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec

from postroom.clock import SystemClock
from postroom.inward.journal import positions
from postroom.mailbox import documents
from postroom.mailbox.search import indexing
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests.api.endpoint import Endpoint
from tests.conftest import settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.mixed_kills.load import WORD, Load
from tests.mixed_kills.server import KilledServer

QUIET_SECONDS = 300.0
Arrival = tuple[str, str]  # Message-ID and recipient of a mail, or "webhook" and event
_MESSAGE_ID = re.compile(rb"^Message-ID: (<[^>]+>)", re.MULTILINE | re.IGNORECASE)
_RECIPIENT = re.compile(rb"<([^>]+)>")


@dataclass
class Peers:
    """The other mail server and the endpoint of the webhook, and what they had when the server died."""

    smtp: SmtpPeer
    endpoint: Endpoint
    settled: dict[Arrival, int] = field(
        default_factory=dict
    )  # how often it had come once it was written down

    def arrivals(self) -> Counter[Arrival]:
        came: Counter[Arrival] = Counter()
        for mail in self.smtp.mails:
            name, recipient = _MESSAGE_ID.search(mail.raw), _RECIPIENT.search(mail.rcpt_line)
            assert name is not None
            assert recipient is not None
            came[name[1].decode(), recipient[1].decode()] += 1
        for headers, _ in self.endpoint.requests:
            came["webhook", headers["x-event-id"]] += 1
        return came

    def note_settled(self, delivered: set[Arrival]) -> None:
        came = self.arrivals()
        for each in delivered - self.settled.keys():
            self.settled[each] = came[each]


@dataclass(frozen=True)
class Rows:
    """All that the promises are asked of, read at once."""

    delivered: set[Arrival]
    pending: int
    unexamined: int
    unindexed: int
    journaled: int
    subjects: Counter[str]  # of mails that came in
    told: Counter[str]  # events of those
    sent: dict[str, tuple[str, str]]  # Message-ID and status, by message
    approvals: Counter[str]  # of messages
    gaps: list[Any]
    events: list[str]  # in their order


class Document(msgspec.Struct):
    subject: str


def read_rows(tx: Tx, server: KilledServer) -> Rows:
    incoming = {
        row["id"]: msgspec.json.decode(documents.plain(row["document"]), type=Document).subject
        for row in tx.all("select id, document from messages where direction = 'inbound'")
    }
    events = tx.all("select id, kind, message_id from events order by position")
    numbered = tx.all("select account_id, count(*) as total, max(position) as last from events group by 1")
    return Rows(
        delivered=_delivered(tx),
        pending=_count(tx, "deliveries where state in ('pending', 'held')"),
        unexamined=_count(tx, "examinations"),
        unindexed=indexing.progress(tx).waiting,
        journaled=sum(left.mails for left in positions.survey(tx, server.folder)),
        subjects=Counter(incoming.values()),
        told=Counter(incoming[row["message_id"]] for row in events if row["kind"] == "message.received"),
        sent={
            row["id"]: (row["rfc_message_id"], row["status"])
            for row in tx.all("select id, rfc_message_id, status from messages where direction = 'outbound'")
        },
        approvals=Counter(row["message_id"] for row in events if row["kind"] == "message.approved"),
        gaps=[row for row in numbered if row["total"] != row["last"]],
        events=[row["id"] for row in events],
    )


def _count(tx: Tx, what: str) -> int:
    row = tx.one(f"select count(*) as total from {what}")
    return int(row["total"]) if row else 0


def _delivered(tx: Tx) -> set[Arrival]:
    mails = tx.all(
        "select rfc_message_id, target from deliveries join messages on messages.id = deliveries.message_id"
        " where deliveries.kind = 'mail' and deliveries.state = 'delivered'"
    )
    posts = tx.all("select event_id from deliveries where kind = 'webhook' and state = 'delivered'")
    return {
        *((row["rfc_message_id"], row["target"]) for row in mails),
        *(("webhook", row["event_id"]) for row in posts),
    }


async def look(server: KilledServer) -> Rows:
    db = await open_database(
        settings(server.folder, DATABASE_URL=server.database_url), SystemClock().now(), may_create=False
    )
    try:
        return await db.read(read_rows, server)
    finally:
        await db.close()


def require_nothing_left_unapproved(rows: Rows, load: Load, peers: Peers) -> None:
    gone = {name for name, _ in peers.arrivals()}
    for key, message_id in load.known.held.items():
        assert rows.approvals[message_id] or rows.sent[message_id][0] not in gone, (
            f"{key} left before it was approved"
        )


async def until_quiet(server: KilledServer, load: Load) -> Rows:
    """What waits comes to its end."""
    ends_at = asyncio.get_running_loop().time() + QUIET_SECONDS
    while True:
        await load.approve_the_rest()
        load.require_nobody_failed()
        rows = await look(server)
        if not (waits := what_waits(rows, load)):
            return rows
        assert asyncio.get_running_loop().time() < ends_at, f"never came to an end: {waits}"
        await asyncio.sleep(0.05)


def what_waits(rows: Rows, load: Load) -> dict[str, object]:
    waits = {
        "deliveries": rows.pending,
        "examinations": rows.unexamined,
        "messages for the index": rows.unindexed,
        "mails in the journal": rows.journaled,
        "mails": sorted(load.known.mails - rows.subjects.keys()),
        "events of the stream": rows.events[-1:] != load.known.events[-1:],
    }
    return {what: how for what, how in waits.items() if how}


async def require_all_promises(rows: Rows, load: Load, peers: Peers, deaths: int) -> None:
    known = load.known
    assert known.mails <= rows.subjects.keys()
    assert rows.subjects.keys() <= known.mails | known.in_doubt
    assert set(rows.subjects.values()) == {1}, "a mail is there twice"
    assert rows.told == rows.subjects, "a mail has no event, or two"
    assert rows.gaps == []
    seen = rows.events[rows.events.index(known.events[0]) :]
    assert known.events == seen, "the stream missed an event, or gave one in another order"
    sends = known.sends | known.held
    assert set(sends.values()) == rows.sent.keys(), "a key made two mails, or none"
    assert {status for _, status in rows.sent.values()} == {"sent"}
    assert rows.approvals == dict.fromkeys(known.held.values(), 1)
    _require_what_left(rows, peers, deaths)
    await _require_what_is_read(rows, load)


def _require_what_left(rows: Rows, peers: Peers, deaths: int) -> None:
    """What is written down has arrived; it comes again only where a death took its outcome."""
    arrivals = peers.arrivals()
    outside = {each for each in rows.delivered if not each[1].endswith("@postroom.localhost")}
    assert outside == arrivals.keys()
    assert max(arrivals.values()) <= 1 + deaths
    for each, times in peers.settled.items():
        assert arrivals[each] == times, f"{each} was known as delivered, and came again"


async def _require_what_is_read(rows: Rows, load: Load) -> None:
    flags = await asyncio.to_thread(load.flags_by_imap)
    assert load.known.names.keys() <= flags.keys()
    for uid in load.known.flagged:
        assert b"\\Flagged" in flags[uid], "a flag that was answered is gone"
    found = Counter([each["message"]["subject"] async for each in _search(load.api)])
    assert {subject: found[subject] for subject in rows.subjects} == rows.subjects


async def _search(api: httpx2.AsyncClient) -> Any:
    query = {"q": WORD, "limit": "50"}
    while True:
        page = (await api.get("/v1/search", params=query)).json()
        for each in page["data"]:
            if each["message"]["direction"] == "inbound":
                yield each
        if page["next"] is None:
            return
        query["cursor"] = page["next"]
