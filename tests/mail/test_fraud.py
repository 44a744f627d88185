"""Fraud by words in twelve languages, and by imitation: of colleagues, of senders, of pages to sign in."""

import re

import pytest

from postroom_mail.html.page import read_page
from postroom_mail.mime.address import Address, parse_list
from postroom_mail.mime.parse import ParsedAttachment
from postroom_mail.screening.examine import Findings, Subject, examine
from tests.mail import signal_samples
from tests.mail.signal_samples import Sample
from tests.samples import samples

FRAUD, NEAR = signal_samples.fraud(), signal_samples.near_fraud()
LANGUAGES = {"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "tr", "zh", "ja"}
RULES = {"changes_payment_details", "asks_for_gift_cards", "presses_for_payment", "asks_for_secrecy"}
OWN = ("Dana Whitfield <dana@ours.example>", "Support <support@ours.example>", "ours-company.example")


def names(findings: Findings) -> set[str]:
    return {signal.name for signal in findings.signals}


@samples("sample", FRAUD)
def test_fraud_shows_its_rule(sample: Sample) -> None:
    assert sample.kind in names(examine(sample.subject))


@samples("sample", NEAR)
def test_ordinary_email_about_money_and_accounts_is_clean(sample: Sample) -> None:
    findings = examine(sample.subject)
    assert findings.verdict == "clean", findings.signals


def test_every_rule_has_samples_in_twelve_languages() -> None:
    for rule in {*RULES, "threatens_account", "promises_prize"}:
        assert {sample.language for sample in FRAUD if sample.kind == rule} == LANGUAGES
    assert {sample.language for sample in NEAR} == LANGUAGES


def test_urgency_with_secrecy_is_suspicious_and_neither_is_alone() -> None:
    urgent, secret = "I need you to make a wire transfer today.", "Please keep this between us."
    assert examine(Subject(body_text=urgent)).verdict == "clean"
    assert examine(Subject(body_text=secret)).verdict == "clean"
    assert examine(Subject(body_text=f"{urgent} {secret}")).verdict == "suspicious"


def test_fraud_in_hidden_text_is_no_instruction_to_a_machine() -> None:
    html = "<p>Hello</p><p style='display:none'>Our bank details have changed, use the new account.</p>"
    found = names(examine(Subject(body_text="Hello", body_html=html, page=read_page(html))))
    assert "changes_payment_details" in found
    assert "hidden_instructions" not in found


def sent_by(from_addr: str, dmarc: str = "pass", reply_to: str = "", known: tuple[str, ...] = ()) -> set[str]:
    subject = Subject(
        from_addr=from_addr, dmarc=dmarc, reply_to=parse_list(reply_to), known=known, colleagues=OWN
    )
    return names(examine(subject))


@samples(
    ("from_addr", "dmarc"),
    [
        ("Dana Whitfield <dana.whitfield.ceo@mail.example>", "pass"),
        ('"Whitfield, Dana" <x@mail.example>', "none"),
        ("D\u0430na Whitfield <x@mail.example>", "pass"),  # a Cyrillic letter
        ("Dana Whitfield <dana@ours-company.example>", "fail"),
    ],
)
def test_a_colleagues_name_with_another_address_is_told(from_addr: str, dmarc: str) -> None:
    assert "poses_as_colleague" in sent_by(from_addr, dmarc)


@samples(
    "from_addr",
    [
        "Dana Whitfield <dana@ours.example>",
        "Dana Whitfield <DANA+x@ours.example>",
        "Dana <dana@elsewhere.example>",
        "Support <support@vendor.example>",  # one word is nobody's name
        "Dana Whitfield <dana.w@ours-company.example>",  # proven to be of the account's own domain
        "Daniel Whitfield <d@elsewhere.example>",
    ],
)
def test_other_names_and_own_addresses_are_not(from_addr: str) -> None:
    assert "poses_as_colleague" not in sent_by(from_addr)


@samples("from_addr", ['"Facebook" <>', "Your chance!,(<noreply@dhl.example>)", "Maria Clennett", "<>"])
def test_a_name_without_an_address_is_told(from_addr: str) -> None:
    assert names(examine(Subject(from_addr=from_addr))) == {"no_sender_address"}


@samples("from_addr", ["", "ann@there.example", "Undisclosed: ;", "root@build", "Ann <ann@there.example>"])
def test_an_address_a_group_and_no_sender_at_all_are_not(from_addr: str) -> None:
    assert not examine(Subject(from_addr=from_addr)).signals


@samples(
    "from_addr",
    [
        "PayPal Service <service@secure-pay.example>",
        "P\u0430yP\u0430l <x@mail.example>",  # Cyrillic letters
        "Netfl1x <billing@cheap.example>",
        "Trust Wallet <no-reply@wallets.example>",
        "'Micros0ft account team' <a@b.example>",
        "Banco Bradesco S.A. <aviso@x.example>",
        "Banco do Brasil <aviso@correio>",
        "Correios <noreply@correios>",  # no domain of the internet
        "Trust WaIIet <x@mail.example>",
    ],
)
def test_a_well_known_companys_name_with_a_foreign_address_is_told(from_addr: str) -> None:
    assert "poses_as_company" in names(examine(Subject(from_addr=from_addr, dmarc="pass")))


@samples(
    "from_addr",
    [
        "PayPal <service@mail.paypal.com>",
        "Facebook <notification@facebookmail.com>",
        "iCloud <noreply@email.apple.com>",
        "Dana Whitfield via Google Groups <list@lists.example>",
        "Google via Postmaster <list@lists.example>",
        "Jeff Bezos <jeff@amazon.example>",
        "Edekadale Farm <hello@farm.example>",
        "paypal@shop.example",
        "Ian IIsley <ian@mail.example>",
        "UPS <pkginfo@ups.com>",
        "root <root@build>",
    ],
)
def test_companies_themselves_and_other_names_are_not(from_addr: str) -> None:
    assert "poses_as_company" not in names(examine(Subject(from_addr=from_addr)))


def test_a_domain_that_looks_like_ones_own_is_told() -> None:
    assert "resembles_known_sender" in sent_by("Anna <anna@0urs-company.example>")
    assert "forged_known_sender" in sent_by("Anna <anna@ours-company.example>", "fail")


def test_answers_that_go_to_an_imitation_are_told() -> None:
    vendor = "Vendor <billing@northwind.example>"
    known = ("billing@northwind.example",)
    assert "reply_elsewhere" in sent_by(vendor, reply_to="billing@n0rthwind.example")
    assert "reply_elsewhere" in sent_by(
        "A <a@b.example>", reply_to="a@northwind-billing.example", known=known
    )
    assert "reply_elsewhere" in sent_by(vendor, "fail", "someone@mail.example", known)
    assert "poses_as_colleague" in sent_by("A <a@b.example>", reply_to="Dana Whitfield <d@mail.example>")
    for reply_to in ("help@northwind.example", "a@mail.northwind.example", "list@lists.example", ""):
        assert "reply_elsewhere" not in sent_by(vendor, reply_to=reply_to, known=known), reply_to


PASSWORD_FORM = '<form action="https://x.example"><INPUT name=p\n TYPE = "password"></form>'


def test_a_form_for_a_password_is_told_in_the_text_and_in_an_attached_page() -> None:
    assert "credential_form" in names(examine(Subject(body_html=PASSWORD_FORM)))
    page = ParsedAttachment("invoice.HTM", "application/octet-stream", PASSWORD_FORM.encode(), "", False)
    assert "credential_form" in names(examine(Subject(files=(page,))))
    asked = "<p>Your password</p><form><input type=text></form>"
    assert "credential_form" not in names(examine(Subject(body_html=asked)))
    endless = "<input " * 20_000 + "password"
    assert "credential_form" not in names(examine(Subject(body_html=endless)))


def test_reply_to_is_read_from_the_email() -> None:
    from postroom_mail.mime.parse import parse_mail

    mail = parse_mail(b"From: a@b.example\r\nReply-To: Dana <x@y.example>\r\n\r\nHello\r\n")
    assert mail.reply_to == (Address("Dana", "x@y.example"),)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_words_are_plain(language: str) -> None:
    """An entry is words and choices; a pattern would be searched for as it is written."""
    from postroom_mail.languages.read import languages

    sections = next(each for each in languages() if each.code == language).sections
    written = [
        entry for name in ("our account", "keep it", "locked") for entry in sections[f"signals: {name}"]
    ]
    assert written
    assert not [entry for entry in written if re.search(r"[\[\]*?+\\]", entry)]
