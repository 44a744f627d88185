"""What imaptest, the public tester of IMAP servers, asks of SEARCH, FETCH and SELECT."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.accounts.permissions import READING
from postroom.imap import listing
from postroom.imap.dialogue.requests import STAR, FetchMails, MailSection, NumberSet, SelectFolder
from postroom.imap.reading import fetching
from postroom.imap.state import ImapState
from postroom.imap.view import FolderView
from postroom.inward.extraction_pool import ExtractionPool
from postroom.operations.folders import names
from postroom_mail.mime import imap_sections, imap_values
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.raw_mails import raw_mail


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


class Lines:
    """A client that sees every line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._count = reader, writer, 0

    async def ask(self, command: str) -> list[str]:
        self._count += 1
        tag = f"t{self._count}"
        self._writer.write(f"{tag} {command}\r\n".encode())
        lines: list[str] = []
        while not lines or not lines[-1].startswith(f"{tag} "):
            lines.append((await self._reader.readline()).decode().strip())
        assert lines[-1].startswith(f"{tag} OK"), lines
        return lines[:-1]

    async def end(self) -> None:
        await self.ask("LOGOUT")
        self._writer.close()
        await self._writer.wait_closed()


async def opened(server: Server, *mails: bytes) -> Lines:
    await server.new_inbox("agent")

    def fill() -> None:
        client = log_in(server, "agent")
        for mail in mails:
            ok(client.append("INBOX", None, None, mail))
        client.logout()

    await aside(fill)
    return await opened_again(server)


async def append_one(server: Server) -> None:
    def work() -> None:
        client = log_in(server, "agent")
        ok(client.append("INBOX", None, None, raw_mail("One more")))
        client.logout()

    await aside(work)


async def opened_again(server: Server) -> Lines:
    lines = Lines(*await asyncio.open_connection("127.0.0.1", server.imap_port))
    await lines._reader.readline()
    await lines.ask(f"LOGIN agent@postroom.localhost {server.token}")
    return lines


@pytest.mark.sqlite_alone
async def test_addresses_are_found_in_every_field_and_form(server: Server) -> None:
    client = await opened(
        server,
        raw_mail(**{"from": "user-from@domain.org"}, bcc="RealBcc <user-bcc@domain.org>"),
        raw_mail(**{"from": "user-from1@domain.org, user-from2@domain.org"}, cc="user-cc@domain.org"),
        raw_mail(to="groupname: groupuser1@domain.org;, groupname2:;"),
    )
    await client.ask("SELECT INBOX")
    for sought, numbers in (
        ("BCC user-bcc@domain.org", " 1"),
        ("BCC realbcc", " 1"),
        ("FROM user-from", " 1 2"),
        ("FROM user-from2", " 2"),
        ("TO groupname2", " 3"),
        ("TO groupuser1", " 3"),
        ("CC user-bcc", ""),
        ("CHARSET utf8 FROM user-from2", " 2"),
        ("NOT BCC realbcc", " 2 3"),
    ):
        assert await client.ask(f"SEARCH {sought}") == [f"* SEARCH{numbers}"], sought
    await client.end()


@pytest.mark.sqlite_alone
async def test_a_day_of_sending_is_the_one_that_is_written(server: Server) -> None:
    dates = ("24 Mar 2007 23:00:00 +0200", "25 Mar 2007 00:00:00 +0200", "25 Mar 2007 23:00:00 -0800")
    client = await opened(server, *(raw_mail(date=date) for date in dates))
    await client.ask("SELECT INBOX")
    assert await client.ask("SEARCH SENTON 25-mar-2007") == ["* SEARCH 2 3"]
    assert await client.ask("SEARCH SENTBEFORE 25-mar-2007") == ["* SEARCH 1"]
    assert await client.ask("SEARCH SENTSINCE 25-mar-2007") == ["* SEARCH 2 3"]
    assert await client.ask("SEARCH SENTSINCE 26-mar-2007") == ["* SEARCH"]
    await client.end()


@pytest.mark.sqlite_alone
async def test_an_extended_answer_names_its_command_and_the_first_modseq_the_highest(server: Server) -> None:
    client = await opened(server, raw_mail(), raw_mail(), raw_mail())
    (highest,) = [line for line in await client.ask("SELECT INBOX") if "HIGHESTMODSEQ" in line]
    assert (await client.ask("FETCH 1 MODSEQ"))[0] == highest
    assert not any("HIGHESTMODSEQ" in line for line in await client.ask("FETCH 1 MODSEQ"))
    (told,) = await client.ask("STORE 3 +FLAGS (\\Seen)")
    last = re.findall(r"MODSEQ \((\d+)\)", told)[0]
    (told,) = await client.ask("STORE 1 +FLAGS (\\Seen)")
    first = re.findall(r"MODSEQ \((\d+)\)", told)[0]
    assert await client.ask("SEARCH RETURN () 1000") == ['* ESEARCH (TAG "t7")']
    assert await client.ask("UID SEARCH RETURN (COUNT) ALL") == ['* ESEARCH (TAG "t8") UID COUNT 3']
    both = "MODSEQ 1 SEEN"
    assert await client.ask(f"SEARCH RETURN (MAX) {both}") == [f'* ESEARCH (TAG "t9") MAX 3 MODSEQ {last}']
    shown = [f'* ESEARCH (TAG "t10") MIN 1 MAX 3 MODSEQ {first}']
    assert await client.ask(f"SEARCH RETURN (MIN MAX) {both}") == shown
    await client.end()


@pytest.mark.sqlite_alone
async def test_keywords_are_named_before_a_message_has_them(server: Server) -> None:
    client = await opened(server, raw_mail(), raw_mail())
    assert not any("$Work" in line for line in await client.ask("SELECT INBOX"))
    named, told = await client.ask("STORE 1 +FLAGS ($Work)")
    assert named.startswith("* FLAGS (")
    assert "$Work" in named
    assert "$Work" in told
    assert len(await client.ask("STORE 2 +FLAGS ($Work)")) == 1
    assert any(line.startswith("* FLAGS (") and "$Work" in line for line in await client.ask("SELECT INBOX"))
    await client.end()


def test_groups_and_routes_are_in_the_envelope() -> None:
    raw = (
        b"From: <@route:user@domain>\r\nTo: group: g1@d1.org, g2@d2.org;, group2: g3@d3.org;\r\n"
        b"Cc: group:;, group2: (foo) ;\r\nBcc: A <a@[IPv6:::1]>, b: c@d.org\r\n\r\n"
    )
    shown = imap_values.envelope_of(raw).decode()
    end = "(NIL NIL NIL NIL)"
    assert '((NIL "@route" "user" "domain"))' in shown
    first = f'(NIL NIL "group" NIL)(NIL NIL "g1" "d1.org")(NIL NIL "g2" "d2.org"){end}'
    assert f'({first}(NIL NIL "group2" NIL)(NIL NIL "g3" "d3.org"){end})' in shown
    assert f'((NIL NIL "group" NIL){end}(NIL NIL "group2" NIL){end})' in shown
    assert f'"d.org"){end}' not in shown, "a group ends with a semicolon"


@pytest.mark.parametrize("unit", ['"\\"', "(\\(", "a:;", "<", "[", "a:", ";", '"', "\\"])
def test_no_list_of_addresses_takes_more_than_linear_time(unit: str) -> None:
    imap_values.envelope_of(b"To: x: " + unit.encode() * 100_000 + b"\r\n\r\n")


def test_the_line_break_before_a_delimiter_is_no_line_of_the_part() -> None:
    raw = (
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhello\r\n\r\n"
        b"--x\r\n\r\none\r\ntwo\r\n--x\r\n\r\n--x--\r\n"
    )
    root = imap_sections.scan([raw])
    assert [(part.size_bytes, part.lines) for part in root.children] == [(7, 1), (8, 1), (0, 0)]
    assert imap_sections.scan([b"A: b\r\n\r\none\r\ntwo\r\n"]).lines == 2


def test_ranges_that_meet_are_one() -> None:
    many = NumberSet(((1, STAR),) * 10_000)
    assert many.ranges(100_000) == [(1, 100_000)]
    view = FolderView("inbox", False, range(10, 100_010), 1)
    assert len(view.select(many, by_uid=True)) == len(view.select(many, by_uid=False)) == 100_000
    assert NumberSet(((7, 9), (1, 3), (2, 5), (6, 6), (12, STAR))).ranges(11) == [(1, 9), (11, 12)]


@pytest.mark.sqlite_alone
async def test_a_search_puts_its_numbers_in_order_once(server: Server) -> None:
    client = await opened(server, *(raw_mail(f"Mail {number}") for number in range(6)))
    await client.ask("SELECT INBOX")
    assert await client.ask(f"UID SEARCH UID {','.join(['1:*'] * 5_000)}") == ["* SEARCH 1 2 3 4 5 6"]
    assert await client.ask("SEARCH 5,1:2 NOT UID 2,3") == ["* SEARCH 1 5"]
    assert await client.ask("SEARCH OR 6:* 1000") == ["* SEARCH 6"]
    await client.end()


@pytest.mark.sqlite_alone
async def test_a_message_is_recent_to_the_first_session_that_sees_it(server: Server) -> None:
    first = await opened(server, raw_mail("One"), raw_mail("Two"))
    assert "* 2 RECENT" in await first.ask("EXAMINE INBOX")
    assert await first.ask("FETCH 1 FLAGS") == ["* 1 FETCH (FLAGS (\\Recent))"]
    await first.ask("UNSELECT")
    assert await first.ask("STATUS INBOX (RECENT)") == ['* STATUS "INBOX" (RECENT 2)']
    assert "* 2 RECENT" in await first.ask("SELECT INBOX")
    assert await first.ask("STATUS INBOX (RECENT)") == ['* STATUS "INBOX" (RECENT 0)']
    assert await first.ask("STORE 1 +FLAGS (\\Seen)") == ["* 1 FETCH (FLAGS (\\Recent \\Seen))"]
    assert await first.ask("SEARCH RECENT") == ["* SEARCH 1 2"]
    assert await first.ask("SEARCH NEW") == ["* SEARCH 2"]
    assert await first.ask("SEARCH OLD") == ["* SEARCH"]
    second = await opened_again(server)
    assert "* 0 RECENT" in await second.ask("SELECT INBOX")
    assert await second.ask("SEARCH OLD") == ["* SEARCH 1 2"]
    await append_one(server)
    assert await first.ask("NOOP") == ["* 3 EXISTS", "* 3 RECENT"]
    assert await second.ask("NOOP") == ["* 3 EXISTS", "* 0 RECENT"]
    assert await second.ask("FETCH 3 FLAGS") == ["* 3 FETCH (FLAGS ())"]
    await first.end()
    await second.end()


class CountingOutput:
    """Counts the bodies that are written before anything else gets its turn."""

    def __init__(self) -> None:
        self.at_once = self.most_at_once = self.bodies = 0

    def write(self, data: bytes) -> None:
        self.bodies += data.count(b"FETCH (")
        self.at_once += data.count(b"FETCH (")
        self.most_at_once = max(self.most_at_once, self.at_once)

    async def drain(self) -> None:
        """There is always room."""

    async def take_turns(self) -> None:
        while True:
            self.at_once = 0
            await asyncio.sleep(0)


@pytest.mark.sqlite_alone
async def test_a_fetch_of_many_bodies_gives_way_after_each(server: Server) -> None:
    await (await opened(server, *(raw_mail(f"Mail {number}") for number in range(20)))).end()
    db, output = server.resources.db, CountingOutput()
    name = "agent@postroom.localhost"
    login = await db.read(names.log_in, name, server.token, READING, server.clock.now())
    client = ImapState(server.resources, ExtractionPool(), output, login.caller, login.inbox)
    await listing.select(client, SelectFolder("INBOX", is_read_only=True))
    others = asyncio.create_task(output.take_turns())
    whole = FetchMails(NumberSet(((1, STAR),)), False, (), (MailSection(is_peek=True),))
    assert await fetching.fetch(client, whole) == b"OK Done."
    others.cancel()
    assert (output.bodies, output.most_at_once) == (20, 1)
