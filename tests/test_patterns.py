"""No regular expression of the source takes more than linear time, by its form: nothing is measured."""

import re
from functools import cache
from typing import Any

from postroom_mail.html import visibility
from postroom_mail.mime import address
from tests import atomic_twins
from tests.pattern_trees import Tree
from tests.source_patterns import Found, Made, held, in_functions, is_searched, of_types

LINE_BREAKS = "a run in which it could begin again holds the line break that ends it"
ESCAPES = "its other branches take an escaped quote as one, so that none inside begins again"
# What is not linear by itself, with the reason why that does no harm.
BOUNDED: dict[str | bytes, str] = {
    r"https?://|www\.|\S+\.\S+/": "the label of a link, cut at 200 characters",
    r'"(?:[^"\\]++|\\.)*+"|<[^>]*+>|[^,"<]++|,|(?P<unclosed>["<])': "its reader stops where nothing closes",
    r".*(?:[.!?]\s|[\u3002\uff01\uff1f]|\n\s*\n)": "what stands before a code, as far as a sentence reaches",
    rb"\s*\n\s*|(?<=[{};:,]) +| +(?=[{}])": "our own style sheets, once",
}
# What is only known when it is asked for.
MADE_LATE = {
    "postroom.accounts.audit_erasure.mention_of": "an escaped address, with one sign at most beside it",
    "postroom.outward.holding.origin_ends._pattern": "at most 64 letters and digits, with signs between",
    "postroom.imap.reading.fetching._pattern_of": "at most 30 names, tried at the beginnings of lines alone",
    "postroom_mail.languages.patterns._compiled": "those of modules, which `held` sees",
    "postroom_mail.reports.reason_words._patterns": "of word lists, which `held` sees",
    "postroom_mail.search.snippet._pattern": "tokens between spaces; every repetition is possessive",
    "postroom_mail.screening.wording_rules.is_in": "a class of letters",
    "postroom.web.dashboard.display.assets._shorten": "our own style sheets, once",
    "postroom.web.dashboard.display.assets._names": "our own style sheets, once",
    "postroom.web.dashboard.display.signs.passages": "escaped words with at most a few signs between them",
    "postroom.web.requests.cookies._pattern": "the name of a cookie of ours, entered at a semicolon alone",
    "postroom.web.dashboard.display.attributes._between_tags": "the name of an element, once a template",
    "postroom_client.cli.doctor_checks._gauge": "a name of ours at the beginning of a line",
}
# What a search could enter at each character of a run by its form alone, and does not.
ENTERED_ONCE: dict[str | bytes, str] = {
    r"[.!?](?:\s|\Z)|[\u3002\uff01\uff1f]|\n\s*\n": LINE_BREAKS,
    r"[:\uff1a]|\w|[\u2013\u2014-]\s|\n\s*\n": LINE_BREAKS,
    r"[.!?]\s|[\u3002\uff01\uff1f]|\n\s*\n": LINE_BREAKS,
    r"[.!?](?=\s)|[\u3002\uff01\uff1f\u0964]|\n\s*\n": LINE_BREAKS,
    r'"(?:[^"\\]++|\\.)*+"|\\.|[()]': ESCAPES,
    address._TOKEN.pattern: "its reader goes on without quotes where one never ends",
    r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)": "our own lists of words, once",
    r'(?:^|;)[ \t]*+for=("?)([^";,\s]*+)\1[ \t]*+(?=;|$)': "entered at the beginning or at a semicolon",
    visibility._VARIABLE.pattern: "a bracket inside of two others ends it: it reads three calls at most",
    r"<!--.*?-->|<(/?[a-zA-Z][^\s/>]*)": "our own templates, once",
    r"\[([^\]]+)\]\([^)]+\)": "our own help texts, once",
    r"""([^\s"'=<>/]+)\s*=\s*(["'])|>""": "our own templates, once",
}


@cache
def patterns() -> list[tuple[tuple[str, ...], Tree]]:
    """Each once, with all the places that hold it."""
    places: dict[tuple[Any, int], list[Found]] = {}
    for each in (*held(), *of_types(), *(each for each in in_functions() if isinstance(each, Found))):
        places.setdefault((each.pattern.pattern, each.pattern.flags), []).append(each)
    return [(tuple(each.place for each in found), Tree(found[0].pattern)) for found in places.values()]


def test_no_pattern_can_share_the_same_characters_out_in_two_ways() -> None:
    everything = patterns()
    assert len(everything) > 200
    found = {
        places: (tree.pattern.pattern, shared)
        for places, tree in everything
        if tree.pattern.pattern not in BOUNDED and (shared := tree.ambiguities())
    }
    assert found == {}
    kept = {tree.pattern.pattern for _, tree in everything}
    assert set(BOUNDED) <= kept, "an exception for what is not there any more"


def test_a_pattern_that_is_made_late_is_known_to_be_harmless() -> None:
    made = {each.place for each in in_functions() if isinstance(each, Made)}
    assert made == set(MADE_LATE)


def test_the_forms_that_take_forever_are_seen() -> None:
    """So that the test above cannot pass for want of sight."""
    bad = (
        *(
            "(a+)+b",
            "(?:a|a)*?(?:a*)*b",
            "(?:[^x]+|y)*z",
            r'"(?:[^"\\]+|\\.)*"',
            "(?:a{1,5})*b",
            "(?:a*x?)*b",
        ),
        *("a*a*b", r"\s*\s+x", "a*(a*)b", "[ab]+[bc]+d", ".*x.*y", r"\d+\d*-", "a*aa*b", "(?:x*)(?:y?)x*z"),
    )
    for text in bad:
        assert Tree(re.compile(text)).ambiguities(), text
    good = (
        "(?:a+,)*",
        "a*+a*",
        "(?:,a+)*x",
        "a*b*",
        r'"(?:[^"\\]++|\\.)*+"',
        "(?>a*)a*",
        r"\s*x\s*",
        "(?:ab)*c*",
    )
    for text in good:
        assert not Tree(re.compile(text)).ambiguities(), text


def test_no_search_begins_again_at_each_character_of_a_run() -> None:
    """What only ever looks at the beginning of a text cannot: `match` and `fullmatch` are asked once."""
    anchored = [places for places, _ in patterns() if not is_searched(places)]
    assert len(anchored) > 50
    found = {
        places: (tree.pattern.pattern, again)
        for places, tree in patterns()
        if is_searched(places) and tree.pattern.pattern not in BOUNDED | ENTERED_ONCE
        if (again := tree.restarts())
    }
    assert found == {}
    kept = {tree.pattern.pattern for _, tree in patterns()}
    assert set(ENTERED_ONCE) <= kept, "an exception for what is not there any more"


def test_searches_that_begin_again_are_seen() -> None:
    for text in ("a+b", "<[^>]*>", r"\s+$x", r"\w*?:", "(?:ab)+c", "a*+b", r'"(?:[^"\\]++|\\.)*+"', "x?a+b"):
        assert Tree(re.compile(text)).restarts(), text
    for text in ("a+", "<[^<>]*>", r"(?<!\s)\s+x", "^a+b", r"\bb+c", "a{1,80}b", "a+b?", "x(?:,y*)z"):
        assert not Tree(re.compile(text)).restarts(), text


def spans(pattern: re.Pattern[Any], text: Any) -> list[tuple[int, int]]:
    return [found.span() for found in pattern.finditer(text)]


def test_no_group_is_repeated_possessively_that_takes_a_sign_and_then_fails() -> None:
    """Else an older Python goes on behind that sign: a host was missed before a full stop."""
    wrong = []
    for places, tree in patterns():
        if twin := atomic_twins.twin_of(tree.pattern):
            texts = atomic_twins.texts_for(tree.pattern, 400)
            wrong += [places] if any(spans(tree.pattern, text) != spans(twin, text) for text in texts) else []
    assert wrong == []
