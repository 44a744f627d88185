"""IMAP servers that lie, flood, stall or speak nonsense: nothing but a reason comes of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from postroom.external_mailboxes import follow_mailbox, imap_client
from postroom.external_mailboxes.imap_client import ImapClient, MailServerAddress, open_client, quoted
from postroom.external_mailboxes.imap_wire import ImapError, ImapWire
from postroom.net.certificate import trusted_authorities

HELLO = b"* OK ready\r\n"
FEATURES = b"* CAPABILITY IMAP4rev1 IDLE\r\na1 OK\r\n"


@contextlib.asynccontextmanager
async def server_that_says(
    *answers: bytes, endless: bytes = b"", features: bytes = FEATURES
) -> AsyncIterator[MailServerAddress]:
    """A greeting and features, then an answer to each line that comes; then the same again and again."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(HELLO)
            for answer in (features, *answers):
                if not await reader.readline():
                    break
                writer.write(answer)
            while endless and not writer.is_closing():
                writer.write(endless)
                await writer.drain()
            await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield MailServerAddress("127.0.0.1", ("127.0.0.1",), port, is_loopback=True)
    finally:
        server.close()


@contextlib.asynccontextmanager
async def client_of(
    *answers: bytes, endless: bytes = b"", features: bytes = FEATURES
) -> AsyncIterator[ImapClient]:
    async with server_that_says(*answers, endless=endless, features=features) as address:
        client = await open_client(address)
        try:
            yield client
        finally:
            client.close()


Ask = Callable[[ImapClient], Awaitable[object]]


@pytest.mark.parametrize(
    ("answer", "endless", "words"),
    [
        (b"* 1 FETCH (UID 1 BODY[] {999999999}\r\n", b"", "announced 999999999 bytes"),
        (b"* 1 FETCH (UID 1 BODY[] {99999999999999999999}\r\n", b"x", "too long"),
        (b"", b"x" * 1000, "too long"),
        (b"", b"* 1 FETCH (UID 1 BODY[] {1}\r\nx {1}\r\n", "too long|announced"),
        (b"HTTP/1.1 200 OK\r\n", b"", "does not speak IMAP"),
        (b"* BYE go away\r\n", b"", "ended the connection"),
        (b"a2 NO not now\r\n", b"", "not now"),
        (b"a2 BAD\r\n", b"", "BAD"),
    ],
)
async def test_what_a_server_says_is_bounded_and_told(answer: bytes, endless: bytes, words: str) -> None:
    async with client_of(answer, endless=endless) as client:
        with pytest.raises(ImapError, match=words):
            await client.run("UID FETCH 1 (UID BODY.PEEK[])", seconds=60, literal_bytes=1000)


async def test_half_an_answer_is_waited_for_so_long_and_no_longer() -> None:
    async with client_of(b"a2") as client:
        with pytest.raises(ImapError, match=r"closed|nothing"):
            await client.run("UID FETCH 1 (UID BODY.PEEK[])", seconds=0.1, literal_bytes=1000)


async def test_endless_responses_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap_client, "RESPONSES", 1_000)
    async with client_of(endless=b"* 1 EXISTS\r\n") as client:
        with pytest.raises(ImapError, match="does not end"):
            await client.run("NOOP")


async def test_a_server_that_asks_for_more_for_ever_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap_client, "RESPONSES", 1_000)
    async with client_of(endless=b"+ go on\r\n") as client:
        with pytest.raises(ImapError, match="does not end"):
            await client.run("NOOP")


async def test_a_server_that_never_confirms_a_mail_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap_client, "RESPONSES", 1_000)
    async with client_of(b"+ go on\r\n", endless=b"* 1 EXISTS\r\n") as client:
        with pytest.raises(ImapError, match="does not end"):
            await client.append("Sent", b"a mail")


async def test_a_server_that_stops_reading_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes what the network holds for it, and then nothing more."""
    monkeypatch.setattr(imap_client, "FETCH_SECONDS", 0.05)
    async with deaf_server() as address:
        client = await open_client(address)
        with pytest.raises(ImapError, match="did not accept"):
            await client.append("Sent", b"x" * 40_000_000)
        client.close()


@contextlib.asynccontextmanager
async def deaf_server() -> AsyncIterator[MailServerAddress]:
    """It asks for a mail, and does not read it."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO)
        for answer in (FEATURES, b"+ go on\r\n"):
            await reader.readline()
            writer.write(answer)
        await over.wait()
        writer.transport.abort()

    over = asyncio.Event()
    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1024)
    try:
        yield MailServerAddress("127.0.0.1", ("127.0.0.1",), server.sockets[0].getsockname()[1], True)
    finally:
        over.set()
        server.close()


async def test_literals_of_one_answer_are_bounded_together() -> None:
    piece = b"* 1 FETCH (UID 1 BODY[] {400}\r\n" + b"x" * 400 + b")\r\n"
    async with client_of(piece * 3) as client:
        with pytest.raises(ImapError, match="announced"):
            await client.run("UID FETCH 1 (UID BODY.PEEK[])", literal_bytes=1000)


async def test_silence_is_waited_for_no_longer_than_allowed() -> None:
    async with client_of() as client:
        with pytest.raises(ImapError, match="said nothing"):
            await client.run("NOOP", seconds=0.05)


async def test_mails_that_nobody_asked_for_are_not_taken() -> None:
    answers = (
        b"* OK [UIDVALIDITY 1]\r\n* OK [UIDNEXT 3000]\r\na2 OK\r\n",
        b"* 1 FETCH (UID 5 RFC822.SIZE 1)\r\n* 2 FETCH (UID 99999999999999)\r\n* SEARCH 1 2 3\r\n"
        b'* 3 FETCH (UID 8 RFC822.SIZE 2 INTERNALDATE "when?")\r\n'
        b"* 4 FETCH (UID 7 RFC822.SIZE 2)\r\n* 5 FETCH (UID 2900)\r\na3 OK\r\n",
        b"* 9 FETCH (UID 2900 RFC822.SIZE 1)\r\na4 OK\r\n",
        b"* 1 FETCH (UID 5 BODY[] {2}\r\nno)\r\n* 2 FETCH (UID 7 BODY[] {3}\r\nyes)\r\na5 OK\r\n",
        b"* 1 FETCH (UID 9 BODY[] {2}\r\nno)\r\na6 OK\r\n",
    )
    async with client_of(*answers) as client:
        await client.select("INBOX", is_changed=False)
        first, second = [part async for part in client.list_behind(6)]
        assert [(mail.uid, mail.size_bytes, mail.arrived_at) for mail in first] == [(7, 2, 0), (8, 2, 0)]
        assert [mail.uid for mail in second] == [2900]
        assert await client.fetch_all([7, 8], 1000) == {7: b"yes"}
        assert await client.fetch_all([7], 1000) == {}


async def test_numbers_far_apart_are_asked_for_in_few_steps() -> None:
    next_uid = 4_000_000_000
    selected = b"* OK [UIDVALIDITY 1]\r\n* OK [UIDNEXT %d]\r\na2 OK\r\n" % next_uid
    empty = [b"a%d OK\r\n" % number for number in range(3, 3 + imap_client.MOST_LISTS + 1)]
    async with client_of(selected, *empty) as client:
        await client.select("INBOX", is_changed=False)
        assert len([part async for part in client.list_behind(0)]) <= imap_client.MOST_LISTS


async def test_mail_that_is_told_of_beside_another_answer_is_not_waited_for() -> None:
    """A server tells once that the folder has grown, with whatever it answers just then."""
    answers = (
        b"* 1 FETCH (UID 7 RFC822.SIZE 3)\r\na2 OK\r\n",
        b"* 2 EXISTS\r\n* 1 FETCH (UID 7 BODY[] {3}\r\nyes)\r\na3 OK\r\n",
        b"* 2 FETCH (UID 8 RFC822.SIZE 3)\r\na4 OK\r\n",
        b"+ idling\r\n* 3 EXISTS\r\n",
        b"a5 OK\r\n",
    )
    async with asyncio.timeout(60), client_of(*answers) as client:
        assert await listed_behind(client, 0) == [7]
        assert await client.fetch_all([7], 1000) == {7: b"yes"}
        await client.wait_for_mail(600)
        assert await listed_behind(client, 7) == [8]
        await client.wait_for_mail(600)  # now the server is asked


async def test_a_server_without_idle_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_mailbox, "POLL_SECONDS", 0.0)
    answers = (b"* 1 EXISTS\r\na2 OK\r\n", b"* 1 FETCH (UID 7 RFC822.SIZE 3)\r\na3 OK\r\n")
    async with client_of(*answers, features=b"* CAPABILITY IMAP4rev1\r\na1 OK\r\n") as client:
        await follow_mailbox.wait_for_more(client)
        assert await listed_behind(client, 0) == [7]


async def listed_behind(client: ImapClient, last_uid: int) -> list[int]:
    return [mail.uid async for part in client.list_behind(last_uid) for mail in part]


async def test_a_folder_without_uidvalidity_is_refused() -> None:
    async with client_of(b"* 3 EXISTS\r\na2 OK\r\n") as client:
        with pytest.raises(ImapError, match="UIDVALIDITY"):
            await client.select("INBOX", is_changed=False)


async def test_a_password_never_leaves_in_the_clear() -> None:
    """Where the server is not on this machine and offers no STARTTLS."""
    async with server_that_says() as address:
        far = MailServerAddress("mail.example.com", address.ips, address.port, is_loopback=False)
        with pytest.raises(ImapError, match="no STARTTLS"):
            await open_client(far)


async def test_a_certificate_that_proves_nothing_ends_it() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"not TLS at all\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    wire = ImapWire(reader, writer)
    with pytest.raises(ImapError, match=r"TLS with mail\.example\.com failed"):
        await wire.start_tls(trusted_authorities(), "mail.example.com")
    wire.close()
    server.close()


def test_names_are_quoted_and_never_break_a_line() -> None:
    assert quoted('a"b\\c') == b'"a\\"b\\\\c"'
    for text in ("a\r\nb", "a\0b"):
        with pytest.raises(ImapError):
            quoted(text)


def test_who_is_refused_asks_seldom_and_others_ever_more_so() -> None:
    assert follow_mailbox.pause_seconds(0, is_refused=True) == follow_mailbox.LONGEST_PAUSE_SECONDS
    assert 1 <= follow_mailbox.pause_seconds(0, is_refused=False) <= 2
    assert 150 <= follow_mailbox.pause_seconds(50, is_refused=False) <= 300
