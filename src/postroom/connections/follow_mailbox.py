"""Follows one folder of a mailbox elsewhere: each new mail into its inbox, once."""

import asyncio
import random
from datetime import UTC, datetime

from msgspec import Struct

from postroom import log
from postroom.clock import DAY
from postroom.connections import connections
from postroom.connections.connections import Connection
from postroom.connections.imap_client import ImapClient, ListedMail, OpenFolder, search_day
from postroom.connections.imap_wire import ImapError
from postroom.connections.mailbox_access import OAuthTokens, sign_in
from postroom.inward.mails import Arrival, Destination, TakenFrom, trace_inside
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mail.address import normalize
from postroom.mail.parse import parse_mail
from postroom.mail.posts.post import UNKNOWN_PEER
from postroom.mailbox import inboxes
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx

IDLE_SECONDS = 9 * 60.0  # many firewalls forget a connection after ten minutes
POLL_SECONDS = 60.0
DESCRIBED_AT_ONCE = 500
MAX_MAIL_BYTES = 40 * 1024 * 1024
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 300.0
NOW = "now"


class Follower(Struct, frozen=True):
    """What it takes to follow mailboxes."""

    resources: Resources
    reader: Reader
    tokens: OAuthTokens


def pause_seconds(failures: int, is_refused: bool) -> float:
    """Who is refused asks seldom: servers lock out whoever guesses."""
    if is_refused:
        return LONGEST_PAUSE_SECONDS
    longest = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 10), LONGEST_PAUSE_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (so that not all come back at once)


async def follow_once(follower: Follower, connection: Connection) -> None:
    """Until the connection breaks or is refused: ImapError."""
    resources = follower.resources
    client = await sign_in(resources, follower.tokens, connection)
    try:
        after = str(connection.settings.get("after", "leave"))
        folder = await client.select(connection.settings.get("folder", "INBOX"), after != "leave")
        connection = await find_start(resources, client, folder, connection)
        await resources.db.write(connections.note_state, connection, connections.LIVE, None)
        while True:
            connection = await take_new(follower, client, connection)
            await wait_for_more(client)
    finally:
        client.close()


async def wait_for_more(client: ImapClient) -> None:
    if client.offers("IDLE"):
        await client.wait_for_mail(IDLE_SECONDS)
        return
    await asyncio.sleep(POLL_SECONDS)
    await client.run("NOOP")


async def find_start(
    resources: Resources, client: ImapClient, folder: OpenFolder, connection: Connection
) -> Connection:
    """Where reading goes on: where it stood, or, when the numbers begin anew, before the first."""
    if connection.uid_validity == folder.uid_validity:
        return connection
    start = 0
    if connection.uid_validity is None and connection.settings.get("since", NOW) == NOW:
        start = (await newest_uid(client)) if folder.uid_next is None else folder.uid_next - 1
    return await resources.db.write(connections.set_position, connection, folder.uid_validity, start)


async def newest_uid(client: ImapClient) -> int:
    found = await client.search("ALL")
    return found[-1] if found else 0


async def take_new(follower: Follower, client: ImapClient, connection: Connection) -> Connection:
    """All that stands behind the place reached, in the order of its numbers."""
    wanted = [uid for uid in await client.search(criterion(connection)) if uid > connection.last_uid]
    for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
        part = wanted[start : start + DESCRIBED_AT_ONCE]
        for mail in sorted(await client.describe(part), key=lambda each: each.uid):
            if mail.arrived_at >= earliest(connection) or not mail.arrived_at:
                await take_mail(follower, client, connection, mail)
            connection = await follower.resources.db.write(
                connections.set_position, connection, connection.uid_validity or 0, mail.uid
            )
    return connection


def criterion(connection: Connection) -> str:
    behind = f"UID {connection.last_uid + 1}:*"
    floor = earliest(connection)
    return f"{behind} SINCE {search_day(floor - DAY)}" if floor else behind


def earliest(connection: Connection) -> int:
    """Mail from before is never taken, also when all numbers are new. 0: all of it."""
    since = connection.settings.get("since", NOW)
    if since == NOW:
        return connection.created_at - DAY if connection.last_uid else connection.created_at
    return int(datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp() * 1000)


async def take_mail(follower: Follower, client: ImapClient, connection: Connection, mail: ListedMail) -> None:
    resources = follower.resources
    raw = None
    if mail.size_bytes <= MAX_MAIL_BYTES:
        raw = await client.fetch(mail.uid, MAX_MAIL_BYTES)
    if raw is None:
        log.get().info("a mail was left", connection=connection.id, uid=mail.uid, size=mail.size_bytes)
        return
    named = await pools.READING.run(named_addresses, raw)
    destination = await resources.db.read(find_destination, connection, named)
    arrival = Arrival(
        destinations=(destination,),
        raw=raw,
        trace=trace_inside(resources.config.domain, "with IMAP", resources.now()),
        peer_ip=UNKNOWN_PEER,
        helo="",
        mail_from="",
        counts_once=True,
        taken=TakenFrom(connection.id, connection.uid_validity or 0, mail.uid),
    )
    try:
        await receive_mail(resources, follower.reader, arrival)
    except TooManyHops:
        log.get().info("a mail goes in circles", connection=connection.id, uid=mail.uid)
        return
    await resources.db.write(connections.note_mail, connection.id, resources.now())
    await finish(client, str(connection.settings.get("after", "leave")), mail.uid)


async def finish(client: ImapClient, after: str, uid: int) -> None:
    """What was asked for, once the mail is durable here."""
    if after == "seen":
        await client.mark_seen(uid)
    elif after.startswith("move:"):
        await client.move(uid, after.removeprefix("move:"))


def named_addresses(raw: bytes) -> list[str]:
    mail = parse_mail(raw)
    return [normalize(each.address) for each in (*mail.to, *mail.cc) if each.address]


def find_destination(tx: Tx, connection: Connection, named: list[str]) -> Destination:
    """The inbox whose tagged address the mail names, else the connection's own."""
    tagged = connection.tagged
    found = next((tagged[address] for address in named if address in tagged), connection.inbox_id)
    if found is None or inboxes.find(tx, found) is None:
        raise ImapError("The inbox of the connection is gone.", is_refused=True)
    return Destination(found)
