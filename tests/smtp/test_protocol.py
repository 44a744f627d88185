"""The session as a whole: any bytes in any pieces, and the answers that come late."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from postroom.smtp.backend import Accepted
from postroom.smtp.dialogue import replies
from postroom.smtp.dialogue.effects import (
    AcceptMail,
    AskRecipient,
    BeginMail,
    HangUp,
    MailStored,
    Send,
    StartTls,
)
from postroom.smtp.dialogue.protocol import SmtpDialogue
from postroom.smtp.limits import SessionLimits
from tests.smtp.script import Player

LIMITS = SessionLimits(hostname="mx.postroom.test", max_message_bytes=200, max_line_bytes=100)
LINES = st.sampled_from(
    [
        b"MAIL FROM:<ann@remote.example>\r\n",
        b"RCPT TO:<alice@postroom.test>\r\n",
        b"RCPT TO:<nobody@postroom.test>\r\n",
        b"RSET\r\n",
        b"NOOP\r\n",
        b"NOOP " + b"x" * 200 + b"\r\n",
        b"BAD\0\r\n",
        b"\r\n",
        b"QUIT\r\n",
        b"NOOP\n",
    ]
)
HELLO = b"EHLO client.example\r\n"
TO_ALICE = [HELLO, b"MAIL FROM:<ann@remote.example>\r\n", b"RCPT TO:<alice@postroom.test>\r\n"]


def player_after_hello() -> Player:
    player = Player(LIMITS)
    player.greet()
    player.send(HELLO)
    return player


def session_with(*lines: bytes, limits: SessionLimits = LIMITS) -> SmtpDialogue:
    """A session that has greeted and has been sent these lines, with every recipient accepted."""
    session = SmtpDialogue(limits, offers_tls=True)
    session.greet()
    for line in lines:
        if isinstance(session.feed(line)[-1], AskRecipient):
            session.recipient_answer(Accepted("alice"))
    return session


@given(st.lists(LINES, max_size=15).map(b"".join), st.lists(st.integers(0, 500), max_size=6))
def test_a_group_of_commands_gets_the_same_answers_however_it_is_cut(group: bytes, cuts: list[int]) -> None:
    whole, pieces = player_after_hello(), player_after_hello()
    edges = [0, *sorted(cut % (len(group) + 1) for cut in cuts), len(group)]
    answers = [line for start, end in itertools.pairwise(edges) for line in pieces.send(group[start:end])]
    assert answers == whole.send(group)


@given(
    st.lists(
        st.one_of(LINES, st.sampled_from([*TO_ALICE, b"DATA\r\n", b"\r\n.\r\n"]), st.binary(max_size=300)),
        max_size=20,
    )
)
def test_no_bytes_upset_a_session(chunks: list[bytes]) -> None:
    player = Player(LIMITS, offers_tls=True)
    player.greet()
    for chunk in chunks:
        for line in player.send(chunk):
            assert line[:2] in ("S:", "A:", "A>", "X:", "T:")
    for mail in player.mails:
        assert len(mail.read()) <= LIMITS.max_message_bytes


def test_talk_before_the_greeting_ends_the_session() -> None:
    session = SmtpDialogue(LIMITS, offers_tls=False)
    assert session.feed(b"EHLO client.example\r\n") == [Send(replies.OUT_OF_STEP), HangUp()]
    assert session.greet() == []
    assert session.feed(b"NOOP\r\n") == []


def test_commands_wait_while_a_recipient_is_checked() -> None:
    session = session_with(*TO_ALICE[:2])
    assert session.feed(b"RCPT TO:<alice@postroom.test>\r\nNOOP\r\n") == [AskRecipient("alice@postroom.test")]
    assert session.feed(b"NOOP\r\n") == []
    assert session.recipient_answer(Accepted("alice")) == [
        Send(replies.RECIPIENT_OK),
        Send(replies.OK),
        Send(replies.OK),
    ]


def test_plaintext_during_the_handshake_ends_the_session() -> None:
    session = session_with(HELLO)
    assert session.feed(b"STARTTLS\r\n") == [Send(replies.READY_FOR_TLS), StartTls()]
    assert session.feed(b"MAIL FROM:<ann@remote.example>\r\n") == [Send(replies.OUT_OF_STEP), HangUp()]
    assert session.tls_started() == []


def test_a_session_that_must_end_says_so_at_once() -> None:
    assert session_with(HELLO).hang_up(replies.SHUTTING_DOWN) == [Send(replies.SHUTTING_DOWN), HangUp()]


def test_a_session_that_must_end_first_answers_for_the_mail() -> None:
    session = session_with(*TO_ALICE)
    assert session.feed(b"DATA\r\n") == [Send(replies.START_MAIL), BeginMail()]
    assert isinstance(session.feed(b"Hi\r\n.\r\nNOOP\r\n")[-1], AcceptMail)
    assert session.hang_up(replies.SHUTTING_DOWN) == []
    assert session.mail_answer(MailStored("1")) == [
        Send(replies.stored("1")),
        Send(replies.SHUTTING_DOWN),
        HangUp(),
    ]


def test_a_session_that_must_end_in_a_handshake_says_nothing_in_the_clear() -> None:
    session = session_with(HELLO)
    session.feed(b"STARTTLS\r\n")
    assert session.hang_up(replies.SHUTTING_DOWN) == [HangUp(is_expected=True)]


def test_an_endless_line_costs_no_memory() -> None:
    session = session_with(HELLO)
    for _ in range(1000):
        assert session.feed(b"x" * 1000) == []
    assert len(session._input) < 2000
    assert session.feed(b"\r\n") == [Send(replies.LINE_TOO_LONG)]
