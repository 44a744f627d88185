import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from postroom.net.dns import DnsTemporary, Resolver, ThreadResolver
from tests.doubles_dns import DnsServer, asks_once
from tests.waiting import until

RECORDS: dict[tuple[str, str], list[str | bytes]] = {
    ("example.com", "TXT"): ["v=spf1 -all", b"\xff" * 400],
    ("example.com", "MX"): ["20 Backup.example.com.", "10 mx.example.com."],
    ("mx.example.com", "A"): ["192.0.2.1", "192.0.2.2"],
    ("mx.example.com", "AAAA"): ["2001:db8::1"],
    ("www.example.com", "CNAME"): ["web.example.com."],
    ("web.example.com", "CNAME"): ["mx.example.com."],
    ("nomail.example", "MX"): ["0 ."],
    ("1.2.0.192.in-addr.arpa", "PTR"): ["mx.example.com."],
    ("xn--bcher-kva.example", "A"): ["192.0.2.9"],
}


class TurnedTime:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def server() -> AsyncIterator[DnsServer]:
    async with DnsServer(RECORDS) as server:
        yield server


@pytest.fixture
def clock() -> TurnedTime:
    return TurnedTime()


@pytest.fixture
async def resolver(server: DnsServer, clock: TurnedTime) -> AsyncIterator[Resolver]:
    resolver = asks_once(server, monotonic=clock)
    yield resolver
    await resolver.close()


async def test_txt_records_come_as_bytes_with_their_strings_joined(resolver: Resolver) -> None:
    assert set(await resolver.txt("example.com")) == {b"v=spf1 -all", b"\xff" * 400}


async def test_mx_records_come_with_the_preferred_host_first(resolver: Resolver) -> None:
    assert await resolver.mx("Example.COM.") == ((10, "mx.example.com"), (20, "backup.example.com"))


async def test_a_null_mx_has_an_empty_host(resolver: Resolver) -> None:
    assert await resolver.mx("nomail.example") == ((0, ""),)


async def test_addresses_holds_both_families(resolver: Resolver) -> None:
    found = await resolver.addresses("mx.example.com")
    assert set(found[:2]) == {"192.0.2.1", "192.0.2.2"}
    assert found[2:] == ("2001:db8::1",)


async def test_a_chain_of_aliases_is_followed(resolver: Resolver) -> None:
    assert await resolver.ipv6("www.example.com") == ("2001:db8::1",)


async def test_ptr_turns_an_address_into_names(resolver: Resolver) -> None:
    assert await resolver.ptr("192.0.2.1") == ("mx.example.com",)
    assert await resolver.ptr("192.0.2.77") == ()
    assert await resolver.ptr("nonsense") == ()


async def test_a_name_in_another_script_is_asked_by_its_ascii_form(resolver: Resolver) -> None:
    assert await resolver.addresses("Bücher.example") == ("192.0.2.9",)


async def test_no_data_and_no_such_name_are_both_empty_but_told_apart(resolver: Resolver) -> None:
    assert await resolver.mx("mx.example.com") == ()
    assert await resolver.mx("absent.example.com") == ()
    assert await resolver.exists("mx.example.com")
    assert not await resolver.exists("absent.example.com")


@pytest.mark.parametrize(
    "name", ["", ".", "a..b", "x" * 64 + ".example", "a." * 200, "ÿ" * 300, "\ud800.example"]
)
async def test_a_name_the_dns_cannot_hold_has_no_records_and_costs_no_query(
    resolver: Resolver, server: DnsServer, name: str
) -> None:
    assert await resolver.txt(name) == ()
    assert not server.queries


async def test_a_backslash_is_no_escape(resolver: Resolver) -> None:
    assert await resolver.txt(r"example\.com") == ()


async def test_an_answer_is_cached_until_its_ttl_ends(
    resolver: Resolver, server: DnsServer, clock: TurnedTime
) -> None:
    for seconds in (0, 59.0):
        clock.seconds = 1000.0 + seconds
        await resolver.txt("example.com")
    assert server.queries["example.com", "TXT"] == 1
    clock.seconds = 1060.0
    await resolver.txt("example.com")
    assert server.queries["example.com", "TXT"] == 2


async def test_absence_is_cached_too(resolver: Resolver, server: DnsServer, clock: TurnedTime) -> None:
    for _ in range(2):
        assert await resolver.txt("absent.example.com") == ()
        assert await resolver.txt("mx.example.com") == ()
    assert server.queries["absent.example.com", "TXT"] == 1
    assert server.queries["mx.example.com", "TXT"] == 1
    clock.seconds += 61
    await resolver.txt("absent.example.com")
    assert server.queries["absent.example.com", "TXT"] == 2


@pytest.mark.parametrize(("ttl", "kept", "gone"), [(0, 4, 5), (1_000_000, 3599, 3600)])
async def test_a_ttl_is_kept_within_bounds(
    resolver: Resolver, server: DnsServer, clock: TurnedTime, ttl: int, kept: float, gone: float
) -> None:
    server.ttl_seconds = ttl
    for seconds, queries in ((0, 1), (kept, 1), (gone, 2)):
        clock.seconds = 1000.0 + seconds
        await resolver.txt("example.com")
        assert server.queries["example.com", "TXT"] == queries


async def test_absence_is_believed_for_five_minutes_at_most(
    resolver: Resolver, server: DnsServer, clock: TurnedTime
) -> None:
    server.ttl_seconds = 86400
    await resolver.txt("absent.example.com")
    clock.seconds += 300
    await resolver.txt("absent.example.com")
    assert server.queries["absent.example.com", "TXT"] == 2


async def test_the_answer_used_least_recently_leaves_a_full_cache(server: DnsServer) -> None:
    resolver = asks_once(server, max_cached_answers=2)
    for name in ("a.test", "b.test", "a.test", "c.test", "a.test", "b.test"):
        await resolver.txt(name)
    asked = {name: server.queries[name, "TXT"] for name in ("a.test", "b.test", "c.test")}
    assert asked == {"a.test": 1, "b.test": 2, "c.test": 1}


async def test_the_cache_is_bounded_in_bytes(server: DnsServer) -> None:
    server.records.update({(f"{n}.test", "TXT"): ["x" * 500] for n in range(3)})
    resolver = asks_once(server, max_cached_bytes=1100)
    for name in ("0.test", "1.test", "2.test", "2.test", "1.test", "0.test"):
        assert await resolver.txt(name) == (b"x" * 500,)
    assert [server.queries[f"{n}.test", "TXT"] for n in range(3)] == [2, 1, 1]


async def test_the_same_question_at_the_same_time_is_asked_once(
    resolver: Resolver, server: DnsServer
) -> None:
    server.delay_seconds = 0.05
    answers = await asyncio.gather(*(resolver.mx("example.com") for _ in range(50)))
    assert len(set(answers)) == 1
    assert server.queries["example.com", "MX"] == 1


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others(
    resolver: Resolver, server: DnsServer
) -> None:
    server.delay_seconds = 0.05
    impatient = asyncio.create_task(resolver.mx("example.com"))
    patient = asyncio.create_task(resolver.mx("example.com"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient)[0] == (10, "mx.example.com")
    with pytest.raises(asyncio.CancelledError):
        await impatient
    assert server.queries["example.com", "MX"] == 1


async def test_a_server_that_drops_the_question_ends_at_the_deadline(server: DnsServer) -> None:
    server.dropped.add("*")
    resolver = Resolver([server.address], deadline_seconds=0.1)
    with pytest.raises(DnsTemporary, match=r"example\.com"):
        await resolver.txt("example.com")


async def test_a_failure_is_remembered_for_a_few_seconds_only(
    resolver: Resolver, server: DnsServer, clock: TurnedTime
) -> None:
    server.servfail.add("example.com")
    for _ in range(3):
        with pytest.raises(DnsTemporary):
            await resolver.txt("example.com")
    asked = server.queries["example.com", "TXT"]
    server.servfail.clear()
    with pytest.raises(DnsTemporary):
        await resolver.txt("example.com")
    assert server.queries["example.com", "TXT"] == asked
    clock.seconds += 5
    assert len(await resolver.txt("example.com")) == 2


async def test_a_second_server_answers_when_the_first_fails(server: DnsServer) -> None:
    async with DnsServer() as broken:
        broken.servfail.add("*")
        resolver = Resolver([broken.address, server.address], deadline_seconds=60)
        assert await resolver.mx("nomail.example") == ((0, ""),)
        assert broken.queries["nomail.example", "MX"] == 1


async def test_a_truncated_answer_is_fetched_over_tcp(resolver: Resolver, server: DnsServer) -> None:
    server.truncated.add("example.com")
    assert len(await resolver.txt("example.com")) == 2
    assert server.tcp_queries == 1


async def test_one_family_that_cannot_be_asked_does_not_hide_the_other(server: DnsServer) -> None:
    resolver = asks_once(server)
    server.servfail.add("mx.example.com")
    with pytest.raises(DnsTemporary):
        await resolver.ipv6("mx.example.com")
    server.servfail.clear()
    assert set(await resolver.addresses("mx.example.com")) == {"192.0.2.1", "192.0.2.2"}


async def test_addresses_fails_when_neither_family_is_known(resolver: Resolver, server: DnsServer) -> None:
    server.servfail.add("*")
    with pytest.raises(DnsTemporary):
        await resolver.addresses("mx.example.com")


@pytest.mark.parametrize("content", [None, "", "garbage\x00\nnameserver\n", "search example.com\n"])
async def test_without_usable_resolv_conf_every_lookup_fails_as_temporary(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "resolv.conf"
    if content is not None:
        path.write_text(content)
    resolver = Resolver(resolv_conf=str(path))
    with pytest.raises(DnsTemporary):
        await resolver.txt("example.com")


async def test_nameservers_come_from_resolv_conf_when_none_are_given(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.53\nnameserver 2001:db8::53\n")
    assert list(Resolver(resolv_conf=str(path))._stub.nameservers) == ["192.0.2.53", "2001:db8::53"]


async def test_closing_ends_the_lookups_under_way_and_later_ones_do_not_begin(server: DnsServer) -> None:
    server.dropped.add("*")
    resolver = asks_once(server)
    waiting = asyncio.create_task(resolver.txt("example.com"))
    await until(lambda: server.queries)
    await resolver.close()
    with pytest.raises(DnsTemporary, match="closed"):
        await waiting
    with pytest.raises(DnsTemporary, match="closed"):
        await resolver.txt("other.example")
    assert set(server.queries) == {("example.com", "TXT")}


async def test_a_thread_asks_through_the_same_cache(resolver: Resolver, server: DnsServer) -> None:
    threads = ThreadResolver(resolver, asyncio.get_running_loop())
    assert await asyncio.to_thread(threads.mx, "nomail.example", 60.0) == ((0, ""),)
    assert await asyncio.to_thread(threads.ipv4, "xn--bcher-kva.example", 60.0) == ("192.0.2.9",)
    assert await asyncio.to_thread(threads.ipv6, "mx.example.com", 60.0) == ("2001:db8::1",)
    assert await asyncio.to_thread(threads.ptr, "192.0.2.1", 60.0) == ("mx.example.com",)
    assert await asyncio.to_thread(threads.txt, "absent.example.com", 60.0) == ()
    assert await resolver.mx("nomail.example") == ((0, ""),)
    assert server.queries["nomail.example", "MX"] == 1


async def test_a_thread_waits_no_longer_than_it_said(resolver: Resolver, server: DnsServer) -> None:
    server.dropped.add("*")
    threads = ThreadResolver(resolver, asyncio.get_running_loop())
    with pytest.raises(DnsTemporary):
        await asyncio.to_thread(threads.txt, "example.com", 0.05)


async def test_a_thread_sees_a_failed_lookup_as_temporary(resolver: Resolver, server: DnsServer) -> None:
    server.servfail.add("*")
    threads = ThreadResolver(resolver, asyncio.get_running_loop())
    with pytest.raises(DnsTemporary):
        await asyncio.to_thread(threads.txt, "example.com", 60.0)


def test_a_thread_that_outlives_the_loop_gets_a_temporary_failure() -> None:
    async def build() -> ThreadResolver:
        return ThreadResolver(Resolver(["127.0.0.1:1"]), asyncio.get_running_loop())

    threads = asyncio.run(build())
    with pytest.raises(DnsTemporary):
        threads.txt("example.com", 1.0)


def test_lookups_work_under_uvloop() -> None:
    async def look_up() -> tuple[tuple[bytes, ...], tuple[str, ...]]:
        async with DnsServer(RECORDS) as server:
            server.truncated.add("example.com")
            resolver = asks_once(server)
            threads = ThreadResolver(resolver, asyncio.get_running_loop())
            return await asyncio.to_thread(threads.txt, "example.com", 60.0), await resolver.ptr("192.0.2.1")

    texts, names = uvloop.run(look_up())
    assert len(texts) == 2
    assert names == ("mx.example.com",)


def test_a_nameserver_may_be_given_with_or_without_port() -> None:
    async def build() -> list[str]:
        given = ["192.0.2.1", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::1]:5353", "[2001:db8::1]"]
        return [str(server) for server in Resolver(given)._stub.nameservers]

    assert asyncio.run(build()) == [
        "Do53:192.0.2.1@53",
        "Do53:192.0.2.1@5353",
        "Do53:2001:db8::1@53",
        "Do53:2001:db8::1@5353",
        "Do53:2001:db8::1@53",
    ]
