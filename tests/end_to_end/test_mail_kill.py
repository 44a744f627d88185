"""kill -9 under load: what got 250 is there once, with one event. POSTROOM_TEST_KILLS sets how often."""

import asyncio
import os
import random
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
import msgspec
import pytest

from postroom.inward.journal import positions
from postroom.mailbox import documents
from postroom.resources import Tx
from postroom.storage.blobs import LocalBlobs
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.doubles import START
from tests.end_to_end.process import TOKEN, Running, command_of, serving_process, workers_of
from tests.raw_mails import raw_mail, raw_mail_with_files
from tests.waiting import until

KILLS = int(os.environ.get("POSTROOM_TEST_KILLS", "1"))
KILL: dict[str, Callable[[Running], None]] = {
    "main": Running.kill,
    "worker": Running.kill_workers,
    "both": Running.kill_all,
}
SENDERS = 12  # more than are answered only when their mail is in its inbox
LONGEST_LIFE_SECONDS = 0.4
PATIENCE_SECONDS = 180
LOST = (smtplib.SMTPException, OSError)


@dataclass
class Post:
    """What the senders know: mails answered with 250, and those whose answer never came."""

    accepted: set[str] = field(default_factory=set)
    in_doubt: dict[str, bytes] = field(default_factory=dict)
    number: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    first_answer: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def next_mail(self) -> tuple[str, bytes]:
        """A mail in doubt is handed over again, as every mail server does; else a new one.

        Not one without a Message-ID: nobody could tell whether it is the same mail or another.
        """
        with self.lock:
            again = [subject for subject, raw in self.in_doubt.items() if b"message-id" in raw.lower()]
            if again and self.number % 2:
                self.number += 1
                return again[-1], self.in_doubt.pop(again[-1])
            self.number += 1
            subject = f"mail {self.number}"
            return subject, compose(self.number, subject)

    def note_loss(self, subject: str, raw: bytes) -> None:
        with self.lock:
            self.in_doubt[subject] = raw


def compose(number: int, subject: str) -> bytes:
    """Every tenth waits for the text of a file, is too large for a row, or has no Message-ID."""
    if number % 10 == 5:
        return raw_mail(subject=subject)
    if number % 10 == 3:
        return raw_mail_with_files(
            ("a.csv", "text/csv", b"a,b"), subject=subject, message_id=f"<{subject}@x>"
        )
    text = "x" * 300_000 if number % 10 == 7 else "Hello"
    return raw_mail(text, subject=subject, message_id=f"<{subject}@x>")


def send_until_killed(port: int, post: Post) -> None:
    subject, raw = post.next_mail()
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as smtp:
            while not post.is_over.is_set():
                smtp.sendmail("a@example.com", ["hello@postroom.localhost"], raw)
                post.accepted.add(subject)
                post.first_answer.set()
                subject, raw = post.next_mail()
    except LOST:
        pass
    post.note_loss(subject, raw)


def live_and_die(
    folder: Path, database_url: str, post: Post, chance: random.Random, kill: Callable[[Running], None]
) -> None:
    post.first_answer.clear()
    post.is_over.clear()
    with serving_process(folder, database_url) as server:
        make_inbox(server)
        senders = [
            threading.Thread(target=send_until_killed, args=(server.smtp_port, post)) for _ in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        post.first_answer.wait(PATIENCE_SECONDS)
        time.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
        kill(server)
        post.is_over.set()  # who connected late is served by the next worker
        for sender in senders:
            sender.join()


def make_inbox(server: Running) -> None:
    """201 the first time, 409 after a restart."""
    answer = httpx2.post(
        f"http://127.0.0.1:{server.http_port}/v1/inboxes",
        headers={"Authorization": f"Bearer {TOKEN}"},
        json={"mailboxName": "hello"},
        verify=False,
        timeout=120,
    )
    assert answer.status_code in (201, 409)


@dataclass(frozen=True)
class Kept:
    subjects: Counter[str]
    events_of: Counter[str]
    counters: tuple[int, int]
    threads: int
    blobs: set[str]
    checks: int
    journaled: int


def look(tx: Tx, folder: Path) -> Kept:
    messages = tx.all("select id, document from messages")
    subject_of = {
        row["id"]: str(msgspec.json.decode(documents.plain(row["document"]))["subject"]) for row in messages
    }
    told = tx.all("select message_id from events")
    [inbox] = tx.all("select inbound_count, thread_count from inboxes")
    return Kept(
        subjects=Counter(subject_of.values()),
        events_of=Counter(subject_of[event["message_id"]] for event in told),
        counters=(inbox["inbound_count"], inbox["thread_count"]),
        threads=len(tx.all("select id from threads")),
        blobs={row["blob"] for row in tx.all("select blob from raw_mails where blob is not null")},
        checks=len(tx.all("select message_id from examinations")),
        journaled=sum(left.mails for left in positions.survey(tx, folder)),
    )


async def look_at(folder: Path, database_url: str) -> Kept:
    db = await open_database(settings(folder, DATABASE_URL=database_url), START)
    try:
        return await db.read(look, folder)
    finally:
        await db.close()


async def end_leases(folder: Path, database_url: str) -> None:
    """A check that a dead server held comes due when its lease ends: now, as if that time had passed."""
    db = await open_database(settings(folder, DATABASE_URL=database_url), START)
    await db.write(lambda tx: tx.run("update examinations set due_at = 0"))
    await db.close()


async def is_stored(folder: Path, database_url: str, subject: str) -> bool:
    return subject in (await look_at(folder, database_url)).subjects


async def wait_for_journal_and_checks(folder: Path, database_url: str) -> Kept:
    async def found() -> Kept | None:
        kept = await look_at(folder, database_url)
        return None if kept.checks or kept.journaled else kept

    return await until(found, "checks never end")


def assert_nothing_is_lost_or_doubled(kept: Kept, post: Post) -> None:
    assert post.accepted
    assert post.accepted <= set(kept.subjects)
    assert set(kept.subjects) <= post.accepted | set(post.in_doubt)
    assert set(kept.subjects.values()) == {1}
    assert kept.events_of == kept.subjects
    assert kept.counters == (len(kept.subjects), kept.threads)
    assert kept.threads == len(kept.subjects)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("engine", "victim"), [*(("sqlite", victim) for victim in KILL), ("postgres", "both")]
)
async def test_nothing_that_got_250_is_lost_or_doubled_by_kills_at_random_moments(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, victim: str
) -> None:
    """On PostgreSQL the others are killed in `tests/mixed_kills`."""
    database_url = request.getfixturevalue("postgres_url") if engine == "postgres" else ""
    chance, post, folder = random.Random(20261114), Post(), tmp_path / "data"
    for _ in range(KILLS):
        await asyncio.to_thread(live_and_die, folder, database_url, post, chance, KILL[victim])
    await end_leases(folder, database_url)
    with serving_process(folder, database_url, workers=0):
        kept = await wait_for_journal_and_checks(folder, database_url)
    assert_nothing_is_lost_or_doubled(kept, post)
    assert kept.blobs <= set(LocalBlobs(folder / "blobs").names(0))


def hand_over_without_listening(port: int, subject: str) -> None:
    """Sends everything at once and never reads what the server says."""
    smtp = smtplib.SMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    smtp.ehlo()
    smtp.mail("a@example.com")
    smtp.rcpt("hello@postroom.localhost")
    smtp.docmd("DATA")
    smtp.send(raw_mail(subject=subject, message_id="<one@x>") + b".\r\n")
    assert smtp.sock is not None
    smtp.sock.close()


async def test_a_mail_whose_answer_dies_between_commit_and_250_is_there_once_after_the_retry(
    database_url: str, tmp_path: Path
) -> None:
    folder, post = tmp_path / "data", Post()
    for number in range(KILLS):
        subject = f"unanswered {number}"
        with serving_process(folder, database_url) as server:
            make_inbox(server)
            await asyncio.to_thread(hand_over_without_listening, server.smtp_port, subject)
            await until(partial(is_stored, folder, database_url, subject))
            server.kill()
        with serving_process(folder, database_url, workers=0) as server:
            smtp = smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=PATIENCE_SECONDS)
            smtp.sendmail(
                "a@example.com", ["hello@postroom.localhost"], raw_mail(subject=subject, message_id="<one@x>")
            )
            smtp.quit()
            post.accepted.add(subject)
    assert_nothing_is_lost_or_doubled(await look_at(folder, database_url), post)


async def test_a_worker_dies_with_its_server_however_that_ends(tmp_path: Path) -> None:
    with serving_process(tmp_path / "data", workers=2) as server:
        workers = workers_of(server.process.pid)
        assert len(workers) == 2
        server.kill()
        await until(lambda: not any(command_of(worker) for worker in workers))
