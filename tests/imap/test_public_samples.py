"""What imaptest, the public tester of IMAP servers, asks of SEARCH, FETCH and SELECT."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.imap.dialogue.requests import STAR, NumberSet
from postroom.imap.view import FolderView
from postroom.mail.imap import structure, written
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.letters import letter


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
    lines = Lines(*await asyncio.open_connection("127.0.0.1", server.imap_port))
    await lines._reader.readline()
    await lines.ask(f"LOGIN agent@postroom.localhost {server.token}")
    return lines


@pytest.mark.sqlite_alone
async def test_addresses_are_found_in_every_field_and_form(server: Server) -> None:
    client = await opened(
        server,
        letter(**{"from": "user-from@domain.org"}, bcc="RealBcc <user-bcc@domain.org>"),
        letter(**{"from": "user-from1@domain.org, user-from2@domain.org"}, cc="user-cc@domain.org"),
        letter(to="groupname: groupuser1@domain.org;, groupname2:;"),
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
    client = await opened(server, *(letter(date=date) for date in dates))
    await client.ask("SELECT INBOX")
    assert await client.ask("SEARCH SENTON 25-mar-2007") == ["* SEARCH 2 3"]
    assert await client.ask("SEARCH SENTBEFORE 25-mar-2007") == ["* SEARCH 1"]
    assert await client.ask("SEARCH SENTSINCE 25-mar-2007") == ["* SEARCH 2 3"]
    assert await client.ask("SEARCH SENTSINCE 26-mar-2007") == ["* SEARCH"]
    await client.end()


@pytest.mark.sqlite_alone
async def test_an_extended_answer_names_its_command_and_the_first_modseq_the_highest(server: Server) -> None:
    client = await opened(server, letter(), letter(), letter())
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


async def test_keywords_are_named_before_a_message_has_them(server: Server) -> None:
    client = await opened(server, letter(), letter())
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
    shown = written.envelope_of(raw).decode()
    end = "(NIL NIL NIL NIL)"
    assert '((NIL "@route" "user" "domain"))' in shown
    first = f'(NIL NIL "group" NIL)(NIL NIL "g1" "d1.org")(NIL NIL "g2" "d2.org"){end}'
    assert f'({first}(NIL NIL "group2" NIL)(NIL NIL "g3" "d3.org"){end})' in shown
    assert f'((NIL NIL "group" NIL){end}(NIL NIL "group2" NIL){end})' in shown
    assert f'"d.org"){end}' not in shown, "a group ends with a semicolon"


@pytest.mark.parametrize("unit", ['"\\"', "(\\(", "a:;", "<", "[", "a:", ";", '"', "\\"])
def test_no_list_of_addresses_takes_more_than_linear_time(unit: str) -> None:
    written.envelope_of(b"To: x: " + unit.encode() * 100_000 + b"\r\n\r\n")


def test_the_line_break_before_a_delimiter_is_no_line_of_the_part() -> None:
    raw = (
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhello\r\n\r\n"
        b"--x\r\n\r\none\r\ntwo\r\n--x\r\n\r\n--x--\r\n"
    )
    root = structure.scan([raw])
    assert [(part.size_bytes, part.lines) for part in root.children] == [(7, 1), (8, 1), (0, 0)]
    assert structure.scan([b"A: b\r\n\r\none\r\ntwo\r\n"]).lines == 2


def test_ranges_that_meet_are_one() -> None:
    many = NumberSet(((1, STAR),) * 10_000)
    assert many.ranges(100_000) == [(1, 100_000)]
    view = FolderView("inbox", False, range(10, 100_010), 1)
    assert len(view.select(many, by_uid=True)) == len(view.select(many, by_uid=False)) == 100_000
    assert NumberSet(((7, 9), (1, 3), (2, 5), (6, 6), (12, STAR))).ranges(11) == [(1, 9), (11, 12)]


@pytest.mark.sqlite_alone
async def test_a_search_puts_its_numbers_in_order_once(server: Server) -> None:
    client = await opened(server, *(letter(f"Mail {number}") for number in range(6)))
    await client.ask("SELECT INBOX")
    assert await client.ask(f"UID SEARCH UID {','.join(['1:*'] * 5_000)}") == ["* SEARCH 1 2 3 4 5 6"]
    assert await client.ask("SEARCH 5,1:2 NOT UID 2,3") == ["* SEARCH 1 5"]
    assert await client.ask("SEARCH OR 6:* 1000") == ["* SEARCH 6"]
    await client.end()
