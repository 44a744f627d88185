"""Every sample mail is read as its facts say, and hostile ones within their bounds."""

import inspect
import sys
from dataclasses import dataclass

from postroom_mail.mime.address import Address
from postroom_mail.mime.parse import ParsedMail, parse_mail
from tests.mail.sample_facts import FACTS
from tests.mail.soundness import SAMPLES, assert_is_sound
from tests.samples import samples

NEST = "Content-Type: multipart/mixed; boundary=L{0}\r\n\r\n--L{0}\r\n"


def read_sample(name: str) -> ParsedMail:
    return parse_mail((SAMPLES / f"{name}.eml").read_bytes())


def observed(mail: ParsedMail, fact: str) -> object:
    match fact:
        case "files":
            return [(file.filename, file.content_type, file.content) for file in mail.attachments]
        case "content_ids":
            return [file.content_id for file in mail.attachments]
        case "inline":
            return [file.inline for file in mail.attachments]
        case _:
            return getattr(mail, fact)


def test_every_sample_has_facts_and_every_fact_a_sample() -> None:
    names = {path.stem for path in SAMPLES.glob("*.eml")}
    assert names == set(FACTS)
    assert len(names) >= 60


@samples("name", sorted(FACTS))
def test_a_sample_is_read_as_its_facts_say(name: str) -> None:
    mail = read_sample(name)
    assert {fact: observed(mail, fact) for fact in FACTS[name]} == dict(FACTS[name])
    assert_is_sound(mail)


@dataclass(frozen=True, slots=True)
class Flood:
    """A mail with very many of one thing, and the note that reading it leaves."""

    raw: bytes
    parse_error: str = ""


MULTIPART = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
FLOODS = {
    "parts": Flood(MULTIPART + b"--b\r\n\r\nx\r\n" * 10_000, "more than 1000 parts"),
    "parts without a body": Flood(MULTIPART + b"--b\r\nA: b\r\n" * 10_000, "more than 1000 parts"),
    "levels": Flood("".join(map(NEST.format, range(10_000))).encode(), "more than 50 levels of parts"),
    "lines like delimiters": Flood(
        MULTIPART + b"--bx\r\n" * 300_001,
        "more than 300000 lines that look like delimiters; a multipart without parts",
    ),
    "header fields": Flood(b"A: b\r\n" * 100_000, "too many header fields"),
    "part header fields": Flood(MULTIPART + b"--b\r\n" + b"A: b\r\n" * 10_000, "too many header fields"),
    "folded lines": Flood(b"Subject: a\r\n" + b" \r\n" * 200_000),
    "encoded words": Flood(b"Subject: " + b"=?utf-8?q?a?= " * 40_000),
    "broken encoded words": Flood(b"Subject: " + b"=?utf-8?q?" * 100_000),
    "open comments": Flood(b"To: " + b"(" * 500_000),
    "open quotes": Flood(b'To: "' + b'\\"' * 250_000),
    "open brackets": Flood(b"To: " + b"<" * 500_000),
    "parameters": Flood(b"Content-Type: text/plain" + b"; a*1*=''b" * 100_000),
    "references": Flood(b"References: " + b"<a@b> " * 100_000),
    "padding": Flood(
        b"Content-Transfer-Encoding: base64\r\n\r\n" + b"QQ==" * 30_000, "a part with damaged encoding"
    ),
    "flowed lines": Flood(b"Content-Type: text/plain; format=flowed\r\n\r\n" + b"a \r\n" * 100_000),
    "bad characters": Flood(b"Content-Type: text/plain; charset=utf-16\r\n\r\n" + b"\x00\xd8" * 200_000),
    "combining marks": Flood(
        b"Content-Disposition: attachment; filename*=utf-8''" + b"%CC%81%CC%A7" * 10_000
    ),
    "one line": Flood(b"x" * 1_000_000),
}


@samples("kind", FLOODS)
def test_a_flood_is_read_within_its_bounds(kind: str) -> None:
    mail = parse_mail(FLOODS[kind].raw)
    assert_is_sound(mail)
    assert mail.parse_error == FLOODS[kind].parse_error


def test_ten_thousand_addresses_are_all_read_and_more_are_not() -> None:
    raw = b"To: " + b",\r\n ".join(b"User %d <u%d@x.example>" % (i, i) for i in range(12_000))
    to = parse_mail(raw).to
    assert to[0] == Address("User 0", "u0@x.example")
    assert to[-1] == Address("User 9999", "u9999@x.example")


def test_a_structure_that_cannot_be_read_leaves_the_headers_and_the_text() -> None:
    raw = b"Subject: kept\r\n" + "".join(map(NEST.format, range(50))).encode() + b"\r\nbottom\r\n"
    mail = parse_with_frames_left(raw, 60)
    assert mail.subject == "kept"
    assert mail.body_text.endswith("bottom\n")
    assert mail.parse_error == "the structure could not be read (RecursionError)"


def parse_with_frames_left(raw: bytes, frames: int) -> ParsedMail:
    """Parses close to the recursion limit, the one honest way to make reading a tree fail."""
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + frames)
        return parse_mail(raw)
    finally:
        sys.setrecursionlimit(limit)


def test_a_too_long_message_id_is_no_id() -> None:
    mail = parse_mail(
        b"Message-ID: <" + b"x" * 2_000 + b"@y>\r\nReferences: <ok@y> <" + b"x" * 2_000 + b">\r\n"
    )
    assert mail.message_id == ""
    assert mail.references == ("<ok@y>",)


def test_a_message_id_without_brackets_or_at_is_still_an_id() -> None:
    assert parse_mail(b"Message-ID: local only\r\n\r\n").message_id == "<localonly>"


def test_a_subject_is_cut_at_its_limit() -> None:
    assert len(parse_mail(b"Subject: " + b"s" * 50_000).subject) == 4_000


@samples(
    ("field", "ids"),
    [
        ("joe@x.example's message of Mon, 3 Nov 2025", ()),
        ("Message from Joe <joe@x.example> of Mon, 3 Nov 2025", ()),
        ('Message from Joe <joe@x.example> of "Mon, 3 Nov" <id@host.example>', ("<id@host.example>",)),
        ("Your message of Mon <id@host.example>", ("<id@host.example>",)),
        ("id@host.example", ("<id@host.example>",)),
        ("<a@host.example> <b@host.example>", ("<a@host.example>", "<b@host.example>")),
    ],
)
def test_a_person_is_no_id(field: str, ids: tuple[str, ...]) -> None:
    assert parse_mail(f"In-Reply-To: {field}\r\n\r\nx".encode()).in_reply_to == ids
