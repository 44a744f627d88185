"""DANE on the way out: asked where DNSSEC proves the way, and kept where records can be used (RFC 7672)."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from postroom.couriers.mail import SmtpCourier
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.net.dns import Resolver
from postroom_mail.authentication.mta_sts import write_policy
from tests.couriers.certificates import make_chain, server_context
from tests.couriers.conftest import MakeCourier, failure_of, mail_to
from tests.couriers.smtp_peer import SmtpPeer
from tests.couriers.test_tls_policies import PolicyHost
from tests.doubles_dns import DnsServer

HOST = "mx.there.example"


class Site:
    """A mail server with a certificate, and its records."""

    def __init__(self, peer: SmtpPeer, dns: DnsServer, own: str, authority: str) -> None:
        self.peer, self.dns = peer, dns
        self.own, self.authority = own, authority  # hashes of their keys
        self.name = f"_{peer.port}._tcp.{HOST}"

    def publish(self, *records: str) -> None:
        self.dns.records[self.name, "TLSA"] = list(records)


def key_hash(certificate: object) -> str:
    key = certificate.public_key()  # type: ignore[attr-defined]
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@pytest.fixture
async def site(dns: DnsServer, tmp_path: Path) -> AsyncIterator[Site]:
    pem, own, top = make_chain(tmp_path, HOST)
    dns.proved.add("*")
    async with SmtpPeer(tls=server_context(pem)) as peer:
        yield Site(peer, dns, key_hash(own), key_hash(top))


@pytest.fixture
def courier(site: Site, make_courier: MakeCourier) -> SmtpCourier:
    return make_courier(site.peer.port)


@pytest.mark.parametrize("usage", ["3 1 1 {own}", "2 1 1 {authority}", "3 1 1 {other}\n3 1 1 {own}"])
async def test_a_server_that_its_records_name_gets_the_mail(
    site: Site, courier: SmtpCourier, usage: str
) -> None:
    site.publish(*usage.format(own=site.own, authority=site.authority, other="00" * 32).split("\n"))
    receipt = await courier.deliver(mail_to("bob@there.example"))
    again = await courier.deliver(mail_to("bob@there.example"))
    assert (receipt.tls, again.tls, site.peer.connections) == ("dane", "dane", 1)


@pytest.mark.parametrize("record", ["3 1 1 {none}", "2 1 1 {none}", "2 1 1 {own}"])
async def test_a_server_with_another_certificate_gets_nothing(
    site: Site, courier: SmtpCourier, record: str
) -> None:
    site.publish(record.format(own=site.own, none="00" * 32))
    error = await failure_of(courier.deliver(mail_to("bob@there.example")))
    assert (error.permanent, error.enhanced) == (False, "4.7.5")
    assert "does not match its TLSA records" in error.reason
    assert (site.peer.mails, site.peer.stages["EHLO"]) == ([], 1), "nothing is said to it inside TLS"


async def test_without_starttls_a_server_with_records_gets_nothing(
    dns: DnsServer, make_courier: MakeCourier
) -> None:
    dns.proved.add("*")
    for record in (f"3 1 1 {'00' * 32}", f"1 1 1 {'00' * 32}"):
        async with SmtpPeer() as peer:
            dns.records[f"_{peer.port}._tcp.{HOST}", "TLSA"] = [record]
            error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
            assert (error.permanent, "no STARTTLS" in error.reason, peer.mails) == (False, True, [])


async def test_records_that_cannot_be_used_ask_for_encryption_alone(site: Site, courier: SmtpCourier) -> None:
    site.publish(f"0 0 1 {'00' * 32}", f"1 1 1 {'00' * 32}", f"3 1 9 {'00' * 32}")
    receipt = await courier.deliver(mail_to("bob@there.example"))
    assert receipt.tls == "opportunistic"


async def test_what_is_not_proved_is_as_if_there_were_no_records(
    site: Site, make_courier: MakeCourier, dns: DnsServer
) -> None:
    site.publish(f"3 1 1 {'00' * 32}")
    for proved in (set(), {"there.example"}, {HOST, site.name}, {"there.example", HOST}):
        dns.proved = proved
        dns.ttl_seconds = 0
        resolver = Resolver([dns.address], deadline_seconds=20)
        courier = SmtpCourier(resolver, own_name="here.example", allow_private=True, port=site.peer.port)
        receipt = await courier.deliver(mail_to("bob@there.example"))
        assert receipt.tls == "opportunistic", proved
        await courier.close()
        await resolver.close()
    assert dns.queries[site.name, "TLSA"] == 1, "where its address is not proved, nobody is asked for more"


async def test_a_resolver_whose_word_does_not_count_is_not_asked(site: Site, dns: DnsServer) -> None:
    site.publish(f"3 1 1 {'00' * 32}")
    resolver = Resolver([dns.address], deadline_seconds=20, trusts_dnssec=False)
    courier = SmtpCourier(resolver, own_name="here.example", allow_private=True, port=site.peer.port)
    assert (await courier.deliver(mail_to("bob@there.example"))).tls == "opportunistic"
    assert dns.queries[site.name, "TLSA"] == 0
    await courier.close()
    await resolver.close()


async def test_no_valid_answer_puts_the_mail_off(site: Site, courier: SmtpCourier, dns: DnsServer) -> None:
    site.publish(f"3 1 1 {site.own}")
    dns.servfail.add(site.name)
    error = await failure_of(courier.deliver(mail_to("bob@there.example")))
    assert (error.permanent, error.enhanced, site.peer.connections) == (False, "4.7.5", 0)


async def test_records_stand_at_the_end_of_an_alias_or_at_its_beginning(
    site: Site, dns: DnsServer, make_courier: MakeCourier
) -> None:
    """RFC 7672, section 2.2.2."""
    for at in ("real.there.example", HOST):
        dns.records = {
            ("there.example", "MX"): [f"10 {HOST}."],
            (HOST, "CNAME"): ["real.there.example."],
            ("real.there.example", "A"): ["127.0.0.1"],
            (f"_{site.peer.port}._tcp.{at}", "TLSA"): [f"3 1 1 {site.own}"],
        }
        resolver = Resolver([dns.address], deadline_seconds=20)
        courier = SmtpCourier(resolver, own_name="here.example", allow_private=True, port=site.peer.port)
        assert (await courier.deliver(mail_to("bob@there.example"))).tls == "dane", at
        await courier.close()
        await resolver.close()


async def test_dane_counts_before_mta_sts(site: Site, dns: DnsServer, make_courier: MakeCourier) -> None:
    """RFC 8461, section 2: neither makes up for the other."""
    dns.records["_mta-sts.there.example", "TXT"] = ["v=STSv1; id=1;"]
    other = PolicyHost(write_policy("enforce", ["mx.other.example"]).encode())
    site.publish(f"3 1 1 {site.own}")
    policies = TlsPolicies(Resolver([dns.address], deadline_seconds=20), other)
    receipt = await make_courier(site.peer.port, policies=policies).deliver(mail_to("bob@there.example"))
    assert receipt.tls == "dane", "proved, although the policy of MTA-STS names another host"


def test_only_a_resolver_of_this_machine_is_believed_unasked(tmp_path: Path) -> None:
    def believes(*servers: str, trusts: bool | None = None) -> bool:
        conf = tmp_path / "resolv.conf"
        conf.write_text("".join(f"nameserver {server}\n" for server in servers))
        return Resolver(resolv_conf=str(conf), trusts_dnssec=trusts).trusts_dnssec

    assert believes("127.0.0.1")
    assert believes("127.0.0.53", "::1")
    assert not believes("127.0.0.1", "192.0.2.1")
    assert not believes("127.0.0.11"), "of containers"
    assert not believes()
    assert believes("192.0.2.1", trusts=True)
    assert not believes("127.0.0.1", trusts=False)
