"""The journal between the 250 and the inbox: nothing lost, nothing doubled, nothing in its way."""

import asyncio
import contextlib
import smtplib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom import mail_server
from postroom.assembly import serving
from postroom.inward.deposit import deposit
from postroom.inward.journal import depositor as depositing
from postroom.inward.journal import mail_journal as journaling
from postroom.inward.journal import positions
from postroom.inward.journal.depositor import Depositor, deposit_up_to
from postroom.inward.journal.entries import Held, Journaled, JournalProgress, decode, encode
from postroom.inward.journal.mail_journal import DepositFull, MailJournal
from postroom.inward.journal.reading_budget import (
    ALONE_AFTER_SECONDS,
    MOST_OF_A_PEER,
    MOST_OF_ONE_ALONE,
    MOST_SECONDS,
    ReadingBudget,
    estimate_of,
)
from postroom.inward.journal.running import running_journal
from postroom.inward.journal.turns import Backlogged, FairReader, ReadingTurns
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin, ReadMail
from postroom.inward.receive import MAX_HOPS, OwnReader
from postroom.mailbox import documents, message_lists, messages
from postroom.storage import segments
from postroom.storage.database import Tx
from postroom.storage.segments import SegmentPosition, SegmentWriter
from tests.conftest import Server, api_client, running_server, settings, signing_key
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail
from tests.waiting import until

READER = OwnReader(1 << 20)


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, JOURNAL="on")
    async with running_server(config, clock) as server:
        yield server


def arrival(inbox_id: str, subject: str, peer_ip: str = "192.0.2.1") -> Arrival:
    """Without a Message-ID: only the place tells that it was deposited."""
    raw = raw_mail(subject=subject)
    assert b"message-id" not in raw.lower()
    return Arrival(
        Origin((Destination(inbox_id),), b"Received: x\r\n", peer_ip, "helo", "a@example.com"), raw
    )


def subjects(tx: Tx, inbox_id: str) -> list[str]:
    """Oldest first."""
    page, _ = message_lists.list_of_inbox(tx, inbox_id, None, 100, 0)
    stored = [b"".join(documents.pieces(message.stored)) for message in reversed(page.messages)]
    return [documents.decode(document).subject for document in stored]


def put(folder: Path, arrivals: list[Arrival], number: int = 1) -> list[SegmentPosition]:
    """As a process would have left it that was killed after the 250."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = SegmentWriter(folder, number)
    ends = writer.append([encode(each) for each in arrivals])
    writer.close()
    return ends


@pytest.fixture
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that starts deposits the journals that nobody writes: these are the tests' own."""
    monkeypatch.setattr(mail_server, "deposit_others", lambda *_: asyncio.Event().wait())


def journal_of(server: Server) -> Path:
    return server.resources.config.data_dir / positions.FOLDER / "9-test"


def test_an_entry_is_read_as_it_was_written() -> None:
    whole = Arrival(
        Origin((Destination("inb_1"), Destination("inb_2")), b"Received: x\r\n", "::1", "h", ""),
        b"\0\xff\r\n",
    )
    assert decode(b"".join(encode(whole))) == whole


@pytest.mark.usefixtures("no_others")
async def test_what_a_dead_process_left_is_deposited_once_and_in_order(server: Server) -> None:
    db, folder = server.resources.db, journal_of(server)
    inbox_id = await server.new_inbox("hello")
    wanted = [f"mail {number}" for number in range(250)]  # more than a batch
    ends = put(folder, [arrival(inbox_id, subject) for subject in wanted])
    for _ in range(2):  # a second process finds nothing left to do
        async with running_journal(server.resources, folder, READER) as journal:
            assert await journal.wait_until_deposited(None)
        assert (await db.read(count_of, inbox_id)) == 250
        assert await db.read(positions.find, folder.name) == ends[-1]
    assert segments.numbers(folder) == []
    assert (await db.read(subjects, inbox_id))[-3:] == wanted[-3:]


def count_of(tx: Tx, inbox_id: str) -> int:
    row = tx.one("select count(*) as number from messages where inbox_id = :id", id=inbox_id)
    return 0 if row is None else int(row["number"])


@pytest.mark.sqlite_alone
async def test_the_place_is_written_with_the_mails_or_not_at_all(server: Server) -> None:
    """A crash between the two would lose mails, or double them."""
    db, inbox_id = server.resources.db, await server.new_inbox("hello")
    mail = AcceptedMail(await READER.read(arrival(inbox_id, "one")), "http://x", server.clock.now())

    def deposit_and_fail(tx: Tx) -> None:
        deposit_up_to(tx, "j", SegmentPosition(1, 10), [mail])
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError):
        await db.write(deposit_and_fail)
    assert (await db.read(positions.find, "j"), await db.read(count_of, inbox_id)) == (SegmentPosition(), 0)
    for _ in range(2):  # again, as after a commit of which nobody heard
        await db.write(deposit_up_to, "j", SegmentPosition(1, 10), [mail])
    assert (await db.read(positions.find, "j"), await db.read(count_of, inbox_id)) == (
        SegmentPosition(1, 10),
        1,
    )


@pytest.mark.sqlite_alone
@pytest.mark.usefixtures("no_others")
async def test_a_mail_that_cannot_be_stored_is_set_aside_and_keeps_none_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, folder, inbox_id = server.resources.db, journal_of(server), await server.new_inbox("hello")
    put(folder, [arrival(inbox_id, subject) for subject in ("one", "bad", "two", "three")])

    def refusing(tx: Tx, mails: list[AcceptedMail]) -> list[list[str]]:
        if any(b"Subject: bad" in mail.read.kept.content for mail in mails):
            raise ValueError("no row for this")
        return deposit(tx, mails)

    with monkeypatch.context() as patch:
        patch.setattr(depositing, "deposit", refusing)
        async with running_journal(server.resources, folder, READER) as journal:
            assert await journal.wait_until_deposited(None)
    assert await db.read(subjects, inbox_id) == ["one", "two", "three"]
    data = server.resources.config.data_dir
    assert positions.count_aside(data) == 1
    again = (data / positions.FOLDER / positions.ASIDE).rename(folder.with_name("again"))
    async with running_journal(server.resources, again, READER) as journal:
        assert await journal.wait_until_deposited(None)
    assert await db.read(subjects, inbox_id) == ["one", "two", "three", "bad"]


@pytest.mark.sqlite_alone
@pytest.mark.usefixtures("no_others")
async def test_while_nothing_can_be_deposited_the_mail_waits_and_is_not_set_aside(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, folder, inbox_id = server.resources.db, journal_of(server), await server.new_inbox("hello")
    put(folder, [arrival(inbox_id, "patient")])
    told: list[object] = []

    def full(tx: Tx, mails: list[AcceptedMail]) -> list[list[str]]:
        raise OSError("No space left on device")

    monkeypatch.setattr(depositing, "PAUSE_SECONDS", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(depositing, "deposit", full)
        depositor = Depositor(server.resources, folder, SegmentPosition())
        depositor.report = told.append
        task = asyncio.create_task(depositor.run())
        reader = segments.SegmentReader(folder, SegmentPosition())
        found = reader.next(SegmentPosition(1, 1 << 20))
        assert found is not None
        depositor.add(Journaled(found.start, found.end, await READER.read(decode(found.record))))
        await until(lambda: told)
    assert isinstance(told[0], Held)
    assert told[0].is_full
    async with asyncio.timeout(120):
        assert await depositor.settle() == found.end
    task.cancel()
    assert await db.read(subjects, inbox_id) == ["patient"]
    assert positions.count_aside(server.resources.config.data_dir) == 0


@contextlib.asynccontextmanager
async def undeposited(folder: Path) -> AsyncIterator[MailJournal]:
    """Read and handed over to nobody."""
    journal = MailJournal(folder, SegmentPosition(), READER, lambda mail: None)
    yield journal
    journal.note(Held("no room", is_full=False))


async def test_a_mail_that_cannot_be_written_is_freed_at_once(tmp_path: Path, no_collector: None) -> None:
    """As on a full disk, where every sender tries again and again."""

    class FullDisk(SegmentWriter):
        def append(self, records: object) -> list[SegmentPosition]:
            raise OSError("No space left on device")

    async with undeposited(tmp_path / "j") as journal:
        journal._writer = FullDisk(tmp_path / "j", 1)
        mail = arrival("inb_1", "refused")
        before = sys.getrefcount(mail.raw)
        for _ in range(3):
            [refusal] = await asyncio.gather(journal.append(mail), return_exceptions=True)
            assert isinstance(refusal, OSError)
            del refusal
        await until(lambda: sys.getrefcount(mail.raw) == before)


async def test_a_full_backlog_keeps_the_250_back_and_then_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in {"PATIENCE_SECONDS": 0.01, "PRESENT_SECONDS": 0.01, "BACKLOG_BYTES": 1}.items():
        monkeypatch.setattr(journaling, limit, value)
    async with undeposited(tmp_path / "j") as journal:
        await journal.append(arrival("inb_1", "one"))
        with pytest.raises(Backlogged):
            await journal.append(arrival("inb_1", "two"))
        monkeypatch.setattr(journaling, "PATIENCE_SECONDS", 120)
        waiting = asyncio.create_task(journal.append(arrival("inb_1", "three")))
        await asyncio.sleep(0)
        assert not waiting.done()
        journal.note(JournalProgress(SegmentPosition(1, 1 << 20)))
        await waiting
        journal.note(Held("no space left", is_full=True))
        with pytest.raises(DepositFull):
            await journal.append(arrival("inb_1", "four"))
    (path,) = (tmp_path / "j").iterdir()
    assert [name in path.read_bytes() for name in (b"one", b"two", b"three", b"four")] == [
        True,
        False,
        True,
        False,
    ]


async def test_a_backlog_that_is_too_old_refuses_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("PATIENCE_SECONDS", "PRESENT_SECONDS", "BACKLOG_SECONDS"):
        monkeypatch.setattr(journaling, limit, 0.0)
    async with undeposited(tmp_path / "j") as journal:
        await journal.append(arrival("inb_1", "one"))
        with pytest.raises(Backlogged):
            await journal.append(arrival("inb_1", "two"))


@pytest.mark.sqlite_alone
@pytest.mark.usefixtures("no_others")
async def test_a_mail_at_which_readers_die_is_delivered_unread(server: Server) -> None:
    db, folder, inbox_id = server.resources.db, journal_of(server), await server.new_inbox("hello")
    put(folder, [arrival(inbox_id, "deadly"), arrival(inbox_id, "fine")])
    depositor = Depositor(server.resources, folder, SegmentPosition())
    journal = MailJournal(folder, SegmentPosition(), READER, depositor.add, deaths=journaling.DEADLY)
    depositor.report = journal.note
    tasks = [asyncio.create_task(depositor.run()), asyncio.create_task(journal.follow())]
    assert await journal.wait_until_deposited(120)
    for task in tasks:
        task.cancel()
    assert await db.read(subjects, inbox_id) == ["", "fine"]
    assert positions.count_aside(server.resources.config.data_dir) == 0
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    unread = next(message for message in page if not message["subject"])
    assert (unread["analysis"], unread["verdict"], unread["autoReplyable"]) == ("failed", "suspicious", False)
    assert unread["bodyText"].strip() == "Hello"


async def test_after_a_death_one_mail_is_read_at_a_time(tmp_path: Path) -> None:
    put(tmp_path, [arrival("inb_1", "one"), arrival("inb_1", "two")])
    handed: list[Journaled] = []
    journal = MailJournal(tmp_path, SegmentPosition(), READER, handed.append, deaths=1)
    task = asyncio.create_task(journal.follow())
    for count in (1, 2):
        async with asyncio.timeout(120):
            while len(handed) < count:
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(handed) == count
        journal.note(JournalProgress(handed[-1].end))
    task.cancel()


async def test_in_a_burst_no_mail_is_read_before_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("BURST_WITHIN_SECONDS", "LONGEST_BURST_SECONDS"):
        monkeypatch.setattr(journaling, limit, 1e9)
    handed: list[Journaled] = []
    journal = MailJournal(tmp_path, SegmentPosition(), READER, handed.append)
    count = journaling.BURST + 1
    await asyncio.gather(*(journal.append(arrival("inb_1", str(number))) for number in range(count)))
    looked = asyncio.Event()
    is_in_a_burst = journal._is_in_a_burst

    def look() -> bool:
        looked.set()
        return is_in_a_burst()

    monkeypatch.setattr(journal, "_is_in_a_burst", look)
    task = asyncio.create_task(journal.follow())
    for _ in range(3):
        looked.clear()
        await looked.wait()
    assert handed == []
    monkeypatch.setattr(journaling, "LONGEST_BURST_BYTES", 0)
    async with asyncio.timeout(120):
        while len(handed) < count:
            await asyncio.sleep(0)
    task.cancel()


async def test_behind_a_burst_no_mail_is_read_while_clients_keep_the_loop_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "TOGETHER", 1)
    monkeypatch.setattr(journaling, "BURST", 0)
    monkeypatch.setattr(journaling, "LONGEST_BURST_BYTES", 0)
    monkeypatch.setattr(journaling, "CLIENTS_SHARE", 1e9)
    monkeypatch.setattr(journaling, "LONGEST_READING_SECONDS", 1e9)
    monkeypatch.setattr(journaling, "IDLE_TURN_SECONDS", 0.0)  # no turn of the loop is that quick
    put(tmp_path, [arrival("inb_1", str(number)) for number in range(3)])
    handed: list[Journaled] = []
    task = asyncio.create_task(MailJournal(tmp_path, SegmentPosition(), READER, handed.append).follow())
    async with asyncio.timeout(120):
        while not handed:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(handed) == 1
        monkeypatch.setattr(journaling, "IDLE_TURN_SECONDS", 1e9)
        while len(handed) < 3:
            await asyncio.sleep(0)
    task.cancel()


async def test_behind_a_burst_mails_are_handed_over_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "TOGETHER", 3)
    monkeypatch.setattr(journaling, "BURST", 0)
    monkeypatch.setattr(journaling, "LONGEST_BURST_BYTES", 0)
    put(tmp_path, [arrival("inb_1", str(number)) for number in range(7)])
    handed: list[Journaled] = []
    counts: list[int] = []
    journal = MailJournal(tmp_path, SegmentPosition(), READER, handed.append)
    task = asyncio.create_task(journal.follow())
    async with asyncio.timeout(120):
        while len(handed) < 7:
            await asyncio.sleep(0)
            counts.append(len(handed))
    task.cancel()
    assert list(dict.fromkeys(counts)) == [0, 3, 6, 7]
    assert [mail.start for mail in handed] == sorted(mail.start for mail in handed)


def test_a_long_queue_is_deposited_in_large_batches() -> None:
    assert list(map(depositing.batch_size, (1, 100, 249, 250, 500, 2_000))) == [1, 100, 100, 250, 500, 500]


async def test_a_long_queue_is_read_far_enough_for_large_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one large batch is being deposited, the next is read and handed over whole."""
    monkeypatch.setattr(journaling, "LONGEST_BURST_BYTES", 0)
    read = await READER.read(arrival("inb_1", "x"))

    class QuickReader:
        async def read(self, arrival: Arrival) -> ReadMail:
            return read

    handed: list[Journaled] = []
    counts: list[int] = []
    journal = MailJournal(tmp_path, SegmentPosition(), QuickReader(), handed.append)
    count = journaling.LONG_QUEUE + 100
    await asyncio.gather(*(journal.append(arrival("inb_1", str(number))) for number in range(count)))
    task = asyncio.create_task(journal.follow())
    async with asyncio.timeout(120):
        while len(handed) < 2 * depositing.LARGE_BATCH:
            await asyncio.sleep(0)
            counts.append(len(handed))
    task.cancel()
    assert list(dict.fromkeys(counts)) == [0, depositing.LARGE_BATCH, 2 * depositing.LARGE_BATCH]


@pytest.mark.usefixtures("no_others")
async def test_mails_wait_for_others_only_where_more_than_a_few_came_together(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[int] = []

    def noted(last_batch: int) -> float:
        gathered.append(last_batch)
        return 0.0

    monkeypatch.setattr(depositing, "gather_seconds", noted)
    folder, inbox_id = journal_of(server), await server.new_inbox("hello")
    many = depositing.FEW + 1
    arrivals = [arrival(inbox_id, str(number)) for number in range(2 * many + 3)]
    ends = put(folder, arrivals)
    starts = [SegmentPosition(), *ends[:-1]]
    mails = [
        Journaled(start, end, await READER.read(each))
        for start, end, each in zip(starts, ends, arrivals, strict=True)
    ]
    depositor = Depositor(server.resources, folder, SegmentPosition())
    task = asyncio.create_task(depositor.run())
    # Of each: how many come, whether the last came long ago, and the batches whose size made these wait.
    rounds: tuple[tuple[int, float, list[int]], ...] = (
        (1, 0.0, []),
        (many, 0.0, []),
        (1, 1e9, [many]),
        (many, 1e9, [many]),
        (1, 0.0, [many]),
    )
    for count, lately_seconds, expected in rounds:
        monkeypatch.setattr(depositing, "LONGEST_GATHER_SECONDS", lately_seconds)
        for _ in range(count):
            depositor.add(mails.pop(0))
        async with asyncio.timeout(120):
            await depositor.settle()
        assert gathered == expected
    task.cancel()


@pytest.mark.sqlite_alone
async def test_a_looping_mail_is_refused_before_it_is_journaled(server: Server) -> None:
    await server.new_inbox("hello")
    looping = b"Received: x\r\n" * (MAX_HOPS + 1) + raw_mail()
    with pytest.raises(smtplib.SMTPDataError) as refused:
        await server.deliver(looping, "hello")
    assert refused.value.smtp_code == 554
    assert await server.resources.db.read(positions.survey, server.resources.config.data_dir) == []


async def test_mails_of_one_connection_are_stored_in_their_order_large_ones_too(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    wanted = [f"mail {number}" for number in range(12)]

    def hand_over() -> None:
        with smtplib.SMTP("127.0.0.1", server.smtp_port) as smtp:
            for number, subject in enumerate(wanted):
                text = "x" * 300_000 if number % 5 == 2 else "Hello"
                smtp.sendmail("a@example.com", ["hello@postroom.localhost"], raw_mail(text, subject=subject))

    await asyncio.to_thread(hand_over)
    assert await server.resources.db.read(by_position, inbox_id) == wanted


def by_position(tx: Tx, inbox_id: str) -> list[str]:
    rows = tx.all("select message_id from events where inbox_id = :id order by position", id=inbox_id)
    found = messages.list_by_ids(tx, [row["message_id"] for row in rows])
    return [documents.decode(each.document).subject for each in found]


@pytest.mark.sqlite_alone
async def test_without_a_journal_what_is_left_of_one_is_deposited(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, JOURNAL="on")
    async with running_server(config, clock) as server:
        inbox_id, token = await server.new_inbox("hello"), server.token
    put(tmp_path / positions.FOLDER / "3-gone", [arrival(inbox_id, "left")])
    off = settings(tmp_path, DATABASE_URL=database_url, JOURNAL="off")
    async with (
        serving(off, clock, None, signing_key) as postroom,
        api_client(postroom.resources.config.base_url, token) as api,
        asyncio.timeout(120),
    ):
        while (await api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] < 1:
            await asyncio.sleep(0.02)


def costly(inbox_id: str, peer_ip: str) -> Arrival:
    raw = b"Subject: costly\r\nContent-Type: text/html\r\n\r\n" + b"<p><b>" * 6_000
    return Arrival(Origin((Destination(inbox_id),), b"Received: x\r\n", peer_ip, "helo", "a@b.example"), raw)


class Gate:
    """Reads nothing before it is opened."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.asked = 0

    async def read(self, arrival: Arrival) -> ReadMail:
        self.asked += 1
        await self.is_open.wait()
        return await READER.read(arrival)


async def test_costly_email_of_one_peer_waits_for_itself_and_not_before_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "PRESENT_SECONDS", 0.0)
    gate, handed = Gate(), list[Journaled]()
    journal = MailJournal(tmp_path / "j", SegmentPosition(), gate, handed.append)
    following = asyncio.create_task(journal.follow())
    journal.turns.give_back(await journal.turns.take(costly("inb_3", "192.0.2.3")))  # so that it is not alone
    flood = [asyncio.create_task(journal.append(costly("inb_1", "192.0.2.1"))) for _ in range(30)]
    fits = int(MOST_OF_A_PEER / estimate_of(costly("inb_1", "192.0.2.1").raw))
    async with asyncio.timeout(120):
        await until(lambda: sum(task.done() for task in flood) >= fits)
        await journal.append(arrival("inb_2", "from another peer", "192.0.2.2"))  # its 250 comes at once
    assert sum(task.done() for task in flood) == fits
    gate.is_open.set()
    async with asyncio.timeout(120):
        await asyncio.gather(*flood)
        await until(lambda: len(handed) >= len(flood) + 1)
    subjects_read = [mail.read.mail.subject for mail in handed if mail.read is not None]
    assert subjects_read.index("from another peer") == fits
    following.cancel()


async def test_cheap_email_of_a_peer_does_not_overtake_its_costly_email_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "PRESENT_SECONDS", 0.0)
    gate, handed = Gate(), list[Journaled]()
    journal = MailJournal(tmp_path / "j", SegmentPosition(), gate, handed.append)
    following = asyncio.create_task(journal.follow())
    flood = [asyncio.create_task(journal.append(costly("inb_1", "192.0.2.1"))) for _ in range(20)]
    cheap = Arrival(costly("inb_1", "192.0.2.1").origin, b"Subject: cheap\r\n\r\nHello\r\n")
    async with asyncio.timeout(120):
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        last = asyncio.create_task(journal.append(cheap))
        await journal.append(arrival("inb_2", "from another peer", "192.0.2.2"))
    assert not last.done()
    gate.is_open.set()
    async with asyncio.timeout(120):
        await asyncio.gather(*flood, last)
        await until(lambda: len(handed) >= len(flood) + 2)
    assert [mail.read.mail.subject for mail in handed if mail.read is not None][-1] == "cheap"
    following.cancel()


async def test_an_inbox_that_is_full_holds_up_no_email_of_the_same_peer_to_others() -> None:
    """A provider's address brings email to many inboxes; a flood from elsewhere is at one of them."""
    budget = shared_budget()
    turns = ReadingTurns(budget)
    taken = []
    for number in (1, 2):  # two peers use up the share of the inbox
        while budget.has_room(budget.share_of(costly("inb_1", f"192.0.2.{number}"))):
            taken.append(await turns.take(costly("inb_1", f"192.0.2.{number}")))
    first, second = (asyncio.create_task(turns.take(costly("inb_1", "192.0.2.3"))) for _ in range(2))
    await asyncio.sleep(0)
    cheap = Arrival(costly("inb_1", "192.0.2.3").origin, b"Subject: cheap\r\n\r\nHello\r\n")
    overtaking = asyncio.create_task(turns.take(cheap))
    await turns.take(costly("inb_2", "192.0.2.3"), 0.0)
    assert not any(task.done() for task in (first, second, overtaking))  # of one peer to one inbox: in order
    while not first.done():
        turns.give_back(taken.pop())
        await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    for share in taken:
        turns.give_back(share)
    await overtaking


async def test_a_turn_that_is_given_up_is_not_lost() -> None:
    """Cancelled or too late, while it waits or as it is let in: nothing stays taken, and others go on."""
    budget = ReadingBudget()
    turns = ReadingTurns(budget)
    email = costly("inb_1", "192.0.2.1")
    taken = []
    while budget.has_room(budget.share_of(email)):
        taken.append(await turns.take(email))
    with pytest.raises(Backlogged):
        await turns.take(email, 0.0)
    waiting = [asyncio.create_task(turns.take(email)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # the first of its peer
    await asyncio.wait(waiting[:1])
    for share in taken[:2]:
        turns.give_back(share)  # lets two in
    waiting[1].cancel()  # before it knows
    await asyncio.wait(waiting[1:4])
    assert [task.done() and not task.cancelled() for task in waiting] == [False, False, True, True, False]
    for share in (*taken[2:], waiting[2].result(), waiting[3].result()):
        turns.give_back(share)
    turns.give_back(await waiting[4])
    assert not budget._of_peers
    assert not turns._queues


async def test_what_is_learned_of_a_peer_counts_for_its_emails_that_wait() -> None:
    budget = ReadingBudget()
    turns = ReadingTurns(budget)
    email = costly("inb_1", "192.0.2.1")
    taken = []
    while budget.has_room(budget.share_of(email)):
        taken.append(await turns.take(email))
    waiting = [asyncio.create_task(turns.take(email)) for _ in range(20)]
    await asyncio.sleep(0)
    while taken:
        turns.give_back(taken.pop(), 0.0)  # they turned out to be cheap
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(task.done() for task in waiting) > MOST_OF_A_PEER / estimate_of(email.raw)
    for task in waiting:
        task.cancel()


async def test_large_email_and_email_without_a_journal_is_read_by_turns() -> None:
    """Threads that read it take the next job, whoever sent it: one peer has few jobs there."""
    gate = Gate()
    reader = FairReader(gate, ReadingTurns(shared_budget()))
    large = Arrival(costly("inb_1", "192.0.2.1").origin, b"Subject: large\r\n\r\n" + b"<p>" * 1_000_000)
    flood = [asyncio.create_task(reader.read(large)) for _ in range(50)]
    await asyncio.sleep(0)
    other = asyncio.create_task(reader.read(costly("inb_2", "192.0.2.2")))
    await asyncio.sleep(0)
    assert gate.asked <= MOST_OF_A_PEER / estimate_of(large.raw) + 1
    gate.is_open.set()
    assert (await other).mail.subject == "costly"
    for task in flood:
        task.cancel()


def test_a_peer_that_is_alone_has_more_until_another_one_comes() -> None:
    now = 0.0
    budget = ReadingBudget(lambda: now)
    share = budget.share_of(costly("inb_1", "192.0.2.1"))
    while budget.has_room(share):
        budget.take(share)
    assert MOST_OF_A_PEER + share.seconds < budget._all <= MOST_OF_ONE_ALONE
    other = budget.share_of(costly("inb_2", "192.0.2.2"))
    assert budget.has_room(other)  # at once
    budget.take(other)
    while budget._all > MOST_OF_A_PEER:
        budget.give_back(share)
        assert budget.has_room(share) == (budget._all + share.seconds <= MOST_OF_A_PEER + other.seconds)
    now += ALONE_AFTER_SECONDS
    share = budget.share_of(costly("inb_1", "192.0.2.1"))
    while budget.has_room(share):
        budget.take(share)
    assert budget._all > 2 * MOST_OF_A_PEER


def test_an_email_whose_letters_may_be_anything_is_expected_to_take_longer() -> None:
    words = b"Subject: words\r\nContent-Type: text/html; charset=%s\r\n\r\n" + b"words " * 1_000
    plain = [estimate_of(words % charset) for charset in (b"utf-8", b'"US-ASCII"', b"iso-8859-15")]
    opaque = [
        estimate_of(words % charset) for charset in (b"cp037", b"utf-7", b"utf-8-sig", b"x; charset*=''cp037")
    ]
    opaque.append(estimate_of(words + b"Content-Transfer-Encoding: Base64"))
    assert max(plain) * 5 < min(opaque)


def shared_budget() -> ReadingBudget:
    """Of a server that more than one peer sends email to."""
    budget = ReadingBudget()
    for peer_ip in ("198.51.100.1", "203.0.113.1"):
        budget.share_of(costly("inb_9", peer_ip))
    return budget


def test_a_budget_of_reading_time_is_fair_by_peer_and_by_inbox() -> None:
    budget = shared_budget()

    def take_all(inbox_id: str, peer_ip: str) -> int:
        """How many got in."""
        for count in range(10_000):
            share = budget.share_of(costly(inbox_id, peer_ip))
            if not budget.has_room(share):
                return count
            budget.take(share)
        raise AssertionError("no bound")

    of_first = take_all("inb_1", "192.0.2.1")
    assert take_all("inb_1", "2001:db8::1") < of_first  # the inbox has its own bound
    assert take_all("inb_2", "2001:db8::2") < of_first  # of the same network
    for number in range(3, 40):
        take_all(f"inb_{number}", f"192.0.2.{number}")
    seconds = estimate_of(costly("x", "x").raw)
    assert budget._all <= 2 * MOST_SECONDS
    share = budget.share_of(costly("inb_50", "192.0.2.1"))
    assert not budget.has_room(share)
    budget.learn(share, share.estimate / 10)  # its email turned out to be cheap
    cheaper = budget.share_of(costly("inb_50", "192.0.2.1"))
    assert cheaper.seconds < seconds
    budget.learn(share, share.estimate * 3)  # and costly again: that counts at once
    assert budget.share_of(costly("inb_50", "192.0.2.1")).seconds == pytest.approx(3 * seconds)


def test_a_budget_that_is_given_back_is_empty() -> None:
    budget = ReadingBudget()
    shares = [budget.share_of(costly("inb_1", f"192.0.2.{number}")) for number in range(50)]
    for share in shares:
        budget.take(share)
    for share in shares:
        budget.give_back(share)
    assert not budget._of_peers
    assert not budget._of_inboxes
    assert budget._all == pytest.approx(0.0, abs=1e-6)
    assert all(budget.has_room(share) for share in shares)
