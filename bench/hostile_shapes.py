"""What strangers send to hold a server up: mails, requests, frames and answers of shapes that may hurt."""

from dataclasses import dataclass

SIZE = 32_000
LARGE = 900_000


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    content: bytes


def mails() -> list[Shape]:
    shapes = [Shape(f"HTML of {name}", _mail("html", body)) for name, body in _html(SIZE).items()]
    shapes += [
        Shape(f"large HTML of {name}", _mail("html", body))
        for name, body in _html(LARGE).items()
        if name in COSTLY
    ]
    shapes += [Shape(f"text of {name}", _mail("plain", body)) for name, body in _texts().items()]
    return shapes + [Shape(f"head of {name}", _with_field(field)) for name, field in _fields().items()]


COSTLY = ("styles", "bold paragraphs", "classes")


def _fill(unit: str, size: int) -> str:
    return (unit * (size // len(unit.encode()) + 1))[:size]


def _html(size: int) -> dict[str, str]:
    units = {
        "brackets": "<",
        "bold paragraphs": "<b><p>",
        "bold": "<b>",
        "paragraphs": "<p>",
        "tables": "<table><tr><td>",
        "lists": "<ul><li>",
        "anchors": "<a>",
        "links": '<a href="http://a.b">x</a>',
        "attributes": "<a b=c d=e f=g ",
        "open quotes": '<a b="',
        "comments": "<!--",
        "scripts": "<script>",
        "references": "&#1",
        "ampersands": "&",
        "quotes": "<blockquote>x",
        "ends": "</p>",
        "pictures": '<img alt="x y" width=3>',
        "formatting": "<b><i><u><s><em><tt><p>",
        "joiners": "\u0627\u200d",
    }
    shapes = {name: _fill(unit, size) for name, unit in units.items()}
    shapes["styles"] = "".join(f'<b style="color:#{number:06x}">' for number in range(size // 26))
    rules = "".join(f".a{number}{{color:red}}" for number in range(size // 40))
    classes = "".join(f'<p class="a{number} b{number}">x' for number in range(size // 60))
    shapes["classes"] = f"<style>{rules}</style>{classes}"
    shapes["selectors"] = f"<style>{_fill('a,', size)}{{color:red}}</style>"
    shapes["braces"] = f"<style>{_fill('{', size)}</style>"
    return shapes


def _texts() -> dict[str, str]:
    units = {
        "quote marks": "> ",
        "lines": "\n",
        "addresses": "http://a.b/c ",
        "schemes": "http://",
        "at signs": "@",
        "digits": "1",
        "codes": "your code is 123456\n",
        "reply heads": "On Mon, a wrote:\n",
        "senders": "From: a\n",
        "signatures": "-- \n",
        "letters": "a",
        "zero widths": "\u200b",
    }
    return {name: _fill(unit, SIZE) for name, unit in units.items()}


def _fields() -> dict[str, bytes]:
    return {
        "brackets in To": b"To: " + b"<" * 10_000,
        "commas in To": b"To: " + b"," * SIZE,
        "recipients in To": b"To: " + b"a@b.c," * (SIZE // 6),
        "parentheses in To": b"To: " + b"(" * SIZE,
        "encoded words": b"Subject: " + b"=?utf-8?q?a?= " * (SIZE // 14),
        "half encoded words": b"Subject: " + b"=?" * (SIZE // 2),
        "references": b"References: " + b"<a@b> " * (SIZE // 6),
        "folds": b"Subject: " + b"\r\n " * (SIZE // 3),
        "fields": b"\r\n".join(b"X-%d: y" % number for number in range(SIZE // 10)),
        "parameters": b"Content-Type: text/plain; " + b"a*0=b; " * (SIZE // 7),
        "parts": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n" * (SIZE // 5),
        "nested parts": b"".join(
            b"Content-Type: multipart/mixed; boundary=%d\r\n\r\n--%d\r\n" % (number, number)
            for number in range(SIZE // 60)
        ),
    }


def _mail(subtype: str, body: str) -> bytes:
    kind = f"Content-Type: text/{subtype}; charset=utf-8"
    head = f"From: a@x.example\r\nTo: b@x.example\r\nSubject: x\r\n{kind}\r\n\r\n"
    return _in_lines((head + body).encode())


def _with_field(field: bytes) -> bytes:
    return _in_lines(b"From: a@x.example\r\n" + field + b"\r\n\r\nHello\r\n")


def _in_lines(raw: bytes) -> bytes:
    """As SMTP carries it: line ends of two characters, no line that is a dot alone."""
    return raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n").replace(b"\r\n.", b"\r\n..")


def requests() -> dict[str, bytes]:
    """Bodies of a send."""
    fill = _fill
    return {
        "deep JSON": b"[" * 200_000,
        "deep objects": b'{"a":' * 100_000,
        "many recipients": b'{"to": "%s", "subject": "x", "body": "x"}'
        % fill("a@b.example,", 900_000).encode(),
        "empty recipients": b'{"to": [%s""], "subject": "x", "body": "x"}' % (b'"",' * 200_000),
        "unknown fields": b"{%s}" % b",".join(b'"f%d": 1' % number for number in range(50_000)),
        "brackets to send": _send(fill("<b><p>", 99_000)),
        "styles to send": _send("".join(f'<b style=\\"color:#{n:06x}\\">' for n in range(3_000))),
        "a bracket each": _send(fill("<", 99_000)),
        "a large body": _send("a" * 99_000),
        "escapes": _send("\\u0000" * 15_000),
    }


def _send(body: str) -> bytes:
    return b'{"to": "hello@postroom.localhost", "subject": "x", "body": "%s"}' % body.encode()


def frames() -> dict[str, bytes]:
    """Of a WebSocket, masked with zeros."""
    mask = b"\0\0\0\0"
    return {
        "pings": b"\x89\x80" + mask,
        "pongs": b"\x8a\x80" + mask,
        "empty fragments": b"\x00\x80" + mask,
        "small texts": b"\x81\x82" + mask + b"{}",
        "binaries": b"\x82\x80" + mask,
    }


def answers() -> dict[str, bytes]:
    """Of a webhook's target, said again and again."""
    return {
        "100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n",
        "long heads": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 500,
        "an endless body": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 60_000,
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5_000,
    }


def count() -> int:
    return len(mails()) + len(requests()) + len(frames()) + len(answers())
