"""A mail to the signed return path is about its recipient even when nothing in it can be read."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reports.bounce import read_report, read_returned
from postroom_mail.reports.reasons import Fault
from tests.samples import samples


def mail(subject: str, body: str, sender: str = "odd@there.example", more: str = "") -> bytes:
    return f"From: {sender}\r\nSubject: {subject}\r\n{more}\r\n{body}\r\n".encode()


def test_what_no_form_fits_is_a_bounce_with_its_own_words() -> None:
    raw = mail("Zürück", "Das ging nicht.\r\nTut uns leid.")
    assert read_report(raw) is None
    report = read_returned(raw)
    [recipient] = report.recipients
    assert report.kind == "bounce"
    assert recipient.final_recipient == ""
    assert recipient.is_failed
    assert recipient.last_word == "Zürück: Das ging nicht. Tut uns leid."
    assert not recipient.is_hard
    assert recipient.fault is not Fault.RECIPIENT


def test_a_mail_without_a_word_says_so() -> None:
    [recipient] = read_returned(b"").recipients
    assert recipient.last_word == "The email came back without a reason."


def test_a_reason_counts_even_from_one_who_does_not_look_like_a_mail_system() -> None:
    report = read_returned(mail("Sorry", "Your mail could not be delivered.\r\n550 5.1.1 no such user"))
    [recipient] = report.recipients
    assert report.kind == "bounce"
    assert recipient.status == "5.1.1"
    assert recipient.fault is Fault.RECIPIENT


@samples(
    "raw",
    [
        mail("Automatic reply: Hello", "I am away."),
        mail("Re: Hello", "Thanks, got it."),
        mail("Hello", "I am away.", more="Auto-Submitted: auto-replied\r\n"),
        mail("Hello", "I am away.", more="X-Autoreply: yes\r\n"),
        mail("News", "Much is new.", more="List-Id: <news.there.example>\r\n"),
    ],
)
def test_an_answer_changes_nothing(raw: bytes) -> None:
    report = read_returned(raw)
    assert report.kind == "other"
    assert not any(recipient.is_failed for recipient in report.recipients)


def test_a_delay_stays_a_delay() -> None:
    report = read_returned(mail("Delayed", "<a@x.example>: not yet been delivered, will keep trying"))
    assert report.kind == "delay"


@given(st.binary(max_size=500))
def test_any_bytes_to_the_return_path_give_a_last_word(raw: bytes) -> None:
    report = read_returned(raw)
    assert report.kind in {"bounce", "delay", "other", "complaint"}
    assert all(recipient.last_word for recipient in report.recipients)


def test_an_address_that_helps_is_not_the_recipient() -> None:
    help_text = (
        "For further assistance, please send mail to postmaster@there.example.\r\n550 5.1.1 no such user"
    )
    [recipient] = read_returned(
        mail("Undelivered", f"Your mail could not be delivered.\r\n{help_text}")
    ).recipients
    assert recipient.final_recipient == ""
    named = f"{help_text}\r\nIt was for ann@there.example."
    [recipient] = read_returned(
        mail("Undelivered", f"Your mail could not be delivered.\r\n{named}")
    ).recipients
    assert recipient.final_recipient == "ann@there.example"
