"""What others say of junk: DNS lists, rspamd, spamd and DMARC policies, asked of real servers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from postroom.accounts.rules.junk import JunkRules
from postroom.config import ConfigError, load
from postroom.inward.junk import lists, services
from postroom.inward.junk.lists import AWAY, LEFT_OUT, ask_lists, hosts_of
from postroom.inward.junk.services import ask_services
from postroom.inward.junk.weighing import Evidence, SenderHistory, weigh
from postroom.mailbox.documents import Verdicts
from postroom.net.dns import Resolver
from postroom.resources import ServiceFaults
from postroom_mail.html.page import NO_PAGE, read_page
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.doubles_dns import DnsServer

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PEER = "8.8.4.4"
RAW = b"Subject: x\r\n\r\nHello\r\n"


@contextlib.asynccontextmanager
async def service(talk: Talk) -> AsyncIterator[str]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def says(answer: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        assert await reader.readexactly(length) == RAW
        writer.write(answer)
        writer.close()

    return talk


async def streams_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
    writer.close()


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()  # until it is closed
    writer.close()


async def rspamd_says(talk: Talk) -> list[float]:
    async with service(talk) as address:
        found = await ask_services(load({"POSTROOM_RSPAMD_URL": f"http://{address}"}), RAW)
    return [round(each.weight, 1) for each in found]


async def spamd_says(talk: Talk) -> list[float]:
    async with service(talk) as address:
        found = await ask_services(load({"POSTROOM_SPAMD": address}), RAW)
    return [round(each.weight, 1) for each in found]


async def test_rspamd_and_spamd_count_within_bounds_and_nonsense_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    assert await rspamd_says(says(ok + b'{"score": 6.0, "required_score": 15}')) == [2.2]
    assert await rspamd_says(says(ok + b'{"score": 0}')) == [-2.0]
    assert await rspamd_says(says(ok + b'{"score": 1e300}')) == [6.0]
    for nonsense in (ok + b'{"score": "NaN"}', ok + b"[", b"HTTP/1.1 500 No\r\n\r\n{}", b""):
        assert await rspamd_says(says(nonsense)) == [], nonsense
    assert await spamd_says(says(b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 5.0 / 5.0\r\n\r\n")) == [2.2]
    assert await spamd_says(says(b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 9.9.9 / 5.0\r\n\r\n")) == []
    assert await spamd_says(says(b"HTTP/1.1 200 OK\r\nSpam: True ; 5.0 / 5.0\r\n\r\n")) == []
    assert await spamd_says(streams_for_ever) == await rspamd_says(streams_for_ever) == []
    monkeypatch.setattr(services, "SECONDS", 0.2)
    assert await spamd_says(hangs) == await rspamd_says(hangs) == []
    assert await ask_services(load({"POSTROOM_SPAMD": "127.0.0.1:1"}), RAW) == ()


async def test_no_line_break_of_a_stranger_comes_into_the_question_for_rspamd() -> None:
    heads: list[bytes] = []

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    hostile = services.NoPeer("8.8.4.4\r\nPass: all", "x\r\nPass: all", "a\u0131@b.example")
    for peer in (hostile, services.NoPeer("unknown", "h" * 400, "")):
        async with service(listens) as address:
            await ask_services(load({"POSTROOM_RSPAMD_URL": f"http://{address}"}), RAW, peer=peer)
    for head in heads:
        assert [line.partition(b":")[0] for line in head.splitlines()[1:-1]] == [b"Host", b"Content-Length"]
    assert len(heads) == 2


async def test_rspamd_is_asked_by_https_if_its_certificate_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = make_certificate(tmp_path, "localhost")
    talk = says(b'HTTP/1.1 200 OK\r\nServer: x\r\n\r\n{"score": 6.0}')
    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=server_context(pem))
    config = load({"POSTROOM_RSPAMD_URL": f"https://localhost:{server.sockets[0].getsockname()[1]}"})
    assert await ask_services(config, RAW) == (), "nobody vouches for it"
    monkeypatch.setattr(services, "trusted_authorities", lambda: trusting_context(pem))
    faults = ServiceFaults()
    found = await ask_services(config, RAW, faults)
    assert [round(each.weight, 1) for each in found] == [2.2], faults.found
    server.close()


async def test_lists_name_servers_and_links_and_one_that_names_everything_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = read_page('<a href="http://shop.bad.example/x?y">here</a> <a href="http://10.0.0.1/">there</a>')
    assert hosts_of(page) == ["bad.example", "shop.bad.example"]
    records = {
        ("4.4.8.8.good.test", "A"): ["127.0.0.2"],
        ("4.4.8.8.wild.test", "A"): ["127.0.0.2"],
        ("1.0.0.127.wild.test", "A"): ["127.0.0.2"],
        ("4.4.8.8.odd.test", "A"): ["203.0.113.9"],
        ("4.4.8.8.refusing.test", "A"): ["127.255.255.254"],
        ("bad.example.links.test", "A"): ["127.0.0.4"],
    }
    async with DnsServer(records) as dns:
        resolver = Resolver([dns.address], deadline_seconds=5)
        dns.servfail.add("4.4.8.8.down.test")
        zones = [(f"{name}.test", 2.5) for name in ("good", "wild", "odd", "refusing", "down", "silent")]
        faults = ServiceFaults()
        found = await ask_lists(resolver, zones, [("links.test", 4.0)], PEER, page, faults, 7)
        away = {"list wild.test": LEFT_OUT, "list down.test": AWAY}
        assert {name: each.words for name, each in faults.found.items()} == away
        assert {each.since for each in faults.found.values()} == {7}
        assert [(each.name, each.weight) for each in found] == [
            ("list good.test", 2.5),
            ("list links.test", 4.0),
        ]
        before = sum(dns.queries.values())
        assert await ask_lists(resolver, zones[:2], [], PEER, NO_PAGE) == found[:1]
        assert await ask_lists(resolver, zones, [], "10.0.0.7", NO_PAGE) == ()
        assert sum(dns.queries.values()) == before, "answers are cached, and a private server is on no list"
        await resolver.close()
        dns.records[("1.0.0.127.wild.test", "A")] = dns.records[("4.4.8.8.wild.test", "A")] = []
        dns.servfail.clear()
        mended = Resolver([dns.address], deadline_seconds=5)
        await ask_lists(mended, zones, [], PEER, NO_PAGE, faults, 8)
        assert not faults.found, "they answer as they should, though they name nobody"
        await mended.close()
        monkeypatch.setattr(lists, "SECONDS", 0.1)
        dns.dropped.add("4.4.8.8.hangs.test")
        dns.truncated.add("4.4.8.8.many.test")
        named = [f"127.0.{each // 250}.{each % 250}" for each in range(3_000)]
        dns.records[("4.4.8.8.many.test", "A")] = named
        patient = Resolver([dns.address], deadline_seconds=60)
        hostile = [("hangs.test", 2.5), ("many.test", 2.5), zones[0]]
        found = await ask_lists(patient, hostile[:1], [], PEER, NO_PAGE, faults, 9)
        assert (found, faults.found["list hangs.test"].words) == ((), AWAY)
        monkeypatch.setattr(lists, "SECONDS", 60)  # the machine may be busy
        found = await ask_lists(patient, hostile[1:], [], PEER, NO_PAGE, faults, 10)
        assert [each.name for each in found] == ["list many.test", "list good.test"]
        await patient.close()


def test_a_policy_that_fails_is_obeyed_only_if_the_operator_wants_it() -> None:
    failed = Verdicts("fail", "none", "fail", "bank.example", policy="reject")
    known = SenderHistory(is_known=True, exempt="correspondent")
    marked = weigh(Evidence(-5.0), failed, known, JunkRules())
    assert not marked.is_junk
    asked = structs.replace(failed, disposition="quarantine")
    obeyed = weigh(Evidence(-5.0), asked, known, JunkRules())
    assert obeyed.is_junk
    assert "dmarc_reject" in [each.name for each in obeyed.reasons]
    assert not weigh(Evidence(-5.0), Verdicts("fail", "none", "fail", "x"), known, JunkRules()).is_junk


def test_settings_of_sources_name_what_is_wrong() -> None:
    assert load({"POSTROOM_DNSBL": "zen.example=2.5, bl.example"}).address_lists == (
        ("zen.example", 2.5),
        ("bl.example", 3.0),
    )
    for name, value in (
        ("DNSBL", "zen.example=many"),
        ("URIBL", "not a zone"),
        ("RSPAMD_URL", "ftp://x"),
        ("SPAMD", "nowhere"),
        ("DMARC", "obey"),
        ("JUNK", "eat"),
    ):
        with pytest.raises(ConfigError, match=f"POSTROOM_{name}"):
            load({f"POSTROOM_{name}": value})
