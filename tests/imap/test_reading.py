"""What a listing takes from rows: descriptions that are made once, headers alone, words by the index."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest

from postroom.accounts import keys
from postroom.config import load
from postroom.imap.dialogue import commands
from postroom.imap.dialogue.cursor import CommandCursor
from postroom.imap.dialogue.reader import CommandText
from postroom.imap.dialogue.requests import LogIn, MailSection, SearchKey, SelectFolder
from postroom.imap.reading import fetching, searching
from postroom.imap.session import ImapSession
from postroom.imap.state import ImapState
from postroom.imap.view import FolderView
from postroom.mailbox import raw_mails
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.folders.uid_map import INBOX
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import indexing
from postroom.operations.folders import labels as folder_verbs
from postroom.operations.folders import mails
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from postroom_mail.files.extraction import Extraction
from postroom_mail.mime import imap_sections
from tests.conftest import Server
from tests.doubles import START, FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.raw_mails import raw_mail
from tests.samples import samples
from tests.stored import make_inbox, put_mail

HEADS = (
    b"From: a@x\r\nTo: b@y\r\n\r\nText",
    b"From: a@x\nTo: b@y\n\nText\n\nMore",
    b"From: a@x\r\nTo: b@y\r\n",
    b"From: a@x",
    b"\r\nText",
    b"\nText",
    b"From: a@x\r\n\r\r\nText",
    b"From: a@x\r\n\r",
    b"A: b\n\tc\n\r\n\n",
    b"",
)


@samples("raw", HEADS)
def test_a_header_ends_where_the_structure_says(raw: bytes) -> None:
    assert raw_mails.head_end(raw) == imap_sections.scan([raw]).body_start


@samples(
    ("raw", "names"),
    product(
        [*HEADS, b"to : b\r\n c\r\nTop: x\r\nno field\r\n\tFrom: y\r\nFROM:z\r\n\r\n"],
        [("From",), ("TO", "a"), ("b",), ("text", "From", "to")],
    ),
)
def test_few_header_fields_are_chosen_as_many_are(raw: bytes, names: tuple[str, ...]) -> None:
    few = MailSection(kind="HEADER.FIELDS", fields=names)
    many = MailSection(kind="HEADER.FIELDS", fields=names * (fetching.MOST_NAMES_OF_A_PATTERN + 1))
    assert fetching._chosen(few, raw) == fetching._chosen(many, raw)


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


async def test_envelope_and_structure_are_made_once_and_kept(server: Server) -> None:
    await server.new_inbox("agent")
    await server.deliver(raw_mail("Small", subject="Gr\u00fc\u00dfe", cc='"O, K" <k@x.example>'), "agent")
    large = raw_mail("x" * 70 + "\r\n" + ("y" * 70 + "\r\n") * 5_000, subject="Large")
    await server.deliver(large, "agent")
    db = server.resources.db

    def count(tx: Tx) -> tuple[int, int]:
        row = tx.one("select count(envelope) as envelopes, count(structure) as structures from mail_flags")
        assert row is not None
        return int(row["envelopes"]), int(row["structures"])

    def fetch() -> list[bytes]:
        client = log_in(server, "agent")
        client.select("INBOX")
        answers = [*ok(client.fetch("1:2", "(UID FLAGS ENVELOPE)"))]
        answers += ok(client.fetch("1:2", "(BODYSTRUCTURE)"))
        found = [b"".join(each) if isinstance(each, tuple) else each for each in answers]
        found = [each.replace(b"\\Recent", b"") for each in found]  # in the first session alone
        found += [ok(client.fetch(str(each), "(BODY.PEEK[HEADER])"))[0][1] for each in (1, 2)]
        found += [
            ok(client.fetch(str(each), "(BODY.PEEK[HEADER.FIELDS (Subject)]<0.9>)"))[0][1] for each in (1, 2)
        ]
        client.logout()
        return found

    first = await aside(fetch)
    assert await db.read(count) == (2, 2)
    assert await aside(fetch) == first
    envelopes, headers = b"".join(first[:-4]), first[-4:-2]
    assert b'(("O, K" NIL "k" "x.example"))' in envelopes
    assert b'"Large"' in envelopes
    assert b'BODYSTRUCTURE ("TEXT" "PLAIN"' in envelopes
    assert all(header.endswith(b"\r\n\r\n") for header in headers)
    assert first[-2:] == [b"Subject: "] * 2


async def fill(db: Database, count: int) -> Inbox:
    def work(tx: Tx) -> Inbox:
        inbox = make_inbox(tx)
        keys.add(tx, inbox.account_id, None, "program", "pr_token", START)
        for number in range(count):
            text = f"Word{number} invoice" if number % 3 else f"Word{number} other"
            put_mail(tx, inbox, text, START + number, message_id=f"<{number}@x>")
        uid_map.open_inbox(tx, inbox.id, START)
        return inbox

    inbox = await db.write(work)
    while await db.read(indexing.has_work, "test", START):
        await indexing.step(db, "test", START)
    return inbox


async def test_the_index_names_those_that_can_be_meant(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await fill(db, 12)
    blobs = LocalBlobs(tmp_path)

    def find(tx: Tx, key: SearchKey) -> list[int]:
        view = FolderView(INBOX, False, views.uids(tx, inbox.id, INBOX), 1)
        return [each.mail.uid for each in searching._search(tx, inbox, view, key, blobs)]

    asked = (
        SearchKey("BODY", "invo"),
        SearchKey("TEXT", "word7 INVOICE"),
        SearchKey("NOT", keys=(SearchKey("BODY", "invoice"),)),
        SearchKey("OR", keys=(SearchKey("BODY", "word3"), SearchKey("FROM", "nobody"))),
        SearchKey("BODY", "..."),
    )
    by_letters = [await db.read(find, key) for key in asked]
    assert by_letters[0] == [2, 3, 5, 6, 8, 9, 11, 12]
    assert by_letters[1] == [8]
    monkeypatch.setattr(searching, "BY_INDEX_ABOVE", 0)
    assert [await db.read(find, key) for key in asked] == by_letters
    assert await db.read(find, SearchKey("BODY", "nvoice")) == [], "by the beginning of a word alone"
    monkeypatch.setattr(searching, "MOST_BY_INDEX", 3)
    assert await db.read(find, SearchKey("BODY", "nvoice")) == [], "few have it: none"
    assert await db.read(find, SearchKey("BODY", "invoice")) == by_letters[0], "too many for the index"
    await db.write(lambda tx: put_mail(tx, inbox, "New invoice", START + 99, message_id="<n@x>"))
    monkeypatch.setattr(searching, "MOST_BY_INDEX", 100)
    assert await db.read(find, SearchKey("BODY", "new")) == [13], "what is not in the index yet is read"


@pytest.mark.sqlite_alone
async def test_of_many_that_are_named_only_these_are_moved(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await fill(db, 12)
    monkeypatch.setattr(views, "ROWS_TOGETHER", 4)

    def move(tx: Tx) -> tuple[list[int], list[int]]:
        caller = keys.find_caller(tx, "pr_token", START)
        assert caller is not None
        folder_verbs.create_folder(tx, caller, inbox.id, "Work", START)
        uids = [1, 3, 5, 7, 9, 11]
        mails.copy_mails(tx, caller, inbox.id, INBOX, uids, "Work", load({}), START)
        there = views.uids(tx, inbox.id, uid_map.of_label("work"))
        return there, views.uids(tx, inbox.id, INBOX)

    there, here = await db.write(move)
    assert len(there) == 6
    assert len(here) == 12


class Counting:
    """A client that reads at once; of what was written only the count is kept."""

    def __init__(self) -> None:
        self.size = self.largest = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self.largest = max(self.largest, len(data))

    async def drain(self) -> None:
        await asyncio.sleep(0)


class NoExtractor:
    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        raise AssertionError("nothing is appended here")


@pytest.mark.sqlite_alone
async def test_a_large_mail_is_never_in_memory_whole(server: Server) -> None:
    await server.new_inbox("agent")
    line = b"x" * 76 + b"\r\n"
    raw = (
        b"Subject: Large\r\nMIME-Version: 1.0\r\nContent-Type: application/pdf; name=a.pdf\r\n\r\n"
        + line * 100_000
    )
    await server.deliver(raw, "agent")
    await server.next_event()  # it was examined
    resources, output = server.resources, Counting()
    state = ImapState(resources, NoExtractor(), output)
    session = ImapSession(state)
    assert b"OK" in (await session.perform(LogIn("agent@postroom.localhost", server.token))).reply
    await session.perform(SelectFolder("INBOX", is_read_only=True))
    tracemalloc.start()
    try:
        for words in (
            b"1 BODY.PEEK[]",
            b"1 BODYSTRUCTURE",
            b"1 BODY.PEEK[1]",
            b"1 BODY.PEEK[]<3500000.1000>",
        ):
            request = commands.read("FETCH", CommandCursor(CommandText(b" " + words)), 20)
            assert b"OK" in (await session.perform(request)).reply
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert output.size > 2 * len(line) * 100_000
    assert output.largest < len(raw) / 4
    assert peak < len(raw)
