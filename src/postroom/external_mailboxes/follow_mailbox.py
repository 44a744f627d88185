"""Follows one folder of an external mailbox: delivers each new mail to its inbox, once."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from postroom import limits, log
from postroom.accounts.people import own_emails
from postroom.clock import DAY
from postroom.external_mailboxes import address_uses, connections
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.imap_client import ImapClient, ListedMail, OpenFolder
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.external_mailboxes.mailbox_access import OAuthTokens, sign_in
from postroom.inward.mails import UNKNOWN_PEER, Arrival, Destination, Origin, TakenFrom, trace_inside
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mailbox import inboxes
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize
from postroom_mail.mime.parse import parse_mail

IDLE_SECONDS = 9 * 60.0  # many firewalls drop a connection after ten minutes
POLL_SECONDS = 60.0
BATCH_MAILS = 25
BATCH_BYTES = 2 * 1024 * 1024
BATCHES_AT_ONCE = 16  # of all mailboxes together: each is completely in memory
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 300.0
NOW = "now"


class Follower(Struct, frozen=True):
    """What following mailboxes needs."""

    resources: Resources
    reader: Reader
    tokens: OAuthTokens
    room: asyncio.Semaphore  # for emails on their way in


def pause_seconds(failures: int, is_refused: bool) -> float:
    """Return the pause. After a refused login it is long: servers lock out repeated failures."""
    if is_refused:
        return LONGEST_PAUSE_SECONDS
    longest = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 10), LONGEST_PAUSE_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (so that not all come back at once)


async def follow_once(follower: Follower, connection: Connection) -> None:
    """Runs until the connection breaks or is refused: ImapError."""
    resources = follower.resources
    client = await sign_in(resources, follower.tokens, connection)
    try:
        after = str(connection.settings.get("after", "leave"))
        folder = await client.select(connection.settings.get("folder", "INBOX"), after != "leave")
        connection = await find_start(resources, client, folder, connection)
        await resources.db.write(connections.record_state, connection, connections.LIVE, None)
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
    """Return where to continue: the stored position, or before the first email if UIDVALIDITY changed.

    A new connection that starts now begins after the newest email. UIDs alone decide that: dates are whole
    seconds of another clock.
    """
    if connection.uid_validity == folder.uid_validity:
        return connection
    newest = await client.find_newest()
    top = (0 if newest is None else newest.uid) if folder.uid_next is None else folder.uid_next - 1
    is_first, start, begins_at = connection.uid_validity is None, 0, connection.begins_at
    if is_first:
        # The lower of two clocks: at worst an email from before comes too, after all UIDs have changed.
        begins_at = 0 if newest is None else min(newest.arrived_at, connection.created_at)
        start = top if connection.settings.get("since", NOW) == NOW else 0
    begun = replace(connection, start_uid=top, begins_at=begins_at)
    return await resources.db.write(begin, begun, folder.uid_validity, start, resources.config.domain)


def begin(tx: Tx, connection: Connection, uid_validity: int, uid: int, service_domain: str) -> Connection:
    """Begin after a login that worked: the first time, the mailbox's address counts from now on."""
    if not connection.is_proven:
        address_uses.prove(tx, connection, service_domain)
    return connections.set_start(tx, connection, uid_validity, uid)


async def take_new(follower: Follower, client: ImapClient, connection: Connection) -> Connection:
    """Takes all emails after the position, ordered by UID."""
    async for listed in client.list_behind(connection.last_uid):
        for batch in in_batches(listed):
            connection = await take_batch(follower, client, connection, batch)
    return connection


def in_batches(listed: Sequence[ListedMail]) -> Iterator[list[ListedMail]]:
    """Limits the number and size of a batch; a large email is a batch by itself."""
    batch: list[ListedMail] = []
    for mail in listed:
        size = sum(each.size_bytes for each in batch) + mail.size_bytes
        if batch and (len(batch) == BATCH_MAILS or size > BATCH_BYTES):
            yield batch
            batch = []
        batch.append(mail)
    if batch:
        yield batch


async def take_batch(
    follower: Follower, client: ImapClient, connection: Connection, batch: list[ListedMail]
) -> Connection:
    """Take a batch.

    If it fails before the position is stored, the emails are fetched again and recognised.
    """
    db = follower.resources.db
    wanted = [mail for mail in batch if is_wanted(connection, mail)]
    if wanted:
        async with follower.room:
            taken = await take_mails(follower, client, connection, wanted)
        if taken:
            await db.write(connections.record_mail, connection.id, follower.resources.now())
            await finish(client, str(connection.settings.get("after", "leave")), taken)
    return await db.write(connections.set_position, connection, connection.uid_validity or 0, batch[-1].uid)


def is_wanted(connection: Connection, mail: ListedMail) -> bool:
    """Return whether it came after the connection began to read, or is not too old."""
    return mail.uid > connection.start_uid or not mail.arrived_at or mail.arrived_at >= earliest(connection)


def earliest(connection: Connection) -> int:
    """Return the earliest time: older emails are never fetched, even if all UIDs change."""
    since = connection.settings.get("since", NOW)
    if since != NOW:
        return int(datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp() * 1000)
    return connection.created_at - DAY if connection.begins_at is None else connection.begins_at


async def take_mails(
    follower: Follower, client: ImapClient, connection: Connection, wanted: list[ListedMail]
) -> list[int]:
    """Return the UIDs of those stored here now: fetched by one command, stored in few commits."""
    fitting = [mail.uid for mail in wanted if mail.size_bytes <= limits.FOREIGN_EMAIL_BYTES]
    raws = await client.fetch_all(fitting, limits.FOREIGN_EMAIL_BYTES + BATCH_BYTES) if fitting else {}
    for mail in wanted:
        if mail.uid not in raws:
            log.get().info("an email was left", connection=connection.id, uid=mail.uid, size=mail.size_bytes)
    taking = (take_mail(follower, connection, uid, raw) for uid, raw in raws.items())
    results = await asyncio.gather(*taking, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [uid for uid, is_taken in zip(raws, results, strict=True) if is_taken]


async def take_mail(follower: Follower, connection: Connection, uid: int, raw: bytes) -> bool:
    """Store an email durably. One in a loop is left there, and so is one of this server to a person."""
    resources = follower.resources
    if await resources.db.read(own_emails.is_own, own_emails.find_marks(raw)):
        log.get().info("an email of this server was left", connection=connection.id, uid=uid)
        return False
    named = await pools.READING.run(named_addresses, raw) if connection.tagged else []
    destination = await resources.db.read(find_destination, connection, named)
    arrival = Arrival(
        origin=Origin(
            destinations=(destination,),
            trace=trace_inside(resources.config.domain, "with IMAP", resources.now()),
            peer_ip=UNKNOWN_PEER,
            helo="",
            mail_from="",
            taken=TakenFrom(connection.id, connection.uid_validity or 0, uid),
        ),
        raw=raw,
        counts_once=True,
    )
    try:
        await receive_mail(resources, follower.reader, arrival)
    except TooManyHops:
        log.get().info("an email loops", connection=connection.id, uid=uid)
        return False
    return True


async def finish(client: ImapClient, after: str, uids: list[int]) -> None:
    """Do the configured action once the emails are durable here: one command for all."""
    if after == "seen":
        await client.mark_seen(uids)
    elif after.startswith("move:"):
        await client.move(uids, after.removeprefix("move:"))


def named_addresses(raw: bytes) -> list[str]:
    mail = parse_mail(raw)
    return [normalize(each.address) for each in (*mail.to, *mail.cc) if each.address]


def find_destination(tx: Tx, connection: Connection, named: list[str]) -> Destination:
    """Return the inbox whose tagged address the email names, else the mailbox's own."""
    tagged = connection.tagged
    found = next((tagged[address] for address in named if address in tagged), connection.inbox_id)
    if found is None or inboxes.find(tx, found) is None:
        raise ImapError("The inbox of the connection is gone.", is_refused=True)
    return Destination(found)
