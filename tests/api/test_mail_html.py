"""HTML of a stranger's mail: what is left of it on the page that shows it."""

import pytest

from postroom.web.dashboard.display import mail_html
from postroom_mail.mime.parse import ParsedAttachment
from tests.samples import samples

DEEP = {
    "elements": "<div>" * 2_000,
    "formatting": "<b><p>" * 1_500,
    "tables": "<table><a><b>" * 1_000,
    "closings inside attributes": '<div title="</div>">' * 1_500,
    "closings of others": "<div></b>" * 1_500,
}


def body_of(html: str, with_pictures: bool = False) -> str:
    return mail_html.to_page(html, with_pictures).partition("<body>")[2]


def test_words_links_and_tables_stay() -> None:
    shown = body_of(
        "<p>One &amp; two<table><tr><td>three<td>four</table><a href='https://a.example/?b=1&amp;c'>five"
    )
    assert "<p>One &amp; two</p>" in shown
    assert "<td>three</td><td>four</td>" in shown
    assert (
        '<a href="https://a.example/?b=1&amp;c" target="_blank" rel="noopener noreferrer">five</a>' in shown
    )


@samples("kind", DEEP)
def test_the_page_is_never_deeper_than_a_hundred_elements(kind: str) -> None:
    shown = body_of(DEEP[kind])
    depth = deepest = 0
    for part in shown.split("<")[1:]:
        depth += -1 if part.startswith("/") else 1
        deepest = max(deepest, depth)
    assert deepest <= mail_html.DEPTH + 10  # a table gets rows and cells


def test_pictures_of_elsewhere_are_there_only_when_asked_for() -> None:
    html = "<img src=https://a.example/x.png alt=One><img src=data:image/png;base64,AA>"
    assert body_of(html).count("src=") == 1
    assert body_of(html, with_pictures=True).count("src=") == 2
    assert "https:" not in mail_html.headers(False)["Content-Security-Policy"]


@samples(
    "html",
    [
        "<a href='javascript:x'>a</a>",
        "<a href='/app/sign-out'>a</a>",
        "<a href='data:text/html,x'>a</a>",
        "<p style='background:url(https://a.example)'>a</p>",
        "<p style='color:u\\72l(x)'>a</p>",
        "<p onclick=x>a</p>",
        "<form action=https://a.example><input></form>a",
        "<script>x()</script><style>p{}</style><svg onload=x></svg>a",
    ],
)
def test_nothing_is_left_that_runs_or_loads(html: str) -> None:
    shown = body_of(html)
    assert not any(
        word in shown for word in ("javascript", "/app", "data:", "url(", "x()", "onclick", "form")
    )
    assert "a" in shown


def picture(name: str, kind: str = "image/png", content: bytes = b"picture") -> ParsedAttachment:
    return ParsedAttachment("a.png", kind, content, name, True)


def test_a_picture_that_the_mail_carries_stands_in_the_page_itself() -> None:
    html = "<img src='cid:a%40b'><img src='CID:none'><img src='cid:vector'>"
    embedded = mail_html.Embedded([picture("a@b"), picture("vector", "image/svg+xml")])
    page = mail_html.to_page(html, False, embedded)
    assert page.count("src=") == 1
    assert 'src="data:image/png;base64,cGljdHVyZQ=="' in page


def test_a_picture_that_is_named_a_thousand_times_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mail_html, "EMBEDDED_CHARACTERS", 400_000)
    large = picture("big", content=b"x" * (mail_html.EMBEDDED_CHARACTERS // 4))
    page = mail_html.to_page("<img src=cid:big>" * 1000, False, mail_html.Embedded([large]))
    assert len(page) < 2 * mail_html.EMBEDDED_CHARACTERS
    assert page.count("src=") == 3


@samples(
    ("html", "kept"),
    [
        (
            '<div style="background:#123456 url(x.png) no-repeat; color:#fff">Hi</div>',
            "background-color:#123456",
        ),
        ('<body bgcolor="#112233"><p style="color:white">Hi</p></body>', 'bgcolor="#112233"'),
        ('<body style="background: navy"><p style="color:white">Hi</p></body>', "background-color:navy"),
        ('<div style="background-color:rgb(0,0,0)"><span style="color:#eee">Hi</span></div>', "color:#eee"),
    ],
)
def test_a_background_stays_with_the_colour_that_is_read_on_it(html: str, kept: str) -> None:
    shown = body_of(html)
    assert kept in shown
    assert "color:" in shown.replace("background-color:", "") or "white" in shown


@samples(
    "html",
    [
        '<p style="color:#ffffff">Hi</p>',
        '<p style="color: rgb(250, 250, 250)">Hi</p>',
        '<font color="white">Hi</font>',
        '<p style="background:url(dark.png);color:white">Hi</p>',
        '<style>.dark { background: black }</style><p class="dark" style="color:white">Hi</p>',
    ],
)
def test_without_its_background_a_light_colour_goes_too(html: str) -> None:
    shown = body_of(html)
    assert "Hi" in shown
    assert "color" not in shown


def test_a_dark_colour_stays_without_a_background() -> None:
    assert "color:#800000" in body_of('<p style="color:#800000">Hi</p>')
