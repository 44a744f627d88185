"""Written dialogues: what a client says, what it hears, what is asked of the rest; no socket."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from postroom.imap.dialogue.effects import (
    DropAppended,
    Effect,
    EndIdle,
    EndSession,
    Performed,
    PerformRequest,
    UpgradeToTls,
    Write,
)
from postroom.imap.dialogue.limits import ImapLimits
from postroom.imap.dialogue.protocol import ImapDialogue
from postroom.imap.dialogue.reader import MailPiece
from postroom.imap.dialogue.requests import (
    STAR,
    AppendMail,
    CopyMails,
    FetchMails,
    ListFolders,
    LogIn,
    MailSection,
    NumberSet,
    Request,
    SearchKey,
    SearchMails,
    SelectFolder,
    StoreFlags,
)
from tests.samples import samples

LIMITS = ImapLimits(max_line_bytes=1000, max_literal_bytes=200, max_mail_bytes=5000, max_errors=5)


def new(is_private: bool = True, offers_tls: bool = True) -> ImapDialogue:
    return ImapDialogue(LIMITS, offers_tls, is_private)


def selected() -> ImapDialogue:
    dialogue = new()
    dialogue.is_logged_in = dialogue.is_selected = True
    return dialogue


def said(effects: list[Effect]) -> bytes:
    return b"".join(effect.data for effect in effects if isinstance(effect, Write))


def asked(effects: list[Effect]) -> Request | None:
    found = [effect.request for effect in effects if isinstance(effect, PerformRequest)]
    assert len(found) <= 1, "one question at a time"
    return found[0] if found else None


def one(number: int) -> NumberSet:
    return NumberSet(((number, number),))


def test_a_client_logs_in_and_hears_what_it_may_do() -> None:
    dialogue = new()
    greeting = said(dialogue.greet())
    assert greeting.startswith(b"* OK [CAPABILITY IMAP4rev1 ")
    assert b"AUTH=PLAIN" in greeting
    assert b"STARTTLS" in greeting
    assert b"IDLE" not in greeting
    assert asked(dialogue.feed(b'a1 LOGIN agent@x.example "pr_secret"\r\n')) == LogIn(
        "agent@x.example", "pr_secret"
    )
    answer = said(dialogue.performed(Performed(b"OK You are logged in.", True, False)))
    assert answer.startswith(b"a1 OK [CAPABILITY ")
    assert b"IDLE" in answer
    assert answer.endswith(b"in.\r\n")


def test_without_tls_no_password_is_taken_from_afar() -> None:
    dialogue = new(is_private=False)
    assert b"LOGINDISABLED" in said(dialogue.greet())
    effects = dialogue.feed(b"a LOGIN x y\r\nb AUTHENTICATE PLAIN AHgAeQ==\r\n")
    assert asked(effects) is None
    assert said(effects).count(b"NO [PRIVACYREQUIRED]") == 2


def test_what_was_said_before_tls_counts_for_nothing() -> None:
    dialogue = new(is_private=False)
    effects = dialogue.feed(b"a STARTTLS\r\nb LOGIN x y\r\n")
    assert said(effects) == b"a OK Begin TLS now.\r\n"
    assert isinstance(effects[-1], UpgradeToTls)
    assert dialogue.tls_started() == []
    assert asked(dialogue.feed(b"c LOGIN x y\r\n")) == LogIn("x", "y")
    dialogue.performed(Performed(b"NO wrong", False, False))
    assert b"c2 BAD" in said(dialogue.feed(b"c2 STARTTLS\r\n"))


def test_authenticate_plain_with_and_without_the_first_answer() -> None:
    credentials = base64.b64encode(b"\0agent@x.example\0pr_secret")
    wanted = LogIn("agent@x.example", "pr_secret")
    assert asked(new().feed(b"a AUTHENTICATE PLAIN " + credentials + b"\r\n")) == wanted
    dialogue = new()
    assert said(dialogue.feed(b"a AUTHENTICATE PLAIN\r\n")) == b"+ \r\n"
    assert asked(dialogue.feed(credentials + b"\r\n")) == wanted
    dialogue = new()
    dialogue.feed(b"a AUTHENTICATE PLAIN\r\n")
    assert said(dialogue.feed(b"*\r\n")).startswith(b"a BAD")
    assert said(new().feed(b"a AUTHENTICATE CRAM-MD5\r\n")).startswith(b"a NO [CANNOT]")


def test_commands_come_one_after_the_other_however_they_are_sent() -> None:
    dialogue = selected()
    first = dialogue.feed(b"a NOOP\r\nb UID FETCH 1 FLAGS\r\nc LOGOUT\r\n")
    assert said(first) == b""
    second = dialogue.performed(Performed(b"OK Done.", True, True))
    assert said(second) == b"a OK Done.\r\n"
    assert isinstance(asked(second), FetchMails)
    third = dialogue.performed(Performed(b"OK Done.", True, True))
    assert said(third) == b"b OK Done.\r\n* BYE Goodbye.\r\nc OK Done.\r\n"
    assert isinstance(third[-1], EndSession)
    assert dialogue.feed(b"d NOOP\r\n") == []


def test_a_command_may_come_byte_by_byte() -> None:
    dialogue = selected()
    text = b'a UID FETCH 1:*,7 (FLAGS BODY.PEEK[HEADER.FIELDS (To "Cc")]<0.100>)\r\n'
    found = [request for byte in text if (request := asked(dialogue.feed(bytes([byte])))) is not None]
    assert found == [
        FetchMails(
            NumberSet(((1, STAR), (7, 7))),
            True,
            ("FLAGS", "UID"),
            (
                MailSection(
                    (), "HEADER.FIELDS", ("To", "Cc"), 0, 100, True, b"BODY[HEADER.FIELDS (To Cc)]<0>"
                ),
            ),
        )
    ]


def test_a_literal_is_asked_for_and_may_hold_anything() -> None:
    dialogue = selected()
    assert said(dialogue.feed(b"a APPEND Sent (\\Seen) {12}\r\n")) == b"+ Go ahead.\r\n"
    assert dialogue.feed(b"a: b\r\n") == [MailPiece(b"a: b\r\n", is_first=True)]
    effects = dialogue.feed(b"\r\n\0\n{3\r\n")
    assert effects[0] == MailPiece(b"\r\n\0\n{3", is_first=False)
    assert asked(effects) == AppendMail("Sent", frozenset({"\\Seen"}), None)
    dialogue = new()
    assert asked(dialogue.feed(b"a LOGIN {3+}\r\nx y {4}\r\n")) is None
    assert asked(dialogue.feed(b"p\r\nq\r\n")) == LogIn("x y", "p\r\nq")


def test_a_literal_that_is_too_large_is_refused_before_it_is_read() -> None:
    dialogue = selected()
    assert (
        said(dialogue.feed(b"a APPEND INBOX {5001}\r\n")) == b"a NO [TOOBIG] This literal is too large.\r\n"
    )
    assert said(dialogue.feed(b"b LOGIN {201}\r\n")) == b"b NO [TOOBIG] This literal is too large.\r\n"
    effects = dialogue.feed(b"c APPEND INBOX {5001+}\r\n")
    assert said(effects).startswith(b"* BYE [TOOBIG]")
    assert isinstance(effects[-1], EndSession)


def test_a_mail_is_handed_on_as_it_comes_and_dropped_with_its_command() -> None:
    dialogue = selected()
    assert said(dialogue.feed(b"a APPEND {3}\r\n")) == b"+ Go ahead.\r\n"
    assert dialogue.feed(b"Old {4000+}\r\n") == []
    for number in range(4):
        assert dialogue.feed(b"x" * 1000) == [MailPiece(b"x" * 1000, is_first=number == 0)]
    assert asked(dialogue.feed(b"\r\n")) == AppendMail("Old", frozenset(), None)
    dialogue = selected()
    effects = dialogue.feed(b"b APPEND Old {0+}\r\n {2+}\r\nxx\r\n")
    assert effects[:2] == [MailPiece(b"", is_first=True), MailPiece(b"xx", is_first=True)]
    assert isinstance(effects[2], DropAppended)
    assert said(effects).startswith(b"b BAD ")


def test_the_name_of_a_folder_is_no_mail() -> None:
    assert b"[TOOBIG]" in said(selected().feed(b"a APPEND {201}\r\n"))


def test_only_who_is_logged_in_may_bring_a_mail() -> None:
    assert b"[TOOBIG]" in said(new().feed(b"a APPEND INBOX {201}\r\n"))


def test_a_line_without_an_end_ends_the_session() -> None:
    effects = new().feed(b"x" * 1001)
    assert said(effects).startswith(b"* BYE")
    assert isinstance(effects[-1], EndSession)
    dialogue = new()
    dialogue.feed(b"a AUTHENTICATE PLAIN\r\n")
    assert isinstance(dialogue.feed(b"x" * 1001)[-1], EndSession)


def test_literals_make_a_command_neither_longer_nor_endless() -> None:
    many = b"a SEARCH" + b" SUBJECT {1+}\r\nx" * (LIMITS.max_literals + 1)
    assert b"* BYE" in said(selected().feed(many))
    long = b"a SEARCH" + (b" SUBJECT " + b"y" * 500 + b" SUBJECT {1+}\r\nx") * 2
    assert b"* BYE" in said(selected().feed(long))


def test_refused_logins_are_errors_and_other_commands_are_asked_for_one_by_one() -> None:
    effects = new(is_private=False).feed(b"a LOGIN x y\r\n" * 9)
    assert said(effects).count(b"PRIVACYREQUIRED") == LIMITS.max_errors
    assert isinstance(effects[-1], EndSession)
    assert said(new().feed(b"a CAPABILITY\r\n" * 9)).count(b"* CAPABILITY") == 1


def test_too_many_errors_end_the_session() -> None:
    effects = new().feed(b"a WHAT\r\n" * 5)
    assert said(effects).count(b"a BAD") == 5
    assert b"* BYE" in said(effects)
    assert isinstance(effects[-1], EndSession)


def test_idle_goes_on_until_done_and_the_next_command_waits_for_its_answer() -> None:
    dialogue = selected()
    effects = dialogue.feed(b"a IDLE\r\n")
    assert said(effects) == b"+ idling\r\n"
    assert dialogue.is_idling
    effects = dialogue.feed(b"DONE\r\nb NOOP\r\n")
    assert [type(effect) for effect in effects] == [EndIdle]
    after = dialogue.performed(Performed(b"OK Done.", True, True))
    assert said(after) == b"a OK Done.\r\n"
    assert asked(after) is not None


@samples(
    "line",
    [
        b"NOOP",
        b"a",
        b"a ",
        b"a FETCH 0 FLAGS",
        b"a FETCH 1 (FLAGS",
        b"a FETCH 1 BODY[1.0]",
        b"a FETCH 1 BODY[MIME]",
        b"a FETCH 1 BODY[]<0.0>",
        b"a FETCH 1 NOTHING",
        b"a FETCH 99999999999 FLAGS",
        b"a STORE 1 FLAGS",
        b"a SEARCH BEFORE yesterday",
        b"a SEARCH OR ALL",
        b"a SEARCH " + b"(" * 30 + b"ALL" + b")" * 30,
        b'a SELECT "INBOX',
        b"a SELECT &AA-",
        b"a LIST",
        b"a STATUS INBOX ()",
        b"a UID LOGIN x y",
        b"a ENABLE",
    ],
)
def test_what_has_no_form_is_told_so(line: bytes) -> None:
    effects = selected().feed(line + b"\r\n")
    assert asked(effects) is None
    assert b" BAD " in said(effects), (line, said(effects))


@samples(
    ("line", "request"),
    [
        (
            b"STORE 2 +FLAGS.SILENT (\\Seen x)",
            StoreFlags(one(2), False, "+", frozenset({"\\Seen", "x"}), True),
        ),
        (
            b"UID STORE 2 (UNCHANGEDSINCE 9) FLAGS \\Seen",
            StoreFlags(one(2), True, "", frozenset({"\\Seen"}), False, 9),
        ),
        (b"UID MOVE 1,3 &APY-ffnen", CopyMails(NumberSet(((1, 1), (3, 3))), True, "öffnen", True)),
        (b"EXAMINE inbox (CONDSTORE)", SelectFolder("inbox", True, True)),
        (b'LIST "" (INBOX "a%")', ListFolders("LIST", "", ("INBOX", "a%"))),
        (
            b"SEARCH CHARSET UTF-8 UNSEEN",
            SearchMails(SearchKey("NOT", keys=(SearchKey("FLAG", "\\Seen"),)), False, tag=b"a"),
        ),
        (
            b"UID SEARCH RETURN (COUNT) OR SUBJECT x 2:*",
            SearchMails(
                SearchKey(
                    "OR",
                    keys=(SearchKey("SUBJECT", "x"), SearchKey("NUMBERS", which=NumberSet(((2, STAR),)))),
                ),
                True,
                ("COUNT",),
                tag=b"a",
            ),
        ),
    ],
)
def test_what_has_its_form_is_asked_for(line: bytes, request: Request) -> None:
    assert asked(selected().feed(b"a " + line + b"\r\n")) == request


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_no_bytes_of_a_client_break_the_dialogue(pieces: list[bytes]) -> None:
    for dialogue in (new(), selected()):
        for piece in pieces:
            effects = dialogue.feed(piece)
            if asked(effects) is not None and not dialogue.is_idling:
                dialogue.performed(Performed(b"OK Done.", dialogue.is_logged_in, dialogue.is_selected))


_COMMANDS = b"UID FETCH SEARCH STORE APPEND LIST FLAGS NOT OR".split()
_PIECES = [b"a", b" ", b"1:*", b"(", b")", b'"', b"BODY[", b"]", b"<0.1>", b"*", b"\0", b"\r\n"]
_LITERALS = [b"{3}", b"{3+}", b"abc", b"\\Seen"]
_WORDS = st.sampled_from(_COMMANDS + _PIECES + _LITERALS)


@given(st.lists(_WORDS, max_size=60))
def test_no_words_of_the_protocol_break_the_dialogue(words: list[bytes]) -> None:
    dialogue = selected()
    for word in words:
        effects = dialogue.feed(word)
        if asked(effects) is not None and not dialogue.is_idling:
            dialogue.performed(Performed(b"OK Done.", True, True))
