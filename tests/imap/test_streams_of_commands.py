"""Any stream of commands from two programs, while REST labels and reads: what they are told is what is there.

Each program keeps a mirror of its folder from what the server writes, as real ones do. POSTROOM_TEST_STREAMS
makes it as long as you like.
"""

import asyncio
import itertools
import os
import re
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from postroom.accounts import keys
from postroom.imap.dialogue import commands
from postroom.imap.dialogue.cursor import CommandCursor
from postroom.imap.dialogue.reader import CommandText
from postroom.imap.session import ImapSession
from postroom.imap.state import ImapState
from postroom.mailbox import labels, message_lists, messages, threads
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.folders.flags import RECENT
from postroom.mailbox.folders.uid_map import INBOX
from postroom.mailbox.inboxes import Inbox
from postroom.net.dns import Resolver
from postroom.operations.folders import labels as folder_verbs
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from postroom_mail.files.extraction import Extraction
from tests.conftest import settings as configuration
from tests.doubles import START, FakeClock
from tests.stored import make_inbox, put_mail

STREAMS = int(os.environ.get("POSTROOM_TEST_STREAMS", "8"))
FLAGS = ("\\Seen", "\\Flagged", "\\Deleted", "$Later")
NUMBERS = ("1", "2", "1:3", "2:*", "*", "1:*")
_numbers = itertools.count()

Step = tuple[int, str]  # which program, and what it says; -1 is the rest of the world
COMMANDS = st.one_of(
    st.tuples(
        st.integers(0, 1),
        st.one_of(
            st.builds(
                "{}STORE {} {}FLAGS{} ({})".format,
                st.sampled_from(("", "UID ")),
                st.sampled_from(NUMBERS),
                st.sampled_from(("", "+", "-")),
                st.sampled_from(("", ".SILENT")),
                st.sampled_from(FLAGS),
            ),
            st.builds(
                "{}{} {} {}".format,
                st.sampled_from(("", "UID ")),
                st.sampled_from(("COPY", "MOVE")),
                st.sampled_from(NUMBERS),
                st.sampled_from(("Work", "INBOX", "Trash", "Sent", "Nowhere")),
            ),
            st.builds("SELECT {}".format, st.sampled_from(("INBOX", "Work", "Trash"))),
            st.builds("{}FETCH 1:* (FLAGS ENVELOPE)".format, st.sampled_from(("", "UID "))),
            st.sampled_from(("EXPUNGE", "NOOP", "UNSELECT", "CLOSE", "SEARCH DELETED", "CREATE Work")),
        ),
    ),
    st.tuples(st.just(-1), st.sampled_from(("mail", "label", "unlabel", "read", "unread"))),
)
_EXISTS = re.compile(rb"\* (\d+) EXISTS")
_EXPUNGE = re.compile(rb"\* (\d+) EXPUNGE")
_FETCH = re.compile(rb"\* (\d+) FETCH \((.*)\)\Z", re.DOTALL)
_UID = re.compile(rb"\bUID (\d+)")
_TOLD_FLAGS = re.compile(rb"\bFLAGS \(([^)]*)\)")
# What went is told by neither of the two commands after it, and is not forgotten by the second.
GONE_BEFORE_TWO_SILENT_COMMANDS: list[Step] = [
    (1, "MOVE 1 Work"),
    (0, "FETCH 1:* (FLAGS ENVELOPE)"),
    (-1, "mail"),
    (0, "FETCH 1:* (FLAGS ENVELOPE)"),
]


class NoExtractor:
    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        raise AssertionError("no file comes here")


class Mirror:
    """What a program knows of its folder: for each number a UID and the flags, None where it was not told."""

    def __init__(self) -> None:
        self.mails: list[list[object]] = []

    def write(self, data: bytes) -> None:
        for line in data.split(b"\r\n"):
            if exists := _EXISTS.fullmatch(line):
                assert int(exists[1]) >= len(self.mails), "only EXPUNGE takes mails away"
                self.mails += [[None, None] for _ in range(int(exists[1]) - len(self.mails))]
            elif gone := _EXPUNGE.fullmatch(line):
                del self.mails[int(gone[1]) - 1]
            elif fetched := _FETCH.fullmatch(line):
                self._note(self.mails[int(fetched[1]) - 1], fetched[2])

    def _note(self, mail: list[object], words: bytes) -> None:
        if uid := _UID.search(words):
            assert mail[0] in (None, int(uid[1])), "a number stands for the mail that it stood for"
            mail[0] = int(uid[1])
        if told := _TOLD_FLAGS.search(words):
            mail[1] = frozenset(told[1].decode().split()) - {RECENT}  # a mark of the session, not of the mail

    async def drain(self) -> None:
        """There is always room."""


class Program:
    def __init__(self, resources: Resources, inbox: Inbox, caller: keys.Caller) -> None:
        self.mirror = Mirror()
        self.state = ImapState(resources, NoExtractor(), self.mirror, caller, inbox)
        self.session = ImapSession(self.state)

    async def say(self, line: str) -> bytes:
        is_selected = self.state.view is not None
        word = line.split()[0]
        if not is_selected and word not in ("SELECT", "CREATE", "NOOP"):
            return b""
        if word == "SELECT":
            self.mirror.mails.clear()
        request = commands.read(word, CommandCursor(CommandText(line[len(word) :].encode(), ())), 20)
        performed = await self.session.perform(request)
        if ".SILENT" in line:  # a program works these out by itself
            for mail in self.mirror.mails:
                mail[1] = None
        if not performed.is_selected:
            self.mirror.mails.clear()
        if performed.is_selected and self.state.view is not None:
            assert len(self.mirror.mails) == len(self.state.view.uids)
            for (uid, _), known in zip(self.mirror.mails, self.state.view.uids, strict=True):
                assert uid in (None, known)
        return performed.reply


def of_world(tx: Tx, inbox: Inbox, what: str) -> None:
    number = next(_numbers)
    listed, _ = message_lists.list_of_inbox(tx, inbox.id, None, 3, 0)
    if what == "mail" or not listed.messages:
        put_mail(tx, inbox, f"Text {number}", START + number, message_id=f"<{number}@x>")
        return
    found = messages.find(tx, listed.messages[-1].id)
    assert found is not None
    thread = threads.get(tx, inbox.scope, found.thread_id)
    if what in ("label", "unlabel"):
        added, removed = (["Work"], []) if what == "label" else ([], ["Work"])
        labels.change(tx, thread, added, removed, START + number)
    else:
        labels.mark_seen(tx, thread, [found.id], what == "read", START + number)


async def compare(db: Database, inbox: Inbox, program: Program) -> None:
    """After a NOOP a program knows all, and what it was told is so."""
    await program.say("NOOP")
    view = program.state.view
    if view is None:
        return
    there = await db.read(views.uids, inbox.id, view.folder)
    assert view.uids.tolist() == there
    stored = await db.read(views.list_mails, inbox.id, view.folder, there)
    for (_, flags), mail in zip(program.mirror.mails, stored, strict=True):
        assert flags in (None, mail.flags)


@settings(max_examples=STREAMS, deadline=None, suppress_health_check=list(HealthCheck))
@example(steps=GONE_BEFORE_TWO_SILENT_COMMANDS)
@given(steps=st.lists(COMMANDS, min_size=10, max_size=40))
async def test_a_program_knows_what_is_there(
    db: Database, tmp_path: Path, clock: FakeClock, steps: list[Step]
) -> None:
    resources = Resources(
        configuration(tmp_path / "other"), db, LocalBlobs(tmp_path), clock, Resolver(), asyncio.Event()
    )

    def begin(tx: Tx) -> tuple[Inbox, keys.Caller]:
        name = f"play-{next(_numbers)}"
        inbox, token = make_inbox(tx, name), f"pr_{name}"
        keys.add(tx, inbox.account_id, None, "program", token, START)
        caller = keys.find_caller(tx, token, START)
        assert caller is not None
        for _ in range(3):
            of_world(tx, inbox, "mail")
        uid_map.open_inbox(tx, inbox.id, START)
        folder_verbs.create_folder(tx, caller, inbox.id, "Work", START)
        return inbox, caller

    inbox, caller = await db.write(begin)
    programs = [Program(resources, inbox, caller) for _ in range(2)]
    for program in programs:
        await program.say(f"SELECT {INBOX}")
    for who, what in steps:
        if who < 0:
            await db.write(of_world, inbox, what)
        else:
            await programs[who].say(what)
    for program in programs:
        await compare(db, inbox, program)
