import random
import socket
from contextlib import AsyncExitStack

import pytest

from postroom.couriers.routing import MAX_ADDRESSES, Hop, find_hops
from postroom.net.dns import Resolver
from tests.couriers.conftest import MakeCourier, failure_of, mail_to
from tests.couriers.smtp_peer import DROP, SmtpPeer, Stage
from tests.doubles_dns import DnsServer


def add_hosts(dns: DnsServer, domain: str, *preferences: int) -> None:
    """Hosts mx0, mx1… with the addresses 127.0.0.1, 127.0.0.2…"""
    dns.records[domain, "MX"] = [f"{value} mx{at}.{domain}." for at, value in enumerate(preferences)]
    for at in range(len(preferences)):
        dns.records[f"mx{at}.{domain}", "A"] = [f"127.0.0.{at + 1}"]


async def hosts_of(resolver: Resolver, domain: str) -> list[str]:
    return [hop.host.partition(".")[0] for hop in await find_hops(resolver, domain, allow_private=True)]


async def test_hosts_come_in_the_order_of_their_preference(resolver: Resolver, dns: DnsServer) -> None:
    add_hosts(dns, "order.example", 30, 10, 20)
    assert await hosts_of(resolver, "order.example") == ["mx1", "mx2", "mx0"]


async def test_hosts_of_equal_preference_are_shuffled(resolver: Resolver, dns: DnsServer) -> None:
    add_hosts(dns, "equal.example", 10, 10, 10, 5, 20)
    orders = [await hosts_of(resolver, "equal.example") for _ in range(100)]
    assert {(order[0], order[-1]) for order in orders} == {("mx3", "mx4")}
    assert {order[1] for order in orders} == {"mx0", "mx1", "mx2"}


async def test_the_shuffle_sees_one_preference_at_a_time(resolver: Resolver, dns: DnsServer) -> None:
    add_hosts(dns, "equal.example", 10, 10, 20)
    hops = await find_hops(resolver, "equal.example", allow_private=True, shuffle=list.reverse)
    assert [hop.ip for hop in hops] == ["127.0.0.2", "127.0.0.1", "127.0.0.3"]


async def test_a_domain_without_mx_is_its_own_host(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["plain.example", "A"] = ["8.8.8.8"]
    dns.records["plain.example", "AAAA"] = ["2606:4700::1"]
    hops = await find_hops(resolver, "plain.example")
    assert hops == [Hop("plain.example", "8.8.8.8"), Hop("plain.example", "2606:4700::1")]


async def test_at_most_five_addresses_are_tried(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["many.example", "A"] = [f"8.8.8.{number}" for number in range(1, 30)]
    assert len(await find_hops(resolver, "many.example")) == MAX_ADDRESSES == 5


async def test_a_domain_that_does_not_exist_is_unknown(resolver: Resolver) -> None:
    error = await failure_of(find_hops(resolver, "nowhere.example"))
    assert (error.permanent, error.enhanced, error.code) == (True, "5.1.2", None)
    assert error.reason == "unknown domain nowhere.example"


async def test_a_null_mx_accepts_no_mail(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["null.example", "MX"] = ["0 ."]
    dns.records["null.example", "A"] = ["8.8.8.8"]
    error = await failure_of(find_hops(resolver, "null.example"))
    assert (error.permanent, error.enhanced) == (True, "5.1.10")


async def test_a_null_mx_beside_real_hosts_is_ignored(resolver: Resolver, dns: DnsServer) -> None:
    add_hosts(dns, "half.example", 10)
    dns.records["half.example", "MX"] = ["0 .", "10 mx0.half.example."]
    assert await hosts_of(resolver, "half.example") == ["mx0"]


@pytest.mark.parametrize("records", [{}, {("bare.example", "MX"): ["10 gone.bare.example."]}])
async def test_a_domain_whose_hosts_have_no_address_has_no_mail_server(
    resolver: Resolver, dns: DnsServer, records: dict[tuple[str, str], list[str]]
) -> None:
    dns.records["bare.example", "TXT"] = ["here, but without mail"]
    dns.records.update(records)
    error = await failure_of(find_hops(resolver, "bare.example"))
    assert (error.permanent, error.enhanced) == (True, "5.4.4")


@pytest.mark.parametrize("silent", ["silent.example", "mx0.silent.example"])
async def test_a_silent_dns_is_a_temporary_fault(resolver: Resolver, dns: DnsServer, silent: str) -> None:
    add_hosts(dns, "silent.example", 10)
    dns.servfail.add(silent)
    error = await failure_of(find_hops(resolver, "silent.example", allow_private=True))
    assert (error.permanent, error.enhanced) == (False, "4.4.3")


async def test_a_host_that_cannot_be_looked_up_does_not_hide_the_others(
    resolver: Resolver, dns: DnsServer
) -> None:
    add_hosts(dns, "partly.example", 10, 20)
    dns.servfail.add("mx0.partly.example")
    assert await hosts_of(resolver, "partly.example") == ["mx1"]


PRIVATE = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("ip", PRIVATE)
async def test_a_domain_with_only_private_addresses_is_refused_for_good(
    resolver: Resolver, dns: DnsServer, ip: str
) -> None:
    dns.records["inside.example", "AAAA" if ":" in ip else "A"] = [ip]
    error = await failure_of(find_hops(resolver, "inside.example"))
    assert (error.permanent, error.enhanced) == (True, "5.4.4")
    assert "public" in error.reason


async def test_private_addresses_beside_public_ones_are_left_out(resolver: Resolver, dns: DnsServer) -> None:
    dns.records["mixed.example", "A"] = ["10.0.0.1", "8.8.8.8"]
    assert [hop.ip for hop in await find_hops(resolver, "mixed.example")] == ["8.8.8.8"]


async def test_a_private_address_is_not_even_connected_to(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port, allow_private=False)
        error = await failure_of(courier.deliver(mail_to("bob@there.example")))
    assert error.permanent
    assert peer.connections == 0


@pytest.mark.parametrize("domain", ["a b", "[127.0.0.1]", "x" * 300, "..", "", "\x00.example", "-.example"])
async def test_no_domain_is_strange_enough_to_break_the_lookup(resolver: Resolver, domain: str) -> None:
    error = await failure_of(find_hops(resolver, domain))
    assert error.permanent


@pytest.mark.parametrize(
    "behaviour",
    [
        {"greeting": b"554 5.3.2 go away"},
        {"greeting": DROP},
        {"EHLO": b"421 4.3.2 busy"},
        {"MAIL": b"451 4.3.0 busy"},
        {"RCPT": b"450 4.2.0 greylisted"},
        {"DATA": DROP},
    ],
)
async def test_the_next_host_is_tried_when_one_cannot_help_now(
    make_courier: MakeCourier, dns: DnsServer, behaviour: dict[Stage, bytes | list[bytes]]
) -> None:
    add_hosts(dns, "two.example", 10, 20)
    async with SmtpPeer(behaviour) as first, SmtpPeer(address="127.0.0.2", port=first.port) as second:
        receipt = await make_courier(first.port).deliver(mail_to("bob@two.example"))
    assert receipt.host == "mx1.two.example"
    assert (first.connections, len(second.mails)) == (1, 1)


async def test_the_next_host_is_tried_when_one_does_not_listen(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    add_hosts(dns, "two.example", 10, 20)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with SmtpPeer(address="127.0.0.2", port=unused.getsockname()[1]) as second:
            await make_courier(second.port).deliver(mail_to("bob@two.example"))
    assert len(second.mails) == 1


@pytest.mark.parametrize("dot", [DROP, b"451 4.3.0 disk full", b"550 5.7.1 spam"])
async def test_no_other_host_gets_a_mail_that_one_has_heard_to_the_end(
    make_courier: MakeCourier, dns: DnsServer, dot: bytes
) -> None:
    add_hosts(dns, "two.example", 10, 20)
    async with SmtpPeer({"dot": dot}) as first, SmtpPeer(address="127.0.0.2", port=first.port) as second:
        await failure_of(make_courier(first.port).deliver(mail_to("bob@two.example")))
    assert second.connections == 0


async def test_no_other_host_is_asked_about_a_refused_recipient(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    add_hosts(dns, "two.example", 10, 20)
    unknown = b"550 5.1.1 no such user"
    async with SmtpPeer({"RCPT": unknown}) as first, SmtpPeer(address="127.0.0.2", port=first.port) as second:
        error = await failure_of(make_courier(first.port).deliver(mail_to("bob@two.example")))
    assert (error.code, error.host, second.connections) == (550, "mx0.two.example", 0)


async def test_hosts_that_all_turn_us_away_end_the_delivery_only_if_all_do_so_for_good(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    add_hosts(dns, "three.example", 10, 20, 30)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(SmtpPeer({"greeting": b"554 no"}))
        second = await stack.enter_async_context(
            SmtpPeer({"greeting": b"421 busy"}, address="127.0.0.2", port=first.port)
        )
        third = await stack.enter_async_context(
            SmtpPeer({"greeting": b"554 no"}, address="127.0.0.3", port=first.port)
        )
        courier = make_courier(first.port)
        mixed = await failure_of(courier.deliver(mail_to("bob@three.example")))
        second.behaviour["greeting"] = b"554 no"
        unanimous = await failure_of(courier.deliver(mail_to("bob@three.example")))
    assert (mixed.permanent, mixed.code, mixed.host) == (False, 421, "mx1.three.example")
    assert (unanimous.permanent, unanimous.code) == (True, 554)
    assert third.connections == 2


async def test_mail_to_a_domain_of_equal_hosts_reaches_each_of_them(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    add_hosts(dns, "two.example", 10, 10)
    shuffle = random.Random(1).shuffle
    async with SmtpPeer() as first, SmtpPeer(address="127.0.0.2", port=first.port) as second:
        for _ in range(20):
            courier = make_courier(first.port, shuffle=shuffle)
            await courier.deliver(mail_to("bob@two.example"))
    assert len(first.mails) + len(second.mails) == 20
    assert first.mails
    assert second.mails
