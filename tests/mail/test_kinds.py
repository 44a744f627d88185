"""Mails of ten kinds without telling fields are sorted by what their bodies say; only people are answered."""

from postroom.inward.mails import ReadMail
from postroom.inward.receive import read_mail
from postroom_mail.reading.body_signs import is_alert, is_answer, is_bulk, is_of_person
from tests.mail import kind_samples
from tests.mail.figures import arrived
from tests.mail.kind_samples import KindSample
from tests.samples import samples

MAILS = kind_samples.read_all()


def read(sample: KindSample) -> ReadMail:
    return read_mail(arrived(sample.raw()))


@samples("is_held_out", [False, True])
def test_nine_of_ten_mails_are_of_the_right_kind(is_held_out: bool) -> None:
    judged = [
        read(sample).kind.category == sample.category for sample in MAILS if sample.is_held_out is is_held_out
    ]
    assert sum(judged) >= 0.9 * len(judged)


def test_no_machine_is_answered_and_every_letter_may_be() -> None:
    for sample in MAILS:
        assert not (sample.category != "personal" and read(sample).kind.auto_replyable), sample.subject
        if sample.kind == "letter":
            assert read(sample).kind.auto_replyable, sample.subject


def test_there_are_two_hundred_mails_of_ten_kinds() -> None:
    assert len(MAILS) == 200
    assert len({sample.kind for sample in MAILS}) == 10


def test_a_letter_with_a_link_that_ends_a_subscription_is_not_answered_by_itself() -> None:
    body = "Look at this: https://shop.example/unsubscribe?u=1"
    letter = f"From: ann@there.example\nSubject: Re: shoes\nIn-Reply-To: <a@b.example>\n\n{body}\n"
    assert read_mail(arrived(letter.encode())).kind.category == "personal"
    assert not read_mail(arrived(letter.encode())).kind.auto_replyable


def test_tables_for_layout_are_bulk_and_what_people_write_is_not() -> None:
    table = "<table><tr><td>x</td></tr></table>"
    assert is_bulk(table * 3)
    assert not is_bulk(table)
    assert not is_bulk(f'<p class="MsoNormal">{table * 3}</p>')
    assert is_bulk('<p>x</p><img src="x" width="1" height="1">')
    assert not is_bulk("")


def test_alerts_and_answers_are_known_by_their_subject() -> None:
    assert is_alert("[ALERT] web-3 is down")
    assert is_alert("[WORK-12] Login")
    assert not is_alert("Alert the neighbours")
    assert is_answer("Re: hello")
    assert is_answer("回复: 会议")
    assert not is_answer("Regarding: hello")


@samples(
    ("html", "text", "is_person"),
    [
        ("", "Hi Bob,\n\nthe verification code for the door is 482913. I changed it yesterday.\n\nAnn", True),
        ("", "Der Best\u00e4tigungscode ist 4711. Morgen bin ich da.", True),
        ('<p class="MsoNormal">482913</p>', "The verification code is 482913", True),
        ("", "Your verification code is 482913. It expires in 10 minutes.", False),
        ("", "Your code is 482913.\n\nWhy did I receive this email? I didn't request it: tell us.", False),
        ("<table>", "Votre code : 482913. Pourquoi suis je abonn\u00e9 ?", False),
    ],
)
def test_a_person_who_mentions_a_code_is_no_machine(html: str, text: str, is_person: bool) -> None:
    assert is_of_person(html, text) is is_person
