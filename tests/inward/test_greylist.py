"""Greylisting, and clients that guess addresses: over the wire, from public addresses."""

import asyncio
from ipaddress import ip_network
from pathlib import Path

import pytest

from postroom.assembly import serving
from postroom.clock import DAY, MINUTE
from postroom.inward import greylist
from postroom.inward.greylist import GreyKeys, has_to_come_again, is_known
from postroom.net.dns import Resolver
from postroom.net.proxies import Proxies
from postroom.smtp import harvesters
from postroom.smtp.server import Server as SmtpServer
from postroom.storage.database import Database, Tx
from tests.api.test_junk import came, messages_of, note
from tests.conftest import settings
from tests.doubles import FakeClock
from tests.inward.proxied import PEER, hand_over
from tests.inward.test_refusals import HERE, forged, refusing
from tests.smtp.doubles import RecordingIntake, SmallDirectory
from tests.smtp.live import LIMITS, Client
from tests.waiting import until

AGAIN = "451 4.7.1 Greylisted, try again in five minutes"


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("workers", ["0", "1"])
async def test_unknown_networks_come_twice_and_whoever_authenticates_comes_once(
    database_url: str, tmp_path: Path, clock: FakeClock, workers: str
) -> None:
    async with refusing(tmp_path, database_url, clock, GREYLIST="on", WORKERS=workers) as (server, _):
        inbox_id, port = await server.new_inbox("hello"), server.smtp_port
        authentic = forged("lists.test", 1)  # SPF passes for lists.test from this address
        assert (await hand_over(port, authentic, HERE, sender="help@lists.test")).startswith("250 ")
        assert await hand_over(port, note(2), HERE) == AGAIN
        assert await hand_over(port, note(2), HERE) == AGAIN
        assert (await hand_over(port, note(3), HERE, peer_ip="10.0.0.7")).startswith("250 ")
        clock.turn(5 * MINUTE)
        assert (await hand_over(port, note(2), HERE)).startswith("250 ")
        assert (await hand_over(port, note(4), HERE, sender="other@sender.test")).startswith("250 ")
        assert await hand_over(port, note(5), HERE, peer_ip="9.9.9.9") == AGAIN
        with_report = (HERE, "dmarc@postroom.localhost")
        assert await hand_over(port, note(6), *with_report, peer_ip="9.9.9.9") == AGAIN
        await came(server, 4)
        assert len(await messages_of(server, inbox_id)) == 4


async def test_nodes_of_a_database_know_the_same_networks(
    postgres_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "one"
    async with refusing(folder, postgres_url, clock, GREYLIST="on") as (server, names):
        (tmp_path / "two").mkdir()
        (tmp_path / "two/blobs").symlink_to(folder / "blobs")  # nodes share their store
        more = {"DATABASE_URL": postgres_url, "TRUSTED_PROXIES": "127.0.0.1", "GREYLIST": "on"}
        resolver = Resolver([names.address], deadline_seconds=60)
        async with serving(settings(tmp_path / "two", **more), clock, resolver) as other:
            await server.new_inbox("hello")
            assert await hand_over(server.smtp_port, note(1), HERE) == AGAIN
            assert await hand_over(other.smtp_port, note(1), HERE) == AGAIN
            clock.turn(5 * MINUTE)
            assert (await hand_over(other.smtp_port, note(1), HERE)).startswith("250 ")
            said = await hand_over(server.smtp_port, note(2), HERE, sender="b@sender.test")
            assert said.startswith("250 ")


async def test_the_list_is_bounded_and_forgets(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = GreyKeys("00000000a", "00000001a"), GreyKeys("00000000b", "00000002b")

    async def must(keys: GreyKeys, now: int) -> bool:
        return await db.write(has_to_come_again, keys, now)

    assert await must(first, DAY)
    assert not await must(second, DAY), "its bucket is taken: it is accepted"
    assert await must(first, DAY + 4 * MINUTE)
    assert not await must(first, DAY + 5 * MINUTE)
    assert await db.read(is_known, first, DAY + 6 * MINUTE)
    assert not await must(GreyKeys("00000005c", "00000001a"), 20 * DAY)
    assert await must(GreyKeys("00000005c", "00000001a"), 60 * DAY), "forgotten"
    assert await must(second, 61 * DAY)
    assert await must(second, 64 * DAY), "too late: it begins anew"
    monkeypatch.setattr(greylist, "BUCKETS", 8)
    for number in range(50):
        await must(GreyKeys(f"{number:08x}x", f"{number + 50:08x}y"), (100 + number) * DAY)

    def rows(tx: Tx) -> int:
        return len(tx.all("select bucket from greylist"))

    assert await db.read(rows) <= 8 + 6


async def guess(port: int, peer: str, number: int) -> tuple[Client, list[str]]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    await client.send(f"PROXY TCP4 {peer} 192.0.2.1 5000 25\r\n".encode())
    await client.reply()
    await client.command("EHLO mail.sender.test")
    await client.command("MAIL FROM:<a@sender.test>")
    return client, [await client.command(f"RCPT TO:<nobody{each}@postroom.test>") for each in range(number)]


@pytest.mark.sqlite_alone
async def test_guessing_gets_slow_and_then_nothing_and_takes_no_connection_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harvesters, "SLOW_SECONDS", 3600.0)
    monkeypatch.setattr(harvesters, "MOST_SLOW", 1)
    monkeypatch.setattr(harvesters, "MOST", 8)
    server = SmtpServer(
        SmallDirectory(), RecordingIntake(), LIMITS, tmp_path, proxies=Proxies([ip_network("127.0.0.1")])
    )
    await server.start("127.0.0.1", 0)
    slow, replies = await guess(server.port, PEER, 5)
    assert {each[:3] for each in replies} == {"550"}
    await slow.send(b"RCPT TO:<nobody@postroom.test>\r\n")
    await until(lambda: server._harvesters._slow == 1)
    swift, replies = await guess(server.port, PEER, 2)  # only one waits at a time
    assert [each[:3] for each in replies] == ["550", "550"]
    put_off = "450 4.7.1 Too many unknown recipients from your network, try again later"
    assert await swift.command("RCPT TO:<alice@postroom.test>") == put_off
    assert await swift.command("RCPT TO:<nobody@postroom.test>") == put_off
    other, _ = await guess(server.port, "9.9.9.9", 0)
    assert (await other.command("RCPT TO:<alice@postroom.test>")).startswith("250 ")
    relay, replies = await guess(server.port, "10.0.0.1", 12)
    assert {each[:3] for each in replies} == {"550"}
    for each in (swift, other, relay):
        each.writer.close()
    await server.stop()
    assert (await slow.rest()).startswith("550 "), "who stops keeps nobody waiting"
    slow.writer.close()
