"""A mix that looks like mail: 60 % HTML of 5 to 40 kB, 25 % plain, 10 % with files, 5 % bounces.

All of it is made here, from a fixed seed: each kind of mail in some samples, sent with a number of its own.
"""

import base64
import functools
import random
from collections.abc import Callable
from email.utils import formatdate

SEED = 20261116
SAMPLES = 100
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
STYLE = "font-family: Arial, sans-serif; font-size: 14px; color: #333333; padding: 8px 16px;"
TEXT = 'Content-Type: text/plain; charset="utf-8"\r\n\r\n'


def compose(run: str, number: int, recipient: str, date: float | None = None) -> bytes:
    """The dot of SMTP at the end of its lines is doubled by nobody: no line begins with one."""
    head = (
        f"From: Sender {number % 50} <sender-{number % 50}@example.com>\r\nTo: {recipient}\r\n"
        f"Subject: {_subject(number)} {number}\r\nMessage-ID: <{run}.{number}@example.com>\r\n"
        f"Date: {formatdate(date)}\r\nMIME-Version: 1.0\r\n"
    )
    return head.encode() + samples()[number * 37 % SAMPLES] + b"\r\n.\r\n"


@functools.cache
def samples() -> list[bytes]:
    chance = random.Random(SEED)
    makers: dict[Callable[[random.Random], str], int] = {
        _newsletter: 60,
        _plain: 25,
        _with_file: 10,
        _bounce: 5,
    }
    return [make(chance).encode() for make, count in makers.items() for _ in range(count)]


def _subject(number: int) -> str:
    return ("Your weekly news", "Invoice", "Re: the plan", "Order confirmed", "A question")[number % 5]


def _words(chance: random.Random, count: int) -> str:
    return " ".join("".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(count))


def lines(chance: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(_words(chance, 12))
    return "\r\n".join(lines)


def _plain(chance: random.Random) -> str:
    return TEXT + lines(chance, chance.randint(500, 8_000))


def _newsletter(chance: random.Random) -> str:
    """Tables in tables, a link in each row, styles on each cell, and a picture that counts who looks."""
    rows: list[str] = []
    size = chance.randint(5_000, 40_000)
    while sum(map(len, rows)) < size:
        link = f"https://news.example.com/{''.join(chance.choices(LETTERS, k=24))}?u={chance.random()}"
        rows.append(
            f'<table width="100%" cellpadding="0"><tr><td style="{STYLE}">\r\n'
            f"<h2>{_words(chance, 5)}</h2>\r\n<p>{_words(chance, 30)}</p>\r\n"
            f'<a href="{link}" style="color: #0066cc;">{_words(chance, 3)}</a>\r\n</td></tr></table>'
        )
    html = (
        "<!DOCTYPE html><html><head><style>td { vertical-align: top }</style></head><body>\r\n"
        + "\r\n".join(rows)
        + '\r\n<p><a href="https://news.example.com/unsubscribe">Unsubscribe</a></p>'
        + '<img src="https://news.example.com/open.gif" width="1" height="1"></body></html>'
    )
    return _multipart("alternative", TEXT + lines(chance, 600), f"Content-Type: text/html\r\n\r\n{html}")


def _with_file(chance: random.Random) -> str:
    rows = "\r\n".join(_words(chance, 6).replace(" ", ",") for _ in range(chance.randint(50, 400)))
    content = base64.encodebytes(rows.encode()).decode().replace("\n", "\r\n")
    file = (
        'Content-Type: text/csv; name="table.csv"\r\nContent-Transfer-Encoding: base64\r\n'
        f'Content-Disposition: attachment; filename="table.csv"\r\n\r\n{content}'
    )
    return _multipart("mixed", TEXT + lines(chance, 800), file)


def _bounce(chance: random.Random) -> str:
    gone = f"{''.join(chance.choices(LETTERS, k=8))}@example.org"
    status = (
        "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mail.example.org\r\n\r\n"
        f"Final-Recipient: rfc822; {gone}\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        "Diagnostic-Code: smtp; 550 5.1.1 No such user\r\n"
    )
    returned = f"Content-Type: text/rfc822-headers\r\n\r\nTo: {gone}\r\nSubject: {_words(chance, 4)}\r\n"
    words = f"{TEXT}Your mail to {gone} could not be delivered.\r\n"
    return _multipart("report; report-type=delivery-status", words, status, returned)


def _multipart(kind: str, *parts: str) -> str:
    body = "".join(f"--mark\r\n{part}\r\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="mark"\r\n\r\n{body}--mark--'
