"""The processor time of reading one mail, plain and HTML."""

import random
import time

from bench.newsletters import WORDS, newsletter
from bench.results import Result, at_most
from bench.smtp_load import WORDS_OF_A_LINE
from postroom.inward.mails import Arrival, Origin
from postroom.inward.receive import read_mail, warm_up

ROUNDS = 200


def measure(size: int = ROUNDS) -> list[Result]:
    warm_up()
    mails = [
        ("plain, 5 kB", plain(5_000), 350),
        ("newsletter, 9 kB, 40 links", html(40, 9_000, has_sheet=False), 1_200),
        ("newsletter with a sheet, 9 kB, 40 links", html(40, 9_000, has_sheet=True), 1_200),
        ("newsletter with a sheet, 40 kB, 80 links", html(80, 40_000, has_sheet=True), None),
    ]
    return [
        Result(name, _microseconds(raw, size), "µs", at_most(aim) if aim else None)
        for name, raw, aim in mails
    ]


def plain(size: int) -> bytes:
    rng = random.Random(5)
    text = ""
    while len(text) < size:
        text += " ".join(rng.choices(WORDS, k=WORDS_OF_A_LINE)) + "\r\n"
    return _mail("plain", text)


def html(links: int, size: int, has_sheet: bool) -> bytes:
    return _mail("html", newsletter(links, size, has_sheet).replace("\n", "\r\n"))


def _mail(subtype: str, body: str) -> bytes:
    fields = (
        "From: Corner Shop <news@shop.example>",
        "To: hello@postroom.localhost",
        "Subject: New this week",
        "Message-ID: <1@shop.example>",
        "Date: Mon, 16 Nov 2026 10:00:00 +0000",
        "MIME-Version: 1.0",
        f"Content-Type: text/{subtype}; charset=utf-8",
        "Content-Transfer-Encoding: 8bit",
    )
    return ("\r\n".join(fields) + "\r\n\r\n" + body).encode()


def _microseconds(raw: bytes, rounds: int) -> float:
    """The quickest of many: others' work makes a round longer, and none shorter."""
    arrival = Arrival(Origin((), trace=b"", peer_ip="", helo="", mail_from="news@shop.example"), raw)
    return min(_seconds(arrival) for _ in range(rounds)) * 1e6


def _seconds(arrival: Arrival) -> float:
    started = time.process_time()
    read_mail(arrival)
    return time.process_time() - started
