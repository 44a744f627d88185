"""An account taken out into files, and brought into another inbox: threads, dates and files stay."""

import asyncio
import gc
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postroom.accounts import accounts
from postroom.clock import DAY, HOUR
from postroom.errors import BadRequest
from postroom.inward.extraction_pool import ExtractionPool
from postroom.mailbox import correspondents, inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.operations.exported_aliases import create_all
from postroom.processes import pools
from postroom.processes.pools import ProcessPool
from postroom.transfer import exported, mbox, sources
from postroom.transfer.export_mail import export_account
from postroom.transfer.import_mail import (
    FILES_AT_ONCE,
    PatientExtractor,
    import_all,
    known_ids,
    read_all,
)
from postroom.transfer.mbox import FiledMail
from postroom_mail.files.extraction import Extraction
from tests.conftest import Server
from tests.connections.dovecot import PASSWORD, running_dovecot
from tests.doubles import FakeClock
from tests.installed import ROOT


def question() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"] = "Ann <ann@example.com>", "one@postroom.localhost"
    mail["Subject"], mail["Message-ID"] = "a question", "<question@example.com>"
    mail.set_content("From here on it is text.\n")
    mail.add_attachment(b"numbers,1\n", maintype="text", subtype="csv", filename="numbers.csv")
    return mail.as_bytes()


async def bring_in(server: Server, extractor: ExtractionPool, inbox: Inbox, filed: list[FiledMail]) -> int:
    """Threads read here; the command has processes for it."""
    told = list[int]()
    batches = sources.from_files(filed, partial(find_known, server, inbox), told.append)
    count = await import_all(server.resources, pools.READING, extractor, inbox, batches, told.append)
    assert sum(told) == len(filed)
    return count


async def find_known(server: Server, inbox: Inbox, message_ids: Sequence[str]) -> set[str]:
    return await server.resources.db.read(known_ids, inbox, message_ids)


async def test_what_was_taken_out_can_be_brought_in(server: Server, tmp_path: Path) -> None:
    one, two = await server.new_inbox("one"), await server.new_inbox("two")
    await server.deliver(question(), "one")
    await server.next_event()
    thread_id = (await listed(server, f"/v1/inboxes/{one}/threads"))[0]["id"]
    server.clock.turn(HOUR)
    body = {"to": "ann@example.com", "threadId": thread_id, "body": "an answer"}
    sent = await server.api.post(f"/v1/inboxes/{one}/send", json=body, headers={"Idempotency-Key": "a"})
    assert sent.status_code == 200, sent.text
    await server.api.patch(f"/v1/threads/{thread_id}", json={"addLabels": ["Kept"]})
    server.clock.turn(30 * DAY)

    folder = tmp_path / "out"
    account = (await server.resources.db.read(accounts.list_all))[0]
    told: list[int] = []
    assert await export_account(server.resources, account, folder, told.append) == len(told) == 2
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    described = json.loads((folder / "account.json").read_text())
    assert [inbox["id"] for inbox in described["inboxes"]] == [one, two]
    place = folder / "one@postroom.localhost"
    lines = [json.loads(line) for line in (place / "messages.jsonl").read_text().splitlines()]
    assert [(line["subject"], line["direction"], line["labels"]) for line in lines] == [
        ("a question", "inbound", ["Kept"]),
        ("Re: a question", "outbound", ["Kept"]),
    ]
    assert (place / lines[0]["attachments"][0]["url"]).read_bytes().strip() == b"numbers,1"

    before = (await server.api.get("/v1/events?order=desc&limit=1")).json()["data"]
    inbox = await server.resources.db.read(inboxes.find, two)
    assert inbox is not None
    extractor = ExtractionPool()
    assert exported.list_inboxes(folder) == {"one@postroom.localhost": [], "two@postroom.localhost": []}
    assert exported.list_mails(folder, "two@postroom.localhost", server.clock.now()) == []
    filed = exported.list_mails(folder, "one@postroom.localhost", server.clock.now())
    try:
        assert await bring_in(server, extractor, inbox, filed) == 2
        assert await bring_in(server, extractor, inbox, filed) == 0
    finally:
        await extractor.close()
    (thread,) = await listed(server, f"/v1/inboxes/{two}/threads")
    assert (thread["messageCount"], thread["isRead"]) == (2, True)
    answer, asked = await listed(server, f"/v1/inboxes/{two}/messages")
    assert asked["attachments"][0]["parsedText"].split() == ["numbers", "1"]
    assert asked["bodyText"].strip() == "From here on it is text."
    assert asked["createdAt"] == lines[0]["createdAt"]
    assert answer["createdAt"] == lines[1]["createdAt"]
    assert thread["labels"] == ["Kept"]
    assert (answer["imported"], asked["imported"]) == (True, True)
    stranger = await server.resources.db.read(correspondents.find, [(two, "ann@example.com")])
    assert stranger == set(), "an import makes nobody known"
    assert (await server.api.get("/v1/events?order=desc&limit=1")).json()["data"] == before


async def test_what_the_inbox_wrote_itself_was_sent(server: Server, tmp_path: Path) -> None:
    """Also under an alias, which the export names."""
    inbox_id, alias = await server.new_inbox("one"), "billing@postroom.localhost"
    await server.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": alias})
    inbox = await server.resources.db.read(inboxes.find, inbox_id)
    assert inbox is not None
    own = b"From: one@postroom.localhost\nTo: ann@example.com\nMessage-ID: <own@x>\nSubject: mine\n\nhello\n"
    path = tmp_path / "mbox"
    both = (own, own.replace(b"one@", b"Billing@").replace(b"own@x", b"alias@x"))
    path.write_bytes(
        b"".join(mbox.to_mbox(each, "one@postroom.localhost", server.clock.now() - DAY) for each in both)
    )
    extractor = ExtractionPool()
    assert await bring_in(server, extractor, inbox, mbox.list_mbox(path, server.clock.now())) == 2
    await extractor.close()
    for message in await listed(server, f"/v1/inboxes/{inbox_id}/messages"):
        assert (message["direction"], message["status"], message["auth"]) == ("outbound", "sent", None)
    account = (await server.resources.db.read(accounts.list_all))[0]
    await export_account(server.resources, account, tmp_path / "out", list[int]().append)
    (shown,) = json.loads((tmp_path / "out" / "account.json").read_text())["inboxes"]
    assert exported.list_inboxes(tmp_path / "out") == {"one@postroom.localhost": [alias]}
    assert (shown["aliases"], shown["catchAll"], shown["subdomains"]) == ([alias], False, False)
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()["total"] == 0


async def test_the_aliases_of_an_export_are_created_all_or_none(server: Server) -> None:
    """Commands import here: a server with the same names, and one where somebody else has an address."""
    one, two = await server.new_inbox("one"), await server.new_inbox("two")
    config, now, write = server.resources.config, server.clock.now(), server.resources.db.write
    wanted = {
        "one@postroom.localhost": ["sales@postroom.localhost", "help@postroom.localhost"],
        "two@postroom.localhost": [
            "taken@postroom.localhost",
            "mail@elsewhere.example",
            "spare@postroom.localhost",
        ],
    }

    async def aliases() -> list[list[str]]:
        pages = [await listed(server, f"/v1/inboxes/{each}/aliases") for each in (one, two)]
        return [sorted(alias["address"] for alias in page) for page in pages]

    taken = {"address": "taken@postroom.localhost"}
    await server.api.post(f"/v1/inboxes/{one}/aliases", json=taken)
    with pytest.raises(BadRequest) as refused:
        await write(create_all, wanted, config, now)
    first, *each, last = str(refused.value).splitlines()
    assert "Nothing was imported" in first
    assert [line.partition(": ")[0] for line in each] == [
        "taken@postroom.localhost of two@postroom.localhost",
        "mail@elsewhere.example of two@postroom.localhost",
    ]
    assert "--no-aliases" in last
    assert await aliases() == [["taken@postroom.localhost"], []], "none was created"

    await server.api.delete(f"/v1/inboxes/{one}/aliases/taken@postroom.localhost")
    wanted["two@postroom.localhost"].remove("mail@elsewhere.example")
    assert [await write(create_all, wanted, config, now) for _ in range(2)] == [4, 0]
    assert await aliases() == [sorted(each) for each in wanted.values()]
    entries = await listed(server, "/v1/audit?action=inbox.alias_added")
    assert len(entries) == 5, "an import is in the audit log too"

    many = {"one@postroom.localhost": [f"a{number}@elsewhere.example" for number in range(12)]}
    with pytest.raises(BadRequest, match="And 2 more"):
        await write(create_all, many, config, now)


def numbered(number: int, answers: int | None = None) -> bytes:
    head = f"From: ann@example.com\nMessage-ID: <{number}@x>\nSubject: mail {number}\n"
    named = "" if answers is None else f"In-Reply-To: <{answers}@x>\n"
    return f"{head}{named}\nhello {number}\n".encode()


@pytest.mark.sqlite_alone
async def test_answers_find_their_thread_inside_a_batch_and_doubles_are_one(
    server: Server, tmp_path: Path
) -> None:
    inbox = await server.resources.db.read(inboxes.find, await server.new_inbox("one"))
    assert inbox is not None
    mails = [numbered(1), numbered(2), numbered(3, 1), numbered(4, 3), numbered(1)]
    path = tmp_path / "mbox"
    begin = server.clock.now() - DAY
    path.write_bytes(b"".join(mbox.to_mbox(raw, "a@x.y", begin + at * 1000) for at, raw in enumerate(mails)))
    extractor = ExtractionPool()
    assert await bring_in(server, extractor, inbox, mbox.list_mbox(path, server.clock.now())) == 4
    await extractor.close()
    found = await listed(server, f"/v1/inboxes/{inbox.id}/threads")
    assert sorted(thread["messageCount"] for thread in found) == [1, 3]
    assert all(thread["isRead"] for thread in found)


@pytest.mark.sqlite_alone
async def test_what_an_inbox_has_is_not_read_again_and_an_import_that_broke_goes_on(
    server: Server, tmp_path: Path
) -> None:
    inbox = await server.resources.db.read(inboxes.find, await server.new_inbox("one"))
    assert inbox is not None
    path, at = tmp_path / "mbox", server.clock.now() - DAY
    path.write_bytes(b"".join(mbox.to_mbox(numbered(number), "a@x.y", at) for number in range(6)))
    filed = mbox.list_mbox(path, server.clock.now())
    extractor = ExtractionPool()
    assert await bring_in(server, extractor, inbox, filed[:4]) == 4
    read: list[int] = []
    known = partial(find_known, server, inbox)
    async for batch in sources.from_files(filed, known, lambda by: None):
        read.append(len(batch))
    assert read == [2]
    assert await bring_in(server, extractor, inbox, filed) == 2
    assert [batch async for batch in sources.from_files(filed, known, lambda by: None)] == []
    await extractor.close()
    assert len(await listed(server, f"/v1/inboxes/{inbox.id}/messages")) == 6


@pytest.mark.sqlite_alone
async def test_a_folder_that_is_no_export_is_refused_in_a_sentence(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(BadRequest, match="not an export of an account"):
        exported.list_inboxes(tmp_path)
    for wrong in ({"address": "one@x", "aliases": 3}, "one@x", {}):
        (tmp_path / "account.json").write_text(json.dumps({"inboxes": [wrong]}))
        with pytest.raises(BadRequest, match="not an export of an account"):
            exported.list_inboxes(tmp_path)
    for address in ("../up", ".."):
        (tmp_path / "account.json").write_text(json.dumps({"inboxes": [{"address": address}]}))
        with pytest.raises(BadRequest, match="is not an address"):
            exported.list_inboxes(tmp_path)
    (tmp_path / "one@x").mkdir()
    (tmp_path / "one@x" / "mail.mbox").write_bytes(mbox.to_mbox(numbered(1), "a@x.y", clock.now()))
    (tmp_path / "one@x" / "messages.jsonl").write_bytes(b"")
    with pytest.raises(BadRequest, match="not a complete export: 1 emails"):
        exported.list_mails(tmp_path, "one@x", clock.now())
    for line in (b"{", b"5", b"{}", b'{"blocked": false, "labels": 5}', b"\xff"):
        (tmp_path / "one@x" / "messages.jsonl").write_bytes(line)
        with pytest.raises(BadRequest, match=r"not a complete export: messages\.jsonl"):
            exported.list_mails(tmp_path, "one@x", clock.now())
    with pytest.raises(BadRequest, match="not a complete export"):
        exported.list_mails(tmp_path, "two@x", clock.now())


def test_batches_are_bounded_in_mails_and_bytes() -> None:
    assert sources.in_batches([]) == []
    assert [each.stop - each.start for each in sources.in_batches([1] * 450)] == [200, 200, 50]
    large = sources.BATCH_BYTES
    assert [each.stop - each.start for each in sources.in_batches([large, 1, large])] == [1, 1, 1]


@pytest.mark.parametrize("url", ["imap://", "http://a:b@host/", "imap://host/INBOX", "imap://a:b@host:x/"])
def test_a_mailbox_is_named_by_its_url(url: str) -> None:
    with pytest.raises(BadRequest):
        sources.parse_url(url)
    found = sources.parse_url("imap://me%40x.y:p%2F@host:143/Old%20mail")
    assert found == sources.MailboxAt("host", 143, "me@x.y", "p/", "Old mail")


@pytest.mark.needs("dovecot")
@pytest.mark.sqlite_alone
async def test_a_mailbox_elsewhere_is_brought_in_once(server: Server) -> None:
    inbox = await server.resources.db.read(inboxes.find, await server.new_inbox("one"))
    assert inbox is not None
    extractor, skipped = ExtractionPool(), list[int]()
    async with running_dovecot() as dovecot:
        await dovecot.put("me", *(numbered(each).replace(b"\n", b"\r\n") for each in range(5)))
        wanted = sources.parse_url(f"imap://me:{PASSWORD}@127.0.0.1:{dovecot.port}/INBOX")
        for expected in (5, 0):
            client = await sources.open_mailbox(server.resources, wanted)
            listed_mails = await sources.list_mailbox(client)
            batches = sources.from_mailbox(
                client, listed_mails, partial(find_known, server, inbox), skipped.append, server.clock.now()
            )
            count = await import_all(
                server.resources, pools.READING, extractor, inbox, batches, lambda by: None
            )
            await client.log_out()
            assert (count, len(listed_mails)) == (expected, 5)
        assert skipped == [0, 5]  # the second time, no mail was fetched
    await extractor.close()
    assert len(await listed(server, f"/v1/inboxes/{inbox.id}/messages")) == 5


async def listed(server: Server, path: str) -> list[dict[str, Any]]:
    page = (await server.api.get(path)).json()
    assert page["total"] == len(page["data"]), page
    found: list[dict[str, Any]] = page["data"]
    return found


def what_a_process_has() -> tuple[bool, int]:
    return "postroom.transfer.reading_processes" in sys.modules, gc.get_freeze_count()


async def read_in_processes() -> None:
    old = sources.OldMail(question(), 1_800_000_000_000, "ann@example.com")
    readers = ProcessPool("postroom.transfer.reading_processes")
    try:
        assert await readers.run(read_all, "inb_1", [old]) == read_all("inb_1", [old])
        print(*await readers.run(what_a_process_has))
    finally:
        readers.close()


@pytest.mark.share(2)
async def test_processes_that_read_begin_with_all_that_reading_needs() -> None:
    """In a program of its own: a process has one fork server, and the tests have used theirs."""
    work = f"import asyncio, {__name__} as it; asyncio.run(it.read_in_processes())"
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", work, cwd=ROOT, stdout=PIPE)
    is_loaded, frozen = (await program.communicate())[0].split()
    assert is_loaded == b"True"
    assert int(frozen) > 0


class CountingExtractor:
    """How many files were given to it at once, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return Extraction("text", filename)


async def test_a_file_of_an_import_waits_for_its_turn_before_its_time_runs() -> None:
    counting = CountingExtractor()
    patient = PatientExtractor(counting)
    read = await asyncio.gather(*(patient.extract("text/plain", str(n), b"x", 10) for n in range(9)))
    assert [each.text for each in read] == list(map(str, range(9)))
    assert counting.most == FILES_AT_ONCE


async def test_two_emails_without_an_id_of_one_second_and_one_size_are_both_imported(
    server: Server, tmp_path: Path
) -> None:
    inbox_id = await server.new_inbox("one")
    (tmp_path / "cur").mkdir()
    head = b"From: ann@example.com\r\nDate: Mon, 2 Nov 2026 10:00:00 +0100\r\n\r\n"
    for name in ("first", "other", "again"):
        text = "other" if name == "again" else name
        (tmp_path / "cur" / name).write_bytes(head + text.encode())
    inbox = await server.resources.db.read(inboxes.find_by_address, "one@postroom.localhost")
    assert inbox is not None
    extractor = ExtractionPool()
    try:
        for _ in range(2):
            await bring_in(server, extractor, inbox, mbox.list_maildir(tmp_path, server.clock.now()))
    finally:
        await extractor.close()
    found = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert sorted(each["bodyText"] for each in found) == ["first", "other"]
