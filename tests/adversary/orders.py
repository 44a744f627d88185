"""Hostile sends as fields, made from a seed, for every way out that takes fields."""

import base64
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.adversary.hostile import FILENAMES, HTMLS, LINES

RECIPIENT = "bob@there.example"
PEOPLE = (
    RECIPIENT,
    f"Bob <{RECIPIENT}>",
    f'"ceo@bank.example" <{RECIPIENT}>',
    f'"Last, First" <{RECIPIENT}>',
    f"Ünï ✉ <{RECIPIENT}>",
    f"=?utf-8?q?ceo=40bank.example?= <{RECIPIENT}>",
    f'"quo\\"te" <{RECIPIENT}>',
    f"(comment) <{RECIPIENT}>",
)
SUBJECTS = (
    "Hello",
    "=?utf-8?q?Subject:_forged?=",
    "Ünïcödé \u202e reversed",
    "zero\u200bwidth",
    "x" * 998,
    "word " * 150,
    "漢字" * 60,
    "Re: Re: Fwd: again",
    "a, b; c: <d@e>",
    "trailing   spaces",
    "\u2028separator",
)
TYPES = (
    "text/plain",
    "text/html",
    "text/calendar; method=REQUEST",
    "application/pdf",
    "text/csv; charset=utf-16",
    "application/octet-stream; name=other.exe",
    "message/rfc822",
    "multipart/mixed; boundary=b",
)


@dataclass(frozen=True)
class Order:
    number: int
    fields: dict[str, Any]  # of a send


def order(seed: int) -> Order:
    """Return the hostile send of this number."""
    random = Random(seed)
    text = "\n".join(random.choice(LINES) for _ in range(random.choice((1, 2, 5, 12)))) + f"\nsend {seed}"
    fields: dict[str, Any] = {
        "to": [random.choice(PEOPLE)],
        "subject": random.choice(SUBJECTS),
        "body": text.replace("\0", ""),
    }
    if random.random() < 0.4:
        fields["bodyHtml"] = "".join(random.choice(HTMLS) for _ in range(random.choice((1, 3))))
    if random.random() < 0.3:
        fields["cc"] = [random.choice(PEOPLE).replace("bob@", "carol@")]
    if random.random() < 0.3:
        fields["bcc"] = ["dave@there.example"]
    if random.random() < 0.3:
        fields["headers"] = {"X-Note": random.choice(SUBJECTS)[:200].strip(), "X-Other": "=?utf-8?q?a?="}
    if random.random() < 0.4:
        fields["attachments"] = [_file(random) for _ in range(random.choice((1, 2, 3)))]
    return Order(seed, fields)


def _file(random: Random) -> dict[str, str]:
    content = random.choice((b"", b"plain text\r\n", b"https://evil.example/x", random.randbytes(300)))
    return {
        "filename": random.choice(FILENAMES) or "none",
        "contentType": random.choice(TYPES),
        "data": base64.b64encode(content).decode(),
    }
