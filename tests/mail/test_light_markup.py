"""The light markup of the pages: what it marks, what it leaves alone, and that nothing else becomes HTML."""

import nh3
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.html.text import html_to_text
from postroom_mail.writing.light_markup import to_html
from postroom_mail.writing.quote import QUOTE_STYLE
from tests.samples import samples

QUOTE = f'<blockquote style="{QUOTE_STYLE}">'
WRITTEN = """Hello **Ann**,
see [the page](https://a.example/?x=1&y=2) or https://b.example/x.

- one
- two **a < c**

2. second
3. third

> quoted
> > deeper

Bye"""


def test_bold_links_lists_and_quotes_become_html() -> None:
    assert to_html(WRITTEN) == (
        '<p>Hello <strong>Ann</strong>,<br>\nsee <a href="https://a.example/?x=1&amp;y=2">the page</a> or'
        ' <a href="https://b.example/x">https://b.example/x</a>.</p>\n\n'
        "<ul><li>one</li><li>two <strong>a &lt; c</strong></li></ul>\n\n"
        '<ol start="2"><li>second</li><li>third</li></ol>\n\n'
        f"{QUOTE}\n<p>quoted</p>\n{QUOTE}\n<p>deeper</p>\n"
        "</blockquote>\n</blockquote>\n\n<p>Bye</p>"
    )


@samples(
    "text",
    [
        "",
        "Hello Ann",
        "2 ** 3 ** 4",
        "a*b*c",
        "x - y",
        "[x](javascript:alert(1))",
        "[a](ftp://b)",
        "<b>x</b>",
    ],
)
def test_what_is_not_marked_stays_a_text_alone(text: str) -> None:
    assert to_html(text) is None


@samples(
    "text",
    [
        '**<script>alert(1)</script>** - "',
        '- [<img src=x onerror=y>](https://a.example/"onclick="x)',
        "> [x](https://a.example/&quot;onclick)",
        "- https://a.example/'onmouseover='x",
    ],
)
def test_hostile_text_brings_no_markup_of_its_own(text: str) -> None:
    shown = to_html(text)
    assert shown is None or is_harmless(shown)


@given(st.text(alphabet="ab*-> [](){}<>&\"'\n1.)https://mailto:", max_size=200))
def test_whatever_is_typed_only_our_own_tags_come_out(text: str) -> None:
    shown = to_html(text)
    assert shown is None or is_harmless(shown)


def is_harmless(shown: str) -> bool:
    """A cleaner that knows our tags alone has nothing to take away."""
    tags = {"p", "br", "ul", "ol", "li", "strong", "a", "blockquote"}
    attributes = {"a": {"href"}, "ol": {"start"}, "blockquote": {"style"}}
    cleaned = nh3.clean(
        shown, tags=tags, attributes=attributes, url_schemes={"http", "https", "mailto"}, link_rel=None
    )
    return html_to_text(cleaned) == html_to_text(shown) and cleaned.count("<") == shown.count("<")
