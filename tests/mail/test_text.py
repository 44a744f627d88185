"""HTML becomes readable text, and nothing that a reader would not see is in it."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from postroom_client import untrusted
from postroom_mail.html import nesting
from postroom_mail.html.markup import VOID, Close, Open
from postroom_mail.html.nesting import nested
from postroom_mail.html.page import read_page
from postroom_mail.html.text import html_to_text, looks_like_html, visible
from tests.samples import samples

NESTING = [
    *(
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<font color=red>",
        "</font>",
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "</td>",
    ),
    *(
        "<ul>",
        "<li>",
        "</li>",
        "</ul>",
        "<a href=x>",
        "</a>",
        "<br>",
        "</br>",
        "<div>",
        "</div>",
        "text",
        "<",
        "<!--",
    ),
]
HIDING_STYLES = [
    "display:none",
    "DISPLAY : NONE !important",
    "d\\69splay:none",
    "visibility:hidden",
    "content-visibility:hidden",
    "opacity:0",
    "opacity: 0.01",
    "font-size:0",
    "font-size:0px",
    "font-size: 1px",
    "font: 0/0 a",
    "width:0;height:0;overflow:hidden",
    "max-height:0;overflow:hidden",
    "height:1px;overflow-y:clip",
    "color:white",
    "color:#fff",
    "color:#FFFFFF",
    "color:rgb(255,255,255)",
    "color:rgb(100% 100% 100%)",
    "color:rgba(0,0,0,0)",
    "color:hsl(0,0%,100%)",
    "color:transparent",
    "color:#fefefe",
    "color:#123456;background:#123456",
    "color:red;background-color:#f00",
    "text-indent:-9999px",
    "position:absolute;left:-9999px",
    "position:fixed;top:-200em",
    "position:absolute;clip:rect(0 0 0 0)",
    "clip-path: inset(50%)",
    "transform:scale(0)",
    "/* a comment */display/**/:none",
]
SHOWING_STYLES = [
    "display:block",
    "visibility:visible",
    "opacity:1",
    "opacity:0.5",
    "font-size:12px",
    "font:italic 12px/0 serif",
    "width:0",
    "height:100px;overflow:hidden",
    "color:white;background:#333",
    "color:white;background:linear-gradient(red,blue)",
    "text-indent:-10px",
    "position:absolute;left:10px",
    "left:-9999px",
    "clip:rect(0 100px 100px 0)",
    "clip:rect(0 0 0 0)",
    "nonsense",
    "color:",
    ":::;;;",
]


@samples("style", HIDING_STYLES)
def test_text_hidden_by_its_style_is_not_in_the_text(style: str) -> None:
    assert html_to_text(f'<p>before</p><div style="{style}">secret</div><p>after</p>') == "before\n\nafter"


@samples("style", HIDING_STYLES)
def test_text_hidden_by_a_style_sheet_is_not_in_the_text(style: str) -> None:
    sheet = f"<style>h1{{color:red}} .x, #other {{ {style} }}</style>"
    assert html_to_text(f'{sheet}<p>before</p><div class="y x">secret</div>') == "before"


@samples("style", SHOWING_STYLES)
def test_other_styles_leave_the_text_alone(style: str) -> None:
    assert html_to_text(f'<p style="{style}">seen</p>') == "seen"


@samples(
    "html",
    [
        "<div hidden>secret</div>",
        "<!-- secret -->",
        "<!--[if mso]><p>secret</p><![endif]-->",
        "<script>secret</script>",
        "<style>secret</style>",
        "<title>secret</title>",
        "<template>secret</template>",
        '<font color="white">secret</font>',
        '<body bgcolor="#000"><font color="black">secret</font></body>',
        '<table bgcolor="navy"><tr><td><span style="color:#000080">secret</span></table>',
        '<div style="display:none"><b style="display:block">secret</b></div>',
        '<p><font style="display:none"></p>secret',
        '<b style="display:none"><p>secret</b></p>',
        '<style>p{display:none}</style><p style="display:block"></p><p>secret</p>',
        "<style>#x{display:none!important}</style><i id=x style='display:inline'>secret</i>",
        "<style>@media screen{.x{display:none}}</style><i class=x>secret</i>",
        '<i class="x">secret</i><style>.x{display:none}</style>',
        '<img src=x width=1 height=1 alt="secret">',
        '<img src=x style="display:none" alt="secret">',
    ],
)
def test_markup_that_shows_nothing_gives_no_text(html: str) -> None:
    assert html_to_text(html) == ""


@samples(
    "html",
    [
        '<div style="font-size:0"><p style="font-size:14px">seen</p></div>',
        '<div style="visibility:hidden"><p style="visibility:visible">seen</p></div>',
        '<div style="color:white"><a href="http://x.example">seen</a></div>',
        '<p style="display:none">secret<div>seen</div>',
        "<style>@media (max-width:600px){.x{display:none}}</style><p class=x>seen",
        "<style media=print>p{display:none}</style><p>seen",
        "<style>.x{display:none} p.x{display:block}</style><p class=x>seen",
        "<head><title>t</title><p>seen",
        "<noscript>seen</noscript>",
        '<table bgcolor="black"><tr><td><font color="white">seen</font></table>',
        "<![if !mso]>seen<![endif]>",
    ],
)
def test_what_a_reader_sees_stays(html: str) -> None:
    assert html_to_text(html) == "seen"


def test_paragraphs_breaks_lists_and_links_are_laid_out() -> None:
    html = """<h1>Title</h1><p>Dear <b>Ann</b>,\n see <a href="http://x.example">the page</a>.<br>Bye</p>
    <ul><li>one<li>two<ol start=3><li>inner</ol></ul><hr><pre>a\n  b</pre>
    <blockquote>old<p>older</blockquote>"""
    assert html_to_text(html) == (
        "Title\n\nDear Ann, see the page.\nBye\n\n- one\n- two\n  3. inner\n\n---\n\n"
        "a\n  b\n\n> old\n\n> older"
    )


def test_table_cells_are_separated_by_tabs_and_rows_by_lines() -> None:
    html = "<table><tr><th>Item<th>Price</tr><tr><td>Tea</td> <td>2</td></tr></table>Thanks"
    assert html_to_text(html) == "Item\tPrice\nTea\t2\n\nThanks"


def test_pictures_speak_through_their_alternative_text() -> None:
    assert html_to_text('<img src="x" alt="Our logo"> Hello') == "[Our logo] Hello"


def test_character_references_are_resolved_whatever_their_length() -> None:
    assert html_to_text("a &lt;b&gt; &eacute; &#65; &#x42;&nbsp;c") == "a <b> é A B c"
    assert html_to_text("&#" + "9" * 10_000 + ";") == "\ufffd"


def test_characters_of_no_width_are_stripped() -> None:
    hidden = "\u200b\u200e\u2060\u2064\ufeff\u00ad\u202e\U000e0041\U000e007f"
    assert visible(f"a{hidden}b") == "ab"
    assert html_to_text(f"<p>a{hidden}b") == "ab"


def test_joiners_that_shape_words_and_emoji_stay() -> None:
    family = "\U0001f468\u200d\U0001f469"
    assert visible(family) == family
    assert (
        visible("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645")
        == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    )
    assert visible("a\u200db\u200d\u200dc") == "abc"


@samples("tag", ["div", "b", "table><tr><td", "ul><li", "blockquote", "font color=white"])
def test_levels_without_end_are_read_without_recursion(tag: str) -> None:
    assert isinstance(html_to_text(f"<{tag}>" * (sys.getrecursionlimit() + 100) + "deep"), str)


@given(st.lists(st.sampled_from(NESTING), max_size=40))
def test_elements_are_properly_nested_whatever_is_written(parts: list[str]) -> None:
    still_open: list[str] = []
    for piece in nested("".join(parts)):
        if isinstance(piece, Open) and piece.name not in VOID:
            still_open.append(piece.name)
        elif isinstance(piece, Close):
            assert still_open.pop() == piece.name
    assert not still_open


@given(st.text(alphabet=st.sampled_from("<>/!-= \"'abpdivtblertysx&#;:{}.\n\u200b\ud800"), max_size=200))
def test_any_text_can_be_read_as_html(html: str) -> None:
    assert isinstance(html_to_text(html), str)


@samples(
    "text",
    [
        "<p>Hi</p>",
        "Hi<br>there",
        "<br/>",
        "<!DOCTYPE html><html>",
        '<a href="x">y</a>',
        "<P>x",
        "a < b <b>c</b>",
    ],
)
def test_real_tags_make_html(text: str) -> None:
    assert looks_like_html(text)


@samples(
    "text",
    [
        "",
        "a < b",
        "1 <2 and 3> 2",
        "Ann <ann@example.com>",
        "if a <b and c> d",
        "<3",
        "<foo>",
        "< p >",
        "<https://x.example>",
    ],
)
def test_a_lone_bracket_does_not_make_html(text: str) -> None:
    assert not looks_like_html(text)


def test_controls_are_left_out_but_lines_and_tabs_stay() -> None:
    assert visible("a\x1b[31mb\x00\x7f\x08\n\tc\r\n") == "a[31mb\n\tc\r\n"
    assert visible("ä\x1b[31mb\x85\n\tc") == "ä[31mb\n\tc"


def test_the_tools_of_an_agent_leave_out_what_the_server_does() -> None:
    """The client stands alone, and has the list once more."""
    beside = [("a", "b"), ("ä", "ö"), ("\U0001f469", "\U0001f469"), ("\ufe0f", "\ufe0f")]
    differing = [
        (hex(code), before)
        for code in (*range(0x3000), 0x3164, *range(0xFE00, 0x10000), *range(0xE0000, 0xE1000))
        for before, behind in beside
        if chr(code) not in "\r\u2028\u2029" and not 0xD800 <= code < 0xE000
        if visible(before + chr(code) + behind) != untrusted.visible(before + chr(code) + behind)
    ]
    assert differing == []


def test_formatting_that_is_never_closed_does_not_nest_deeper_with_every_block() -> None:
    """As in browsers, which repeat no more than three that are alike."""
    depth = deepest = 0
    for piece in nesting.nested("<p><b><font color=red>word" * 500):
        depth += isinstance(piece, Open) - isinstance(piece, Close)
        deepest = max(depth, deepest)
    assert deepest <= 3 * 2 + 3
    assert read_page("<p><b>one" * 50).text.split() == ["one"] * 50
    hidden = read_page("<p><b>" * 9 + "<p><b style='display:none'>hidden<p>still hidden")
    assert "hidden" not in hidden.text
