"""PostgreSQL fails over to a replica under load: what was answered is on the new primary, once."""

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import psycopg

from postroom.errors import Unavailable
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.mailbox.inboxes import Inbox
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.opening import open_database
from postroom.upkeep.verification import verify
from tests import memory_folder
from tests.conftest import settings
from tests.doubles import FakeClock
from tests.postgres_engine import OF_TESTS, USER, Engine, running_engine
from tests.raw_mails import raw_mail
from tests.stored import make_inbox
from tests.waiting import until

SENDERS = 4
BEFORE, AFTER = 25, 15  # mails of each sender
STREAMING = OF_TESTS | {
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    "synchronous_commit": "on",
}


@contextlib.contextmanager
def replica_of(primary: Engine) -> Iterator[Engine]:
    """That streams from it, and without whose word nothing is committed from now on."""
    with tempfile.TemporaryDirectory(
        prefix="postroom-pg-", dir=memory_folder.choose(), ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        if primary.user:
            shutil.chown(folder, primary.user)
        folder.chmod(0o755)
        copy = [str(primary.binaries / "pg_basebackup"), "-h", str(primary.folder), "-U", USER]
        options = ["-D", str(folder / "data"), "-R", "--checkpoint=fast", "--no-sync"]
        subprocess.run([*copy, *options], check=True, capture_output=True, user=primary.user, cwd=folder)
        replica = Engine(primary.binaries, folder, primary.user, primary.flags)
        try:
            replica.start()
            commit_on_both(primary)
            yield replica
        finally:
            replica.stop()


def commit_on_both(primary: Engine) -> None:
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("alter system set synchronous_standby_names = '*'")
        connection.execute("select pg_reload_conf()")
        for _ in range(2400):
            row = connection.execute("select sync_state from pg_stat_replication").fetchone()
            if row == ("sync",):
                return
            connection.execute("select pg_sleep(0.05)")
    raise AssertionError("the replica does not stream")


def promote(replica: Engine) -> None:
    with psycopg.connect(replica.url, autocommit=True) as connection:
        connection.execute("alter system reset synchronous_standby_names")
        connection.execute("select pg_reload_conf()")
        connection.execute("select pg_promote(true, 120)")


@contextlib.asynccontextmanager
async def node_on(primary: Engine, replica: Engine, folder: Path) -> AsyncIterator[Resources]:
    hosts = f"{primary.folder},{replica.folder}"
    url = f"postgresql://{USER}@/postgres?host={hosts}&target_session_attrs=read-write"
    config, clock = settings(folder, DATABASE_URL=url), FakeClock()
    db = await open_database(config, clock.now())
    try:
        blobs = LocalBlobs(folder / "blobs")
        yield Resources(config, db, blobs, clock, cast(Resolver, None), asyncio.Event())
    finally:
        await db.close()


async def hand_in(resources: Resources, inbox: Inbox, name: str) -> None:
    """Again and again, until it is taken: as another mail server does."""
    raw = raw_mail(name, message_id=f"<{name}@there.example>")
    arrival = Arrival(Origin((Destination(inbox.id),), b"", "", "", "alice@there.example"), raw)

    async def is_taken() -> bool:
        with contextlib.suppress(Unavailable):
            await receive_mail(resources, OwnReader(AT_ONCE_BYTES), arrival)
            return True
        return False

    await until(is_taken)


async def test_what_was_answered_is_on_the_new_primary_after_a_failover(tmp_path: Path) -> None:
    with (
        running_engine(memory_folder.choose(), fsync=True, settings=STREAMING) as primary,
        replica_of(primary) as replica,
    ):
        async with node_on(primary, replica, tmp_path) as resources:
            inbox = await resources.db.write(make_inbox)
            answered: list[str] = []
            has_begun = asyncio.Event()

            async def send(sender: int) -> None:
                for number in range(BEFORE + AFTER):
                    await hand_in(resources, inbox, f"{sender}-{number}")
                    answered.append(f"<{sender}-{number}@there.example>")
                    if number == BEFORE:
                        has_begun.set()

            sending = asyncio.gather(*map(send, range(SENDERS)))
            async with asyncio.timeout(240):
                await has_begun.wait()
                before = list(answered)
                await asyncio.to_thread(primary.crash)
                await asyncio.to_thread(promote, replica)
                await sending
            rows = await resources.db.read(lambda tx: tx.all("select rfc_message_id from messages"))
            stored = [row["rfc_message_id"] for row in rows]
            assert len(before) >= BEFORE
            assert sorted(stored) == sorted(answered)
            assert len(answered) == SENDERS * (BEFORE + AFTER)
            assert (await verify.verify(resources, repairs=False, report=lambda by: None)).findings == []
