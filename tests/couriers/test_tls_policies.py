"""MTA-STS on the way out: fetched, remembered, and kept where it says enforce (RFC 8461)."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.couriers.tls.tls_policies import FAILURE_SECONDS, TlsPolicies
from postroom.external_mailboxes.fetching import Fetched, FetchError
from postroom.net.dns import Resolver
from postroom_mail.authentication.mta_sts import (
    POLICY_BYTES,
    StsPolicy,
    read_identity,
    read_policy,
    write_policy,
)
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.conftest import MakeCourier, failure_of, mail_to
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles_dns import DnsServer

ENFORCED = write_policy("enforce", ["mx.there.example"], 86400).encode()


class PolicyHost:
    """What lies at the well-known place; an exception is raised instead."""

    def __init__(self, body: bytes | FetchError = ENFORCED, status: int = 200) -> None:
        self.body, self.status = body, status
        self.asked: list[str] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        self.asked.append(url)
        if isinstance(self.body, FetchError):
            raise self.body
        return Fetched(self.status, self.body)


class Hours:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def published(dns: DnsServer) -> DnsServer:
    dns.records["_mta-sts.there.example", "TXT"] = ["v=STSv1; id=20160831085700Z;"]
    return dns


def test_the_policy_of_the_rfc_is_read() -> None:
    """RFC 8461, section 3.2."""
    raw = (
        b"version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\n"
        b"mx: backupmx.example.com\r\nmax_age: 604800\r\n"
    )
    policy = read_policy(raw)
    assert policy == StsPolicy(
        "enforce", ("mail.example.com", "*.example.net", "backupmx.example.com"), 604800
    )
    assert policy.allows("MAIL.example.com.")
    assert policy.allows("a.example.net")
    assert not policy.allows("example.net")
    assert not policy.allows("a.b.example.net")
    assert not policy.allows("evil.example")


def test_the_record_of_the_rfc_is_read() -> None:
    """RFC 8461, section 3.1."""
    assert read_identity([b"v=STSv1; id=20160831085700Z;", b"other"]) == "20160831085700Z"
    for texts in ([], [b"v=STSv1; id=a", b"v=STSv1; id=b"], [b"v=STSv1;"], [b"v=STSv1; id=a-b"]):
        assert read_identity(texts) is None


def test_what_is_no_policy_is_none() -> None:
    whole = ENFORCED.decode()
    for broken in (
        "",
        whole.replace("STSv1", "STSv2"),
        whole.replace("enforce", "often"),
        whole.replace("86400", "-1"),
        whole.replace("mx: mx.there.example", ""),
        whole.replace("mx.there.example", "<script>"),
        whole + "x" * POLICY_BYTES,
        whole + "mx: a.example\r\n" * 501,
    ):
        assert read_policy(broken.encode()) is None, broken[:80]


@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: ENFORCED + text.encode()))
def test_any_bytes_give_an_answer(raw: bytes) -> None:
    policy = read_policy(raw)
    assert policy is None or policy.mode in ("none", "testing", "enforce")


async def test_a_policy_is_fetched_once_and_again_when_its_id_changes(
    resolver: Resolver, published: DnsServer
) -> None:
    host, clock = PolicyHost(), Hours()
    policies = TlsPolicies(resolver, host, clock)
    for _ in range(3):
        assert await policies.find("there.example") == StsPolicy("enforce", ("mx.there.example",), 86400)
    assert host.asked == ["https://mta-sts.there.example/.well-known/mta-sts.txt"]
    clock.seconds += 86400
    await policies.find("there.example")
    assert len(host.asked) == 2, "it had expired"
    assert await policies.find("elsewhere.example") is None


async def test_a_remembered_policy_counts_while_none_can_be_found(
    resolver: Resolver, published: DnsServer
) -> None:
    host, clock = PolicyHost(), Hours()
    policies = TlsPolicies(resolver, host, clock)
    known = await policies.find("there.example")
    published.records["_mta-sts.gone.example", "TXT"] = ["v=STSv1; id=1"]
    host.body = FetchError("No answer.")
    assert await policies.find("gone.example") is None
    asked = len(host.asked)
    assert await policies.find("gone.example") is None
    assert len(host.asked) == asked, "a failure is remembered too"
    clock.seconds += FAILURE_SECONDS
    await policies.find("gone.example")
    assert len(host.asked) == asked + 1
    await resolver.close()
    published.servfail.add("*")
    other = Resolver([published.address], deadline_seconds=20)
    policies._resolver = other
    assert await policies.find("there.example") == known
    await other.close()


async def test_enforce_delivers_only_to_a_host_that_proves_its_name(
    resolver: Resolver, published: DnsServer, make_courier: MakeCourier, tmp_path: Path
) -> None:
    pem = make_certificate(tmp_path, "mx.there.example")
    policies = TlsPolicies(resolver, PolicyHost())
    async with SmtpPeer(tls=server_context(pem)) as peer:
        proving = make_courier(peer.port, trusted=trusting_context(pem), policies=policies)
        receipt = await proving.deliver(mail_to("bob@there.example"))
        assert (receipt.has_tls, receipt.tls) == (True, "mta-sts")
        again = await proving.deliver(mail_to("bob@there.example"))
        assert again.tls == "mta-sts"
        unknown = make_courier(peer.port, policies=policies)
        error = await failure_of(unknown.deliver(mail_to("bob@there.example")))
        assert not error.permanent
        assert len(peer.mails) == 2, "nothing went to a certificate that proves nothing"
        assert all(mail.in_tls for mail in peer.mails)
        plain = await make_courier(peer.port).deliver(mail_to("bob@there.example"))
        assert plain.tls == "opportunistic"


async def test_enforce_waits_where_tls_is_not_offered_or_the_host_is_another(
    resolver: Resolver, published: DnsServer, make_courier: MakeCourier
) -> None:
    async with SmtpPeer() as peer:
        strict = make_courier(peer.port, policies=TlsPolicies(resolver, PolicyHost()))
        error = await failure_of(strict.deliver(mail_to("bob@there.example")))
        assert (error.permanent, "no STARTTLS" in error.reason) == (False, True)
        other = PolicyHost(write_policy("enforce", ["mx.other.example"]).encode())
        error = await failure_of(
            make_courier(peer.port, policies=TlsPolicies(resolver, other)).deliver(
                mail_to("bob@there.example")
            )
        )
        assert "does not name its server mx.there.example" in error.reason
        assert peer.mails == []
        tested = PolicyHost(write_policy("testing", ["mx.other.example"]).encode())
        receipt = await make_courier(peer.port, policies=TlsPolicies(resolver, tested)).deliver(
            mail_to("bob@there.example")
        )
        assert receipt.tls == "none", "a policy that is tested changes nothing"
