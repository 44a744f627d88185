"""A mail program at work: what it does is seen over REST, and the other way round."""

import asyncio
import imaplib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.raw_mails import raw_mail


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


async def three_mails(server: Server) -> str:
    inbox_id = await server.new_inbox("agent")
    for number in range(3):
        await server.deliver(raw_mail(f"Text {number}", subject=f"Subject {number}"), "agent")
    return inbox_id


async def threads_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
    return found


@pytest.mark.sqlite_alone
async def test_a_program_reads_an_inbox(server: Server) -> None:
    inbox_id = await three_mails(server)
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    raw = (await server.api.get(f"/v1/messages/{listed[-1]['id']}/raw")).content

    def look() -> None:
        client = log_in(server, "agent")
        names = b" ".join(ok(client.list()))
        for name in (b'"INBOX"', b"\\Sent", b"\\Drafts", b"\\Junk", b"\\Trash"):
            assert name in names
        assert ok(client.select("INBOX")) == [b"3"]
        flags, dates = ok(client.fetch("1:*", "(UID FLAGS INTERNALDATE RFC822.SIZE)"))[0:2]
        assert b"UID 1 FLAGS (\\Recent)" in flags
        assert b"UID 2" in dates
        parts = ok(client.uid("FETCH", "1", "(BODY.PEEK[] BODYSTRUCTURE ENVELOPE)"))
        assert parts[0][1] == raw
        assert b'"Subject 0"' in parts[0][0]
        head = ok(client.fetch("2", "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])"))
        assert head[0][1] == b"Subject: Subject 1\r\n\r\n"
        piece = ok(client.fetch("1", "(BODY.PEEK[]<10.20>)"))
        assert piece[0][1] == raw[10:30]
        assert ok(client.search(None, "SUBJECT", '"subject 2"')) == [b"3"]
        assert ok(client.search(None, "OR", "BODY", '"Text 0"', "UID", "2")) == [b"1 2"]
        assert ok(client.search(None, "UID", "3000000000:4294967295")) == [b""]
        assert ok(client.search(None, "UID", "4294967295:*")) == [b"3"]
        assert ok(client.search(None, "UNSEEN", "LARGER", "10", "SINCE", "1-Jan-2001")) == [b"1 2 3"]
        assert ok(client.search(None, "HEADER", "Subject", '"2"')) == [b"3"]
        assert b"MESSAGES 3" in ok(client.status("INBOX", "(MESSAGES UIDNEXT UNSEEN UIDVALIDITY)"))[0]
        client.logout()

    await aside(look)


@pytest.mark.sqlite_alone
async def test_what_is_read_here_is_read_there(server: Server) -> None:
    inbox_id = await three_mails(server)

    def read_the_first() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        assert b"\\Seen" in ok(client.fetch("1", "(BODY[TEXT])"))[0][0]
        client.logout()

    await aside(read_the_first)
    threads = {thread["subject"]: thread for thread in await threads_of(server, inbox_id)}
    assert [threads[f"Subject {number}"]["isRead"] for number in range(3)] == [True, False, False]
    for number, is_read in ((0, False), (1, True)):
        path = f"/v1/threads/{threads[f'Subject {number}']['id']}"
        await server.api.patch(path, json={"is_read": is_read, "addLabels": ["Bill/2026"]})

    def look() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        assert ok(client.search(None, "SEEN")) == [b"2"]
        assert b'"Bill%252F2026"' not in b" ".join(ok(client.list()))
        assert ok(client.select('"Bill%2F2026"')) == [b"2"]
        client.logout()

    await aside(look)


async def test_labels_are_folders(server: Server) -> None:
    inbox_id = await three_mails(server)

    def file_two() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        assert client.copy("1", "Bills")[0] == "NO"
        ok(client.create("Bills"))
        assert client.create("bills")[0] == "NO"
        ok(client.copy("1", "Bills"))
        assert client._simple_command("UID", "MOVE", "2", "Bills")[0] == "OK"
        assert ok(client.search(None, "ALL")) == [b"1 2"]
        assert ok(client.select("Bills")) == [b"2"]
        ok(client.store("1", "+FLAGS", "\\Deleted"))
        ok(client.expunge())
        assert ok(client.search(None, "ALL")) == [b"1"]
        assert ok(client.rename("Bills", "Paid")) is not None
        assert ok(client.select("Paid")) == [b"1"]
        client.logout()

    await aside(file_two)
    labelled = {thread["subject"]: thread["labels"] for thread in await threads_of(server, inbox_id)}
    assert labelled == {"Subject 0": [], "Subject 1": ["Paid"], "Subject 2": []}

    def delete_the_label() -> None:
        client = log_in(server, "agent")
        ok(client.delete("Paid"))
        assert client.select("Paid")[0] == "NO"
        client.logout()

    await aside(delete_the_label)
    assert all(thread["labels"] == [] for thread in await threads_of(server, inbox_id))


@pytest.mark.sqlite_alone
async def test_what_is_deleted_goes_to_trash_and_from_there_for_good(server: Server) -> None:
    inbox_id = await three_mails(server)
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "program"})).json()[
        "token"
    ]

    def delete_two() -> None:
        client = log_in(server, "agent", key)
        client.select("INBOX")
        ok(client.store("1,3", "+FLAGS.SILENT", "(\\Deleted)"))
        assert sorted(ok(client.expunge())) == [b"1", b"3"]
        assert ok(client.select("Trash")) == [b"2"]
        assert client._simple_command("UID", "MOVE", "1:*", "INBOX")[0] == "OK"
        client.select("INBOX")
        assert ok(client.search(None, "ALL")) == [b"1 2 3"]
        ok(client.store("1", "+FLAGS", "(\\Deleted)"))
        client.close()
        client.select("Trash")
        ok(client.store("1", "+FLAGS", "(\\Deleted)"))
        word, data = client.expunge()
        assert word == "NO"
        assert b"[NOPERM]" in data[0]
        client.logout()

    def empty_the_trash() -> None:
        client = log_in(server, "agent")
        client.select("Trash")
        ok(client.expunge())
        assert ok(client.select("Trash")) == [b"0"]
        client.logout()

    path = f"/v1/inboxes/{inbox_id}/messages"
    before = {mail["id"] for mail in (await server.api.get(path)).json()["data"]}
    await aside(delete_two)
    listed = (await server.api.get(path)).json()
    (trashed,) = before - {mail["id"] for mail in listed["data"]}
    assert listed["total"] == 2
    assert (await server.api.get(path, params={"include": "trash"})).json()["total"] == 3
    assert (await server.api.get(f"/v1/messages/{trashed}")).json()["subject"] == "Subject 1"
    assert len(await threads_of(server, inbox_id)) == 2
    await aside(empty_the_trash)
    assert (await server.api.get(path, params={"include": "trash"})).json()["total"] == 2
    assert (await server.api.get(f"/v1/messages/{trashed}")).status_code == 404


@pytest.mark.sqlite_alone
async def test_a_copy_to_trash_is_a_move_there_and_one_out_of_it_a_move_back(server: Server) -> None:
    await three_mails(server)

    def copy() -> None:
        client = log_in(server, "agent")
        client.select("INBOX", readonly=True)
        word, data = client.copy("1", "Trash")
        assert (word, data[0][:11]) == ("NO", b"[READ-ONLY]")
        client.select("INBOX")
        answer = ok(client._simple_command("UID", "COPY", "1:2", "Trash"))
        assert b"COPYUID" in answer[0]
        assert ok(client.uid("STORE", "1:2", "+FLAGS", "(\\Deleted)")) == [None], "they are gone already"
        ok(client.expunge())
        assert ok(client.search(None, "ALL")) == [b"1"]
        assert ok(client.select("Trash")) == [b"2"]
        ok(client.copy("1", "INBOX"))
        ok(client.noop())
        assert ok(client.search(None, "ALL")) == [b"1"]
        assert client.copy("1", "Trash")[0] == "NO"
        assert ok(client.select("INBOX")) == [b"2"]
        client.logout()

    await aside(copy)


@pytest.mark.sqlite_alone
async def test_a_program_that_moves_to_trash_by_numbers_moves_those_alone(server: Server) -> None:
    """COPY, STORE and COPY of the next one: numbers stay until EXPUNGE, or it deletes others."""
    await three_mails(server)

    def move_two() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        (kept,) = ok(client.fetch("2", "(UID)"))
        for number in ("1", "3"):
            ok(client.copy(number, "Trash"))
            ok(client.store(number, "+FLAGS", "(\\Deleted)"))
        ok(client.expunge())
        assert ok(client.search(None, "ALL")) == [b"1"]
        (left,) = ok(client.fetch("1", "(UID)"))
        assert left.split()[-1] == kept.split()[-1]
        assert ok(client.select("Trash")) == [b"2"]
        client.logout()

    await aside(move_two)


async def test_a_program_may_put_mail_where_it_wants(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    sent = raw_mail("Mine", subject="Filed", **{"from": "agent@postroom.localhost"})

    def file() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        assert client.append("Old", None, None, raw_mail("x"))[0] == "NO"
        client.create("Old")
        date = '"01-Feb-2020 10:00:00 +0000"'
        answer = ok(
            client.append("Old", "(\\Seen \\Flagged $Work)", date, raw_mail("Old one", subject="Old"))
        )
        assert b"APPENDUID" in answer[0]
        ok(client.append("INBOX", None, None, raw_mail("New one", subject="New")))
        ok(client.append("Sent", "(\\Seen)", None, sent))
        assert ok(client.select("Old")) == [b"1"]
        told = ok(client.fetch("1", "(FLAGS INTERNALDATE)"))[0]
        assert b"$Work" in told
        assert b"\\Flagged" in told
        assert b"01-Feb-2020 10:00:00 +0000" in told
        assert ok(client.select("INBOX")) == [b"1"]
        assert ok(client.search(None, "UNSEEN")) == [b"1"]
        assert ok(client.select("Sent")) == [b"1"]
        client.logout()

    await aside(file)
    found = {thread["subject"]: thread for thread in await threads_of(server, inbox_id)}
    assert found["Old"]["isRead"]
    assert found["Old"]["labels"] == ["Old"]
    assert not found["New"]["isRead"]
    await server.deliver(raw_mail("Received", subject="Received"), "agent")
    event = await server.next_event()
    assert event["message"]["subject"] == "Received", "no event tells of what was put there"


@pytest.mark.sqlite_alone
async def test_a_large_mail_is_filed_as_it_is_and_half_a_one_leaves_nothing(
    server: Server, tmp_path: Path
) -> None:
    inbox_id = await server.new_inbox("agent")
    text = b"".join(b"%058d\r\n" % number for number in range(20_000))
    raw = raw_mail("", subject="Large").rstrip(b"\r\n") + b"\r\n\r\n" + text

    def give_up() -> None:
        client = log_in(server, "agent")
        client.send(b"a APPEND INBOX {%d+}\r\n%s" % (len(raw), raw[: len(raw) // 2]))
        client.sock.close()

    def file() -> None:
        client = log_in(server, "agent")
        ok(client.append("INBOX", None, None, raw))
        assert ok(client.select("INBOX")) == [b"1"]
        assert ok(client.fetch("1", "(BODY.PEEK[])"))[0][1] == raw
        client.logout()

    await aside(give_up)
    await aside(file)
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 1
    (spool,) = tmp_path.rglob("spool")
    assert list(spool.iterdir()) == []


@pytest.mark.sqlite_alone
async def test_who_waits_hears_of_a_mail_and_of_a_flag(server: Server) -> None:
    inbox_id = await three_mails(server)
    assert server.imap_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.imap_port)

    async def until(words: bytes) -> bytes:
        async with asyncio.timeout(120):
            while words not in (line := await reader.readline()):
                assert line, "the server hung up"
            return line

    writer.write(b"a LOGIN agent@postroom.localhost %s\r\nb SELECT INBOX\r\n" % server.token.encode())
    await until(b"b OK")
    writer.write(b"c IDLE\r\n")
    await until(b"+ idling")
    await server.deliver(raw_mail("Another", subject="Another"), "agent")
    assert await until(b"EXISTS") == b"* 4 EXISTS\r\n"
    thread = (await threads_of(server, inbox_id))[-1]
    await server.api.patch(f"/v1/threads/{thread['id']}", json={"is_read": True})
    assert await until(b"FETCH") == b"* 1 FETCH (FLAGS (\\Recent \\Seen))\r\n"
    writer.write(b"DONE\r\nd LOGOUT\r\n")
    await until(b"c OK")
    await until(b"d OK")
    writer.close()


@pytest.mark.sqlite_alone
async def test_nothing_of_an_inbox_reaches_a_program_of_another(server: Server) -> None:
    programs = {}
    async with asyncio.timeout(120):
        for name in ("one", "two"):
            await server.new_inbox(name)
            reader, writer = programs[name] = await asyncio.open_connection("127.0.0.1", server.imap_port)
            words = (name.encode(), server.token.encode())
            writer.write(b"a LOGIN %s@postroom.localhost %s\r\nb SELECT INBOX\r\nc IDLE\r\n" % words)
            await reader.readuntil(b"+ idling\r\n")
        await server.deliver(raw_mail("For two", subject="For two"), "two")
        await programs["two"][0].readuntil(b"* 1 EXISTS\r\n")
        heard = {}
        for name, (reader, writer) in programs.items():
            writer.write(b"DONE\r\nd UID FETCH 1:* ENVELOPE\r\ne STATUS INBOX (MESSAGES)\r\nf LOGOUT\r\n")
            heard[name] = await reader.read()
            writer.close()
    assert b"For two" in heard["two"]
    assert heard["one"].splitlines()[:3] == [
        b"c OK Done.",
        b"d OK Done.",
        b'* STATUS "INBOX" (MESSAGES 0)',
    ]


@pytest.mark.sqlite_alone
async def test_wrong_names_and_keys_are_refused_alike_and_a_revoked_key_ends_its_session(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("agent")
    made = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "program"})).json()
    await server.new_inbox("other")

    def try_to_log_in() -> None:
        for name, token in (("agent", "pr_wrong"), ("nobody", server.token), ("other", made["token"])):
            with pytest.raises(imaplib.IMAP4.error, match="AUTHENTICATIONFAILED"):
                log_in(server, name, token)

    await aside(try_to_log_in)
    client = await aside(lambda: log_in(server, "agent", made["token"]))
    await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{made['id']}")

    def until_the_end() -> None:
        client.sock.settimeout(120)
        assert client.readline().startswith(b"* BYE")
        client.shutdown()

    await aside(until_the_end)


@pytest.mark.sqlite_alone
async def test_tls_may_be_started(server: Server) -> None:
    await three_mails(server)

    def look() -> None:
        assert server.imap_port is not None
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = imaplib.IMAP4("127.0.0.1", server.imap_port, timeout=120)
        client.starttls(context)
        client.login("agent@postroom.localhost", server.token)
        assert ok(client.select("INBOX")) == [b"3"]
        client.logout()

    await aside(look)


@pytest.mark.sqlite_alone
async def test_a_large_mail_comes_in_pieces_as_it_was_stored(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    text = b"\r\n".join(b"%060d" % number for number in range(20_000))
    raw = (
        b"From: a@x.example\r\nTo: agent@postroom.localhost\r\nSubject: Large\r\nMessage-ID: <l@x>\r\n"
        b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHello\r\n"
        b"--b\r\nContent-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment\r\n\r\n"
        + text
        + b"\r\n--b--\r\n"
    )
    await server.deliver(raw, "agent")
    message = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"][0]
    stored = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
    assert len(stored) > 256 * 1024

    def fetch() -> None:
        client = log_in(server, "agent")
        client.select("INBOX")
        assert ok(client.fetch("1", "(BODY.PEEK[])"))[0][1] == stored
        assert ok(client.fetch("1", "(BODY.PEEK[1])"))[0][1] == b"Hello"
        assert ok(client.fetch("1", "(BODY.PEEK[2])"))[0][1] == text
        assert ok(client.fetch("1", "(BODY.PEEK[2]<1000000.100>)"))[0][1] == text[1_000_000:1_000_100]
        assert b'"CSV"' in ok(client.fetch("1", "(BODYSTRUCTURE)"))[0]
        client.logout()

    await aside(fetch)
