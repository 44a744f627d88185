"""Two nodes on one PostgreSQL: numbers are given once and in order; who waits at one hears of the other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.config import Endpoint
from postroom.imap.server import ImapServer
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.opening import open_database
from postroom_mail.files.extraction import Extraction
from tests.conftest import running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok
from tests.raw_mails import raw_mail

EACH = 12


class Node:
    def __init__(self, imap_port: int | None, token: str) -> None:
        self.imap_port, self.token = imap_port, token


class NoExtractor:
    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        raise AssertionError("no file is appended here")


@pytest.fixture
async def nodes(tmp_path: Path, clock: FakeClock, postgres_url: str) -> AsyncIterator[tuple[Node, Node]]:
    """A server, and the door of another: with connections and bells of its own to the same database."""
    (tmp_path / "one").mkdir()
    config = settings(tmp_path / "one", DATABASE_URL=postgres_url, IMAP="127.0.0.1:0")
    other = settings(tmp_path / "two", DATABASE_URL=postgres_url)
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_server(config, clock))
        await server.new_inbox("agent")
        db = await open_database(other, clock.now())
        stack.push_async_callback(db.close)
        resources = Resources(other, db, server.resources.blobs, clock, Resolver(), asyncio.Event())
        door = ImapServer(resources, NoExtractor(), None)
        await door.start(Endpoint("127.0.0.1", 0))
        stack.push_async_callback(door.stop)
        watching = asyncio.create_task(door.watch.run())
        stack.callback(watching.cancel)
        yield Node(server.imap_port, server.token), Node(door.port, server.token)


def write(node: Node, first: int) -> list[tuple[int, bytes]]:
    """UIDs in the order in which they were given, each with its subject."""
    client = log_in(node, "agent")
    ok(client.select("INBOX"))
    given = []
    for number in range(first, first + EACH):
        said = ok(client.append("INBOX", "(\\Flagged)", None, raw_mail("x", subject=f"N {number}")))[0]
        uid = int(said.split(b"]")[0].split()[-1])
        given.append((uid, f"N {number}".encode()))
        ok(client.uid("STORE", str(uid), "+FLAGS", "(\\Seen)"))
    client.logout()
    return given


async def test_numbers_of_two_nodes_are_one_row(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    written = await asyncio.gather(aside(lambda: write(one, 0)), aside(lambda: write(two, 100)))
    for given in written:
        assert [uid for uid, _ in given] == sorted(uid for uid, _ in given)
    everything = dict(written[0] + written[1])
    assert len(everything) == 2 * EACH, "no UID was given twice"

    def look(node: Node) -> dict[int, bytes]:
        client = log_in(node, "agent")
        ok(client.select("INBOX"))
        found = {}
        for each in ok(client.uid("FETCH", "1:*", "(FLAGS MODSEQ BODY.PEEK[HEADER.FIELDS (SUBJECT)])")):
            if isinstance(each, tuple):
                assert b"\\Seen" in each[0]
                uid = int(each[0].partition(b"UID ")[2].split()[0].rstrip(b")"))
                found[uid] = each[1].strip().removeprefix(b"Subject: ")
        client.logout()
        return found

    for node in nodes:
        assert await aside(lambda node=node: look(node)) == everything  # type: ignore[misc]


async def test_who_waits_at_one_node_hears_of_the_other(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    reader, writer = await asyncio.open_connection("127.0.0.1", two.imap_port)

    async def until(words: bytes) -> bytes:
        async with asyncio.timeout(120):
            while words not in (line := await reader.readline()):
                assert line, "the server hung up"
            return line

    writer.write(b"a LOGIN agent@postroom.localhost %s\r\nb SELECT INBOX\r\n" % one.token.encode())
    await until(b"b OK")
    writer.write(b"c IDLE\r\n")
    await until(b"+ idling")

    def append() -> None:
        client = log_in(one, "agent")
        ok(client.append("INBOX", None, None, raw_mail("There")))
        client.logout()

    await aside(append)
    assert await until(b"EXISTS") == b"* 1 EXISTS\r\n"
    writer.close()
