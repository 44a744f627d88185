"""What a server does with its disk, in a process of its own: mail in, a send, an outcome, a backup, a move.

Run as `python -m tests.power_loss.scenario FOLDER LOG`; whatever is answered is noted in the log.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from postroom import config as configuration
from postroom.accounts import keys
from postroom.commands import backups
from postroom.inward.journal import positions
from postroom.inward.journal.running import running_journal
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.net.dns import Resolver
from postroom.outward.send import send_mail
from postroom.outward.send_stages import Order
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.journal import Journal
from postroom.storage.opening import open_blobs, open_database
from postroom.transfer import backup_file
from postroom.upkeep import shared_blob_store
from postroom_mail.mime.address import Address
from tests.doubles import START, FakeClock
from tests.power_loss.disk import record_answer
from tests.raw_mails import raw_mail

LARGE = 300_000
TOKEN = "pr_power"


async def main(folder: Path, log: Path) -> None:
    told = partial(record_answer, log)
    data = folder / "data"
    config = configuration.load({"POSTROOM_DATA_DIR": str(data)})
    db = await open_database(config, START)
    resources = Resources(config, db, open_blobs(config), FakeClock(), cast(Resolver, None), asyncio.Event())
    caller = await db.read(keys.find_caller, TOKEN, START)
    inbox = await db.read(inboxes.find_by_address, "hello@postroom.localhost")
    assert caller is not None
    assert inbox is not None
    for number in range(8):
        text = "x" * LARGE if number in (2, 5) else f"Mail {number}"
        raw = raw_mail(text, message_id=f"<{number}@there.example>")
        arrival = Arrival(Origin((Destination(inbox.id),), b"", "", "", "alice@there.example"), raw)
        await receive_mail(resources, OwnReader(AT_ONCE_BYTES), arrival)
        told(f"mail <{number}@there.example>")
        await asyncio.sleep(0.1)  # so that the log of the database is copied in between
    await journal_mails(resources, inbox, told)
    for number in range(4):
        body = "y" * LARGE if number == 1 else f"Send {number}"
        await send_mail(resources, caller, order_of(inbox.id, number, body))
        told(f"send key-{number}")
    journal = Journal(data / "outcomes.journal")
    for number in range(3):
        journal.append(b"outcome %d" % number)
        told(f"outcome {number}")
    await back_up(resources, folder / "all.backup")
    told("backup")
    for name in shared_blob_store.move(LocalBlobs(data / "blobs"), LocalBlobs(folder / "other"), False, told):
        told(f"moved {name}")
    await db.close()


async def journal_mails(resources: Resources, inbox: Inbox, told: Callable[[str], None]) -> None:
    """As a worker takes mail in: answered when it is in the journal, and put into its inbox behind that."""
    folder = positions.of_slot(resources.config.data_dir, 0)
    async with running_journal(resources, folder, OwnReader(AT_ONCE_BYTES)) as journal:

        async def take(number: int) -> None:
            raw = raw_mail(f"Mail {number}", message_id=f"<j{number}@there.example>")
            arrival = Arrival(Origin((Destination(inbox.id),), b"", "", "", "alice@there.example"), raw)
            await journal.append(arrival)
            told(f"journaled <j{number}@there.example>")

        for start in range(0, 36, 12):
            await asyncio.gather(*map(take, range(start, start + 12)))


def order_of(inbox_id: str, number: int, body: str) -> Order:
    return Order(
        inbox_id=inbox_id,
        idempotency_key=f"key-{number}",
        request_hash=idempotency.hash_request(b"%d" % number),
        to=(Address("", f"r{number}@there.example"),),
        subject="s",
        body=body,
    )


async def back_up(resources: Resources, path: Path) -> None:
    database = backups.copy_of(resources.config)
    source = backup_file.Source(
        database, resources.blobs, resources.config.data_dir / "tls", lambda name: True
    )
    try:
        await asyncio.to_thread(backup_file.write, source, path, "test", "", lambda by: None)
    finally:
        database.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
