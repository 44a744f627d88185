"""Who sends says first who it is: written dialogues, without a socket."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from postroom.smtp.backend import Accepted
from postroom.smtp.dialogue.effects import AcceptMail, AskRecipient, HangUp, MailAnswered, Send, StartTls
from postroom.smtp.limits import SessionLimits
from postroom.smtp.submission.dialogue import AskLogin, SubmissionDialogue, SubmissionEffect

LIMITS = SessionLimits(hostname="here", max_errors=5)
PLAIN = base64.b64encode(b"\0agent@x.example\0pr_secret")
WANTED = AskLogin("agent@x.example", "pr_secret")


def greeted(is_private: bool = True) -> SubmissionDialogue:
    dialogue = SubmissionDialogue(LIMITS, offers_tls=True, is_private=is_private)
    dialogue.greet()
    return dialogue


def said(effects: list[SubmissionEffect]) -> bytes:
    return b"".join(effect.data for effect in effects if isinstance(effect, Send))


def test_a_program_logs_in_and_sends() -> None:
    dialogue = greeted()
    assert b"250-AUTH PLAIN LOGIN\r\n" in said(dialogue.feed(b"EHLO me\r\n"))
    assert said(dialogue.feed(b"MAIL FROM:<a@b.example>\r\n")).startswith(b"530 5.7.0 Log in first")
    assert dialogue.feed(b"AUTH PLAIN " + PLAIN + b"\r\n") == [WANTED]
    assert said(dialogue.login_answer(None)) == b"235 2.7.0 You are logged in\r\n"
    assert said(dialogue.feed(b"AUTH PLAIN " + PLAIN + b"\r\n")).startswith(b"503 5.5.1")
    effects = dialogue.feed(b"MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n")
    assert effects[-1] == AskRecipient("c@d.example")
    assert b"250 2.1.5" in said(dialogue.recipient_answer(Accepted("c@d.example")))
    dialogue.feed(b"DATA\r\n")
    effects = dialogue.feed(b"Subject: x\r\n\r\nHello\r\n.\r\n")
    assert isinstance(effects[-1], AcceptMail)
    refused = MailAnswered(b"550 5.7.1 forbidden: no\r\n", is_accepted=False)
    assert said(dialogue.mail_answer(refused)) == b"550 5.7.1 forbidden: no\r\n"


def test_the_name_and_the_password_may_be_asked_for() -> None:
    dialogue = greeted()
    assert said(dialogue.feed(b"AUTH LOGIN\r\n")) == b"334 VXNlcm5hbWU6\r\n"
    assert said(dialogue.feed(base64.b64encode(b"agent@x.example") + b"\r\n")) == b"334 UGFzc3dvcmQ6\r\n"
    assert dialogue.feed(base64.b64encode(b"pr_secret") + b"\r\n") == [WANTED]
    dialogue = greeted()
    assert said(dialogue.feed(b"AUTH PLAIN\r\n")) == b"334 \r\n"
    assert said(dialogue.feed(b"*\r\n")).startswith(b"501 5.7.0")
    assert said(dialogue.feed(b"AUTH GSSAPI\r\n")).startswith(b"504")
    assert said(dialogue.feed(b"AUTH PLAIN ????\r\n")).startswith(b"501 5.5.2")


def test_in_the_clear_no_password_is_taken_and_what_came_before_tls_counts_for_nothing() -> None:
    dialogue = greeted(is_private=False)
    hello = said(dialogue.feed(b"EHLO me\r\n"))
    assert b"AUTH" not in hello
    assert b"STARTTLS" in hello
    assert said(dialogue.feed(b"AUTH PLAIN " + PLAIN + b"\r\n")).startswith(b"530 5.7.0 Use STARTTLS")
    assert isinstance(dialogue.feed(b"STARTTLS\r\n")[-1], StartTls)
    dialogue.tls_started()
    assert b"250-AUTH PLAIN LOGIN\r\n" in said(dialogue.feed(b"EHLO me\r\n"))
    injected = greeted(is_private=False)
    injected.feed(b"EHLO me\r\n")
    effects = injected.feed(b"STARTTLS\r\nAUTH PLAIN " + PLAIN + b"\r\n")
    assert isinstance(effects[-1], HangUp)


def test_wrong_passwords_end_the_session() -> None:
    dialogue = greeted()
    for _ in range(4):
        dialogue.feed(b"AUTH PLAIN " + PLAIN + b"\r\n")
        assert said(dialogue.login_answer(b"535 5.7.8 no\r\n")) == b"535 5.7.8 no\r\n"
    dialogue.feed(b"AUTH PLAIN " + PLAIN + b"\r\n")
    assert isinstance(dialogue.login_answer(b"535 5.7.8 no\r\n")[-1], HangUp)


_PIECES = [
    b"AUTH",
    b" ",
    b"PLAIN",
    b"LOGIN",
    b"\r\n",
    b"\n",
    b"EHLO x",
    b"MAIL FROM:<a@b>",
    b"*",
    b"=",
    PLAIN,
]


@given(st.lists(st.sampled_from(_PIECES) | st.binary(max_size=20), max_size=40))
def test_no_bytes_of_a_client_break_the_dialogue(pieces: list[bytes]) -> None:
    dialogue = greeted()
    for piece in pieces:
        for effect in dialogue.feed(piece):
            if isinstance(effect, AskLogin):
                dialogue.login_answer(b"535 5.7.8 no\r\n")
