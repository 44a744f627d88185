"""kill -9 while a contact is exported, and while it is erased: the job goes on, and nothing is half for ever.

After each death, what the job says is compared with the rows. POSTROOM_TEST_ERASURE_KILLS sets how often.
"""

import asyncio
import base64
import io
import json
import os
import random
import re
import smtplib
import time
import zipfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import httpx2
import msgspec
import pytest

from postroom.clock import MINUTE, SystemClock
from postroom.mailbox import documents
from postroom.mailbox.jobs import Job
from postroom.mailbox.search import index_upkeep, indexing
from postroom.storage.database import Database, Tx
from postroom.storage.opening import open_blobs, open_database
from postroom.upkeep import orphans
from postroom.upkeep.verification.audit_files import AuditLog
from tests.conftest import settings
from tests.end_to_end.process import TOKEN, Running, serving_process
from tests.raw_mails import raw_mail_with_files
from tests.simulation.evidence_world import tables_with
from tests.waiting import wait_until

KILLS = int(os.environ.get("POSTROOM_TEST_ERASURE_KILLS", "4"))
PATIENCE_SECONDS = 120
INBOXES, MAILS = 6, 3
ALL = INBOXES * MAILS
SENT = 1  # to the contact
LONG = base64.encodebytes(random.Random(1).randbytes(200_000)).decode()  # more than sockets hold
ANN, BEN = "ann@example.com", "ben@example.com"
SECRET = "zebraquagga"

ERASED = {"messages": ALL + SENT, "files": ALL, "drafts": 1, "calendarEvents": 1, "contacts": INBOXES} | {
    "suppressions": 1,
    "kept": 0,
}

T = TypeVar("T")


class Rows(NamedTuple):
    """What is stored, read at once."""

    job: Job
    messages: int  # from the contact, and to it
    contacts: int


class Document(msgspec.Struct, rename="camel"):
    from_addr: str
    header_to: str


def api(running: Running) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx2.Client(base_url=running.base_url, headers=headers, timeout=PATIENCE_SECONDS)


def furnish(running: Running, client: httpx2.Client) -> None:
    names = [f"box{number}" for number in range(INBOXES)]
    for name in names:
        client.post("/v1/inboxes", json={"mailboxName": name}).raise_for_status()
    for sender, text in ((ANN, SECRET), (BEN, "other")):
        hand_in(running, sender, text, names)
    for address in (ANN, BEN):
        wait_until(partial(has_received, client, address), "all is examined")


def name_elsewhere(client: httpx2.Client) -> None:
    """In a sent email, a draft, an appointment and the suppressions."""
    inbox_id = client.get("/v1/inboxes").json()["data"][0]["id"]
    fields = {"to": f"Ann <{ANN}>", "subject": SECRET, "body": f"{SECRET} for {ANN}"}
    calendar_id = client.get(f"/v1/calendars?inboxId={inbox_id}").json()["data"][0]["id"]
    day = {"start": "2026-11-20", "end": "2026-11-21", "allDay": True}
    for path, body in (
        (f"/v1/inboxes/{inbox_id}/send", fields),
        (f"/v1/inboxes/{inbox_id}/drafts", fields),
        ("/v1/calendar-events", {"calendarId": calendar_id, "summary": f"Lunch with {ANN}", **day}),
        ("/v1/suppressions", {"address": ANN}),
    ):
        client.post(path, json=body, headers={"Idempotency-Key": path}).raise_for_status()


def hand_in(running: Running, sender: str, text: str, names: list[str]) -> None:
    with smtplib.SMTP("127.0.0.1", running.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
        for number in range(MAILS):
            raw = raw_mail_with_files(
                ("a.csv", "text/csv", f"{text},{number}".encode()),
                text=f"{text} {number}\r\n{LONG}" if sender == ANN else text,
                subject=f"{text} {number}",
                message_id=f"<{text}-{number}@x>",
            ).replace(b"alice@example.com", sender.encode())
            smtp.sendmail(sender, [f"{name}@postroom.localhost" for name in names], raw)


def has_received(client: httpx2.Client, address: str) -> bool:
    return received(client, address) == ALL


def received(client: httpx2.Client, address: str) -> int:
    found: int = client.get(f"/v1/contacts/{address}").json().get("received", 0)
    return found


def ask(folder: Path, database_url: str, question: Callable[[Database], Awaitable[T]]) -> T:
    """While no server runs."""

    async def opened() -> T:
        config = settings(folder, DATABASE_URL=database_url)
        db = await open_database(config, SystemClock().now(), may_create=False)
        try:
            return await question(db)
        finally:
            await db.close()

    return asyncio.run(opened())


def look(folder: Path, database_url: str) -> Rows:
    """Also ends the leases of the dead, as if their time had passed."""

    def read(tx: Tx) -> Rows:
        tx.run("delete from duties")
        tx.run("update examinations set due_at = 0")
        [job] = tx.all("select * from jobs")
        stored = [documents.plain(row["document"]) for row in tx.all("select document from messages")]
        read = [msgspec.json.decode(each, type=Document) for each in stored]
        named = [ANN in f"{each.from_addr} {each.header_to}" for each in read]
        contacts = tx.all("select inbox_id from contacts where address = :ann", ann=ANN)
        return Rows(Job.from_row(job), sum(named), len(contacts))

    return ask(folder, database_url, lambda db: db.write(read))


@pytest.mark.share(2)
def test_an_erasure_goes_on_after_each_death_and_says_what_is_done(database_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with serving_process(folder, database_url, workers=0) as running, api(running) as client:
        furnish(running, client)
        name_elsewhere(client)
        job_id = client.delete(f"/v1/contacts/{ANN}").json()["jobId"]
        running.kill()
    before, ends = look(folder, database_url), time.monotonic() + PATIENCE_SECONDS
    for _ in range(KILLS):
        with serving_process(folder, database_url, workers=0) as running, api(running) as client:
            while not has_moved(client, before.job):  # without a pause: a step takes milliseconds
                assert time.monotonic() < ends, "the job does not go on"
            running.kill()
        after = look(folder, database_url)
        require_truthful(before.job, after)
        before = after
    with serving_process(folder, database_url, workers=0) as running, api(running) as client:
        job = wait_until(lambda: finished(client, job_id), "the job is done")
        counts = {name: job["result"][name] for name in ERASED}
        assert counts == ERASED
        assert job["done"] == job["total"]
        require_gone(client)
        require_receipt(client, job)
    left = look(folder, database_url)
    assert (left.messages, left.contacts) == (0, 0)
    ask(folder, database_url, lambda db: require_nothing_anywhere(db, folder))


def has_moved(client: httpx2.Client, before: Job) -> bool:
    job = client.get(f"/v1/jobs/{before.id}").json()
    return bool(job["state"] == "done" or job["done"] > before.done)


def finished(client: httpx2.Client, job_id: str) -> dict[str, Any] | None:
    job: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").json()
    return job if job["state"] == "done" else None


def require_truthful(before: Job, after: Rows) -> None:
    """What is gone is counted, and what is counted is gone."""
    job = after.job
    assert before.done <= job.done <= job.total
    assert job.result.get("messages", 0) == ALL + SENT - after.messages
    assert job.result.get("contacts", 0) == INBOXES - after.contacts


def require_gone(client: httpx2.Client) -> None:
    assert client.get(f"/v1/contacts/{ANN}").status_code == 404
    assert received(client, BEN) == ALL
    assert client.get(f"/v1/search?q={SECRET}").json()["data"] == []
    events = client.get("/v1/events?limit=100").json()["data"]
    assert [each["event"] for each in events].count("contact.erased") == 1
    assert SECRET not in json.dumps(events)
    log = AuditLog()
    for path in ("/v1/audit?limit=100", "/v1/audit/head", "/.well-known/postroom-keys.json"):
        log.read(client.get(path).content)
    assert log.verify() == []


def require_receipt(client: httpx2.Client, job: dict[str, Any]) -> None:
    """What was erased is said once, by the job and by the audit log alike; nothing goes to the address."""
    [entry] = client.get("/v1/audit?action=contact.erased").json()["data"]
    assert {**entry["after"], "address": ""} == {**job["result"], "address": ""}
    inbox_id = client.get("/v1/inboxes").json()["data"][0]["id"]
    fields = {"to": ANN, "subject": "Hi", "body": "Hello"}
    answer = client.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers={"Idempotency-Key": "again"})
    assert answer.json()["error"] == "recipient_suppressed"


async def require_nothing_anywhere(db: Database, folder: Path) -> None:
    """Also in no file, once those that a death left without an owner are old enough."""
    later = SystemClock().now() + MINUTE  # when what the dead held has ended
    while await indexing.step(db, "index", later):
        pass
    await index_upkeep.tidy(db)
    assert await db.read(tables_with, {SECRET, re.escape(ANN)}) == {}
    files = [path for path in (folder / "blobs").rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (0, 0))
    resources: Any = SimpleNamespace(db=db, blobs=open_blobs(settings(folder)))
    await orphans.sweep_orphans(resources)
    assert [path for path in files if path.exists() and SECRET.encode() in path.read_bytes()] == []


@pytest.mark.share(2)
def test_an_export_that_a_death_cuts_off_is_no_whole_file_and_the_next_is(
    database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    with serving_process(folder, database_url, workers=0) as running, api(running) as client:
        furnish(running, client)
        with pytest.raises(httpx2.TransportError):
            cut_off(running, client)
    with serving_process(folder, database_url, workers=0) as running, api(running) as client:
        whole = client.get(f"/v1/contacts/{ANN}/export")
        archive = zipfile.ZipFile(io.BytesIO(whole.content))
        assert archive.testzip() is None
        counts = json.loads(archive.read("manifest.json"))["counts"]
        assert (counts["messages"], counts["files"]) == (ALL, ALL)
        exports = client.get("/v1/audit?action=contact.exported").json()["total"]
    assert exports == 2, "the one that was cut off is in the log too"


def cut_off(running: Running, client: httpx2.Client) -> None:
    with client.stream("GET", f"/v1/contacts/{ANN}/export") as answer:
        pieces = answer.iter_bytes()
        assert next(pieces)
        running.kill()
        for _ in pieces:
            pass
