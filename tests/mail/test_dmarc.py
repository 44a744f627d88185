import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.authentication.dmarc import DmarcVerdict, Identifier, evaluate
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.authentication.organization import ascii_domain, domain_of, organization, walk
from tests.doubles_dns import ZoneLookup
from tests.samples import samples


def timed(zone: ZoneLookup) -> TimedLookup:
    return TimedLookup(zone, time.monotonic() + 60, time.monotonic)


def zone_of(**records: str) -> ZoneLookup:
    """DMARC records by domain, with __ for the dot."""
    return ZoneLookup(
        {(f"_dmarc.{name.replace('__', '.')}", "TXT"): [text] for name, text in records.items()}
    )


def spf(domain: str, verdict: str = "pass") -> Identifier:
    return Identifier("aspf", domain, verdict)


def dkim(domain: str, verdict: str = "pass") -> Identifier:
    return Identifier("adkim", domain, verdict)


def dmarc(author: str, zone: ZoneLookup, *identifiers: Identifier) -> str:
    return evaluate(author, identifiers, timed(zone)).verdict


@pytest.mark.parametrize("tag", ["aspf", "adkim"])
@pytest.mark.parametrize(
    ("author", "other", "relaxed", "strict"),
    [
        ("sender.test", "sender.test", "pass", "pass"),
        ("sender.test", "mail.sender.test", "pass", "fail"),
        ("news.sender.test", "sender.test", "pass", "fail"),
        ("news.sender.test", "mail.sender.test", "pass", "fail"),
        ("sender.test", "evilsender.test", "fail", "fail"),
        ("sender.test", "other.test", "fail", "fail"),
        ("sender.test", "test", "fail", "fail"),
        ("sender.test", "sender.test.evil.test", "fail", "fail"),
    ],
)
def test_alignment(tag: str, author: str, other: str, relaxed: str, strict: str) -> None:
    identifier = Identifier(tag, other, "pass")
    assert dmarc(author, zone_of(sender__test="v=DMARC1; p=reject"), identifier) == relaxed
    assert dmarc(author, zone_of(sender__test=f"v=DMARC1; p=reject; {tag}=r"), identifier) == relaxed
    assert dmarc(author, zone_of(sender__test=f"v=DMARC1; p=reject; {tag}=s"), identifier) == strict


def test_strictness_for_one_method_leaves_the_other_relaxed() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=reject; adkim=s")
    assert dmarc("sender.test", zone, spf("mail.sender.test")) == "pass"
    assert dmarc("sender.test", zone, dkim("mail.sender.test")) == "fail"


@samples("verdict", ["fail", "softfail", "neutral", "none", "permerror"])
def test_an_aligned_identifier_that_did_not_pass_is_worth_nothing(verdict: str) -> None:
    zone = zone_of(sender__test="v=DMARC1; p=none")
    assert dmarc("sender.test", zone, spf("sender.test", verdict), dkim("sender.test", verdict)) == "fail"


def test_one_aligned_pass_is_enough() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=none")
    identifiers = [spf("list.test"), dkim("list.test"), dkim("sender.test", "temperror"), dkim("sender.test")]
    assert dmarc("sender.test", zone, *identifiers) == "pass"


def test_without_a_record_there_is_no_verdict() -> None:
    assert dmarc("mail.sender.test", zone_of(), spf("mail.sender.test")) == "none"


@samples(
    ("record", "verdict"),
    [
        ("v=DMARC1", "fail"),
        ("v = DMARC1 ; p=reject", "fail"),
        ("v=DMARC1; p=nonsense", "fail"),
        ("v=DMARC1; broken; p=reject;; =x; rua=mailto:a@b", "fail"),
        ("v=dmarc1; p=reject", "none"),
        ("v=DMARC10; p=reject", "none"),
        ("p=reject; v=DMARC1", "none"),
        (" v=DMARC1; p=reject", "none"),
        ("v=DMARC1; p=reject; " + "x" * 5000, "none"),
    ],
)
def test_what_counts_as_a_record(record: str, verdict: str) -> None:
    assert dmarc("sender.test", zone_of(sender__test=record)) == verdict


def test_several_records_at_one_name_count_as_none() -> None:
    zone = ZoneLookup({("_dmarc.sender.test", "TXT"): ["v=DMARC1; p=none", "v=DMARC1; p=reject"]})
    assert dmarc("sender.test", zone) == "none"
    zone.records["_dmarc.sender.test", "TXT"] = ["v=DMARC1; p=none", "v=spf1 -all", b"\xff"]
    assert dmarc("sender.test", zone) == "fail"


def policy(author: str, zone: ZoneLookup) -> str | None:
    return evaluate(author, [], timed(zone)).policy


@samples(
    ("tags", "itself", "below", "absent"),
    [
        ("p=reject", "reject", "reject", "reject"),
        ("p=reject; sp=quarantine", "reject", "quarantine", "quarantine"),
        ("p=none; np=reject", "none", "none", "reject"),
        ("p=none; sp=quarantine; np=reject", "none", "quarantine", "reject"),
        ("P=reject", "none", "none", "none"),
        ("p=REJECT; sp=bad; np=bad", "reject", "reject", "reject"),
        ("p=bad", "none", "none", "none"),
    ],
)
def test_the_policy_depends_on_where_the_author_is(tags: str, itself: str, below: str, absent: str) -> None:
    zone = zone_of(sender__test=f"v=DMARC1; {tags}")
    zone.records["sub.sender.test", "A"] = ["192.0.2.1"]
    assert policy("sender.test", zone) == itself
    assert policy("sub.sender.test", zone) == below
    assert policy("absent.sender.test", zone) == absent


def test_the_record_of_the_author_goes_before_the_one_of_the_organization() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=none", news__sender__test="v=DMARC1; p=reject; adkim=s")
    assert policy("news.sender.test", zone) == "reject"
    assert dmarc("news.sender.test", zone, dkim("sender.test")) == "fail"
    assert dmarc("news.sender.test", zone, spf("sender.test")) == "pass"


def org(domain: str, zone: ZoneLookup) -> str:
    return organization(domain, walk(domain, timed(zone)))


def test_the_organization_is_the_shortest_name_with_a_record() -> None:
    zone = zone_of(sender__test="v=DMARC1", a__b__sender__test="v=DMARC1")
    assert org("x.a.b.sender.test", zone) == "sender.test"
    assert org("unknown.example", zone) == "unknown.example"


def test_a_public_suffix_ends_the_walk_one_label_above_the_organization() -> None:
    zone = zone_of(co__test="v=DMARC1; p=reject; psd=y")
    assert org("mail.sender.co.test", zone) == "sender.co.test"
    assert org("co.test", zone) == "co.test"
    assert dmarc("sender.co.test", zone, spf("other.co.test")) == "fail"
    assert dmarc("sender.co.test", zone, spf("mail.sender.co.test")) == "pass"
    assert dmarc("sender.co.test", zone, spf("co.test")) == "fail"
    assert policy("sender.co.test", zone) == "reject"


def test_a_top_level_domain_is_a_public_suffix_unless_it_denies_that() -> None:
    zone = zone_of(test="v=DMARC1; p=reject")
    assert dmarc("sender.test", zone, spf("evil.test")) == "fail"
    assert dmarc("sender.test", zone, spf("mail.sender.test")) == "pass"
    assert dmarc("sender.test", zone_of(test="v=DMARC1; psd=n"), spf("other.test")) == "pass"


def test_an_organization_may_say_that_it_is_one() -> None:
    zone = zone_of(test="v=DMARC1; p=reject", dept__sender__test="v=DMARC1; p=none; psd=n")
    assert org("a.dept.sender.test", zone) == "dept.sender.test"
    assert dmarc("a.dept.sender.test", zone, dkim("dept.sender.test")) == "pass"
    assert dmarc("a.dept.sender.test", zone, dkim("sender.test")) == "fail"


def test_a_walk_asks_at_most_eight_names() -> None:
    zone = zone_of()
    domain = ".".join(f"l{n}" for n in range(40)) + ".test"
    walk(domain, timed(zone))
    assert zone.asked[0] == f"_dmarc.{domain}"
    assert zone.asked[1] == "_dmarc.l34.l35.l36.l37.l38.l39.test"
    assert zone.asked[-1] == "_dmarc.test"
    assert len(zone.asked) == 8


def test_a_walk_over_few_labels_asks_each() -> None:
    zone = zone_of()
    walk("a.b.sender.test", timed(zone))
    assert zone.asked == [
        "_dmarc.a.b.sender.test",
        "_dmarc.b.sender.test",
        "_dmarc.sender.test",
        "_dmarc.test",
    ]


@samples("dead", ["_dmarc.sender.test", "_dmarc.test", "*"])
def test_a_dns_that_does_not_answer_is_a_temporary_error(dead: str) -> None:
    zone = zone_of(sender__test="v=DMARC1; p=reject")
    zone.dead = {dead}
    assert evaluate("sender.test", [spf("sender.test")], timed(zone)) == DmarcVerdict("temperror")


def test_a_pass_needs_not_know_whether_the_name_exists() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=none; np=reject")
    zone.dead = {"a.sender.test"}
    assert dmarc("a.sender.test", zone, spf("sender.test")) == "pass"
    assert dmarc("a.sender.test", zone, spf("other.test")) == "temperror"


def test_an_aligned_identifier_of_unknown_worth_is_a_temporary_error() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=reject")
    assert dmarc("sender.test", zone, spf("sender.test", "temperror"), dkim("other.test")) == "temperror"
    assert dmarc("sender.test", zone, spf("other.test", "temperror"), dkim("sender.test", "fail")) == "fail"


def test_an_alignment_that_cannot_be_known_is_a_temporary_error_unless_another_one_passes() -> None:
    zone = zone_of(sender__test="v=DMARC1; p=reject")
    zone.dead = {"_dmarc.mail.sender.test"}
    assert dmarc("sender.test", zone, spf("mail.sender.test")) == "temperror"
    assert dmarc("sender.test", zone, spf("mail.sender.test"), dkim("sender.test")) == "pass"


@samples(
    ("text", "domain"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("example\u3002com", "example.com"),
        ("a_b.example", "a_b.example"),
        ("", None),
        ("com", None),
        ("a..b", None),
        ("-a.example", None),
        ("[192.0.2.1]", None),
        ("a b.example", None),
        ("x" * 64 + ".example", None),
        ("a." * 130 + "example", None),
        ("\ud800.example", None),
        ("\u200d.example", None),
        ("e\x00.example", None),
    ],
)
def test_a_domain_has_one_ascii_form(text: str, domain: str | None) -> None:
    assert ascii_domain(text) == domain


@samples(
    ("address", "domain"),
    [("ann@Sender.Test", "sender.test"), ('"a@b"@sender.test', "sender.test"), ("ann", None), ("ann@", None)],
)
def test_the_domain_of_an_address_is_what_follows_the_last_at(address: str, domain: str | None) -> None:
    assert domain_of(address) == domain


@given(st.lists(st.binary(max_size=60), max_size=3), st.text(max_size=40), st.text(max_size=40))
def test_any_records_and_domains_give_a_verdict(records: list[bytes], one: str, other: str) -> None:
    author = ascii_domain(one) or "a.sender.test"
    texts = [b"v=DMARC1;" + record for record in records]
    zone = ZoneLookup({(f"_dmarc.{name}", "TXT"): texts for name in (author, "sender.test", "test")})
    assert dmarc(author, zone, spf(other), dkim(ascii_domain(other) or "")) in {"pass", "fail", "none"}
