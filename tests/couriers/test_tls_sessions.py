"""What a courier notes of how sessions began, in the words of RFC 8460."""

import socket
from pathlib import Path

from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.external_mailboxes.fetching import FetchError
from postroom.net.dns import Resolver
from postroom.outward.courier import OutgoingMail
from postroom.queue.tls_sessions import TlsSession
from postroom_mail.authentication.mta_sts import write_policy
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.conftest import RAW, MakeCourier, failure_of, mail_to
from tests.couriers.smtp_peer import SmtpPeer
from tests.couriers.test_tls_policies import PolicyHost
from tests.doubles_dns import DnsServer

HOST = "mx.there.example"


def words(sessions: tuple[TlsSession, ...]) -> list[tuple[str, str, str]]:
    return [(each.policy.kind, each.result, each.host) for each in sessions]


def policies_of(dns: DnsServer, resolver: Resolver, mode: str, host: str = HOST) -> TlsPolicies:
    dns.records["_mta-sts.there.example", "TXT"] = ["v=STSv1; id=1;"]
    return TlsPolicies(resolver, PolicyHost(write_policy(mode, [host], 86400).encode()))


async def test_a_session_is_noted_once_however_many_mails_it_carries(
    make_courier: MakeCourier, tmp_path: Path
) -> None:
    async with SmtpPeer(tls=server_context(make_certificate(tmp_path, HOST))) as peer:
        courier = make_courier(peer.port)
        first = await courier.deliver(mail_to("bob@there.example"))
        second = await courier.deliver(mail_to("bob@there.example"))
        assert words(first.sessions) == [("no-policy-found", "success", "")]
        assert second.sessions == ()


async def test_without_tls_and_policy_it_is_told_that_starttls_is_missing(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        receipt = await make_courier(peer.port).deliver(mail_to("bob@there.example"))
        assert words(receipt.sessions) == [("no-policy-found", "starttls-not-supported", HOST)]
        assert (receipt.sessions[0].ip, receipt.sessions[0].own_ip) == ("127.0.0.1", "127.0.0.1")


async def test_an_enforced_policy_tells_why_a_mail_waits(
    dns: DnsServer, resolver: Resolver, make_courier: MakeCourier, tmp_path: Path
) -> None:
    right, wrong = make_certificate(tmp_path, HOST), make_certificate(tmp_path, "other.example")
    policies = policies_of(dns, resolver, "enforce")
    for pem, trusted, result in (
        (right, right, "success"),
        (wrong, wrong, "certificate-host-mismatch"),
        (right, wrong, "certificate-not-trusted"),
    ):
        async with SmtpPeer(tls=server_context(pem)) as peer:
            courier = make_courier(peer.port, policies=policies, trusted=trusting_context(trusted))
            delivery = courier.deliver(mail_to("bob@there.example"))
            sessions = (
                (await delivery).sessions if result == "success" else (await failure_of(delivery)).sessions
            )
        assert [(each.policy.kind, each.result) for each in sessions] == [("sts", result)]
        assert sessions[0].policy.lines[:3] == ("version: STSv1", "mode: enforce", f"mx: {HOST}")
        assert sessions[0].policy.hosts == (HOST,)
        assert sessions[0].own_ip == ("" if result == "success" else "127.0.0.1")


async def test_a_policy_that_cannot_be_had_stops_no_mail_and_is_told(
    dns: DnsServer, resolver: Resolver, make_courier: MakeCourier, tmp_path: Path
) -> None:
    dns.records["_mta-sts.there.example", "TXT"] = ["v=STSv1; id=1;"]
    for host, result in (
        (PolicyHost(FetchError("No answer.")), "sts-policy-fetch-error"),
        (PolicyHost(status=404), "sts-policy-fetch-error"),
        (PolicyHost(FetchError("No connection.", is_unproved=True)), "sts-webpki-invalid"),
        (PolicyHost(b"version: STSv2"), "sts-policy-invalid"),
    ):
        async with SmtpPeer(tls=server_context(make_certificate(tmp_path, HOST))) as peer:
            courier = make_courier(peer.port, policies=TlsPolicies(resolver, host))
            receipt = await courier.deliver(mail_to("bob@there.example"))
            assert words(receipt.sessions) == [("sts", result, HOST)]
            assert (receipt.tls, len(peer.mails)) == ("opportunistic", 1)


async def test_a_tested_policy_stops_no_mail_and_is_told_what_it_would_have_stopped(
    dns: DnsServer, resolver: Resolver, make_courier: MakeCourier, tmp_path: Path
) -> None:
    pem = make_certificate(tmp_path, "other.example")
    async with SmtpPeer(tls=server_context(pem)) as peer:
        tested = make_courier(
            peer.port, policies=policies_of(dns, resolver, "testing"), trusted=trusting_context(pem)
        )
        receipt = await tested.deliver(mail_to("bob@there.example"))
        assert (receipt.tls, len(peer.mails)) == ("opportunistic", 1)
        assert words(receipt.sessions) == [("sts", "certificate-host-mismatch", HOST)]
    async with SmtpPeer(tls=server_context(pem)) as peer:
        off = make_courier(peer.port, policies=policies_of(dns, resolver, "none"))
        receipt = await off.deliver(mail_to("bob@there.example"))
        assert words(receipt.sessions) == [("no-policy-found", "success", "")]


async def test_dane_is_told_with_its_records(
    dns: DnsServer, make_courier: MakeCourier, tmp_path: Path
) -> None:
    dns.proved.add("*")
    async with SmtpPeer(tls=server_context(make_certificate(tmp_path, HOST))) as peer:
        record = f"3 1 1 {'00' * 32}"
        dns.records[f"_{peer.port}._tcp.{HOST}", "TLSA"] = [record]
        error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
        assert words(error.sessions) == [("tlsa", "validation-failure", HOST)]
        assert error.sessions[0].policy.lines == (record,)


async def test_a_server_that_is_away_says_nothing_of_tls(make_courier: MakeCourier) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        courier = make_courier(unused.getsockname()[1])
        assert (await failure_of(courier.deliver(mail_to("bob@there.example")))).sessions == ()


async def test_a_report_goes_whatever_tls_comes_to_and_is_in_no_report(
    dns: DnsServer, resolver: Resolver, make_courier: MakeCourier
) -> None:
    """RFC 8460, section 3."""
    async with SmtpPeer() as peer:
        strict = make_courier(peer.port, policies=policies_of(dns, resolver, "enforce"))
        await failure_of(strict.deliver(mail_to("bob@there.example")))
        report = OutgoingMail("", "tls@there.example", RAW, "there.example", is_tls_report=True)
        receipt = await strict.deliver(report)
        assert (receipt.sessions, len(peer.mails)) == ((), 1)
        await failure_of(strict.deliver(mail_to("bob@there.example")))
        assert len(peer.mails) == 1, "the session of a report is lent to no other mail"
