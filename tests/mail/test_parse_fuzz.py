"""Any bytes give a sound ParsedMail. POSTROOM_TEST_FUZZ_MAILS sets how many damaged samples are tried."""

import os
import random
import time
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import filenames
from postroom_mail.mime.parse import parse_mail
from tests.mail.soundness import SAMPLES, assert_is_sound

FUZZ_MAILS = int(os.environ.get("POSTROOM_TEST_FUZZ_MAILS", "300"))
HANG_SECONDS = 2.0
SPLICES = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"\0",
    b"--",
    b'"',
    b"(",
    b"<",
    b"=?utf-8?B?",
    b"?=",
    b";",
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n",
    b"Content-Transfer-Encoding: base64\r\n",
    b"filename*0*=utf-8''%E2",
    b"charset=utf-7",
    b"\xff\xfe",
    b"\xed\xa0\x80",
]

FIELD_NAMES = st.sampled_from(
    [
        "From",
        "To",
        "Cc",
        "Reply-To",
        "Subject",
        "Date",
        "Message-ID",
        "In-Reply-To",
        "References",
        "Content-Type",
        "Content-Disposition",
        "Content-Transfer-Encoding",
        "Content-ID",
        "Auto-Submitted",
        "Precedence",
    ]
)
FIELD_PIECES = st.sampled_from(
    [
        "a@b.example",
        "Name",
        '"quoted',
        "<angle@x.example>",
        "<open",
        "(",
        ")",
        ",",
        ";",
        ":",
        "=?utf-8?Q?=C3=A9?=",
        "=?iso-2022-jp?B?GyRCQQ==?=",
        "=?utf-8?B?A?=",
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "message/rfc822",
        "boundary=b",
        "boundary=bb",
        "charset=utf-8",
        "charset=utf-16",
        "charset=zip",
        "format=flowed",
        'filename="a;b"',
        "filename*=utf-8''%E2%82%AC",
        "name*1=x",
        "attachment",
        "inline",
        "base64",
        "quoted-printable",
        "x-uuencode",
        "Mon, 2 Nov 2026 10:00:00 +0100",
    ]
)
FIELD_VALUES = st.lists(FIELD_PIECES | st.text(max_size=6), max_size=8).map(" ".join)
HEADER_BLOCKS = st.lists(st.tuples(FIELD_NAMES, FIELD_VALUES), max_size=8).map(
    lambda fields: "".join(f"{name}: {value}\r\n" for name, value in fields)
)
BODY_LINES = st.sampled_from(
    ["--b", "--b--", "--bb", "--bb--", "", "words", "SGVsbG8=", "=C3=A9=", "begin 644 x"]
)
BODIES = st.lists(BODY_LINES | HEADER_BLOCKS, max_size=12).map("\r\n".join)
MAILS = st.tuples(HEADER_BLOCKS, BODIES).map(lambda mail: "\r\n".join(mail).encode("utf-8", "surrogatepass"))

# Characters that survive the trip by design: no controls, surrogates, or invisible marks.
READABLE = st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" ")


@given(st.binary(max_size=2_000))
def test_any_bytes_give_a_sound_mail(raw: bytes) -> None:
    assert_is_sound(parse_mail(raw))


@given(MAILS)
def test_any_arrangement_of_fields_and_delimiters_gives_a_sound_mail(raw: bytes) -> None:
    mail = parse_mail(raw)
    assert_is_sound(mail)
    assert parse_mail(raw) == mail


@given(
    subject=st.text(READABLE, max_size=120),
    text=st.text(READABLE | st.just("\n"), max_size=300),
    html=st.text(READABLE, max_size=200),
    files=st.lists(st.tuples(st.text(READABLE, max_size=40), st.binary(max_size=200)), max_size=4),
)
def test_what_a_correct_sender_writes_is_read_back(
    subject: str, text: str, html: str, files: list[tuple[str, bytes]]
) -> None:
    mail = MIMEMultipart("mixed")
    mail["Subject"] = Header(subject, "utf-8").encode()
    bodies = MIMEMultipart("alternative")
    bodies.attach(MIMEText(text, "plain", "utf-8"))
    bodies.attach(MIMEText(html, "html", "utf-8"))
    mail.attach(bodies)
    for name, content in files:
        part = MIMEApplication(content)
        part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
        mail.attach(part)
    parsed = parse_mail(mail.as_bytes())
    assert parsed.subject == subject.strip()
    assert parsed.body_text == (text if text.strip() else "")
    assert parsed.body_html == (html if html.strip() else "")
    assert [file.content for file in parsed.attachments] == [content for _, content in files]
    names = [filenames.clean(name) or f"attachment-{number}.bin" for number, (name, _) in enumerate(files, 1)]
    assert [file.filename for file in parsed.attachments] == filenames.unique(names)


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    raw = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 12)):
        place = chance.randint(0, len(raw))
        match chance.randrange(6):
            case 0 | 1 if place < len(raw):
                raw[place] = chance.randrange(256)
            case 2:
                raw[place:place] = chance.choice(SPLICES)
            case 3:
                del raw[place : place + chance.randint(1, 40)]
            case 4:
                raw[place:place] = raw[place : place + chance.randint(1, 200)]
            case 5:
                other = chance.choice(seeds)
                raw[place:] = other[chance.randint(0, len(other)) :]
    return bytes(raw)


def test_damaged_samples_give_sound_mails_without_a_hang() -> None:
    chance = random.Random(20261114)
    seeds = [path.read_bytes() for path in sorted(SAMPLES.glob("*.eml"))]
    for number in range(FUZZ_MAILS):
        raw = mutated(chance, seeds)
        started = time.process_time()
        mail = parse_mail(raw)
        assert time.process_time() - started < HANG_SECONDS, f"mail {number} hangs"
        assert_is_sound(mail)
