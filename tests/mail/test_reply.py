"""Only the new words of a reply are left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mail.reply import reply_text

HEADS = [
    "On Mon, 3 Nov 2025 at 10:00, Ann <ann@example.com> wrote:",
    "On Mon, 3 Nov 2025 at 10:00, Ann\n<ann@example.com>\nwrote:",
    "Am 03.11.2025 um 10:00 schrieb Ann <ann@example.com>:",
    "Am Mo., 3. Nov. 2025 um 10:00 Uhr, Ann, schrieb:",
    "Le lun. 3 nov. 2025 à 10:00, Ann <ann@example.com> a écrit :",
    "El lun, 3 nov 2025 a las 10:00, Ann (<ann@example.com>) escribió:",
    "Il giorno lun 3 nov 2025 alle ore 10:00 Ann ha scritto:",
    "Em seg., 3 de nov. de 2025 às 10:00, Ann escreveu:",
    "Op ma 3 nov 2025 om 10:00 schreef Ann <ann@example.com>:",
    "Den mån 3 nov. 2025 kl 10:00 skrev Ann <ann@example.com>:",
    "W dniu 3.11.2025 o 10:00, Ann pisze: napisał(a):",
    "2025年11月3日(月) 10:00 Ann <ann@example.com>:",
]
CUTS = [
    "-----Original Message-----\nold",
    "----- Ursprüngliche Nachricht -----\nold",
    "---------- Forwarded message ---------\nold",
    "Begin forwarded message:\nold",
    "From: Ann <ann@example.com>\nSent: Monday\nTo: Bob\nSubject: Re: x\n\nold",
    "*From:* Ann\n*Sent:* Monday\n*To:* Bob\n\nold",
    "________________________________\nFrom: Ann\nSent: Monday\nTo: Bob\n\nold",
    "Von: Ann\nGesendet: Montag\nAn: Bob\nBetreff: x\n\nold",
    "De : Ann\nEnvoyé : lundi\nÀ : Bob\nObjet : x\n\nold",
    "-- \nBob\nBuilder",
    "--\nBob",
    "Sent from my iPhone\n\n> old",
    "Von meinem iPhone gesendet",
    "Get Outlook for iOS",
]


@pytest.mark.parametrize("head", HEADS)
def test_a_quote_under_its_head_is_left_out(head: str) -> None:
    assert reply_text(f"Yes, please.\n\n{head}\n\n> old\n> older\n>> oldest\n") == "Yes, please."


@pytest.mark.parametrize("head", HEADS)
def test_an_unmarked_quote_under_a_head_is_left_out(head: str) -> None:
    assert reply_text(f"Yes, please.\r\n\r\n{head}\r\nold text\r\n") == "Yes, please."


@pytest.mark.parametrize("cut", CUTS)
def test_copied_heads_forwards_and_signatures_end_the_reply(cut: str) -> None:
    assert reply_text(f"Yes, please.\n\n{cut}\n") == "Yes, please."


def test_answers_between_and_below_quotes_stay() -> None:
    body = "On 3 Nov 2025, Ann wrote:\n> one?\n\nYes.\n\n> two?\n\nNo.\n-- \nBob"
    assert reply_text(body) == "Yes.\n\nNo."


def test_a_mail_without_quotes_is_whole() -> None:
    body = "Hello,\n\nOn second thought he wrote:\nwe go. From: here To: there\n\n  - a\n  - b"
    assert reply_text(body) == body


def test_a_mail_of_quotes_only_has_no_new_text() -> None:
    assert reply_text("> a\n> b\n") == ""
    assert reply_text("On 3 Nov 2025, Ann wrote:\n> a\n") == ""
    assert reply_text("") == ""


def test_a_forward_without_a_word_keeps_what_was_forwarded() -> None:
    body = "---------- Forwarded message ---------\nFrom: Ann\n\nThe plan\n> old"
    assert reply_text(body) == "---------- Forwarded message ---------\nFrom: Ann\n\nThe plan"


@pytest.mark.parametrize(
    "unit", ["On 1 ", "On 1\n", ">", "> x\n", "\n", "-", "From: a\n", " ", "On 1 wrote:\n"]
)
def test_long_hostile_bodies_are_read_in_one_pass(unit: str) -> None:
    assert len(reply_text(unit * 300_000)) <= 100_000


@given(st.text(max_size=300))
def test_any_text_gives_a_reply_no_longer_than_itself(body: str) -> None:
    assert len(reply_text(body)) <= len(body)
