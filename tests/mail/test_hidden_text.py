"""Words that a browser does not show are left out or marked; those that it shows stay as they are."""

import re
from collections import Counter
from pathlib import Path

from postroom_mail.html.layout import DOUBT
from postroom_mail.html.page import read_page
from postroom_mail.html.text import html_to_text
from postroom_mail.html.visibility import MAX_STEPS
from postroom_mail.screening.examine import Subject, examine
from tests.mail.hiding_tricks import HARMLESS, TRICKS, WORDS, Trick
from tests.samples import samples

UNSEEN_BY_US = "covered by something"
NEWSLETTER = """<!DOCTYPE html><html><head><style type="text/css">
  .ExternalClass, .ExternalClass p { line-height: 100% } #outlook a { padding: 0 }
  u + .body .gmail { display: none } a[x-apple-data-detectors] { color: inherit !important }
  .button a { color: #ffffff !important; background: #1155cc } .li:last-child { border: 0 }
  @media only screen and (max-width: 600px) { .wide { display: none !important } }
  @media (prefers-color-scheme: dark) { .dark { color: #fff !important } }
  @supports (-webkit-overflow-scrolling: touch) { .wide { width: 100% } }
  @-ms-viewport { width: device-width } .x:hover { opacity: 0 } .fade { transition: opacity 1s }
</style></head><body class="body"><table role="presentation"><tr><td class="wide dark li x fade"
 style="mso-hide:all;filter:alpha(opacity=50);background:#fff url(a.png) no-repeat center / cover;color:#333">
 <p class="button"><a href="https://x.example/">Read more</a></p> Tea for two</td></tr></table></body>"""


def outcome(trick: Trick) -> str:
    page = read_page(trick.html())
    if WORDS not in " ".join(page.text.split()):
        return "left out"
    is_marked = any(hidden.is_doubtful and WORDS in hidden.text for hidden in page.hidden)
    return "marked" if is_marked else "shown"


@samples("trick", [trick for trick in TRICKS if trick.group != UNSEEN_BY_US])
def test_words_that_a_browser_does_not_show_are_left_out_or_marked(trick: Trick) -> None:
    assert outcome(trick) in ("left out", "marked")


@samples(
    "body",
    [
        "<canvas>WORDS</canvas>",
        "<canvas><p>WORDS</p></canvas>",
        "<math><mi>x</mi><mphantom>WORDS</mphantom></math>",
        "<math><semantics><mi>x</mi><annotation>WORDS</annotation></semantics></math>",
        '<math><semantics><mi>x</mi><annotation-xml encoding="a/b"><b>WORDS</b></annotation-xml></math>',
    ],
)
def test_words_that_some_programs_show_and_others_do_not_are_marked(body: str) -> None:
    assert outcome(Trick("", "", body, is_seen=True)) == "marked"


def test_the_words_of_a_formula_stay_unmarked() -> None:
    assert outcome(Trick("", "", "<math><mtext>WORDS</mtext></math>", is_seen=True)) == "shown"


@samples("trick", HARMLESS)
def test_words_that_a_browser_shows_stay_unmarked(trick: Trick) -> None:
    assert outcome(trick) == "shown"


def test_the_page_about_hidden_text_tells_of_each_group_what_is_caught() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hidden-text.md").read_text()
    written = re.findall(
        r"^\| ([a-z ]+) \| [^|]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE
    )
    counted: dict[str, Counter[str]] = {}
    for trick in [*TRICKS, *HARMLESS]:
        counted.setdefault(trick.group, Counter())[outcome(trick)] += 1
    assert written == [
        (group, str(found.total()), *(str(found[word]) for word in ("left out", "marked", "shown")))
        for group, found in counted.items()
    ]


def test_what_is_in_doubt_is_marked_and_raises_a_signal() -> None:
    html = (
        "<style>.x:sparkling{display:none}</style><p>Dear Ann,</p><p class=x>pay <b>today</b></p><p>Bye</p>"
    )
    assert html_to_text(html) == f"Dear Ann,\n\n{DOUBT}pay today]\n\nBye"
    (signal,) = examine(Subject(body_text=html_to_text(html), body_html=html)).signals
    assert (signal.name, signal.excerpt) == ("hidden_text", "pay today")


def test_an_ordinary_newsletter_is_neither_cut_nor_marked() -> None:
    page = read_page(NEWSLETTER)
    assert page.text == "Read more\n\nTea for two"
    assert page.hidden == []


def test_rules_beyond_those_that_are_read_leave_all_in_doubt() -> None:
    rules = "".join(f".a{number}{{color:red}}" for number in range(6_000))
    assert html_to_text(f"<style>{rules}.x{{display:none}}</style><p class=x>secret") == f"{DOUBT}secret]"


def test_comparing_selectors_has_an_end_and_leaves_a_doubt() -> None:
    rule = f".b {'.a ' * 10}.x{{display:none}}"
    deep = "<i class=b></i>" + "<div class=a>" * 400
    page = read_page(
        f"<style>{rule}</style>{deep}" + "".join(f"<p class='x {n}'>w{n}</p>" for n in range(99))
    )
    assert page.hidden[-1].is_doubtful
    assert MAX_STEPS < 1_000_000


@samples("width", ["600px", "37.5em"])
def test_words_said_twice_for_two_widths_are_not_hidden_ones(width: str) -> None:
    words = "The market opens at nine on Saturday, with bread, honey and flowers from the valley. " * 4
    narrow = f"@media (max-width:{width}){{.w{{display:none}}.m{{display:block}}}}"
    sheet = f"<style>.m{{display:none}}{narrow}</style>"
    html = f"{sheet}<p class=w>{words}</p><p class=m>{words}</p>"
    assert examine(Subject(body_text=html_to_text(html), body_html=html)).signals == ()
