"""A draft for the tests of composing, and readers of what it becomes."""

import email
from email.message import EmailMessage, Message
from email.policy import default

from hypothesis import strategies as st

from postroom_mail.writing.compose import Draft, DraftAttachment

PLAIN = Draft(
    from_name="Ada Lovelace",
    from_address="ada@postroom.example",
    to=("charles@engine.example",),
    subject="Notes on the engine",
    text="Hello Charles\n",
    message_id="<0123456789abcdef@postroom.example>",
    date_at=1_794_650_700_000,
)
PDF = DraftAttachment("report.pdf", "application/pdf", b"%PDF-1.7 \x00\xff")


def read(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def old_read(raw: bytes) -> Message:
    return email.message_from_bytes(raw)


def header_block(raw: bytes) -> bytes:
    return raw.partition(b"\r\n\r\n")[0]


def header_names(raw: bytes) -> list[str]:
    return [name for name, _ in old_read(raw).items()]


def assert_fit_for_the_wire(raw: bytes) -> None:
    assert raw.count(b"\r\n") == raw.count(b"\r") == raw.count(b"\n")
    assert raw.endswith(b"\r\n")
    assert b"\x00" not in raw
    lines = raw.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    head = header_block(raw).split(b"\r\n")
    assert all(line.strip() for line in head), "a line of only white space inside a header"


line_text = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=120)
