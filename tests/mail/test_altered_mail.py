"""Signed emails that were altered on the way: dkimpy is the second opinion, the reader's text the third.

POSTROOM_TEST_ALTERED_MAILS sets how many random alterations are tried.
"""

import os
import random
import re
import time
from collections.abc import Callable
from itertools import product

import dkim

from postroom_mail.authentication.arc import check_arc
from postroom_mail.authentication.arc_seal import SeenResults, seal
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.dkim_verify import check_dkim_signatures, overall
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.mime import headers
from postroom_mail.mime.parse import ParsedMail, parse_mail
from tests.doubles_dns import ZoneLookup
from tests.mail.keys import private_key
from tests.mail.test_dkim_verify import KEY_NAME, NOW, RECORD, signed
from tests.samples import samples

ALTERED_MAILS = int(os.environ.get("POSTROOM_TEST_ALTERED_MAILS", "400"))
HEAD = (
    b"From: Ann <ann@sender.test>\r\nTo: bob@here.test\r\nSubject: The invoice\r\n of May\r\n"
    b"Date: Sat, 14 Nov 2026 10:05:00 +0000\r\nMessage-ID: <1@sender.test>\r\n"
)
TYPED = HEAD + b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
PARTS = (
    HEAD + b"MIME-Version: 1.0\r\nContent-Type: multipart/alternative;\r\n boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain\r\n\r\nPay nothing.\r\n--b\r\nContent-Type: text/html\r\n\r\n"
    b"<p>Pay nothing.</p>\r\n--b--\r\n"
)
MAILS = (HEAD + b"\r\nPay nothing.\r\n", TYPED + b"\r\nPay  nothing.\r\n\r\nAnn\r\n", PARTS, HEAD)
FORMS = ((b"relaxed", b"relaxed"), (b"relaxed", b"simple"), (b"simple", b"relaxed"), (b"simple", b"simple"))
SIGNED = [signed(mail, forms=forms) for mail in MAILS for forms in FORMS]

FORGED = b"Dear customer, pay 500 to account 12345"
# Lines that are no field; any of them in a header makes every signature void.
NO_FIELDS = (
    FORGED,
    b" \r\n" + FORGED,
    b" ",
    b"\t",
    b" \t ",
    b": no name",
    b":",
    b"Two words: x",
    b"Subject : Pay 500",
    b"Subject\t: Pay 500",
    "Betreff ü: x".encode(),
    b"\xff\xfe",
    b"\xc2\xa0",
    b"\x00",
    b"\x0b",
    b"\x0c",
    b"\x1b[2J",
    b"\r",
    b"\r\r",
    b"X-A: b\r" + FORGED,
    b"X-A: \x00",
    b">From ann Sat Nov 14 10:05:00 2026",
    b"--b",
    b"--b: x",
    b"(comment) Subject: x",
    b"<p>Pay 500</p>",
)
LINES = (*NO_FIELDS, b"From ann Sat Nov 14 10:05:00 2026", b"X-Own: text", b"X-Own: text\r\n folded")
PLACES = (0, 1, 3, 99)
CONTROLS = (b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\x85", b"\xa0")
REPEATED = (b"Subject: Pay 500", b"To: eve@here.test", b"From: Eve <eve@sender.test>", b"Date: today")


def verdict(raw: bytes) -> str:
    lookup = TimedLookup(ZoneLookup({(KEY_NAME, "TXT"): [RECORD]}), time.monotonic() + 60, time.monotonic)
    return overall(check_dkim_signatures(split_mail(raw), lookup, NOW))


def second_opinion(raw: bytes) -> bool:
    """dkimpy does not end the last line itself before it drops spaces there (RFC 6376 section 3.4.4)."""
    raw += b"" if raw.endswith(b"\n") else b"\r\n"
    try:
        return bool(dkim.verify(raw, dnsfunc=lambda name, timeout=5: RECORD.encode()))
    except Exception:  # on some bytes it raises IndexError
        return False


def with_line(raw: bytes, number: int, line: bytes) -> bytes:
    """`number` counts lines of the header that begin a field; a high one is the end of the header."""
    head, empty, _ = raw.partition(b"\r\n\r\n")
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n(?![ \t]|\Z)", head))]
    at = starts[number] if number < len(starts) else len(head) + 2 * bool(empty)
    return raw[:at] + line + b"\r\n" + raw[at:]


def shown(mail: ParsedMail) -> tuple[str, ...]:
    """What people read of it; relaxed signatures let runs of white space change."""
    texts = (mail.from_addr, mail.subject, mail.header_to, mail.body_text, mail.body_html)
    return tuple(" ".join(text.split()) for text in texts)


@samples(("line", "place"), product(NO_FIELDS, PLACES))
def test_a_line_that_is_no_field_is_a_permanent_error(line: bytes, place: int) -> None:
    for raw in SIGNED:
        assert verdict(with_line(raw, place, line)) == "permerror"


@samples("line", NO_FIELDS)
def test_a_line_behind_a_header_without_body_is_a_permanent_error(line: bytes) -> None:
    assert verdict(signed(HEAD)) == "pass"
    assert verdict(signed(HEAD) + line + b"\r\n") == "permerror"
    assert verdict(signed(HEAD) + line) == "permerror"


def test_the_line_that_mailboxes_begin_with_does_no_harm() -> None:
    raw = b"From ann Sat Nov 14 10:05:00 2026\r\n" + SIGNED[0]
    assert verdict(raw) == "pass"
    assert shown(parse_mail(raw)) == shown(parse_mail(SIGNED[0]))


def test_more_fields_than_are_read_are_a_permanent_error() -> None:
    many = b"X: y\r\n" * headers.MAX_FIELDS
    assert "Subject: The invoice" in parse_mail(many + SIGNED[0]).body_text
    assert verdict(many + SIGNED[0]) == "permerror"


def test_an_email_whose_lines_end_in_cr_alone_is_a_permanent_error() -> None:
    raw = SIGNED[0].replace(b"\r\n", b"\r")
    assert parse_mail(raw).from_address == "ann@sender.test"
    assert verdict(raw) == "permerror"


@samples(("line", "place"), product(REPEATED, PLACES))
def test_a_second_field_of_a_kind_that_occurs_once_voids_the_signature(line: bytes, place: int) -> None:
    for raw in SIGNED:
        assert verdict(with_line(raw, place, line)) == "fail"


@samples("byte", CONTROLS)
def test_a_control_inside_the_signature_voids_it(byte: bytes) -> None:
    """Only the white space of a header may be in a value; `str.split` knows eight more."""
    for raw in SIGNED:
        at = raw.index(b"\r\n b=") + 10
        assert verdict(raw[:at] + b" " + raw[at:]) == "pass"
        assert verdict(raw[:at] + byte + raw[at:]) == "permerror"


def test_a_second_field_that_was_signed_with_the_first_passes() -> None:
    raw = signed(b"Reply-To: a@sender.test\r\nReply-To: b@sender.test\r\n" + MAILS[0])
    assert verdict(raw) == "pass"


def test_a_chain_does_not_vouch_for_a_header_with_a_line_that_is_no_field() -> None:
    seen = SeenResults("pass", "pass", "pass", "none", "sender.test")
    fields = seal(
        MAILS[0], seen, domain="sender.test", selector="s1", key=private_key(), sealed_at=int(NOW * 1000)
    )
    zone = ZoneLookup({(KEY_NAME, "TXT"): [RECORD]})

    def chain(raw: bytes) -> str:
        return check_arc(
            split_mail(raw), TimedLookup(zone, time.monotonic() + 60, time.monotonic), NOW
        ).verdict

    assert chain(fields + MAILS[0]) == "pass"
    for line in (*NO_FIELDS, *REPEATED):
        assert chain(with_line(fields + MAILS[0], 99, line)) == "fail"
        assert chain(with_line(fields + MAILS[0], 0, line)) in ("fail", "none")  # none: not in the header
    forged = with_line(MAILS[0], 99, FORGED)
    assert not seal(forged, seen, domain="sender.test", selector="s1", key=private_key(), sealed_at=0)


def insert_line(dice: random.Random, raw: bytes) -> bytes:
    return with_line(raw, dice.choice([0, 1, 2, 4, 99]), dice.choice(LINES))


def repeat_field(dice: random.Random, raw: bytes) -> bytes:
    return with_line(raw, dice.choice([0, 1, 2, 99]), dice.choice(REPEATED))


def insert_anywhere(dice: random.Random, raw: bytes) -> bytes:
    at = dice.randrange(len(raw) + 1)
    return (
        raw[:at]
        + dice.choice([b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\r\n \r\n", FORGED, *CONTROLS])
        + raw[at:]
    )


def remove_bytes(dice: random.Random, raw: bytes) -> bytes:
    at = dice.randrange(len(raw))
    return raw[:at] + raw[at + dice.choice([1, 2, 4]) :]


def append(dice: random.Random, raw: bytes) -> bytes:
    return raw + dice.choice([b"", b"\r\n", b"\n", b"\r"]) + dice.choice(LINES)


def move_line(dice: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\r\n")
    lines.insert(dice.randrange(len(lines)), lines.pop(dice.randrange(len(lines))))
    return b"\r\n".join(lines)


def bare_line_end(dice: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\r\n")
    at = dice.randrange(1, len(lines))
    return (
        b"\r\n".join(lines[:at]) + dice.choice([b"\n", b"\r", b"\r\r\n", b"\n\r"]) + b"\r\n".join(lines[at:])
    )


ALTERATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    insert_line,
    insert_line,
    repeat_field,
    insert_anywhere,
    remove_bytes,
    append,
    move_line,
    bare_line_end,
)


def test_nothing_that_another_implementation_refuses_passes_and_what_passes_reads_as_it_was_signed() -> None:
    dice = random.Random(6376)
    passed = 0
    for number in range(ALTERED_MAILS):
        original = dice.choice(SIGNED)
        raw = original
        for _ in range(dice.choice([1, 1, 2, 3])):
            raw = dice.choice(ALTERATIONS)(dice, raw)
        if dice.random() < 0.1:
            raw = raw.replace(b"\r\n", b"\n")
        found = verdict(raw)
        if found != "pass":
            continue
        passed += 1
        assert second_opinion(raw), (number, raw)
        assert shown(parse_mail(raw)) == shown(parse_mail(original)), (number, raw)
    assert passed  # some alterations are harmless, such as another field
