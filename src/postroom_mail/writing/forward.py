"""A forwarded email: its head and text below one's own words, in text and in HTML."""

import html
import re

from msgspec import Struct

from postroom_mail.writing.compose import SUBJECT_LIMIT
from postroom_mail.writing.dates import to_date
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.quote import QUOTE_STYLE, end_of_content, previous_lines

TITLE = "Forwarded message"
HEAD_LIMIT = 1_000  # characters of each line: an email may name thousands of recipients
FORWARD_PREFIX = re.compile(
    r"(?:fwd?|wg|tr|rv|vl|pd|doorst|\u8f6c\u53d1|\u8f49\u5bc4)\s{0,3}(?:[\[(]\d{1,4}[\])])?\s{0,3}[:\uff1a]",
    re.I,
)


class Forwarded(Struct, frozen=True):
    sender: str
    sent_at: int
    subject: str
    to: str
    cc: str
    text: str


def forward_subject(subject: str) -> str:
    """Return a valid subject. One with such a prefix, also a translated one (WG, TR), gets no second."""
    shown = one_line(subject)
    if not FORWARD_PREFIX.match(shown):
        shown = f"Fwd: {shown}".rstrip()
    return shown[:SUBJECT_LIMIT].rstrip()


def forward_text(own: str, mail: Forwarded) -> str:
    quoted = (f"> {line}" for line in previous_lines(mail.text))
    return "\n".join([own.rstrip("\r\n"), "", f"---------- {TITLE} ----------", *head(mail), "", *quoted, ""])


def forward_html(own: str, mail: Forwarded) -> str:
    """Forward only escaped text, so nothing in a stranger's HTML runs or loads in ours."""
    lines = "<br>\n".join(html.escape(line) for line in head(mail))
    quoted = "<br>\n".join(html.escape(line) for line in previous_lines(mail.text))
    block = (
        f"\n<br>\n<div>---------- {TITLE} ----------<br>\n{lines}</div>\n<br>\n"
        f'<blockquote type="cite" style="{QUOTE_STYLE}">\n{quoted}\n</blockquote>\n'
    )
    end = end_of_content(own)
    return own[:end] + block + own[end:]


def head(mail: Forwarded) -> list[str]:
    lines = (
        ("From", mail.sender),
        ("Date", to_date(mail.sent_at)),
        ("Subject", mail.subject),
        ("To", mail.to),
        ("Cc", mail.cc),
    )
    return [f"{name}: {one_line(value)[:HEAD_LIMIT]}" for name, value in lines if value]


def one_line(value: str) -> str:
    return " ".join(CONTROL.sub(" ", value).split())
