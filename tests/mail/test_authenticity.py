import asyncio
import base64

import dkim
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from postroom.net.dns import Resolver, ThreadResolver
from postroom_mail.authentication.authenticity import Judgement, check
from tests.doubles_dns import DnsServer, ZoneLookup, asks_once
from tests.mail.keys import private_key
from tests.samples import samples

KEY = private_key()
PEER = "192.0.2.10"
MAIL = b"From: Ann <ann@sender.test>\r\nTo: bob@here.test\r\nSubject: Hi\r\n\r\nHello Bob\r\n"
WORDS = {"pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"}


def key_record() -> str:
    der = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "v=DKIM1; p=" + base64.b64encode(der).decode()


RECORDS: dict[tuple[str, str], list[str | bytes]] = {
    ("sender.test", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
    ("s1._domainkey.sender.test", "TXT"): [key_record()],
    ("_dmarc.sender.test", "TXT"): ["v=DMARC1; p=reject"],
}


def signed(mail: bytes = MAIL, names: list[bytes] | None = None) -> bytes:
    pem = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    header: bytes = dkim.sign(mail, b"s1", b"sender.test", pem, include_headers=names)
    return header + mail


SIGNED = signed()


def verdicts(
    raw: bytes,
    *,
    zone: ZoneLookup | None = None,
    peer_ip: str | None = PEER,
    mail_from: str = "ann@sender.test",
    from_address: str = "ann@sender.test",
    covered: tuple[str, ...] = (),
) -> Judgement:
    return check(
        raw,
        peer_ip=peer_ip,
        helo="mail.sender.test",
        mail_from=mail_from,
        from_address=from_address,
        lookup=zone or ZoneLookup(RECORDS),
        covered=covered,
    )


def test_a_mail_from_its_own_server_passes_everything() -> None:
    assert verdicts(SIGNED) == Judgement("pass", "pass", "pass", "sender.test", "reject")


def test_a_forwarded_mail_passes_by_its_signature() -> None:
    found = verdicts(SIGNED, peer_ip="203.0.113.9")
    assert found == Judgement("fail", "pass", "pass", "sender.test", "reject")


def test_a_signature_counts_only_if_it_covers_what_was_asked() -> None:
    for raw, word in (
        (SIGNED, "pass"),
        (signed(names=[b"from", b"subject"]), "fail"),
        (b"To: eve@evil.test\r\n" + signed(names=[b"from", b"to"]), "fail"),
    ):
        found = verdicts(raw, peer_ip="203.0.113.9", covered=("to",))
        assert (found.dkim, found.dmarc) == (word, word)


def test_an_unsigned_mail_passes_by_its_sender() -> None:
    assert verdicts(MAIL) == Judgement("pass", "none", "pass", "sender.test", "reject")


def test_a_forged_mail_fails() -> None:
    found = verdicts(MAIL, peer_ip="203.0.113.9", mail_from="eve@evil.test")
    assert found == Judgement("none", "none", "fail", "sender.test", "reject")


def test_the_good_name_of_another_domain_does_not_help_a_forger() -> None:
    zone = ZoneLookup(RECORDS)
    zone.records["evil.test", "TXT"] = ["v=spf1 +all"]
    found = verdicts(MAIL, zone=zone, peer_ip="203.0.113.9", mail_from="eve@evil.test")
    assert found == Judgement("pass", "none", "fail", "sender.test", "reject")


def test_a_mail_that_never_crossed_the_network_is_not_checked() -> None:
    zone = ZoneLookup(RECORDS)
    assert verdicts(SIGNED, zone=zone, peer_ip=None) == Judgement("none", "none", "none", "sender.test")
    assert zone.asked == []


def test_unknown_domains_give_none() -> None:
    assert verdicts(MAIL, zone=ZoneLookup()) == Judgement("none", "none", "none", "sender.test")


def test_a_dead_dns_gives_temporary_errors() -> None:
    found = verdicts(SIGNED, zone=ZoneLookup(dead={"*"}))
    assert found == Judgement("temperror", "temperror", "temperror", "sender.test")


def test_a_mail_without_author_has_no_dmarc_verdict() -> None:
    found = verdicts(MAIL.partition(b"\r\n")[2], from_address="")
    assert found == Judgement("pass", "none", "none", "")


@samples(
    "field",
    [
        b"From: ann@sender.test, eve@evil.test",
        b"From: eve@evil.test, ann@sender.test",
        b"From: ann@sender.test\r\nFrom: eve@evil.test",
        b"From: eve@evil.test",
        b'From: "ann@sender.test" <eve@evil.test>',
        b"From: \xff\xfe@sender.test",
        b"From: " + b"(" * 3000,
        b"From: " + b"x" * 5000 + b" <ann@sender.test>",
    ],
)
def test_an_author_that_is_not_one_clear_domain_is_a_permanent_error(field: bytes) -> None:
    assert verdicts(field + b"\r\n\r\nHello\r\n").dmarc == "permerror"


@samples(
    ("authors", "policy"),
    [
        ("eve@evil.test, ann@sender.test", "reject"),
        ("ann@sender.test, eve@evil.test", "reject"),
        ("eve@evil.test, tim@shop.test, ann@sender.test", "reject"),
        ("eve@evil.test, tim@shop.test", "quarantine"),
        ("eve@evil.test\r\nFrom: ann@sender.test", "reject"),
        ('"ann@sender.test, x" <eve@evil.test>, ann@sender.test', "reject"),
        ("eve@evil.test, kim@open.test", None),
        ("eve@evil.test, " + "".join(f"a@{n}.test, " for n in range(9)) + "ann@sender.test", None),
        ("ann@sender.test, " + "".join(f"a@{n}.test, " for n in range(9)) + "eve@evil.test", "reject"),
    ],
)
def test_of_several_authors_the_strictest_policy_that_fails_counts(authors: str, policy: str | None) -> None:
    """Only the domain that sent it proves something: a further author borrows the name of another."""
    zone = ZoneLookup(
        {
            ("_dmarc.sender.test", "TXT"): ["v=DMARC1; p=reject"],
            ("_dmarc.shop.test", "TXT"): ["v=DMARC1; p=quarantine"],
            ("_dmarc.open.test", "TXT"): ["v=DMARC1; p=none"],
            ("_dmarc.evil.test", "TXT"): ["v=DMARC1; p=reject"],
            ("evil.test", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
        }
    )
    raw = f"From: {authors}\r\n\r\nHello\r\n".encode()
    shown = authors.partition(",")[0].partition("\r")[0] if authors[0] != '"' else "eve@evil.test"
    found = verdicts(raw, zone=zone, mail_from="eve@evil.test", from_address=shown)
    assert (found.dmarc, found.policy) == ("permerror" if policy is None else "fail", policy)


def test_a_header_too_large_to_judge_is_a_permanent_error() -> None:
    found = verdicts(b"X: y\r\n" * 200_000 + SIGNED)
    assert found == Judgement("pass", "permerror", "permerror", "sender.test")


@samples("address", ["ann", "ann@", "ann@localhost", "ann@[192.0.2.1]"])
def test_an_author_without_domain_is_a_permanent_error(address: str) -> None:
    assert verdicts(MAIL, from_address=address) == Judgement("pass", "none", "permerror", "")


@samples(
    "field",
    [
        b"From: Ann <ann@SENDER.test>",
        b'from:\r\n "Ann, the one" <ann@sender.test>',
        b"FROM : ann@sender.test",
        b"From: ann@sender.test, bob@sender.test",
        b"From: =?utf-8?q?J=C3=B6rg?= <ann@sender.test>",
        "From: Jörg <ann@sender.test>".encode(),
    ],
)
def test_the_usual_spellings_of_an_author_are_one_domain(field: bytes) -> None:
    assert verdicts(field + b"\r\n\r\nHello\r\n").dmarc == "pass"


def test_what_the_deadline_cuts_off_is_a_temporary_error() -> None:
    zone = ZoneLookup(RECORDS)

    def monotonic() -> float:
        """Every lookup takes three seconds."""
        return 3.0 * len(zone.asked)

    found = check(
        SIGNED,
        peer_ip=PEER,
        helo="mail.sender.test",
        mail_from="ann@sender.test",
        from_address="ann@sender.test",
        lookup=zone,
        deadline_seconds=8.0,
        monotonic=monotonic,
    )
    assert found == Judgement("pass", "temperror", "pass", "sender.test", "reject")
    assert len(zone.asked) == 3


def test_name_servers_of_the_senders_choice_do_not_hide_a_policy() -> None:
    zone = ZoneLookup(RECORDS, dead={"s1._domainkey.slow.test"})
    forged = SIGNED.replace(b"d=sender.test", b"d=slow.test").replace(b"i=@sender.test", b"i=@slow.test")

    def monotonic() -> float:
        """The name server of the signature never answers."""
        return 100.0 if any("slow.test" in str(each) for each in zone.asked) else 0.0

    found = check(
        forged,
        peer_ip="unknown",
        helo="",
        mail_from="",
        from_address="ann@sender.test",
        lookup=zone,
        monotonic=monotonic,
    )
    assert (found.dkim, found.dmarc, found.policy) == ("temperror", "fail", "reject")


async def test_the_whole_check_runs_in_a_thread_against_a_real_dns_server() -> None:
    async with DnsServer(RECORDS) as server:
        resolver = asks_once(server)
        zone = ThreadResolver(resolver, asyncio.get_running_loop())
        for _ in range(2):
            found = await asyncio.to_thread(
                check,
                SIGNED,
                peer_ip=PEER,
                helo="mail.sender.test",
                mail_from="ann@sender.test",
                from_address="ann@sender.test",
                lookup=zone,
                deadline_seconds=60,
            )
            assert found == Judgement("pass", "pass", "pass", "sender.test", "reject")
        assert set(server.queries.values()) == {1}


async def test_a_dns_server_that_drops_everything_costs_the_deadline_and_no_more() -> None:
    async with DnsServer() as server:
        server.dropped.add("*")
        resolver = Resolver([server.address])
        found = await asyncio.to_thread(
            check,
            SIGNED,
            peer_ip=PEER,
            helo="mail.sender.test",
            mail_from="ann@sender.test",
            from_address="ann@sender.test",
            lookup=ThreadResolver(resolver, asyncio.get_running_loop()),
            deadline_seconds=0.2,
        )
        await resolver.close()
    assert found == Judgement("temperror", "temperror", "temperror", "sender.test")


ANYTHING = st.text(max_size=30)


@given(st.binary(max_size=300), st.binary(max_size=80), ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_nothing_a_stranger_sends_or_publishes_raises(
    raw: bytes, text: bytes, peer_ip: str, helo: str, sender: str, author: str
) -> None:
    zone = ZoneLookup({(name, "TXT"): [text, b"v=spf1 " + text] for name, _ in RECORDS})
    for mail in (raw, b"From: " + raw, SIGNED + raw, b"DKIM-Signature: " + text + b"\r\n" + raw):
        for mail_from, from_address in ((sender, author), (f"{sender}@sender.test", "ann@sender.test")):
            found = check(
                mail,
                peer_ip=peer_ip,
                helo=helo,
                mail_from=mail_from,
                from_address=from_address,
                lookup=zone,
            )
            assert {found.spf, found.dkim, found.dmarc} <= WORDS
