"""The power goes at every sync of a server's work: what was answered is there when it is back."""

import copy
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from postroom.accounts import accounts, keys
from postroom.inward.journal import positions
from postroom.inward.journal.entries import decode
from postroom.mailbox import inboxes
from postroom.storage import segments
from postroom.storage.blobs import LocalBlobs
from postroom.storage.engines.sqlite import SqliteSession
from postroom.storage.journal import Journal
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader
from postroom.transfer import backup_file
from postroom_mail.mime.parse import parse_mail
from tests.doubles import START
from tests.migrated import put_migrated_sqlite
from tests.power_loss.disk import ANSWERED, FOLDER_SYNCED, SYNCED, Change, Disk, read_log
from tests.power_loss.scenario import TOKEN
from tests.programs import path_of

KINDS = {"mail", "journaled", "send", "outcome", "backup", "moved"}
HERE = Path(__file__).parent
TORN_STATES = int(os.environ.get("POSTROOM_TEST_TORN_DISKS", "40"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Disk, list[Change]]:
    """The folder, the disk before, and all that the scenario did to it."""
    workshop = tmp_path_factory.mktemp("power")
    folder, log, library = workshop / "disk", workshop / "log", workshop / "record.so"
    source = str(HERE / "record.c")
    subprocess.run([path_of("cc"), "-shared", "-fPIC", "-O1", "-o", str(library), source, "-ldl"], check=True)
    furnish(folder / "data")
    before = Disk.of_folder(folder)
    watched = {"LD_PRELOAD": str(library), "POWER_LOSS_FOLDER": str(folder), "POWER_LOSS_LOG": str(log)}
    command = [sys.executable, "-m", "tests.power_loss.scenario", str(folder), str(log)]
    subprocess.run(command, check=True, env={**os.environ, **watched}, cwd=HERE.parent.parent)
    return folder, before, list(read_log(log))


def furnish(data: Path) -> None:
    """A server with an account, a key and an inbox."""
    data.mkdir(parents=True)
    put_migrated_sqlite(data)
    session = SqliteSession(data / "postroom.db")
    session.begin()
    account = accounts.add(session.tx, "power", "developer", START)
    keys.add(session.tx, account.id, None, "key", TOKEN, START)
    inboxes.add(session.tx, account.id, "hello", None, None, "postroom.localhost", START)
    session.commit()
    session.close()


def moments(changes: list[Change]) -> Iterator[int]:
    """Before what is left may change: all is answered that had to be there since the sync before."""
    for number, change in enumerate(changes):
        if change.kind in (SYNCED, FOLDER_SYNCED):
            yield number
    yield len(changes)


def faults_of(folder: Path, answers: list[str]) -> list[str]:
    """What was answered and is not there, or is not whole."""
    with closing(sqlite3.connect(folder / "data" / "postroom.db")) as connection:
        faults = [row[0] for row in connection.execute("pragma quick_check") if row[0] != "ok"]
        mails = [row[0] for row in connection.execute("select rfc_message_id from messages")]
        sent = {row[0] for row in connection.execute("select idempotency_key from idempotency_keys")}
        blobs = [row[0] for row in connection.execute("select blob from raw_mails where blob is not null")]
        reached = connection.execute("select journal, segment, position from journal_places").fetchall()
    waiting = journaled(folder / "data", {name: SegmentPosition(*place) for name, *place in reached})
    faults += [f"blob {name}" for name in blobs if not is_whole(folder / "data" / "blobs", name)]
    outcomes = Journal(folder / "data" / "outcomes.journal").read()
    for answer in answers:
        kind, _, what = answer.partition(" ")
        is_there = {
            "mail": lambda what: mails.count(what) == 1,
            "journaled": lambda what: mails.count(what) + waiting.count(what) == 1,
            "send": lambda what: what in sent,
            "outcome": lambda what: b"outcome %s" % what.encode() in outcomes,
            "backup": lambda what: bool(backup_file.verify(folder / "all.backup").hashes),
            "moved": lambda what: is_whole(folder / "other", what),
        }[kind](what)
        faults += [] if is_there else [answer]
    return faults


def journaled(data: Path, reached: dict[str, SegmentPosition]) -> list[str]:
    """Mails that the next start would put into their inboxes."""
    found = []
    for folder in positions.others(data, ()):
        place = reached.get(folder.name, SegmentPosition())
        end = segments.prepare(folder, place)
        reader = SegmentReader(folder, place)
        while True:
            try:
                record = reader.next(end)
            except DamagedSegment:
                continue  # torn: nobody heard 250 for what stands there
            if record is None:
                break
            found.append(parse_mail(decode(record.record).raw).message_id)
        reader.close()
    return found


def is_whole(folder: Path, name: str) -> bool:
    try:
        return bool(LocalBlobs(folder).get(name))
    except FileNotFoundError:
        return False


def lose_power(
    recorded: tuple[Path, Disk, list[Change]], at: set[int], there: Path, chance: random.Random | None
) -> Iterator[tuple[int, list[str]]]:
    """The moments at which the power went, with what was lost then; the disk is played forward once."""
    folder, before, changes = recorded
    disk = copy.deepcopy(before)
    for number, change in enumerate(changes, 1):
        disk.change(change)
        if number in at:
            disk.write_what_is_left(folder, there, chance)
            faults = faults_of(there, disk.answers)
            shutil.rmtree(there)
            if faults:
                yield number, faults


@pytest.mark.needs("cc")
def test_what_was_answered_survives_a_power_loss_at_every_sync(
    recorded: tuple[Path, Disk, list[Change]], tmp_path: Path
) -> None:
    at = set(moments(recorded[2]))
    answers = [change.path for change in recorded[2] if change.kind == ANSWERED]
    assert len(at) > 50
    assert {answer.partition(" ")[0] for answer in answers} == KINDS
    assert dict(lose_power(recorded, at, tmp_path / "left", chance=None)) == {}


@pytest.mark.needs("cc")
def test_what_was_answered_survives_when_the_rest_is_there_in_part(
    recorded: tuple[Path, Disk, list[Change]], tmp_path: Path
) -> None:
    chance = random.Random(1)
    at = set(chance.sample(range(1, len(recorded[2]) + 1), min(TORN_STATES, len(recorded[2]))))
    assert dict(lose_power(recorded, at, tmp_path / "left", chance)) == {}


@pytest.mark.needs("cc")
def test_a_disk_that_forgets_what_was_synced_is_noticed(
    recorded: tuple[Path, Disk, list[Change]], tmp_path: Path
) -> None:
    """The test of the test: without the syncs of the database's log mails are lost."""
    folder, before, changes = recorded
    without = [change for change in changes if not (change.kind == SYNCED and change.path.endswith("-wal"))]
    found = lose_power((folder, before, without), set(moments(without)), tmp_path / "left", chance=None)
    assert any(fault.startswith("mail ") for _, faults in found for fault in faults)
