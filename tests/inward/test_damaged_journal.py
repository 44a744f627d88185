"""Damage in a journal: whole emails around it are stored once, damaged bytes are kept, and it is reported."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from postroom import mail_server
from postroom.inward.journal import positions
from postroom.inward.journal.depositor import Depositor
from postroom.inward.journal.entries import encode
from postroom.inward.journal.mail_journal import MailJournal
from postroom.inward.journal.running import running_journal
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import OwnReader
from postroom.mailbox import documents, message_lists
from postroom.storage import segments
from postroom.storage.database import Tx
from postroom.storage.records import HEAD
from postroom.storage.segments import SegmentPosition, SegmentWriter
from postroom.upkeep.verification import journals
from postroom.upkeep.verification.verify import verify
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail

READER = OwnReader(1 << 20)
COUNT = 240


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Server]:
    """It leaves the journals of the tests alone."""
    monkeypatch.setattr(mail_server, "deposit_others", lambda *_: asyncio.Event().wait())
    config = settings(tmp_path, DATABASE_URL=database_url, JOURNAL="on")
    async with running_server(config, clock) as server:
        yield server


def subjects(tx: Tx, inbox_id: str) -> list[str]:
    """Oldest first."""
    stored = [
        b"".join(documents.pieces(message.stored))
        for offset in range(0, COUNT, 100)
        for message in message_lists.list_of_inbox(tx, inbox_id, None, 100, offset)[0].messages
    ]
    return [documents.decode(document).subject for document in reversed(stored)]


def fill(server: Server, inbox_id: str, count: int = COUNT) -> tuple[Path, list[str]]:
    """A journal as a process left it that was killed after these 250s."""
    folder = server.resources.config.data_dir / positions.FOLDER / "9-test"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [f"email {number}." for number in range(count)]
    origin = Origin((Destination(inbox_id),), b"Received: x\r\n", "192.0.2.1", "helo", "a@example.com")
    writer = SegmentWriter(folder, 1)
    writer.append([encode(Arrival(origin, raw_mail(subject=subject))) for subject in wanted])
    writer.close()
    return folder, wanted


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


async def replay(server: Server, folder: Path) -> None:
    async with running_journal(server.resources, folder, READER) as journal:
        assert await journal.wait_until_deposited(None)


def flip_a_byte(content: bytearray, start: int, subject: int) -> None:
    content[subject] ^= 1


def flip_the_length(content: bytearray, start: int, subject: int) -> None:
    for at in range(start, start + HEAD.size):
        content[at] ^= 0x80


def zero_the_page(content: bytearray, start: int, subject: int) -> None:
    content[start : start + 4096] = bytes(4096)


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("damage", [flip_a_byte, flip_the_length, zero_the_page])
@pytest.mark.parametrize("record", [0, 119])
async def test_whole_emails_behind_damage_in_the_newest_segment_are_stored(
    server: Server, damage: Callable[[bytearray, int, int], None], record: int
) -> None:
    db, data = server.resources.db, server.resources.config.data_dir
    inbox_id = await server.new_inbox("hello")
    folder, wanted = fill(server, inbox_id)
    path = only_file(folder)
    content = bytearray(path.read_bytes())
    found_at = [content.index(f"Subject: {subject}".encode()) for subject in wanted]
    damage(content, 0 if record == 0 else found_at[record - 1] + len(raw_mail()) - 50, found_at[record] + 10)
    damage_ends = found_at[record] + 10 if damage is flip_a_byte else 4096 + found_at[record]
    path.write_bytes(content)

    await replay(server, folder)
    stored = await db.read(subjects, inbox_id)
    untouched = [subject for subject, at in zip(wanted, found_at, strict=True) if at > damage_ends]
    assert stored[-len(untouched) :] == untouched
    assert stored[: max(0, record - 1)] == wanted[: max(0, record - 1)]
    assert len(set(stored)) == len(stored) < COUNT
    kept = only_file(data / positions.FOLDER / positions.DAMAGED)
    assert kept.read_bytes() in bytes(content)
    assert kept.stat().st_size > 0
    found = (await verify(server.resources, False, lambda by: None, [journals.PART])).findings
    assert [(each.part, each.is_derived) for each in found] == [(journals.DAMAGED, False)]
    metrics = (await server.api.get("/metrics")).text
    assert "postroom_journal_damaged 1.0" in metrics
    assert "postroom_journal_set_aside 0.0" in metrics


@pytest.mark.sqlite_alone
async def test_verify_reports_damage_before_it_is_replayed(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    folder, _ = fill(server, inbox_id, 3)
    path = only_file(folder)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    left = await server.resources.db.read(positions.survey, server.resources.config.data_dir)
    assert [each.mails for each in left] == [2]
    found = (await verify(server.resources, False, lambda by: None, [journals.PART])).findings
    assert [(each.id, each.what) for each in found] == [(folder.name, left[0].damage)]


@pytest.mark.sqlite_alone
async def test_a_death_between_the_copy_of_damaged_bytes_and_the_note_leaves_one_copy(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, data = server.resources.db, server.resources.config.data_dir
    inbox_id = await server.new_inbox("hello")
    folder, wanted = fill(server, inbox_id, 3)
    path = only_file(folder)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    copied = asyncio.Event()

    async def die(self: Depositor, *_: object) -> bool:
        copied.set()
        await asyncio.Event().wait()
        return False

    reader = segments.SegmentReader(folder, SegmentPosition())
    with pytest.raises(segments.DamagedSegment) as damage:
        reader.next(SegmentPosition(1, len(content)))
    reader.close()
    segments.keep_damage(
        folder, damage.value.start, damage.value.end, data / positions.FOLDER / positions.DAMAGED
    )
    with monkeypatch.context() as patch:
        patch.setattr(Depositor, "_set_aside", die)
        depositor = Depositor(server.resources, folder, SegmentPosition())
        journal = MailJournal(folder, SegmentPosition(), READER, depositor.add)
        tasks = [asyncio.create_task(depositor.run()), asyncio.create_task(journal.follow())]
        await copied.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert await db.read(subjects, inbox_id) == []
    await replay(server, folder)
    assert await db.read(subjects, inbox_id) == wanted[1:]
    assert positions.count_damaged(data) == 1
