"""The quote under a reply follows the contract and cannot be broken by what is quoted."""

import re

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.writing.quote import quote_html, quote_text

AT = 1_794_650_700_000
DATE = "Sat, 14 Nov 2026 10:05:00 +0000"


def test_text_is_quoted_line_by_line_below_a_blank_line() -> None:
    assert quote_text("Yes.", "Shall we?\n\nCharles\n", "Charles <c@engine.example>", AT) == (
        f"Yes.\n\nOn {DATE}, Charles <c@engine.example> wrote:\n> Shall we?\n> \n> Charles\n"
    )


def test_one_blank_line_stands_between_whatever_the_text_ends_with() -> None:
    assert quote_text("Yes.\r\n\r\n", "Hi", "c@x", AT).startswith("Yes.\n\nOn Sat")


def test_carriage_returns_in_the_previous_text_are_line_ends() -> None:
    assert quote_text("a", "one\r\ntwo\rthree", "c@x", AT).endswith("> one\n> two\n> three\n")


def test_a_sender_with_line_breaks_stays_on_the_attribution_line() -> None:
    assert f"On {DATE}, Eve x wrote:\n" in quote_text("a", "b", "Eve\r\n\x00x", AT)


def test_a_missing_sender_is_somebody() -> None:
    assert f"On {DATE}, somebody wrote:" in quote_text("a", "b", "", AT)


def test_a_huge_previous_text_is_cut() -> None:
    quoted = quote_text("a", "x" * 300_000, "c@x", AT)
    assert len(quoted) < 101_000
    assert quoted.endswith("\n> [...]\n")


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=500))
def test_every_line_below_the_attribution_is_marked(text: str, previous: str, sender: str) -> None:
    quoted = quote_text(text, previous, sender, AT)
    below = quoted[len(text.rstrip("\r\n")) :].removeprefix("\n\n")
    attribution, *lines = below.removesuffix("\n").split("\n")
    assert attribution.startswith("On ")
    assert attribution.endswith(" wrote:")
    assert lines
    assert all(line.startswith("> ") for line in lines)


def test_html_quotes_the_escaped_text() -> None:
    quoted = quote_html("<p>Yes.</p>", "a < b\n<script>x()</script>", 'Eve "E" <e@x>', AT)
    assert quoted.startswith("<p>Yes.</p>\n<br>\n<div>On Sat")
    assert "Eve &quot;E&quot; &lt;e@x&gt; wrote:</div>" in quoted
    assert "a &lt; b<br>\n&lt;script&gt;x()&lt;/script&gt;\n</blockquote>" in quoted


def test_the_quote_stays_inside_the_document() -> None:
    quoted = quote_html("<html><BODY>İ Yes</BODY\n></html>", "b", "c@x", AT)
    assert re.search(r"İ Yes\n<br>.*</blockquote>\n</BODY\n></html>\Z", quoted, re.S)
    assert quote_html("<html>Yes</html>", "b", "c@x", AT).endswith("</blockquote>\n</html>")


@given(st.text(max_size=200), st.text(max_size=100))
def test_nothing_quoted_becomes_a_tag(previous: str, sender: str) -> None:
    quoted = quote_html("", previous, sender, AT)
    assert set(re.findall(r"</?\w+", quoted)) <= {"<br", "<div", "</div", "<blockquote", "</blockquote"}
