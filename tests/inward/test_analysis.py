"""No reader of meaning costs an email: what it raises is caught, marked, counted and logged."""

import inspect
import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from postroom.assembly import serving
from postroom.inward import deposit, examine, receive, received_document, screening
from postroom.inward.journal import positions
from postroom.inward.journal.entries import encode
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.mailbox import attachments
from postroom.mailbox.attachments import Attachment
from postroom.resources import Tx
from postroom.storage import segments
from postroom.storage.segments import SegmentWriter
from postroom_mail import kind_signs
from postroom_mail.mime import parse
from postroom_mail.reading import reply
from postroom_mail.search import index_entry
from tests.conftest import Server, api_client, running_server, settings, signing_key
from tests.doubles import FakeClock
from tests.inward.random_emails import arrival, emails, every_reader
from tests.mail.soundness import SAMPLES, assert_is_sound
from tests.raw_mails import html_mail, raw_mail, raw_mail_with_files
from tests.waiting import until

RANDOM_EMAILS = int(os.environ.get("POSTROOM_TEST_RANDOM_EMAILS", "300"))
SHAPES = {
    "a rule of stars": "***\n> quoted",
    "a star": "*\n> quoted",
    "bold nothing": "** **\n> quoted",
    "a bidi mark": "\u200e\n> quoted",
    "a blank line between": "***\n\n> quoted",
    "lone controls": "\x0b\x1c\n> quoted",
}


def raises(*_: object, **__: object) -> Any:
    raise RuntimeError("this reader is broken")


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, DATABASE_URL=database_url), clock) as running:
        yield running


async def one_message(server: Server, inbox_id: str) -> dict[str, Any]:
    """The only message of an inbox, once its event was told: it is the event's own."""
    found: list[dict[str, Any]] = []

    async def has_come() -> bool:
        found[:] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
        return bool(found)

    await eventually(has_come)
    (message,) = found
    return message


async def eventually(holds: Callable[[], Any], seconds: float = 60) -> None:
    await until(lambda: holds())


async def failures(server: Server, reader: str) -> float:
    lines = (await server.api.get("/metrics")).text.splitlines()
    wanted = f'postroom_analysis_failures_total{{reader="{reader}"}}'
    return next((float(line.split()[-1]) for line in lines if line.startswith(wanted)), 0.0)


def parts_of_the_readers() -> list[tuple[ModuleType, str]]:
    """Every function of `postroom_mail` that `receive` calls, wherever it is looked up."""
    found = []
    for name, value in vars(receive).items():
        if inspect.isfunction(value) and value.__module__.startswith(("postroom_mail.", "postroom.inward.")):
            if value.__module__ != receive.__name__ and value.__module__ != parse.__name__:
                found.append((receive, name))
        elif inspect.ismodule(value) and value.__name__.startswith(("postroom_mail.", "postroom.inward.")):
            found += [
                (value, each)
                for each, function in vars(value).items()
                if inspect.isfunction(function) and function.__module__ == value.__name__
            ]
    return found


@pytest.mark.parametrize("part", parts_of_the_readers(), ids=lambda part: f"{part[0].__name__}.{part[1]}")
def test_an_email_is_read_whichever_reader_raises(
    part: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is added later: the list is made from what `receive` imports."""
    raw = html_mail("<p>Your code is 123456</p><br>> quoted", subject="Re: code", date="whenever")
    monkeypatch.setattr(*part, raises)
    read = read_mail(arrival(raw))
    assert "123456" in (read.mail.body_html or read.mail.body_text)


@pytest.mark.parametrize("part", [(kind_signs, "to_passage"), (parse, "_parsed")], ids=lambda part: part[1])
def test_a_letter_of_the_server_is_recognized_although_a_reader_raises(
    part: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an agent could get at a notice to a reviewer, by a held email that no reader can read."""
    monkeypatch.setattr(*part, raises)
    read = read_mail(arrival(f"X-Postroom-Letter: {'a' * 48}\r\n".encode() + raw_mail("To approve")))
    assert [each.own_marks for each in (read, *receive.simpler(read))] == [("a" * 48,)] * 3


@pytest.mark.parametrize("part", ["_parsed", "_assembled", "_read_content"])
def test_bytes_that_the_parser_fails_on_are_read_as_text(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, part, raises)
    mail = parse.parse_mail(raw_mail("All of it.\0\x80", subject="lost").replace(b"\\", b"\r"))
    assert mail.body_text.startswith("All of it.")
    assert "could not be read" in mail.parse_error
    monkeypatch.undo()
    assert_is_sound(parse.unread(b"\xff\0\r\n\r\n\xfe\0\rb", "x"))


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_quotes_below_symbols_are_read(text: str, end: str) -> None:
    raw = f"Subject: x{end}Content-Type: text/plain; charset=utf-8{end}{end}New.\n{text}".replace("\n", end)
    assert read_mail(arrival(raw.encode())).failed == ()
    html = text.replace("\n", "<br>").replace(">", "&gt;").replace("<br&gt;", "<br>")
    assert read_mail(arrival(html_mail(f"New.<br>{html}"))).failed == ()
    assert reply.reply_text(f"New.\n{text}").startswith("New.")


def test_no_reader_fails_on_random_emails() -> None:
    """POSTROOM_TEST_RANDOM_EMAILS sets how many are tried."""
    seed = int(os.environ.get("POSTROOM_TEST_SEED", "20261118"))
    samples = [path.read_bytes() for path in sorted(SAMPLES.rglob("*.eml"))[:100]]
    for number, raw in enumerate([*samples, *emails(random.Random(seed), RANDOM_EMAILS)]):
        read = read_mail(arrival(raw))
        assert read.failed == (), (seed, number, raw)
        for name, reader in every_reader(raw):
            try:
                reader()
            except Exception as error:
                raise AssertionError(f"{name} failed on email {number} of seed {seed}: {raw!r}") from error


@pytest.mark.sqlite_alone
async def test_an_email_with_stars_above_a_quote_reaches_its_inbox(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(raw_mail("Yes.\r\n***\r\n> quoted\r\n"), "hello")
    message = await one_message(server, inbox_id)
    assert message["bodyText"].rstrip() == "Yes.\n***\n> quoted"
    assert "analysis" not in message
    event = await server.next_event()
    assert (event["event"], event["message"]["id"]) == ("message.received", message["id"])


@pytest.mark.sqlite_alone
async def test_an_email_whose_reader_raises_is_delivered_marked_and_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox_id, before = await server.new_inbox("hello"), await failures(server, "reply")
    monkeypatch.setattr(reply, "reply_text", raises)
    await server.deliver(raw_mail("Your code is 123456", subject="Code"), "hello")
    message = await one_message(server, inbox_id)
    assert (message["analysis"], message["codes"]) == ("failed", ["123456"])
    assert message["replyText"] == message["bodyText"]
    event = await server.next_event()
    assert event["message"]["analysis"] == "failed"
    assert await failures(server, "reply") == before + 1
    assert (await server.api.get("/ready")).status_code == 200


@pytest.mark.sqlite_alone
async def test_an_email_between_inboxes_arrives_although_a_reader_raises(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, inbox_id = await server.new_inbox("sender"), await server.new_inbox("hello")
    monkeypatch.setattr(kind_signs, "body_signs", raises)
    body = {"to": "hello@postroom.localhost", "subject": "Inside", "body": "***\n> quoted"}
    sent = (
        await server.api.post(f"/v1/inboxes/{sender}/send", json=body, headers={"Idempotency-Key": "1"})
    ).json()
    message = await one_message(server, inbox_id)
    assert (message["subject"], message["analysis"]) == ("Inside", "failed")

    async def is_sent() -> bool:
        shown = (await server.api.get(f"/v1/messages/{sent['messageId']}")).json()
        return bool(shown["status"] == "sent")

    await eventually(is_sent)


@pytest.mark.sqlite_alone
async def test_an_email_that_cannot_be_stored_as_it_was_read_is_stored_with_less_of_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a reader finds text that a database refuses."""
    inbox_id, to_document = await server.new_inbox("hello"), received_document.to_document

    def refuse(inbox: Any, accepted: AcceptedMail, place: Any, came_to: str) -> Any:
        if accepted.read.codes or accepted.read.mail.subject == "worse":
            raise ValueError("no row for this")
        return to_document(inbox, accepted, place, came_to)

    monkeypatch.setattr(deposit, "to_document", refuse)
    await server.deliver(raw_mail("Your code is 123456", subject="bad"), "hello")
    await server.deliver(raw_mail("Hello", subject="worse"), "hello")

    async def have_come() -> bool:
        return len((await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]) == 2

    await eventually(have_come)
    found = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert {(each["subject"], each["analysis"], each["verdict"]) for each in found} >= {
        ("", "failed", "suspicious"),
    }
    assert {each["bodyText"].strip() for each in found} == {"Your code is 123456", "Hello"}
    assert positions.count_aside(server.resources.config.data_dir) == 0


@pytest.mark.sqlite_alone
@pytest.mark.parametrize(
    "broken", [(screening, "of_mail"), (examine, "needs_sender_checks"), (examine, "read_page")]
)
async def test_an_examination_whose_reader_raises_still_tells_the_event(
    server: Server, monkeypatch: pytest.MonkeyPatch, broken: tuple[ModuleType, str]
) -> None:
    await server.new_inbox("hello")
    monkeypatch.setattr(*broken, raises)
    await server.deliver(raw_mail_with_files(("a.txt", "text/plain", b"the text of the file")), "hello")
    message = (await server.next_event())["message"]
    assert message["analysis"] == "failed"
    assert message["attachments"][0]["parsedText"] == "the text of the file"


@pytest.mark.sqlite_alone
async def test_an_examination_that_cannot_be_stored_still_tells_the_event(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.new_inbox("hello")
    set_text = attachments.set_text

    def refuse(tx: Tx, message_id: str, file: Attachment) -> None:
        if file.parsed_text:
            raise ValueError("no row for this")
        set_text(tx, message_id, file)

    monkeypatch.setattr(attachments, "set_text", refuse)
    await server.deliver(raw_mail_with_files(("a.txt", "text/plain", b"the text of the file")), "hello")
    message = (await server.next_event())["message"]
    assert (message["analysis"], message["attachments"][0]["extractionMethod"]) == ("failed", "failed")


@pytest.mark.sqlite_alone
async def test_a_message_whose_words_cannot_be_indexed_keeps_no_other_from_the_index(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.new_inbox("hello")
    of_mail = index_entry.of_mail

    def refuse(mail: index_entry.Searchable, realm: str, scopes: Any) -> index_entry.IndexEntry:
        return raises() if mail.subject == "bad" else of_mail(mail, realm, scopes)

    monkeypatch.setattr(index_entry, "of_mail", refuse)
    for subject in ("bad", "good"):
        await server.deliver(raw_mail("pelican", subject=subject), "hello")

    async def is_found() -> bool:
        found = await server.api.get("/v1/search", params={"q": "pelican"})
        return [each["message"]["subject"] for each in found.json()["data"]] == ["good"]

    await eventually(is_found)


def of_inbox(inbox_id: str, subject: str) -> Arrival:
    raw = raw_mail("Yes.\r\n***\r\n> quoted\r\n", subject=subject)
    return Arrival(
        Origin((Destination(inbox_id),), b"Received: x\r\n", "192.0.2.1", "helo", "a@b.example"), raw
    )


@pytest.mark.sqlite_alone
async def test_emails_that_were_set_aside_are_delivered_once_by_the_next_start(
    tmp_path: Path, clock: FakeClock
) -> None:
    """One of them is still in its journal: the server was killed while it set it aside."""
    config = settings(tmp_path, JOURNAL="on")
    async with running_server(config, clock) as first:
        inbox_id, token = await first.new_inbox("hello"), first.token
    lost, half = of_inbox(inbox_id, "lost"), of_inbox(inbox_id, "half set aside")
    folder = config.data_dir / positions.FOLDER
    for number, each in enumerate((lost, half), 1):
        put(folder / positions.ASIDE, number, each)
    put(folder / "9-dead", 1, half)
    damaged = folder / positions.ASIDE / segments.NAME.format(3)
    damaged.write_bytes(b"\0" * 100)
    for _ in range(2):
        async with (
            serving(config, clock, None, signing_key) as again,
            api_client(again.resources.config.base_url, token) as api,
        ):
            await until(lambda: not positions.others(config.data_dir, [*folder.glob("0-*")]))
            found = (await api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
            assert sorted(each["subject"] for each in found) == ["half set aside", "lost"]
            assert all("analysis" not in each for each in found)
    assert damaged.read_bytes() == b"\0" * 100
    assert positions.count_aside(config.data_dir) == 1


def put(folder: Path, number: int, email: Arrival) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writer = SegmentWriter(folder, number)
    writer.append([encode(email)])
    writer.close()
