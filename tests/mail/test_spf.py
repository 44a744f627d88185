import time

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.authentication.spf import check_spf, identity
from tests.doubles_dns import ZoneLookup
from tests.samples import samples

WORDS = {"pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"}
PEER = "192.0.2.10"


def spf(
    zone: ZoneLookup,
    *,
    peer_ip: str = PEER,
    helo: str = "mail.sender.test",
    mail_from: str = "ann@sender.test",
) -> str:
    return check_spf(peer_ip, helo, mail_from, TimedLookup(zone, time.monotonic() + 60, time.monotonic))


def zone_with(record: str, **other: str) -> ZoneLookup:
    """A zone where sender.test has this SPF record, and further TXT records by name."""
    texts = {"sender.test": record, **{name.replace("__", "."): text for name, text in other.items()}}
    return ZoneLookup({(name, "TXT"): [text] for name, text in texts.items()})


@samples(
    ("record", "verdict"),
    [
        ("v=spf1 ip4:192.0.2.0/24 -all", "pass"),
        ("v=spf1 ip4:192.0.2.10 -all", "pass"),
        ("v=spf1 ip4:198.51.100.0/24 -all", "fail"),
        ("v=spf1 ip4:198.51.100.0/24 ~all", "softfail"),
        ("v=spf1 ip4:198.51.100.0/24 ?all", "neutral"),
        ("v=spf1 ip4:198.51.100.0/24", "neutral"),
        ("V=SPF1 IP4:192.0.2.10 -ALL", "pass"),
        ("v=spf1 ip6:2001:db8::/32 -all", "fail"),
        ("v=spf10 -all", "none"),
        ("some other text", "none"),
        ("v=spf1 ip4:192.0.2.0/33 -all", "permerror"),
        ("v=spf1 ip5:192.0.2.0 -all", "permerror"),
        ("v=spf1 a:%{x}.test -all", "permerror"),
        ("v=spf1 include:sender.test -all", "permerror"),
        ("v=spf1 include:absent.test -all", "permerror"),
        ("v=spf1 redirect=absent.test", "permerror"),
        ("v=spf1 ip4:192.0.2.10 " + "x=y " * 2000 + "-all", "permerror"),
        ("v=spf1 ip4:192.0.2.10 exists:" + "." * 600, "permerror"),
        ("unrelated " + "x" * 9000, "none"),
    ],
)
def test_the_record_of_the_domain_decides(record: str, verdict: str) -> None:
    assert spf(zone_with(record)) == verdict


def test_a_domain_without_record_gives_none() -> None:
    assert spf(ZoneLookup()) == "none"


def test_two_records_are_a_permanent_error() -> None:
    assert spf(ZoneLookup({("sender.test", "TXT"): ["v=spf1 -all", "v=spf1 +all"]})) == "permerror"


@samples(("included", "verdict"), [("ip4:192.0.2.10", "pass"), ("-all", "softfail")])
def test_an_included_record_only_adds_permission(included: str, verdict: str) -> None:
    zone = zone_with("v=spf1 include:other.test ~all", other__test=f"v=spf1 {included}")
    assert spf(zone) == verdict


@samples(("record", "verdict"), [("ip4:192.0.2.10 -all", "pass"), ("-all", "fail")])
def test_a_redirect_hands_the_decision_over(record: str, verdict: str) -> None:
    assert spf(zone_with("v=spf1 redirect=other.test", other__test=f"v=spf1 {record}")) == verdict


def test_mechanisms_a_mx_exists_and_ptr_ask_the_dns() -> None:
    zone = ZoneLookup(
        {
            ("a.test", "TXT"): ["v=spf1 a:host.test -all"],
            ("mx.test", "TXT"): ["v=spf1 mx -all"],
            ("mx.test", "MX"): ["10 host.test."],
            ("exists.test", "TXT"): ["v=spf1 exists:%{ir}.list.test -all"],
            ("10.2.0.192.list.test", "A"): ["127.0.0.2"],
            ("ptr.test", "TXT"): ["v=spf1 ptr -all"],
            (PEER, "PTR"): ["mail.ptr.test."],
            ("mail.ptr.test", "A"): [PEER],
            ("host.test", "A"): ["198.51.100.1", PEER],
        }
    )
    for domain in ("a.test", "mx.test", "exists.test", "ptr.test"):
        assert spf(zone, mail_from=f"ann@{domain}") == "pass"
        assert spf(zone, mail_from=f"ann@{domain}", peer_ip="203.0.113.5") == "fail"


def test_ipv6_peers_are_matched_by_ip6_and_by_aaaa() -> None:
    zone = zone_with("v=spf1 ip6:2001:db8:1::/48 a:host.test//64 -all")
    zone.records["host.test", "AAAA"] = ["2001:db8:2::1"]
    zone.records["host.test", "A"] = [PEER]
    assert spf(zone, peer_ip="2001:db8:1::25") == "pass"
    assert spf(zone, peer_ip="2001:db8:2::25") == "pass"
    assert spf(zone, peer_ip="2001:db8:3::25") == "fail"


def test_an_ipv4_peer_seen_through_ipv6_is_an_ipv4_peer() -> None:
    assert spf(zone_with("v=spf1 ip4:192.0.2.10 -all"), peer_ip="::ffff:192.0.2.10") == "pass"


def test_more_than_ten_lookups_are_a_permanent_error() -> None:
    chain = {(f"n{n}.test", "TXT"): [f"v=spf1 include:n{n + 1}.test -all"] for n in range(12)}
    chain["n12.test", "TXT"] = ["v=spf1 +all"]
    assert spf(ZoneLookup(chain), mail_from="ann@n0.test") == "permerror"
    assert spf(ZoneLookup(chain), mail_from="ann@n2.test") == "pass"


def test_a_loop_of_includes_ends() -> None:
    zone = zone_with("v=spf1 include:other.test -all", other__test="v=spf1 include:sender.test -all")
    assert spf(zone) == "permerror"


def test_more_than_two_lookups_without_answer_are_a_permanent_error() -> None:
    record = "v=spf1 a:v1.test a:v2.test {} ip4:192.0.2.10 -all"
    assert spf(zone_with(record.format(""))) == "pass"
    assert spf(zone_with(record.format("a:v3.test"))) == "permerror"


def test_more_than_ten_mail_exchangers_are_a_permanent_error() -> None:
    zone = zone_with("v=spf1 mx -all")
    zone.records["sender.test", "MX"] = [f"10 m{n}.test." for n in range(11)]
    assert spf(zone) == "permerror"


@samples("dead", ["sender.test", "other.test", "host.test"])
def test_a_dns_that_does_not_answer_is_a_temporary_error(dead: str) -> None:
    zone = zone_with("v=spf1 include:other.test a:host.test -all", other__test="v=spf1 -all")
    zone.dead = {dead}
    assert spf(zone) == "temperror"


def test_the_null_sender_is_judged_by_the_helo_name() -> None:
    zone = zone_with("v=spf1 -all", mail__sender__test="v=spf1 ip4:192.0.2.10 -all")
    assert spf(zone, mail_from="") == "pass"
    assert identity("Mail.Sender.Test", "") == ("postmaster", "mail.sender.test")


@samples(
    ("helo", "mail_from"),
    [
        ("[192.0.2.1]", ""),
        ("", ""),
        ("localhost", ""),
        ("x", "ann@localhost"),
        ("x", "ann"),
        ("x", "a" * 400 + "@b.test"),
    ],
)
def test_a_sender_without_a_usable_domain_gives_none(helo: str, mail_from: str) -> None:
    zone = ZoneLookup()
    assert spf(zone, helo=helo, mail_from=mail_from) == "none"
    assert zone.asked == []


def test_a_domain_in_another_script_is_judged_by_its_ascii_form() -> None:
    zone = ZoneLookup({("xn--bcher-kva.test", "TXT"): ["v=spf1 ip4:192.0.2.10 -all"]})
    assert spf(zone, mail_from="ann@Bücher.test") == "pass"


def test_an_address_that_is_none_is_a_permanent_error() -> None:
    assert spf(zone_with("v=spf1 +all"), peer_ip="unix:") == "permerror"


TERMS = st.sampled_from(
    [
        *("a", "mx", "ptr", "-all", "~all", "?all", "a/999", "ip4:1.2.3.4/0", "ip6:::/0", "default=x"),
        *("include:sender.test", "redirect=%{d}", "exp=sender.test", "exists:%{l}.test"),
        *("exists:%{s99999r+-}.%{p}.test", "a:%{i}%{h}%{v}%{o}", "%{", "%{}", "%{x", "%_", ":", "="),
    ]
)
RECORDS = st.lists(TERMS, max_size=8).map(lambda terms: " ".join(terms).encode()) | st.binary(max_size=60)


@given(st.lists(RECORDS, max_size=3), st.text(max_size=30), st.text(max_size=30))
def test_any_record_helo_and_sender_give_a_verdict(records: list[bytes], helo: str, local: str) -> None:
    zone = ZoneLookup({("sender.test", "TXT"): [b"v=spf1 " + record for record in records]})
    assert spf(zone, helo=helo, mail_from=f"{local}@sender.test") in WORDS
    assert spf(zone, helo=helo, mail_from=local) in WORDS
