"""Each record as it is wanted and as a DNS on the loopback has it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from postroom.deliverability import server_checks
from postroom.deliverability.findings import HealthCheck, quoted
from postroom.deliverability.zone_checks import ZONE_CHECKS, Questions, WantedRecords, answered
from postroom.net.dns import Resolver, ThreadResolver
from postroom.queue.statistics import OutsideAnswers
from postroom_mail.authentication import mta_sts
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles_dns import DnsServer

POLICY = mta_sts.write_policy("testing", ["mx.host.example"])
WANTED = WantedRecords(
    domain="mail.ours.example",
    host="mx.host.example",
    comes_by_mx=True,
    leaves_by_mx=True,
    dkim=(
        ("postroom._domainkey.mail.ours.example", "v=DKIM1; k=rsa; p=AAAABBBB"),
        ("second._domainkey.mail.ours.example", "v=DKIM1; k=ed25519; p=CCCC"),
    ),
    spf="v=spf1 include:mx.host.example ~all",
    dmarc="v=DMARC1; p=quarantine",
    policy=POLICY,
)
WHOLE: dict[tuple[str, str], list[str]] = {
    ("mx.host.example", "A"): ["192.0.2.25"],
    ("mx.host.example", "TXT"): ["v=spf1 a -all"],
    ("25.2.0.192.in-addr.arpa", "PTR"): ["mx.host.example."],
    ("mail.ours.example", "MX"): ["10 mx.host.example."],
    ("mail.ours.example", "TXT"): ["some-proof=1", "v=spf1 include:mx.host.example ~all"],
    ("postroom._domainkey.mail.ours.example", "TXT"): ["v=DKIM1; k=rsa; p=AAAA BBBB"],
    ("second._domainkey.mail.ours.example", "TXT"): ["v=DKIM1; k=ed25519; p=CCCC"],
    ("_dmarc.mail.ours.example", "TXT"): ["v=DMARC1; p=none"],
    ("_mta-sts.mail.ours.example", "TXT"): [mta_sts.write_record(POLICY)],
    ("_smtp._tls.mail.ours.example", "TXT"): ["v=TLSRPTv1; rua=mailto:tls@ours.example"],
}


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    async with DnsServer(WHOLE) as server:
        yield server


def resolver_of(dns: DnsServer) -> Resolver:
    return Resolver([dns.address], deadline_seconds=60)


async def look(dns: DnsServer) -> dict[str, HealthCheck]:
    resolver = resolver_of(dns)
    addresses = await server_checks.find_addresses(resolver, WANTED.host)
    ask = Questions(resolver, ThreadResolver(resolver, asyncio.get_running_loop()), addresses)
    found = [await answered(name, check(WANTED, ask)) for name, check in ZONE_CHECKS]
    await resolver.close()
    return {each.name: each for each in found}


async def test_a_whole_zone_is_ok_in_every_check(dns: DnsServer) -> None:
    found = await look(dns)
    assert {name: each.state for name, each in found.items()} == dict.fromkeys(dict(ZONE_CHECKS), "ok")
    assert found["MX"].paste == "mail.ours.example. 3600 IN MX 10 mx.host.example."
    assert found["SPF"].found == "v=spf1 include:mx.host.example ~all"


async def test_an_empty_zone_misses_every_record_and_says_what_to_paste(dns: DnsServer) -> None:
    dns.records = {key: value for key, value in dns.records.items() if "ours" not in key[0]}
    found = await look(dns)
    assert {each.state for each in found.values()} == {"missing"}
    assert all(each.paste and each.why for each in found.values())
    assert found["MTA-STS"].paste.endswith("mta-sts.mail.ours.example. 3600 IN CNAME mx.host.example.")


async def test_a_dns_that_does_not_answer_breaks_nothing(dns: DnsServer) -> None:
    dns.servfail.add("*")
    assert {each.state for each in (await look(dns)).values()} == {"unknown"}


@pytest.mark.parametrize(
    ("check", "name", "kind", "values"),
    [
        ("MX", "mail.ours.example", "MX", ["10 elsewhere.example."]),
        ("SPF", "mail.ours.example", "TXT", ["v=spf1 -all"]),
        ("SPF", "mail.ours.example", "TXT", ["v=spf1 include:mx.host.example -all", "v=spf1 -all"]),
        ("DKIM", "postroom._domainkey.mail.ours.example", "TXT", ["v=DKIM1; p="]),
        ("DKIM", "second._domainkey.mail.ours.example", "TXT", ["v=DKIM1; k=ed25519; p=DDDD"]),
        ("DMARC", "_dmarc.mail.ours.example", "TXT", ["v=DMARC1; p=none", "v=DMARC1; p=reject"]),
        ("DMARC", "_dmarc.mail.ours.example", "TXT", ["v=DMARC1; rua=mailto:a@b.example"]),
        ("MTA-STS", "_mta-sts.mail.ours.example", "TXT", ["v=STSv1; id=not-alphanumeric"]),
        ("TLS-RPT", "_smtp._tls.mail.ours.example", "TXT", ["v=TLSRPTv1; rua=ftp:nowhere"]),
    ],
)
async def test_a_record_that_says_something_else_is_wrong(
    dns: DnsServer, check: str, name: str, kind: str, values: list[str]
) -> None:
    dns.records[name, kind] = values
    found = await look(dns)
    assert found[check].state == "wrong"
    assert [each.name for each in found.values() if each.state != "ok"] == [check]


async def test_the_policy_of_the_organization_counts_for_a_domain_below_it(dns: DnsServer) -> None:
    del dns.records["_dmarc.mail.ours.example", "TXT"]
    dns.records["_dmarc.ours.example", "TXT"] = ["v=DMARC1; p=reject"]
    found = (await look(dns))["DMARC"]
    assert (found.state, found.found) == ("ok", "p=reject, by the record of ours.example")


async def test_what_a_zone_says_is_shown_in_bounds(dns: DnsServer) -> None:
    dns.records["mail.ours.example", "TXT"] = [f"v=spf1 {'a ' * 530}-all"]
    assert len((await look(dns))["SPF"].found) == 1000


async def test_a_reverse_name_must_lead_back_to_the_address(dns: DnsServer) -> None:
    resolver, addresses = resolver_of(dns), ("192.0.2.25",)
    assert (await server_checks.check_reverse_names(resolver, WANTED.host, addresses)).state == "ok"
    dns.records["26.2.0.192.in-addr.arpa", "PTR"] = ["mx.host.example."]
    lying = await server_checks.check_reverse_names(resolver, WANTED.host, ("192.0.2.26",))
    assert (lying.state, lying.found) == ("wrong", "192.0.2.26 mx.host.example")
    assert (
        await server_checks.check_reverse_names(resolver, WANTED.host, ("192.0.2.27",))
    ).state == "missing"
    assert (await server_checks.check_reverse_names(resolver, WANTED.host, ())).state == "missing"
    await resolver.close()


async def test_block_lists_tell_listed_from_not_listed_and_from_refused(dns: DnsServer) -> None:
    dns.records["25.2.0.192.bl.example", "A"] = ["127.0.0.2"]
    dns.records["25.2.0.192.closed.example", "A"] = ["127.255.255.254"]
    dns.records["25.2.0.192.parked.example", "A"] = ["203.0.113.9"]
    dns.records["2.0.0.127.free.example", "A"] = ["127.0.0.2"]
    resolver, addresses = resolver_of(dns), ("192.0.2.25",)
    zones = ("bl.example", "closed.example", "parked.example", "free.example")
    found = [await server_checks.check_block_list(resolver, zone, addresses) for zone in zones]
    assert [each.state for each in found] == ["wrong", "unknown", "unknown", "ok"]
    assert found[0].found == "192.0.2.25 127.0.0.2"
    await resolver.close()


def test_the_name_that_a_list_is_asked_for_is_that_of_the_rfc() -> None:
    """RFC 5782, sections 2.1 and 2.4."""
    assert server_checks.listed_name("192.0.2.99", "bad.example.com") == "99.2.0.192.bad.example.com"
    assert server_checks.listed_name("2001:db8::1", "l.example") == f"1.{'0.' * 23}8.b.d.0.1.0.0.2.l.example"


async def test_port_25_in_is_asked_with_starttls() -> None:
    async with SmtpPeer() as peer:
        found = await server_checks.check_port_in("mx.host.example", ("127.0.0.1",), peer.port)
    assert (found.state, found.found) == ("wrong", "127.0.0.1 answers without STARTTLS")
    gone = await server_checks.check_port_in("mx.host.example", ("127.0.0.1",), peer.port)
    assert gone.state == "wrong"
    assert (await server_checks.check_port_in("mx.host.example", ())).state == "unknown"


def test_port_25_out_is_judged_by_what_became_of_mail() -> None:
    states = {
        OutsideAnswers(0, 0): "unknown",
        OutsideAnswers(0, 3): "wrong",
        OutsideAnswers(1, 3): "ok",
    }
    for answers, state in states.items():
        assert server_checks.check_port_out(True, answers).state == state
    assert server_checks.check_port_out(False, OutsideAnswers(0, 3)).state == "ok"


def test_a_long_text_is_written_in_strings_of_255_characters() -> None:
    assert quoted("a" * 300) == f'"{"a" * 255}" "{"a" * 45}"'


def test_the_id_of_a_policy_changes_with_it_and_fits_the_record() -> None:
    """RFC 8461, section 3.1: one to 32 letters and digits."""
    other = mta_sts.write_policy("enforce", ["mx.host.example"])
    assert mta_sts.policy_id(POLICY) != mta_sts.policy_id(other)
    assert mta_sts.policy_id(POLICY).isalnum()
    assert POLICY == "version: STSv1\r\nmode: testing\r\nmx: mx.host.example\r\nmax_age: 604800\r\n"
