"""What the rule `links` takes for a link in a mail that is about to leave."""

from itertools import chain

import pytest

from postroom_mail.screening.mentions import (
    MOST_SEARCHED_BYTES,
    calendar_mentions_a_link,
    files_mention_a_link,
    holds_a_file,
    mentions_a_link,
)
from tests.samples import samples

LINKS = {
    "web": ("http:evil", "HTTPS:evil", "see https:evil.example now", "http:\\\\192.0.2.1\\x"),
    "other schemes": ("ftp://x", "x://y", "tel:+4930123456", "sms:123", "data:text/html,x", "localhost:8080"),
    "own schemes": ("myapp:pay", "x-pay:now", "javascript:alert(1)"),
    "mail": ("mailto:bob@example.com", "MAILTO:a", "mailto: bob"),
    "numbers": ("192.0.2.1/x", "192.0.2.1/", "192.0.2.1:80", "192.0.2.1:8080/x", "192.0.2.1?x"),
    "odd numbers": ("0300.0.2.1/x", "127.1/x", "127.1:8080", "0x7f.1/x", "0x7f000001:80", "2130706433/x"),
    "brackets": ("[::1]/x", "[2001:db8::1]:80", "//[::1]"),
    "slashes": ("//evil", "see //192.0.2.1", "\\\\evil\\share", "/\\evil"),
    "names": ("evil.com", "EVIL.COM", "(evil.com)", "evil.com@", "evil.xn--p1ai", "www.evil"),
    "beside an address": ("bob@a.org or evil.com", "evil.com, bob@a.org"),
    "dots": ("evil\u3002com", "evil\u2024com", "\uff45\uff56\uff0e\uff43\uff4f"),
    "letters": (
        "\u24d4\u24e5\u24d8\u24db.\u24d2\u24de",
        "\uff48\uff54\uff54\uff50\uff1aevil",
        "http\ufe55evil",
    ),
    "nothing between": ("h\u200bttp:evil", "ev\u00adil.c\u2060om", "http\ufe0f:evil"),
}
NO_LINKS = {
    "phones": ("+49 30 1234567", "+49.30.1234567", "030/1234567", "(030) 123-4567", "555.123.4567"),
    "named phones": ("Tel: +49 30 123456", "Phone: 555-123-4567", "0049-30-1234567", "+493012345678"),
    "times": ("at 10:30", "10:30:15", "2026-11-16T10:30:00Z"),
    "days": ("16.11.2026", "16/11/2026", "16.11.2026/17.11.2026"),
    "amounts": ("3.5/5", "a ratio of 3.5:1", "$1.50/2", "24/7"),
    "versions": ("1.2.3", "1.2.3.4", "version 1.2.3.4: mended", "Is it 1.2.3.4?"),
    "sentences": (
        "Note: this",
        "and/or",
        "It ends. Next",
        "e.g. this",
        "\u4f60\u597d\u3002\u518d\u89c1\u4e86",
    ),
    "addresses": ("Write to bob@evil.com. Done", "bob@evil.com"),
    "signs": ("smile:)", "great:-)", "std::vector", "// a comment", "a:b", "C:\\Users"),
}
OF_HTML = (
    "<p>go to evil&#46;com/pay</p>",
    "<p>go to evil&period;com</p>",
    "<p>evil<b>.</b>com</p>",
    '<a href  = "//192.0.2.1/x">here</a>',
    '<a href\n\n="&#104;ttp&#58;//192.0.2.1">here</a>',
    "<p>https&colon;//192.0.2.1/x</p>",
    "<img src\t\t=//192.0.2.1>",
    "<p>http<b>:</b>evil</p>",
    "<style>@import '//evil'</style>",
    "<p style='background:URL (x)'>hi</p>",
    "<p style='display:none'>tel:+1234</p>",
)
STYLED = (
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"><html><head>'
    '<style>p{color:red;margin:0}</style></head><body><p style="color:red;font-size:12px">'
)


@samples("text", chain(*LINKS.values()))
def test_a_link_is_found_however_it_is_spelled(text: str) -> None:
    assert mentions_a_link(text, None)
    assert mentions_a_link("hi", f"<p>{text}</p>")


@samples("text", chain(*NO_LINKS.values()))
def test_a_phone_number_a_time_or_a_sentence_is_no_link(text: str) -> None:
    assert not mentions_a_link(text, None)
    assert not mentions_a_link("hi", f"{STYLED}{text}</p></body></html>")


@samples("html", OF_HTML)
def test_a_link_is_found_however_the_html_writes_it(html: str) -> None:
    assert mentions_a_link("hi", html)


def test_html_with_styles_alone_holds_no_link() -> None:
    assert not mentions_a_link("hi", "<p>It ends.</p><p>Next one. And more</p>")
    assert not mentions_a_link("hi", f"{STYLED}It ends.</p></body></html>")


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("text/plain", "a.txt", "See example.com"),
        ("text/html", "a.html", "<p><a href='x'>x</a></p>"),
        ("text/enriched", "a", "<bold>https://x.example</bold>"),
        ("text/x-amp-html", "a", "<a href='x'>"),
        ("text/plain; charset=utf-16", "a.txt", "See example.com"),
        ("message/rfc822", "a.eml", "Hello"),
        ("application/octet-stream", "A.EML", "Hello"),
        ("application/octet-stream", "a.url", "Hello"),
        ("application/octet-stream", "a.ics", "URL:https://x.example"),
        ("text/calendar", "a", "X-ALT-DESC;FMTTYPE=text/html:<a href='x'>"),
    ],
)
def test_a_link_is_found_in_a_file_that_mail_clients_show(kind: str, name: str, content: str) -> None:
    raw = content.encode("utf-16" if "utf-16" in kind else "utf-8")
    assert files_mention_a_link([(kind, name, raw)])


def test_other_files_and_texts_without_a_link_mention_none() -> None:
    files = [("application/pdf", "a.pdf", b"https://x.example"), ("text/csv", "a.csv", b"1,2\r\n")]
    assert not files_mention_a_link(files)
    assert files_mention_a_link([("text/csv", "a.csv", b"1\n" * (MOST_SEARCHED_BYTES // 2 + 1))]), "too much"


@pytest.mark.parametrize(
    "line",
    [
        "URL:https://x.example",
        "DESCRIPTION:See x.exa\r\n mple",
        'SUMMARY;ALTREP="https://x.example":Talk',
        "UID:https://x.example",
        'ATTENDEE;DIR="ldap://x.example":mailto:bob@x.example',
        "no property, but x.example",
    ],
)
def test_a_link_is_found_in_any_line_of_a_calendar(line: str) -> None:
    assert calendar_mentions_a_link(f"BEGIN:VCALENDAR\r\n{line}\r\n".encode())


def test_people_and_products_of_a_calendar_are_no_links() -> None:
    lines = (
        "BEGIN:VCALENDAR",
        "PRODID:-//Postroom//Postroom//EN",
        "METHOD:REPLY",
        "ORGANIZER;CN=Bob:mailto:bob@x.example",
        "DTSTART;TZID=Europe/Berlin:20261120T100000",
        "SUMMARY:Talk at 10:00",
        "",
    )
    assert not calendar_mentions_a_link("\r\n".join(lines).encode())


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Hi\r\nbegin 644 a.exe\r\n#0V%T\r\n", None),
        ("begin-base64 644 a.exe\n", None),
        ("=ybegin line=128 size=3 name=a.exe\n", None),
        ("-----BEGIN PGP MESSAGE-----\n", None),
        ("Hi", "<img src='data:image/png;base64,AAAA'>"),
    ],
)
def test_a_file_is_found_inside_of_a_text(text: str, html: str | None) -> None:
    assert holds_a_file(text, html)


def test_words_about_beginning_are_no_file() -> None:
    assert not holds_a_file("We begin 644 tests today\nbegin with 7", "<p>data: none</p>")
