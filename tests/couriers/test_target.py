import socket
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.couriers.webhook import HttpCourier
from postroom.net.allowed_target import ForbiddenTarget, check_url, resolve_target
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.public_addresses import is_public
from tests.couriers.conftest import failure_of
from tests.couriers.http_peer import HttpPeer
from tests.doubles_dns import DnsServer
from tests.samples import samples


class TurnedTime:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


GOOD = [
    "http://hook.example/",
    "https://hook.example/path?query=1#part",
    "https://hook.example:443/",
    "https://hook.example:8443/",
    "http://hook.example:1024",
    "https://Bücher.example/",
    "https://a_b.example/",
    "https://hook.example./",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]:8443/",
    "http://xn--bcher-kva.example/",
]
PRIVATE_SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.5.5",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[2002:7f00:1::]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "app.localhost",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    "\u2460\u2461\u2466.0.0.1",
]
BAD_EVERYWHERE = [
    "",
    "hook.example",
    "//hook.example/",
    "ftp://hook.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://",
    "http:///path",
    "http://user@hook.example/",
    "http://user:password@hook.example/",
    "http://hook.example@127.0.0.1/",
    "http://hook.example\\@127.0.0.1/",
    "http://127.0.0.1#@hook.example\\",
    "http://hook.example:0/",
    "http://hook.example:65536/",
    "http://hook.example:99999999999/",
    "http://hook.example:x/",
    "http://hook example/",
    " http://hook.example/",
    "http://hook.example/\r\nX: y",
    "http://hook.example/\x00",
    "http://ho\tok.example/",
    "http://[::1/",
    "http://[::1%25eth0]/",
    "http://[v1.x]/",
    "http://hook%2eexample/",
    "http://hook..example/",
    "http://.example/",
    "http://1.2.3.256/",
    "http://hook.1/",
    "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 130 + "example/",
    "http://hook.example/" + "a" * 3000,
    "http://\ud800.example/",
    "http://\u202e.example/",
    "http://hook.example;x/",
    "http://hook,example/",
]


@samples(("url", "allow_private"), product(GOOD, (False, True)))
def test_a_public_http_url_is_valid(url: str, allow_private: bool) -> None:
    check_url(url, allow_private)


@samples(("url", "allow_private"), product(BAD_EVERYWHERE, (False, True)))
def test_what_is_no_plain_http_url_is_refused_everywhere(url: str, allow_private: bool) -> None:
    with pytest.raises(ForbiddenTarget) as caught:
        check_url(url, allow_private)
    assert caught.value.reason


@samples("host", PRIVATE_SPELLINGS)
def test_a_private_host_is_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(ForbiddenTarget):
        check_url(f"http://{host}:8080/", False)


@samples("host", ["127.0.0.1", "127.1", "[::1]", "10.0.0.1", "localhost", "app.localhost"])
def test_a_private_host_is_valid_where_it_is_allowed(host: str) -> None:
    check_url(f"http://{host}:25/", True)


@samples("port", [1, 21, 22, 25, 110, 465, 587, 1023])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(ForbiddenTarget):
        check_url(f"https://hook.example:{port}/", False)


@given(st.text(max_size=100) | st.from_regex(r"https?://[!-~]{0,60}", fullmatch=True), st.booleans())
def test_any_text_is_a_valid_url_or_refused(url: str, allow_private: bool) -> None:
    try:
        check_url(url, allow_private)
    except ForbiddenTarget:
        return
    assert url.lower().startswith(("http://", "https://"))


async def test_a_name_leads_to_all_its_addresses(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["hook.example", "A"] = ["8.8.8.8"]
    dns.records["hook.example", "AAAA"] = ["2606:4700::1"]
    target = await resolve_target(resolver, "https://Hook.Example:8443/path", False)
    assert (target.host, target.ips) == ("hook.example", ("8.8.8.8", "2606:4700::1"))
    assert target.host_header == "hook.example:8443"


async def test_an_address_leads_to_itself_without_a_lookup(resolver: Resolver, dns: DnsServer) -> None:
    target = await resolve_target(resolver, "https://134744072/", False)
    assert (target.host, target.ips) == ("8.8.8.8", ("8.8.8.8",))
    assert not dns.queries


PRIVATE_RECORDS = [
    ("A", ["127.0.0.1"]),
    ("A", ["8.8.8.8", "10.0.0.1"]),
    ("A", ["169.254.169.254"]),
    ("A", ["0.0.0.0"]),
    ("AAAA", ["::1"]),
    ("AAAA", ["fe80::1"]),
    ("AAAA", ["fd00::1"]),
    ("AAAA", ["::ffff:127.0.0.1"]),
    ("AAAA", ["64:ff9b::a00:1"]),
    ("AAAA", ["2606:4700::1", "::"]),
    ("CNAME", ["inside.example."]),
]


@pytest.mark.parametrize(("kind", "values"), PRIVATE_RECORDS)
async def test_a_name_with_any_private_address_is_refused_and_never_connected_to(
    resolver: Resolver, dns: DnsServer, kind: str, values: list[str]
) -> None:
    dns.records["hook.example", kind] = values
    dns.records["inside.example", "A"] = ["127.0.0.1"]
    courier = HttpCourier(resolver)
    async with HttpPeer() as peer, HttpPeer(address="::1", port=peer.port) as peer6:
        error = await failure_of(courier.post(peer.url(host="hook.example"), b"{}", {}))
    await courier.close()
    assert error.permanent
    assert (peer.connections, peer6.connections) == (0, 0)


async def test_a_name_that_turns_private_is_refused_from_then_on(dns: DnsServer) -> None:
    clock = TurnedTime()
    resolver = Resolver([dns.address], monotonic=clock)
    dns.records["hook.example", "A"] = ["8.8.8.8"]
    first = await resolve_target(resolver, "https://hook.example/", False)
    dns.records["hook.example", "A"] = ["127.0.0.1"]
    clock.seconds += 3600
    with pytest.raises(ForbiddenTarget):
        await resolve_target(resolver, "https://hook.example/", False)
    await resolver.close()
    assert first.ips == ("8.8.8.8",)
    assert all(is_public(ip) for ip in first.ips)


async def test_the_connection_goes_to_the_checked_address_without_a_second_lookup(dns: DnsServer) -> None:
    """The name exists in this DNS alone, and every further lookup would lead to the other peer."""
    clock = TurnedTime()

    def turn_the_name() -> float:
        if dns.queries["hook.example", "A"]:
            dns.records["hook.example", "A"] = ["127.0.0.2"]
            clock.seconds += 3600
        return clock()

    dns.records["hook.example", "A"] = ["127.0.0.1"]
    resolver = Resolver([dns.address], monotonic=turn_the_name)
    courier = HttpCourier(resolver, allow_private=True)
    async with HttpPeer() as checked, HttpPeer(address="127.0.0.2", port=checked.port) as other:
        answer = await courier.post(checked.url(host="hook.example"), b"{}", {})
    await courier.close()
    await resolver.close()
    assert answer.status == 200
    assert (checked.connections, other.connections) == (1, 0)
    assert dns.queries["hook.example", "A"] == 1


async def test_the_next_address_is_tried_when_one_does_not_listen(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["hook.example", "A"] = ["127.0.0.3", "127.0.0.4"]
    courier = HttpCourier(resolver, allow_private=True)
    async with HttpPeer(address="127.0.0.4") as peer:
        answer = await courier.post(peer.url(host="hook.example"), b"{}", {})
    await courier.close()
    assert answer.status == 200


async def test_a_peer_on_ipv6_is_reached(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["hook.example", "AAAA"] = ["::1"]
    courier = HttpCourier(resolver, allow_private=True)
    async with HttpPeer(address="::1") as peer:
        by_name = await courier.post(peer.url(host="hook.example"), b"{}", {})
        by_address = await courier.post(peer.url(host="[::1]"), b"{}", {})
    await courier.close()
    assert (by_name.status, by_address.status) == (200, 200)
    assert [request.header("Host") for request in peer.requests] == [
        f"hook.example:{peer.port}",
        f"[::1]:{peer.port}",
    ]


async def test_localhost_is_this_machine_without_a_lookup_where_it_is_allowed(
    resolver: Resolver, dns: DnsServer
) -> None:
    target = await resolve_target(resolver, "http://app.localhost:3000/", True)
    assert target.ips == ("127.0.0.1", "::1")
    assert not dns.queries


@pytest.mark.needs("a host name")
async def test_a_name_from_the_hosts_file_counts_only_where_private_targets_are_allowed(
    resolver: Resolver,
) -> None:
    url = f"http://{socket.gethostname()}/"
    target = await resolve_target(resolver, url, True)
    assert target.ips
    with pytest.raises(ForbiddenTarget):
        await resolve_target(resolver, url, False)


@pytest.mark.parametrize("allow_private", [False, True])
async def test_a_dns_that_does_not_answer_is_told_as_such(
    resolver: Resolver, dns: DnsServer, allow_private: bool
) -> None:
    dns.servfail.add("*")
    with pytest.raises(DnsTemporary):
        await resolve_target(resolver, "http://hook.invalid/", allow_private)


async def test_a_name_without_an_address_is_refused(resolver: Resolver) -> None:
    with pytest.raises(ForbiddenTarget, match="no address"):
        await resolve_target(resolver, "http://nowhere.example/", False)


async def test_a_silent_dns_is_a_temporary_failure(resolver: Resolver, dns: DnsServer) -> None:
    dns.servfail.add("*")
    courier = HttpCourier(resolver)
    error = await failure_of(courier.post("https://hook.example/", b"{}", {}))
    await courier.close()
    assert not error.permanent
